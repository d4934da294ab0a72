package modelserver

import "llmd.ai/workload-variant-autoscaler/pkg/capacity"

// The ends of the buckets of the latencies by default, without the infinite one. vLLM: 0.8 to
// 0.29, vllm/v1/metrics/loggers.py and later buckets.py; version 0 of its engine had the same
// ones up to 10 s and 2.5 s. SGLang: 0.4 to 0.5, srt/metrics/collector.py and later
// srt/observability/metrics_collector.py, unless its arguments give others.
var (
	firstTokenEnds = map[Engine][]capacity.Milliseconds{
		VLLM:   {1, 5, 10, 20, 40, 60, 80, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000, 20_000, 40_000, 80_000, 160_000, 640_000, 2_560_000},
		SGLang: {100, 200, 400, 600, 800, 1000, 2000, 4000, 6000, 8000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 200_000, 400_000},
	}
	interTokenEnds = map[Engine][]capacity.Milliseconds{
		VLLM:   {10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2500, 5000, 7500, 10_000, 20_000, 40_000, 80_000},
		SGLang: {2, 4, 6, 8, 10, 15, 20, 25, 30, 35, 40, 60, 80, 100, 200, 400, 600, 800, 1000, 2000, 4000, 6000, 8000},
	}
)

// FirstTokenEnds are the ends of the buckets in which the engine counts times to the first
// token, ascending; InterTokenEnds those of the times per further token, of each token and of
// a request's mean.
func (e Engine) FirstTokenEnds() []capacity.Milliseconds { return firstTokenEnds[e] }

// InterTokenEnds are described with FirstTokenEnds.
func (e Engine) InterTokenEnds() []capacity.Milliseconds { return interTokenEnds[e] }
