// Package rival has the rules of other autoscalers that a replay of this project's own does
// not try: Knative's pod autoscaler (kpa), the planner of Dynamo (planner), and the two
// published saturation rules (saturation-v1, saturation-v2). HPA and KEDA are in package
// replay.
//
// Each rule is built from what its project publishes, which its doc comment names, and tested
// against their examples. A program that links this package can parse and play them: it
// registers them with package replay.
//
// Read rivals first, then one of the rules.
package rival
