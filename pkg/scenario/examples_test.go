package scenario_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// example is the scenario with that name, on one of its clusters.
func example(t *testing.T, name, cluster string) *replay.Scenario {
	t.Helper()
	e, ok := scenario.Named(name)
	require.True(t, ok, name)
	s, err := scenario.Parse(e.Data, scenario.Options{Cluster: cluster})
	require.NoError(t, err)
	return s
}

// played is one run of a policy on an example's own traffic.
func played(t *testing.T, s *replay.Scenario, policy string) (replay.Result, replay.Recording) {
	t.Helper()
	results, recordings, err := replay.Run(replay.Options{
		Scenario: s, Source: replay.Merge(s.Sources(1)), Policies: []string{policy}, Startups: []time.Duration{time.Minute}, Seed: 1, Record: true,
	})
	require.NoError(t, err)
	return results[0], recordings[0]
}

// needed is the load of an example's second day, and the replicas of each model that serve
// each of its minutes at the least price on the nodes that are left: needed[minute][model][variant].
func needed(t *testing.T, s *replay.Scenario) (replay.Load, [][][]int) {
	t.Helper()
	load, err := replay.Measure(s, replay.Merge(s.Sources(1)), 1)
	require.NoError(t, err)
	for m := range load {
		load[m] = load[m][s.Learning/time.Minute:]
	}
	all, rates := make([][][]int, len(load[0])), s.Rates(load)
	for minute := range all {
		// Models choose one after the other, and any of them may be the first.
		for first := 0; first < len(load) && all[minute] == nil; first++ {
			all[minute] = bought(t, s, first, func(m, v int) capacity.Rate { return rates[m][minute][v] }, func(m int) capacity.Rate { return load[m][minute].Rate })
		}
		require.NotNil(t, all[minute], "there is room for what is needed at each time")
	}
	return load, all
}

// bought are the replicas that serve the rates, each model at the least price on the nodes that
// those before it leave; nil where they do not suffice.
func bought(t *testing.T, s *replay.Scenario, first int, serves func(m, v int) capacity.Rate, needs func(m int) capacity.Rate) [][]int {
	t.Helper()
	cluster, all := s.Cluster.Clone(), make([][]int, len(s.Models))
	for k := range s.Models {
		m := (first + k) % len(s.Models)
		variants := s.Models[m].Variants
		options := make([]allocation.Option, len(variants))
		for v := range variants {
			slots, err := cluster.Slots(variants[v].Request)
			require.NoError(t, err)
			options[v] = allocation.Option{Cost: variants[v].Cost, Serves: serves(m, v), Most: slots}
		}
		for all[m] == nil {
			best := allocation.Cheapest(options, needs(m))
			if best.Unserved > 0 {
				return nil
			}
			left, fits := cluster.Clone(), true
			for v, n := range best.Replicas {
				for i := 0; i < n && fits; i++ {
					if _, fits = left.Place(variants[v].Request); !fits {
						// The variants are in each other's way.
						options[v].Most = i
					}
				}
			}
			if fits {
				all[m], cluster = best.Replicas, left
			}
		}
	}
	return all
}

func TestExamplesAreOfPublishedFiguresAndLeftToLearn(t *testing.T) {
	const h100, h200 = 81559.0 / 1024, 143771.0 / 1024
	// Weights in GiB and the cache of a token in KiB; gpt-oss-120b as vLLM loads it.
	figures := map[string]struct{ weights, token float64 }{
		"meta-llama/Llama-3.1-70B-Instruct": {70.55e9 / (1 << 30), 320},
		"meta-llama/Llama-3.3-70B-Instruct": {70.55e9 / (1 << 30), 320},
		"meta-llama/Llama-3.1-8B-Instruct":  {2 * 8.03e9 / (1 << 30), 128},
		"Qwen/Qwen3-32B":                    {2 * 32.762e9 / (1 << 30), 256},
		"openai/gpt-oss-120b":               {64.4, 40.5},
	}
	base := map[string]capacity.Milliseconds{
		"meta-llama/Llama-3.1-70B-Instruct H100 2": 17.23, "meta-llama/Llama-3.1-70B-Instruct H100 4": 10.98,
		"meta-llama/Llama-3.1-70B-Instruct H200 2": 13.13, "meta-llama/Llama-3.1-70B-Instruct H200 4": 9.13,
		"Qwen/Qwen3-32B H100 2": 14.36, "Qwen/Qwen3-32B H100 4": 9.08, "Qwen/Qwen3-32B H100 8": 6.95,
		"meta-llama/Llama-3.1-8B-Instruct H100 1": 6.46, "meta-llama/Llama-3.1-8B-Instruct H100 2": 4.47,
		"openai/gpt-oss-120b H200 1": 5.30, "openai/gpt-oss-120b H200 2": 4.38,
		"meta-llama/Llama-3.3-70B-Instruct H100 4": 10.98, "meta-llama/Llama-3.3-70B-Instruct H200 2": 13.13,
	}
	assert.Equal(t, []string{"two-models", "five-models", "failing-nodes", "four-cheap", "spot"}, names())
	for _, e := range scenario.Examples() {
		s := example(t, e.Name, "")
		assert.Greater(t, len(e.Description), 40)
		assert.NotContains(t, e.Description, "\n")
		assert.Equal(t, 3*time.Hour, s.Learning, "a day")
		assert.True(t, s.Policy.Limited)
		assert.Len(t, s.Sources(1), len(s.Models), "every model has traffic of its own")
		for _, m := range s.Models {
			assert.Positive(t, m.SLO.TTFT)
			assert.Positive(t, m.SLO.ITL)
			for _, v := range m.Variants {
				assert.Equal(t, serving.Profile{}, v.Given, "%s: %s: nothing is known of it", e.Name, v.Name)
				shape, f := v.Request.Shape, figures[m.ID]
				assert.InDelta(t, float64(base[fmt.Sprintf("%s %s %d", m.ID, shape.Accelerator, shape.Devices)]), float64(v.Profile.Base), 0, v.Name)
				memory := map[capacity.Accelerator]float64{"H100": h100, "H200": h200}[shape.Accelerator]
				free := float64(shape.Devices)*(0.9*memory-2.05) - f.weights
				assert.InDelta(t, 16*math.Floor(free*(1<<20)/f.token/16), float64(v.Profile.KVTokens), 0, v.Name)
				price := map[capacity.Accelerator]float64{"H100": 6.88, "H200": 7.912}[shape.Accelerator]
				if strings.Contains(v.Name, "spot") {
					price = 2.69
				}
				assert.InDelta(t, price*float64(shape.Devices), float64(v.Cost), 1e-9, v.Name)
			}
		}
	}
}

func names() (all []string) {
	for _, e := range scenario.Examples() {
		all = append(all, e.Name)
	}
	return all
}

// Models share a cluster of which so much is taken. The busiest times differ, and in the
// fuller one what the models need at their own busiest times does not fit together.
func TestModelsShareAFullCluster(t *testing.T) {
	for _, c := range []struct {
		name   string
		models int
	}{{"two-models", 2}, {"five-models", 5}} {
		for cluster, busy := range map[string]float64{"busy-60": 0.6, "busy-85": 0.85} {
			t.Run(c.name+" "+cluster, func(t *testing.T) {
				s := example(t, c.name, cluster)
				require.Len(t, s.Models, c.models)
				all, free := map[capacity.Accelerator]int{}, map[capacity.Accelerator]int{}
				for _, n := range s.Cluster.Nodes {
					all[n.Accelerator] += n.Allocatable.Devices
					free[n.Accelerator] += n.Free.Devices
				}
				for accelerator, devices := range all {
					assert.InDelta(t, busy, 1-float64(free[accelerator])/float64(devices), 0.02, "%s", accelerator)
				}

				load, replicas := needed(t, s)
				peaks, most, together := map[int]bool{}, 0, 0
				for m := range load {
					peak, devices := 0, 0
					for minute := range load[m] {
						if load[m][minute].Rate > load[m][peak].Rate {
							peak = minute
						}
						devices = max(devices, taken(s, replicas[minute], m, "H100"))
					}
					peaks[peak/30] = true
					most += devices
				}
				for minute := range replicas {
					now := 0
					for m := range load {
						now += taken(s, replicas[minute], m, "H100")
					}
					together = max(together, now)
				}
				assert.Len(t, peaks, c.models, "each at another time")
				assert.LessOrEqual(t, together, free["H100"])
				if cluster == "busy-85" {
					assert.Greater(t, most, free["H100"], "not all of them at their most")
				} else {
					assert.LessOrEqual(t, most, free["H100"])
				}
			})
		}
	}
}

// taken is how many devices of a kind the replicas of a model take.
func taken(s *replay.Scenario, replicas [][]int, model int, kind capacity.Accelerator) (devices int) {
	for v, n := range replicas[model] {
		if shape := s.Models[model].Variants[v].Request.Shape; shape.Accelerator == kind {
			devices += n * shape.Devices
		}
	}
	return devices
}

// on are the replicas that moved to a stage on some nodes, and when.
func on(r replay.Recording, stage simulation.Stage, from, to time.Duration, nodes ...string) (replicas []string, times []time.Duration) {
	for _, m := range r.Moves {
		if m.Stage == stage && m.At >= from && m.At <= to && m.Node >= 0 && slices.Contains(nodes, r.Nodes[m.Node].Name) {
			replicas, times = append(replicas, m.Replica), append(times, m.At)
		}
	}
	return replicas, times
}

const h = time.Hour

// At the peak two nodes fail that hold half of what serves; one more takes no replicas.
func TestNodesFailInThePeak(t *testing.T) {
	s := example(t, "failing-nodes", "")
	load, _ := needed(t, s)
	highest := slices.IndexFunc(load[0], func(m replay.Minute) bool {
		return !slices.ContainsFunc(load[0], func(other replay.Minute) bool { return other.Rate > m.Rate })
	})
	assert.InDelta(t, 90, highest, 15, "the busiest minute of the day")
	const fails = 4*h + 30*time.Minute
	for policy, lost := range map[string]int{"hybrid": 3, "hpa:rps=4.5": 3} {
		t.Run(policy, func(t *testing.T) {
			result, r := played(t, s, policy)
			silent, times := on(r, simulation.NotReady, 0, 6*h, "h100-0", "h100-1")
			assert.GreaterOrEqual(t, len(silent), lost, "replicas are lost")
			before := 0
			for _, v := range r.Models[0].Variants {
				before += v.Ready[int((fails-time.Second)/r.Step)-1]
			}
			assert.GreaterOrEqual(t, 3*len(silent), before, "a third of those that served, or more")
			for _, at := range times {
				assert.Equal(t, fails+50*time.Second, at, "when the cluster knows")
			}
			assert.Positive(t, result.Failed, "their requests fail")
			_, gone := on(r, simulation.Gone, fails, fails+10*time.Minute, "h100-0", "h100-1")
			for _, at := range gone {
				assert.LessOrEqual(t, at, fails+350*time.Second)
			}
			later, _ := on(r, simulation.Placed, fails+50*time.Second, fails+40*time.Minute-1, "h100-0", "h100-1")
			assert.Empty(t, later, "nothing starts on a node that is not ready")
			cordoned, _ := on(r, simulation.Placed, 4*h, 5*h+10*time.Minute-1, "h100-4")
			assert.Empty(t, cordoned)
		})
	}
}

// Four replicas of the cheapest variant fit and no more; the night needs fewer, the day
// needs others too.
func TestOnlyFourOfTheCheapestFit(t *testing.T) {
	s := example(t, "four-cheap", "")
	cheap := s.Models[0].Variants[0]
	slots, err := s.Cluster.Slots(cheap.Request)
	require.NoError(t, err)
	assert.Equal(t, 4, slots)
	_, replicas := needed(t, s)
	least, most, others := 4, 0, 0
	for _, minute := range replicas {
		n := minute[0]
		assert.LessOrEqual(t, n[0], 4)
		least, most, others = min(least, n[0]), max(most, n[0]), max(others, n[1]+n[2])
		if n[1]+n[2] == 0 {
			least = min(least, n[0])
		}
	}
	assert.Equal(t, 4, most, "all of them by day")
	assert.Less(t, least, 4, "fewer at night, so that it is the cheapest")
	assert.GreaterOrEqual(t, others, 3, "and the others beside them")
}

// The spot nodes go at 3:50 with two minutes' notice: their replicas are told at once, are
// gone with them at 3:52, and none comes back before 4:32.
func TestSpotNodesAreTakenAwayWithTwoMinutesNotice(t *testing.T) {
	s := example(t, "spot", "")
	spot := []string{"spot-0", "spot-1", "spot-2"}
	slots := func(v int) int {
		n, err := s.Cluster.Slots(s.Models[0].Variants[v].Request)
		require.NoError(t, err)
		return n
	}
	assert.Equal(t, []int{12, 12, 16}, []int{slots(0), slots(1), slots(2)}, "each on nodes of its own")
	const notice, taken, back = 3*h + 50*time.Minute, 3*h + 52*time.Minute, 4*h + 32*time.Minute
	_, r := played(t, s, "hybrid")
	told, times := on(r, simulation.Leaving, notice, taken, spot...)
	require.GreaterOrEqual(t, len(told), 4, "replicas are told")
	for _, at := range times {
		assert.Equal(t, notice, at)
	}
	gone, times := on(r, simulation.Gone, notice, back, spot...)
	assert.Subset(t, gone, told)
	assert.LessOrEqual(t, slices.Max(times), taken)
	held, _ := on(r, simulation.Placed, notice, back-1, spot...)
	assert.Empty(t, held, "while they are away")
	held, _ = on(r, simulation.Placed, back, 6*h, spot...)
	assert.NotEmpty(t, held, "they are used again")
	for _, m := range r.Moves {
		if m.Node >= 0 {
			assert.Equal(t, m.Variant.Variant == 0, strings.HasPrefix(r.Nodes[m.Node].Name, "spot-"), "%+v", m)
		}
	}
}

// What the simulated world says of a node is what the inventory says of a real one.
func TestNodesShowTheirOutagesAsRealOnesDo(t *testing.T) {
	for why, change := range map[string]func(*corev1.Node){
		simulation.OutCordoned: func(n *corev1.Node) { n.Spec.Unschedulable = true },
		simulation.OutNotReady: func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		},
		simulation.OutReclaimed: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
		},
	} {
		var node corev1.Node
		change(&node)
		assert.Equal(t, why, inventory.Out(&node))
	}
}
