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

// A switch to two variants, of which one serves in seconds and the other in a quarter of an
// hour: what serves first must not go before the rest is there, or it starts again for ever.
func TestASwitchWaitsForTheSlowestOfItsReplicas(t *testing.T) {
	t.Parallel()
	s := constant(37.09,
		Variant{
			Name: "b", Accelerator: "A100", Devices: 1, Told: true, Seen: true, Startup: 5 * time.Second, OwnUp: true, Policy: decision.DefaultVariantPolicy(),
			Profile: serving.Profile{Base: 12.93, PerRequest: 0.2578, PerResidentToken: 8.892e-6, PerPrefillToken: 0.08414, BatchLimit: 417, KVTokens: 1136312},
		},
		Variant{
			Name: "c", Accelerator: "H100", Devices: 1, Cost: 10, Told: true, Seen: true, Startup: 10 * time.Second, Policy: decision.DefaultVariantPolicy(),
			Profile: serving.Profile{Base: 18.78, PerRequest: 0.1669, PerResidentToken: 3.07e-6, PerPrefillToken: 0.05372, BatchLimit: 83, KVTokens: 268676},
		},
		Variant{
			Name: "d", Accelerator: "A100", Devices: 1, Told: true, Seen: true, Startup: 16*time.Minute + 50*time.Second, OwnUp: true, Policy: decision.DefaultVariantPolicy(),
			Profile: serving.Profile{Base: 35.16, PerRequest: 0.03311, PerResidentToken: 5.7e-5, PerPrefillToken: 0.04812, BatchLimit: 18, KVTokens: 61582},
		})
	s.Nodes = []NodeGroup{{"H100", 100, 8}, {"A100", 100, 8}}
	s.Models[0].Shape = capacity.TokenShape{Input: 685, Output: 37}
	s.Models[0].SLO = capacity.SLO{TTFT: 4256}
	s.Models[0].Variants[0].Policy.Up = decision.Behavior{Select: decision.SelectMin, Policies: []decision.RatePolicy{{Pods: 2, Period: 65 * time.Second}, {Percent: 71, Period: 170 * time.Second}}}
	s.Models[0].Variants[2].Policy.Up = decision.Behavior{Select: decision.SelectMax, Policies: []decision.RatePolicy{{Pods: 4, Period: 85 * time.Second}}}
	holds(t, s)
}

// A switch is judged by where it leads and not by what scaleUp allows at once: one small
// replica a minute lets no large one go, and seven of them let all go.
func TestASwitchIsNotJudgedByItsFirstReplicas(t *testing.T) {
	t.Parallel()
	for name, up := range map[string]decision.Behavior{
		"some at once":   {Select: decision.SelectMax, Policies: []decision.RatePolicy{{Pods: 1, Period: time.Minute}}},
		"one by one":     {Select: decision.SelectMax, Policies: []decision.RatePolicy{{Pods: 1, Period: 5 * time.Minute}}},
		"but not at all": {Select: decision.SelectDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := constant(0, variant("large", fast, 10, 2), variant("small", slow, 1, 0))
			s.Models[0].Load[0].Rate = 1.4 * s.each(0)
			s.Models[0].Variants[1].Policy.Up = up
			s.Models[0].Variants[1].OwnUp = true
			w := holds(t, s)
			large, small := w.models[0].variants[0].target, w.models[0].variants[1].target
			if up.Select == decision.SelectDisabled {
				assert.Equal(t, []int{2, 0}, []int{large, small})
			} else {
				assert.Zero(t, large, "%s", w.tell())
			}
		})
	}
}

// Where the nodes cannot be read, only a start that fails shows how many replicas fit. A
// switch to more than that is not tried again and again: it starts replicas that go again.
func TestASwitchThatFoundNoRoomIsNotTriedForEver(t *testing.T) {
	t.Parallel()
	s := constant(0, variant("dear", fast, 100, 0), variant("cheap", slow, 4, 1))
	s.Models[0].Variants[0].Accelerator = "A100"
	s.Models[0].Variants[1].Devices = 4
	s.Nodes = []NodeGroup{{"H100", 1, 8}, {"A100", 100, 8}}
	s.Models[0].Load[0].Rate = 3.3 * s.each(1)
	s.Hidden = true
	holds(t, s)
}

// What a replica holds is seen while it serves and not forgotten when the last one is gone: a
// variant that turned out to serve less than it was taken to is not tried again for ever.
func TestWhatAReplicaHoldsIsNotForgotten(t *testing.T) {
	t.Parallel()
	s := constant(188.4,
		Variant{
			Name: "a", Accelerator: "H100", Devices: 1, Cost: 10, Seen: true, Startup: 30 * time.Second, Policy: decision.DefaultVariantPolicy(),
			Profile: serving.Profile{Base: 6.933, PerRequest: 0.1842, PerPrefillToken: 0.003068, BatchLimit: 16, KVTokens: 397134},
		},
		Variant{
			Name: "c", Accelerator: "A100", Devices: 1, Cost: 27.42, Seen: true, Startup: 5 * time.Second, Replicas: 3, Policy: decision.DefaultVariantPolicy(),
			Profile: serving.Profile{Base: 9.958, PerRequest: 0.2911, PerResidentToken: 2.571e-5, PerPrefillToken: 0.0102, BatchLimit: 473, KVTokens: 457980},
		})
	s.Nodes = []NodeGroup{{"H100", 100, 8}, {"A100", 100, 8}}
	s.Models[0].Shape = capacity.TokenShape{Input: 606, Output: 17}
	holds(t, s)
}

// A model that loses all its replicas at once, with what waits kept in a gateway, buys what
// drains the queue in time and no more, whatever a replica takes to start; then it is as before.
func TestALossOfAllReplicasBuysWhatDrainsTheQueue(t *testing.T) {
	t.Parallel()
	for _, hybrid := range []bool{false, true} {
		for _, startup := range []time.Duration{10 * time.Second, time.Minute, 3 * time.Minute} {
			t.Run(fmt.Sprintf("hybrid %v, start-up %s", hybrid, startup), func(t *testing.T) {
				t.Parallel()
				s := constant(0, variant("fast", fast, 10, 4))
				s.Hybrid = hybrid
				if hybrid {
					s.hybrid(capacity.SLO{TTFT: 1000, ITL: 12})
				}
				s.Models[0].Gateway, s.Models[0].Variants[0].Startup = true, startup
				s.Models[0].Load[0].Rate = 2.5 * newTruth(&s.Models[0], &s.Models[0].Variants[0], s, 0).saturation.least
				s.Calm = 30 * time.Minute
				s.Faults = []Fault{{Kind: FaultLoss, From: 15 * time.Minute, To: 15*time.Minute + step}}
				w := holds(t, s)
				// What arrives until they serve is drained within two minutes, beside the load.
				drained := 2.5 * (1 + (startup+20*time.Second).Seconds()/120)
				assert.LessOrEqual(t, float64(w.models[0].variants[0].highest), 1.35*drained+2, w.tell())
			})
		}
	}
}

// A cluster brings a node every few minutes. Those replicas that wait for one are asked for:
// each time that one of them comes up, the others wait as before, and no more are bought.
func TestReplicasThatWaitForNodesAreBoughtOnce(t *testing.T) {
	t.Parallel()
	s := constant(0, variant("wide", fast, 32, 2))
	s.Models[0].Variants[0].Devices = 8
	s.Nodes = []NodeGroup{{"H100", 2, 8}}
	s.Models[0].Load[0].Rate = 12 * s.each(0)
	s.Models[0].Patience = time.Minute
	s.Hidden, s.Grows = true, 210*time.Second
	w := holds(t, s)
	assert.LessOrEqual(t, w.models[0].variants[0].highest, 2*12, "%s", w.tell())
}

// Replicas that cost nothing and serve little beside another one are given back once they show it. The
// same switch is not made again: they came and went every quarter of an hour.
func TestASwitchThatWasGivenBackIsNotMadeAgain(t *testing.T) {
	one := variant("one", serving.Profile{Base: 12.75, PerRequest: 0.0468, PerResidentToken: 2.871e-06, PerPrefillToken: 0.003878, BatchLimit: 144, KVTokens: 2_587_136}, 10, 1)
	free := variant("free", serving.Profile{Base: 8.066, PerRequest: 0.0985, PerResidentToken: 6.034e-06, PerPrefillToken: 0.08816, BatchLimit: 50, KVTokens: 346_704}, 0, 0)
	one.Told, one.Startup, free.Startup = false, 5*time.Second, 5*time.Second
	s := constant(46.64, free, one)
	s.Models[0].Shape = capacity.TokenShape{Input: 1402, Output: 26}
	w := watched(s, 4*time.Hour)
	assert.LessOrEqual(t, writesAfter(w, time.Hour), retried(time.Hour, 4*time.Hour), w.tell())
}
