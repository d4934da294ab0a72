// Package rival has the rules of other autoscalers that a replay of this project's own does
// not try: Knative's pod autoscaler (kpa), the planner of Dynamo (planner), the two
// published saturation rules (saturation-v1, saturation-v2), and the four recipes of llm-d
// (llmd-queue, llmd-saturation, llmd-tokens, llmd-slo). HPA and KEDA are in package replay.
//
// Each rule is built from what its project publishes, which its doc comment names, and tested
// against their examples. A program that links this package can parse and play them: it
// registers them with package replay.
//
// Read rivals first, then one of the rules; recipe.go says what a recipe is.
package rival
