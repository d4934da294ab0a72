package rival

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

// The thresholds that the recipes ship.
const (
	recipeQueue      = 1
	recipeRunning    = 16
	recipeSaturation = 0.7
	recipeBacklog    = 1.5
	recipeCache      = 0.8
	// recipeVelocity is peakPrefillThroughput, the prompt tokens per second that one replica
	// computes: as shipped that of Qwen3-32B on two H100. The guide has it measured anew.
	recipeVelocity = 15928
)

// The thresholds of the router's utilization-detector (github.com/llm-d/llm-d-router at
// 39142fb, pkg/epp/framework/plugins/flowcontrol/saturationdetector/utilization): the waiting
// requests and the used share of the KV cache at which a replica is full.
const (
	detectorQueue = 5
	detectorCache = 0.8
)

var tokenSettings = []replay.Setting{
	{Key: "velocity", Form: replay.NumberOf(0, mostTarget, "peakPrefillThroughput, the prompt tokens per second that one replica computes, above 0, such as 15928")},
}

// patient is the behaviour of the queue and the saturation recipe: both windows are as long
// as a start-up may take.
func patient() horizontal.Behavior {
	const window = 300 * time.Second
	double := decision.RatePolicy{Percent: 100, Period: 15 * time.Second}
	return horizontal.Behavior{Up: rates(window, double), Down: rates(window, double)}
}

// newQueueRecipe scales by what the router holds back and by what runs:
//
//	max(ceil(queue / 1), ceil(running / 16)), from 1 to 8 replicas
func newQueueRecipe(s *replay.Scenario, spec replay.Spec, choice []int) (*signals, error) {
	r, err := newRecipe(s, spec, choice, shipped{1, 8, patient()})
	return &signals{r, []signal{
		{"sum(llm_d_epp_flow_control_queue_size)", recipeQueue, func(m *replay.ModelView) float64 { return poolOf(m).queue }},
		{"sum(llm_d_epp_request_running)", recipeRunning, func(m *replay.ModelView) float64 { return poolOf(m).running }},
	}}, err
}

// newSaturationRecipe scales by how full the replicas are, and by what runs:
//
//	max(ceil(saturation / 0.7), ceil(running / 16)), from 1 to 10 replicas
//
// The saturation is a mean over the replicas and does not grow with them. So by itself it asks
// for two replicas at most, however many there are, unless the replicas are fuller than full.
func newSaturationRecipe(s *replay.Scenario, spec replay.Spec, choice []int) (*signals, error) {
	r, err := newRecipe(s, spec, choice, shipped{1, 10, patient()})
	return &signals{r, []signal{
		{"max(llm_d_epp_flow_control_pool_saturation)", recipeSaturation, func(m *replay.ModelView) float64 { return poolOf(m).saturation }},
		{"sum(llm_d_epp_request_running)", recipeRunning, func(m *replay.ModelView) float64 { return poolOf(m).running }},
	}}, err
}

// newTokenRecipe scales by the seconds of prompts that replicas still have to compute, and by
// their full KV caches:
//
//	max(ceil(tokens / velocity / 1.5), ceil(sum(used) / 0.8)), from 1 to 10 replicas
//
// The tokens are those of prompts that a replica has and whose first token is not there yet,
// as the router's inflight-load-producer counts them. That it does not count what a prefix
// cache has is not modelled: here all tokens of a prompt count.
func newTokenRecipe(s *replay.Scenario, spec replay.Spec, choice []int) (*signals, error) {
	r, err := newRecipe(s, spec, choice, shipped{1, 10, horizontal.Behavior{
		Up:   rates(0, decision.RatePolicy{Pods: 1, Period: 180 * time.Second}),
		Down: rates(300*time.Second, decision.RatePolicy{Pods: 1, Period: 300 * time.Second}),
	}})
	velocity := spec.Float("velocity", recipeVelocity)
	return &signals{r, []signal{
		{"sum(llm_d_epp_inflight_tokens) / " + number(velocity), recipeBacklog, func(m *replay.ModelView) float64 {
			return overPods(m, func(s replay.Scrape) float64 { return float64(s.Prefilling) }) / velocity
		}},
		{"sum(vllm:kv_cache_usage_perc)", recipeCache, func(m *replay.ModelView) float64 { return overPods(m, replay.Scrape.KVUse) }},
	}}, err
}

// overPods is the sum over the last scrapes of all replicas of a model.
func overPods(m *replay.ModelView, value func(replay.Scrape) float64) float64 {
	sum := 0.0
	for v := range m.Variants {
		for _, pod := range m.Variants[v].Pods {
			if last, ok := pod.Last(); ok {
				sum += value(last)
			}
		}
	}
	return sum
}

// pool is what the router's metrics say of the replicas of a model.
type pool struct {
	// queue is what its flow control holds back, and running what it has sent on and has no
	// end yet.
	queue, running float64
	// saturation is the mean of how full the replicas are.
	saturation float64
}

// poolOf is a pool with flow control, as the guides turn it on. The router then sends nothing
// on while the saturation is at least 1,
//
//	saturation = mean(max(waiting/5, used/0.8)), and 1 without any replica,
//
// and holds back what would wait elsewhere. The simulated router sends everything on, so what
// would be held waits in the replicas. It is told apart here: where the caches are that full,
// all of it, and else what is more than five requests for each replica. When a request gets its
// first token is hardly different. That those which run end, and that the caches so stay below
// 0.8, is not modelled.
func poolOf(m *replay.ModelView) pool {
	var waiting, inFlight, cache []float64
	for v := range m.Variants {
		for _, pod := range m.Variants[v].Pods {
			if last, ok := pod.Last(); ok {
				waiting, inFlight, cache = append(waiting, float64(last.Waiting)), append(inFlight, last.InFlight()), append(cache, last.KVUse())
			}
		}
	}
	var p pool
	if n := len(m.Gateway); n > 0 {
		p.queue = float64(m.Gateway[n-1].Queue)
	}
	n := float64(len(waiting))
	if n == 0 {
		p.saturation = 1
		return p
	}
	all := n * mean(waiting)
	held := max(0, all-detectorQueue*n)
	if mean(cache) >= detectorCache {
		held = all
	}
	p.queue += held
	p.running = n*mean(inFlight) - held
	for i := range waiting {
		left := 0.0
		if all > 0 {
			left = waiting[i] * (1 - held/all)
		}
		p.saturation += max(left/detectorQueue, cache[i]/detectorCache) / n
	}
	return p
}
