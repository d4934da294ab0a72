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

// A load test has a number of clients, each of whom sends the next request when the last is
// answered: more replicas answer sooner, so that more is sent. That is no circle.
func TestClientsWhoWaitForAnswersMakeNoCycle(t *testing.T) {
	t.Parallel()
	for _, clients := range []float64{4, 50, 200, 1000} {
		for _, hybrid := range []bool{false, true} {
			t.Run(fmt.Sprint(clients, hybrid), func(t *testing.T) {
				t.Parallel()
				v := unstated("v", 1)
				v.Profile.BatchLimit = 64
				m := Model{Name: "m", Priority: decision.LeastPriority, Shape: capacity.TokenShape{Input: 1000, Output: 200}, Clients: clients, SLO: capacity.SLO{TTFT: 500, ITL: 20}, Load: []Point{{Rate: 1}}, Variants: []Variant{v}}
				w := watched(&Scenario{Hybrid: hybrid, Nodes: []NodeGroup{{"H100", 100, 8}}, Calm: 10 * time.Minute, Models: []Model{m}}, 6*time.Hour)
				assert.Zero(t, writesAfter(w, 2*time.Hour), w.tell())
				for _, p := range w.models[0].variants[0].pods {
					assert.Less(t, p.waiting, 1.0, w.tell())
				}
			})
		}
	}
}

// A scale-down takes replicas away with what they serve, which the clients send again at once. That
// is no rise: nineteen came for it, and went, every six minutes.
func TestWhatClientsSendAgainMakesNoCycle(t *testing.T) {
	t.Parallel()
	a := variant("a", serving.Profile{Base: 49.994, PerRequest: 0.050151, PerResidentToken: 8.93954e-05, PerPrefillToken: 0.0354616, BatchLimit: 218, KVTokens: 1_848_988}, 10, 0)
	a.Startup = 15 * time.Second
	m := Model{Name: "m", Priority: decision.LeastPriority, Clients: 209.184, Shape: capacity.TokenShape{Input: 1528, Output: 982}, SLO: capacity.SLO{TTFT: 1353, ITL: 105.5}, Load: []Point{{Rate: 1.87545}}, Variants: []Variant{a}}
	w := watched(&Scenario{Hybrid: true, Nodes: []NodeGroup{{"H100", 100, 8}}, Calm: 24 * time.Minute, Models: []Model{m}}, 4*time.Hour)
	assert.LessOrEqual(t, writesAfter(w, time.Hour), 2, w.tell())
	assert.Less(t, w.models[0].variants[0].highest, 9, w.tell())
}

// Clients who are answered sooner by the replicas of a switch send more than what it was for, so that
// it takes nothing away. It is not made again and again.
func TestASwitchThatRaisesTheLoadMakesNoCycle(t *testing.T) {
	t.Parallel()
	b := variant("b", serving.Profile{Base: 34.16105, PerRequest: 0.381605, PerPrefillToken: 0.01721174, Gamma: 35.0188, Form: serving.FourParameters, BatchLimit: 75, KVTokens: 1_890_352}, 10, 0)
	a := variant("a", serving.Profile{Base: 19.26648, PerRequest: 0.0614535, PerResidentToken: 2.768477e-05, PerPrefillToken: 0.02145256, BatchLimit: 438, KVTokens: 1_350_216}, 80, 1)
	b.Startup = 5 * time.Second
	m := Model{Name: "m", Priority: decision.LeastPriority, Skew: 4, Clients: 17.8875, Shape: capacity.TokenShape{Input: 125, Output: 191}}
	m.Load, m.Variants = []Point{{Rate: 0.56}, {95 * time.Second, 0.56}, {100 * time.Second, 20.92813}}, []Variant{b, a}
	w := watched(&Scenario{Unstated: true, Nodes: []NodeGroup{{"H100", 100, 8}}, Calm: 13 * time.Minute, Models: []Model{m}}, 6*time.Hour)
	assert.LessOrEqual(t, writesAfter(w, 2*time.Hour), 2, w.tell())
}

// The same with replicas that come one after the other, slowly.
func TestASwitchThatIsTakenBackMakesNoCycle(t *testing.T) {
	t.Parallel()
	a := variant("a", serving.Profile{Base: 32.04144, PerRequest: 0.33585, PerResidentToken: 2.091932e-05, PerPrefillToken: 0.103976, BatchLimit: 97, KVTokens: 287_306}, 0.343265, 0)
	b := variant("b", serving.Profile{Base: 53.41, PerRequest: 0.1712, PerResidentToken: 1.41e-05, PerPrefillToken: 0.02443, BatchLimit: 138, KVTokens: 483_504}, 0, 0)
	c := variant("c", serving.Profile{Base: 34.506, PerRequest: 0.393585, PerPrefillToken: 0.0143903, Gamma: 68.61668, Form: serving.FourParameters, BatchLimit: 237, KVTokens: 57_527}, 10, 0)
	a.Startup, a.Grace, a.Kubernetes, a.Ordered = 5*time.Second, 30*time.Second, true, true
	b.Accelerator, b.Startup, b.Policy.Min, b.Policy.Max = "L40S", 5*time.Second, 2, 4
	c.Accelerator = "L40S"
	m := Model{Name: "m", Priority: decision.LeastPriority, Clients: 27.61328, Shape: capacity.TokenShape{Input: 3211, Output: 100}, SLO: capacity.SLO{TTFT: 1196.647, ITL: 78.0195}}
	m.Load, m.Variants = []Point{{Rate: 0}, {465 * time.Second, 0}, {470 * time.Second, 2.99566}}, []Variant{a, b, c}
	s := &Scenario{Hybrid: true, Unstated: true, Whole: true, Schedules: 40 * time.Second, Nodes: []NodeGroup{{"H100", 100, 4}, {"L40S", 100, 4}}, Calm: 785 * time.Second, Models: []Model{m}}
	w := watched(s, 6*time.Hour)
	assert.LessOrEqual(t, writesAfter(w, 2*time.Hour), 2, w.tell())
}

// Where slow replicas go, clients have their answers sooner and send more, with no more in flight. What
// is left then is too few for what those showed, too: they came and went every three minutes, or eight.
func TestSlowReplicasThatGoMakeNoCycle(t *testing.T) {
	t.Parallel()
	slow := variant("slow", serving.Profile{Base: 16.44, PerRequest: 0.08401, PerResidentToken: 6.72e-06, PerPrefillToken: 0.05494, BatchLimit: 356, KVTokens: 1_006_424}, 10, 0)
	quick := variant("quick", serving.Profile{Base: 7.892, PerRequest: 0.02689, PerResidentToken: 1.994e-06, PerPrefillToken: 0.04293, BatchLimit: 102, KVTokens: 339_456}, 10, 2)
	slow.Accelerator, quick.Policy.Up.Select = "A100", decision.SelectDisabled
	promised := Model{Name: "m", Priority: decision.LeastPriority, Clients: 59.1, Shape: capacity.TokenShape{Input: 2249, Output: 913}, SLO: capacity.SLO{TTFT: 445.36, ITL: 29.87}, Load: []Point{{Rate: 1.35}}, Variants: []Variant{slow, quick}}
	few := variant("few", serving.Profile{Base: 12.31, PerRequest: 0.02157, PerResidentToken: 2.508e-05, PerPrefillToken: 0.008348, BatchLimit: 48, KVTokens: 4_579_448}, 80, 1)
	two := variant("two", serving.Profile{Base: 9.143, PerRequest: 0.08155, PerPrefillToken: 0.00196, Form: serving.Overlapped, BatchLimit: 64, KVTokens: 3_256_536}, 10, 2)
	far := variant("far", serving.Profile{Base: 58.63, PerRequest: 0.06534, PerResidentToken: 5.696e-05, PerPrefillToken: 0.1491, BatchLimit: 257, KVTokens: 377_787}, 10, 0)
	few.Policy.Min, few.Policy.Max, two.Policy.Min, two.Policy.Up.Select, far.Accelerator = 1, 1, 2, decision.SelectDisabled, "A100"
	saturated := Model{Name: "m", Priority: decision.LeastPriority, Clients: 44.9, Shape: capacity.TokenShape{Input: 87, Output: 692}, Load: []Point{{Rate: 4.12}}, Variants: []Variant{far, few, two}}
	for _, m := range []Model{promised, saturated} {
		s := &Scenario{Hybrid: m.SLO != capacity.SLO{}, Nodes: []NodeGroup{{"H100", 100, 8}, {"A100", 100, 8}}, Calm: 10 * time.Minute, Models: []Model{m}}
		if s.Hybrid {
			s.Saturation = decision.Saturation{KVCacheThreshold: 0.9, KVSpareTrigger: 0.54, QueueLengthThreshold: 13, QueueSpareTrigger: 8.5}
		}
		w := watched(s, 4*time.Hour)
		assert.LessOrEqual(t, writesAfter(w, time.Hour), retried(time.Hour, 4*time.Hour), w.tell())
	}
}
