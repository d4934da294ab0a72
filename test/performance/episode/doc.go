// Package episode is the benchmark that llm-d publishes for its SLO-aware recipe
// (github.com/llm-d/llm-d, guides/workload-autoscaling/slo-aware/benchmark-templates at
// d38c9f0), in the simulated world: Qwen3-32B on pairs of H100, a load that goes from 2 to 10
// and down to 1 request per second, and 3 to 8 replicas that start in 100 s. The recipe, the
// other recipes and this project's own policies play it, each at what it ships.
//
// Read world first, then score.
package episode
