package closedloop

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// chat is the load of most cases.
var chat = capacity.TokenShape{Input: 512, Output: 256}

// fast and slow are servers of the same model: the slow one takes four times as long.
var (
	fast = serving.Profile{Base: 6, PerRequest: 0.05, PerResidentToken: 1e-5, PerPrefillToken: 0.02, KVTokens: 60_000, BatchLimit: 128}
	slow = serving.Profile{Base: 24, PerRequest: 0.2, PerResidentToken: 4e-5, PerPrefillToken: 0.08, KVTokens: 60_000, BatchLimit: 128}
)

// variant is one with the default policy on devices of which there are enough.
func variant(name string, profile serving.Profile, cost capacity.Cost, replicas int) Variant {
	return Variant{
		Name: name, Accelerator: "H100", Devices: 1, Cost: cost, Profile: profile, Told: true,
		Startup: 30 * time.Second, Seen: true, Replicas: replicas, Policy: decision.DefaultVariantPolicy(),
	}
}

// constant is a scenario of one model with a constant load.
func constant(rate float64, variants ...Variant) *Scenario {
	return &Scenario{
		Nodes: []NodeGroup{{"H100", 10, 8}},
		Calm:  10 * time.Minute,
		Models: []Model{{
			Name: "model", Priority: decision.LeastPriority, Shape: chat, Load: []Point{{Rate: rate}}, Variants: variants,
		}},
	}
}

// hybrid makes it one with a promise.
func (s *Scenario) hybrid(slo capacity.SLO) *Scenario {
	s.Hybrid = true
	for i := range s.Models {
		s.Models[i].SLO = slo
	}
	return s
}

// each is what a replica of the scenario's first model serves at saturation.
func (s *Scenario) each(variant int) float64 {
	return newTruth(&s.Models[0], &s.Models[0].Variants[variant], s, 0).saturation.most
}

// holds plays a scenario and asserts that no check fails.
func holds(t *testing.T, s *Scenario) *world {
	t.Helper()
	w := run(s, decision.Decide, "")
	if len(w.story.failures) > 0 {
		assert.Fail(t, "the scenario failed", w.tell())
	}
	return w
}

func TestACheapVariantThatMissesThePromiseMakesNoCycle(t *testing.T) {
	t.Parallel()
	for _, replicas := range []float64{0.3, 0.8, 1.4, 1.7, 2.5, 3.6, 6.5} {
		for _, cost := range []capacity.Cost{0, 4, 10} {
			t.Run(fmt.Sprintf("%g replicas' load, cost %g", replicas, float64(cost)), func(t *testing.T) {
				t.Parallel()
				s := constant(1, variant("fast", fast, 10, 2), variant("slow", slow, cost, 1)).hybrid(capacity.SLO{TTFT: 1000, ITL: 8})
				s.Models[0].Load[0].Rate = replicas * newTruth(&s.Models[0], &s.Models[0].Variants[0], s, 0).promise.least
				holds(t, s)
			})
		}
	}
}

func TestAPromiseAtTheEdgeAsksForNoHundreds(t *testing.T) {
	t.Parallel()
	for _, itl := range []capacity.Milliseconds{6.0, 6.03, 6.06, 6.1, 6.2, 6.4, 6.6, 6.7, 7} {
		t.Run(fmt.Sprintf("ITL %g ms", float64(itl)), func(t *testing.T) {
			t.Parallel()
			w := holds(t, constant(8, variant("fast", fast, 10, 1)).hybrid(capacity.SLO{TTFT: 1000, ITL: itl}))
			assert.LessOrEqual(t, w.models[0].variants[0].highest, 64, w.tell())
		})
	}
}

func TestWhatTheCheapestMayNotAddAnotherVariantDoes(t *testing.T) {
	t.Parallel()
	for name, up := range map[string]decision.Behavior{
		"scaleUp is Disabled":       {Select: decision.SelectDisabled},
		"one replica in 30 minutes": {Select: decision.SelectMax, Policies: []decision.RatePolicy{{Pods: 1, Period: 30 * time.Minute}}},
		"a tolerance":               {Select: decision.SelectMax, Tolerance: 0.9},
		"a window of an hour":       {Select: decision.SelectMax, Window: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := constant(0, variant("cheap", fast, 4, 4), variant("dear", fast, 10, 0))
			s.Models[0].Variants[0].Policy.Up = up
			s.Models[0].Variants[0].OwnUp = len(up.Policies) > 0
			s.Models[0].Load = []Point{{Rate: 2 * s.each(0)}, {5 * time.Minute, 2 * s.each(0)}, {5*time.Minute + step, 7 * s.each(0)}}
			w := run(s, decision.Decide, "")
			assert.LessOrEqual(t, w.models[0].waited, 3*time.Minute, "requests queue beside free nodes\n%s", w.tell())
			for _, f := range w.story.failures {
				// With the slowest of these rules the cheap ones take the place of the dear ones for
				// hours, one after the other: that is no cycle, and meanwhile both are paid for.
				assert.True(t, f.check == CheckCycle || f.check == CheckDear && len(up.Policies) > 0, w.tell())
			}
			for _, v := range w.models[0].variants {
				assert.LessOrEqual(t, turns(v), 2, w.tell())
			}
		})
	}
}

// turns is how often the targets of a variant change their direction.
func turns(v *variantState) (n int) {
	up := true
	for _, write := range v.writes {
		if (write.to > write.from) != up {
			up = !up
			n++
		}
	}
	return n
}

func TestASwitchThatIsBlockedKeepsNoDearReplicas(t *testing.T) {
	t.Parallel()
	for _, cheap := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d cheap ones", cheap), func(t *testing.T) {
			t.Parallel()
			s := constant(1, variant("cheap", fast, 4, cheap), variant("dear", fast, 10, 8))
			s.Models[0].Variants[0].Policy.Up.Select = decision.SelectDisabled
			holds(t, s)
		})
	}
}

func TestReplicasWithoutCostGo(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 1} {
		t.Run(fmt.Sprintf("%g requests/s", rate), func(t *testing.T) {
			t.Parallel()
			holds(t, constant(rate, variant("free", fast, 0, 10)))
			holds(t, constant(rate, variant("free", fast, 0, 10), variant("other", fast, 10, 0)))
		})
	}
}

func TestTheMoreImportantModelGetsTheDevices(t *testing.T) {
	t.Parallel()
	s := constant(0, variant("a", fast, 10, 8))
	s.Limited = true
	s.Nodes = []NodeGroup{{"H100", 1, 8}}
	s.Models = append(s.Models, s.Models[0])
	s.Models[1].Variants = []Variant{variant("a", fast, 10, 0)}
	s.Models[0].Name, s.Models[1].Name = "less", "more"
	s.Models[0].Priority, s.Models[1].Priority = 50, 1
	s.Models[0].Load, s.Models[1].Load = []Point{{Rate: 7.5 * s.each(0)}}, []Point{{Rate: 2.5 * s.each(0)}}
	s.Models[1].Gateway = true
	holds(t, s)
}

func TestAnApplierThatResetsIsAConflict(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{5*time.Minute + 30*time.Second, 10 * time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			s := constant(0, variant("a", fast, 10, 4))
			s.Models[0].Load = []Point{{Rate: 3.5 * s.each(0)}}
			s.Models[0].Patience = time.Minute
			s.Calm = 3 * time.Hour
			s.Faults = []Fault{{Kind: FaultWriter, From: 10 * time.Minute, To: s.Calm, Count: 2, Every: every}}
			w := holds(t, s)
			tries, external := 0, true
			for _, write := range w.models[0].variants[0].writes {
				if write.at < s.Calm && !write.external && external {
					tries++
				}
				external = write.external
			}
			// Two to see that the same number comes again, and a back-off that doubles from five
			// minutes to an hour: five more within the three hours.
			assert.LessOrEqual(t, tries, 8, w.tell())
			assert.Positive(t, w.models[0].variants[0].fights, "no conflict is reported\n%s", w.tell())
		})
	}
}

func TestALoweredMaximumIsReplacedInTime(t *testing.T) {
	t.Parallel()
	for name, slo := range map[string]capacity.SLO{"capacity-only": {}, "hybrid": {TTFT: 1000, ITL: 20}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := constant(0, variant("cheap", fast, 4, 8), variant("other", fast, 10, 0))
			if slo != (capacity.SLO{}) {
				s.hybrid(slo)
			}
			s.Models[0].Load = []Point{{Rate: 6.5 * s.each(0)}}
			s.Faults = []Fault{{Kind: FaultMax, From: 6 * time.Minute, To: s.Calm, Count: 2}}
			w := holds(t, s)
			lowered, asked := time.Duration(0), time.Duration(0)
			for _, write := range w.models[0].variants[0].writes {
				if write.to < write.from && write.at >= s.Faults[0].From && lowered == 0 {
					lowered = write.at
				}
			}
			for _, write := range w.models[0].variants[1].writes {
				if write.to > write.from && asked == 0 {
					asked = write.at
				}
			}
			assert.Positive(t, asked, w.tell())
			assert.LessOrEqual(t, asked, lowered, "the replacement is asked for after the replicas went\n%s", w.tell())
		})
	}
}

func TestTheQueueOfAReplicaThatHangsIsNoDemand(t *testing.T) {
	t.Parallel()
	for _, even := range []bool{false, true} {
		t.Run(fmt.Sprintf("even %v", even), func(t *testing.T) {
			t.Parallel()
			s := constant(0, variant("a", fast, 10, 4))
			s.Models[0].Load = []Point{{Rate: 2.5 * s.each(0)}}
			s.Models[0].Even = even
			s.Calm = 3 * time.Hour
			s.Faults = []Fault{{Kind: FaultHang, From: 10 * time.Minute, To: s.Calm, Count: 1}}
			w := holds(t, s)
			// Three serve the load; the one that hangs, one for the growing share that an even
			// router sends to it, and one more. When it completes again, its queue is demand.
			highest := 0
			for _, write := range w.models[0].variants[0].writes {
				if write.at < s.Calm {
					highest = max(highest, write.to)
				}
			}
			assert.LessOrEqual(t, highest, 6, w.tell())
		})
	}
}

// Requests that wait in a replica are served by it alone: others can take over all that
// arrives, and no more. They are asked for by that, and those that are too many go before the
// queue is gone.
func TestTheQueueOfOneReplicaBuysWhatServesTheArrivals(t *testing.T) {
	t.Parallel()
	for _, gateway := range []bool{false, true} {
		t.Run(fmt.Sprintf("gateway %v", gateway), func(t *testing.T) {
			t.Parallel()
			s := constant(0, variant("a", fast, 10, 1))
			// One has to serve what takes four, for as long as no other finds a node.
			s.Models[0].Gateway, s.Models[0].Load = gateway, []Point{{Rate: 3.5 * s.each(0)}}
			s.Limited, s.Calm = true, 20*time.Minute
			s.Faults = []Fault{{Kind: FaultCordon, From: step, To: s.Calm}}
			w := holds(t, s)
			highest := 0
			for _, write := range w.models[0].variants[0].writes {
				highest = max(highest, write.to)
			}
			assert.LessOrEqual(t, highest, 6, w.tell())
		})
	}
}

func TestMetricsOfTheFutureLowerNothing(t *testing.T) {
	t.Parallel()
	s := constant(0, variant("a", fast, 10, 8))
	s.Models[0].Load = []Point{{Rate: 6.5 * s.each(0)}, {7 * time.Minute, 6.5 * s.each(0)}, {8 * time.Minute, 0.1}, {9 * time.Minute, 0.1}, {10 * time.Minute, 6.5 * s.each(0)}}
	s.Calm = 45 * time.Minute
	// The last that is seen is a moment without load.
	s.Faults = []Fault{{Kind: FaultFuture, From: 9 * time.Minute, To: 40 * time.Minute, Count: 1}}
	holds(t, s)
}

func TestACrashingRolloutDoesNotHoldScaleDownForEver(t *testing.T) {
	t.Parallel()
	for name, count := range map[string]int{"a pod more": 1, "a pod replaced": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := constant(0, variant("a", fast, 10, 8))
			s.Models[0].Load = []Point{{Rate: 6 * s.each(0)}, {12 * time.Minute, 6 * s.each(0)}, {13 * time.Minute, 0.5 * s.each(0)}}
			s.Calm = 3 * time.Hour
			s.Faults = []Fault{{Kind: FaultRollout, From: 10 * time.Minute, To: s.Calm, Count: count}}
			w := holds(t, s)
			for _, write := range w.models[0].variants[0].writes {
				if write.to <= 4 && write.at < 90*time.Minute {
					return
				}
			}
			assert.Fail(t, "nothing went within 75 minutes", w.tell())
		})
	}
}

func TestAnUnseenLongStartIsBoughtOnce(t *testing.T) {
	t.Parallel()
	for _, startup := range []time.Duration{5 * time.Minute, 15 * time.Minute, 20 * time.Minute} {
		t.Run(startup.String(), func(t *testing.T) {
			t.Parallel()
			s := constant(0, variant("a", fast, 10, 1))
			v := &s.Models[0].Variants[0]
			v.Startup, v.Seen = startup, false
			s.Models[0].Gateway = true
			s.Models[0].Patience = time.Minute
			s.Models[0].Load = []Point{{Rate: 0.5 * s.each(0)}, {5 * time.Minute, 0.5 * s.each(0)}, {5*time.Minute + step, 3.5 * s.each(0)}}
			w := holds(t, s)
			// Four serve the load; a minute's requests that wait need two more to be served within
			// two minutes, and as many again is what nobody can call a mistake.
			assert.LessOrEqual(t, w.models[0].variants[0].highest, 8, w.tell())
		})
	}
}

// Long prompts keep a replica busy with few requests in service and hardly any use of its
// cache: how many it holds is what it has in service while others wait. Else replicas were
// added one by one until the queue was gone, and all taken back at once, for ever.
func TestAReplicaMayBeFullOfPrompts(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"profile given": true, "profile not given": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busy := variant("busy", serving.FourParameter{Alpha: 47.89, Beta: 0.08889, Gamma: 20, Delta: 0.008228, MaxBatchSize: 226}.Profile(), 10, 0)
			busy.Profile.KVTokens, busy.Budget, busy.Told = 1_318_856, 512, told
			s := constant(129.6, busy)
			s.Nodes = []NodeGroup{{"H100", 100, 8}}
			s.Models[0].Shape = capacity.TokenShape{Input: 642, Output: 30}
			holds(t, s)
		})
	}
}

// A router that knows no load gives a slow replica that misses the promise as much as the
// others, more than it can do. What waits there is reckoned with when replicas are added and
// when they go: else one came and went every two minutes, for ever.
func TestAnOverloadedReplicaSwingsNoFleet(t *testing.T) {
	t.Parallel()
	for _, skew := range []float64{1.001, 1.3, 2, 4} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			t.Parallel()
			good := variant("good", serving.Profile{Base: 28.58, PerRequest: 0.03682, PerResidentToken: 6.921e-6, PerPrefillToken: 0.09301, BatchLimit: 68, KVTokens: 242_206}, 10, 0)
			slow := variant("slow", serving.Profile{Base: 68.5, PerRequest: 0.516, PerResidentToken: 6.808e-5, PerPrefillToken: 0.07289, BatchLimit: 103, KVTokens: 80_712}, 10, 1)
			s := constant(5.25, good, slow)
			s.Hybrid, s.Models[0].Skew = true, skew
			s.Models[0].Shape = capacity.TokenShape{Input: 654, Output: 548}
			s.Models[0].SLO = capacity.SLO{TTFT: 946.5, ITL: 43.972}
			holds(t, s)
		})
	}
}

// The user's policies say how fast a variant may grow, and not that replicas are to be asked for
// without end which find no node.
func TestPoliciesAskForNoEndOfReplicasWithoutANode(t *testing.T) {
	nowhere := variant("nowhere", fast, 10, 0)
	nowhere.Accelerator, nowhere.OwnUp = "L40S", true
	nowhere.Policy.Up.Policies = []decision.RatePolicy{{Pods: 4, Period: 2 * time.Minute}, {Percent: 87, Period: 85 * time.Second}}
	few := variant("few", fast, 10, 1)
	few.Policy.Max = 1
	s := constant(0, nowhere, few)
	s.Models[0].Load[0].Rate = 10 * s.each(1)
	w := watched(s, time.Hour)
	assert.LessOrEqual(t, w.models[0].variants[0].target, decision.DefaultPolicy().Growth.Pods, w.tell())
}
