package closedloop

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// unstated is a variant on H100s of whose servers nothing is known but what they show.
func unstated(name string, replicas int) Variant {
	return Variant{
		Name: name, Accelerator: "H100", Devices: 1, Cost: 10, Startup: 2 * time.Minute, Seen: true, Replicas: replicas,
		Profile: serving.Profile{Base: 8, PerRequest: 0.05, PerResidentToken: 1e-5, PerPrefillToken: 0.02, BatchLimit: 1024, KVTokens: 450_000},
		Policy:  decision.DefaultVariantPolicy(),
	}
}

// watched plays a scenario for a time.
func watched(s *Scenario, until time.Duration) *world {
	w := newWorld(s, decision.Decide)
	for w.now < until {
		w.advance()
		if kind, ok := w.round(); ok {
			w.decideRound(kind)
		}
	}
	return w
}

// writesAfter is how often the target of the first variant was written after a time.
func writesAfter(w *world, from time.Duration) int {
	n := 0
	for _, x := range w.models[0].variants[0].writes {
		if x.at > from {
			n++
		}
	}
	return n
}

// retried is how many writes a scale-down may make between two times that is too few each time: it
// is tried again after a while, and each time after twice as long. A try takes a write down, and up to
// three until what suffices is back.
func retried(from, until time.Duration) int {
	return 4 * (1 + int(math.Ceil(math.Log2(float64(until)/float64(from)))))
}

// A cluster that grows, whose node autoscaler takes ten minutes for a GPU node, which is usual. One
// replica waits for its node when the load goes up to what ten replicas serve. That one waits is no
// reason not to ask for the other nodes within a minute.
func TestOneThatWaitsForANodeHoldsNoGrowth(t *testing.T) {
	v := unstated("a", 2)
	v.Devices = 8
	m := Model{Name: "m", Priority: decision.LeastPriority, Gateway: true, Shape: capacity.TokenShape{Input: 1000, Output: 200}}
	c := newCurve(v.Profile, &Model{Shape: m.Shape}, 0)
	each, up := c.rateAt(0.7*c.limit), 16*time.Minute
	m.Load = []Point{{Rate: 1.3 * each}, {10 * time.Minute, 1.3 * each}, {11 * time.Minute, 2.2 * each}, {up, 2.2 * each}, {up + step, 10 * each}}
	m.Variants = []Variant{v}
	s := &Scenario{Nodes: []NodeGroup{{"H100", 2, 8}}, Grows: 10 * time.Minute, Calm: 30 * time.Minute, Models: []Model{m}}
	w := watched(s, up+2*time.Minute)
	assert.GreaterOrEqual(t, w.models[0].variants[0].target, 10, w.tell())
}

// A constant load on a server of 64 requests in service, of which no argument says so (vLLM's own
// default is 256). The model's second variant has a replica by minReplicas that finds no node. A
// scale-down that showed once to be one too many is not made again and again.
func TestAReplicaWithoutANodeMakesNoCycle(t *testing.T) {
	a, b := unstated("a", 2), unstated("b", 0)
	a.Startup, a.Profile.BatchLimit = 30*time.Second, 64
	b.Accelerator, b.Policy.Min = "A100", 1
	m := Model{Name: "m", Priority: decision.LeastPriority, Gateway: true, Shape: capacity.TokenShape{Input: 1000, Output: 200}}
	c := newCurve(a.Profile, &Model{Shape: m.Shape}, 0)
	m.Load, m.Variants = []Point{{Rate: 1.2 * c.max}}, []Variant{a, b}
	w := watched(&Scenario{Unstated: true, Nodes: []NodeGroup{{"H100", 20, 8}}, Calm: 10 * time.Minute, Models: []Model{m}}, 4*time.Hour)
	assert.LessOrEqual(t, writesAfter(w, 2*time.Hour), retried(2*time.Hour, 4*time.Hour), "writes in the third and fourth hour. %s", w.tell())
}

// The same beside a StatefulSet whose rolling update does not come up and waits for its user: it
// stays an update under way for days.
func TestAStuckRolloutMakesNoCycle(t *testing.T) {
	a, b := unstated("a", 2), unstated("b", 1)
	a.Startup, a.Profile.BatchLimit = 30*time.Second, 64
	b.Policy.Min, b.Policy.Max, b.Ordered, b.Kubernetes = 1, 1, true, true
	m := Model{Name: "m", Priority: decision.LeastPriority, Gateway: true, Shape: capacity.TokenShape{Input: 1000, Output: 200}}
	c := newCurve(a.Profile, &Model{Shape: m.Shape}, 0)
	m.Load, m.Variants = []Point{{Rate: 1.1 * c.max}}, []Variant{a, b}
	rollout := Fault{Kind: FaultRollout, From: 2 * time.Minute, To: forGood, Variant: 1, Count: 2}
	w := watched(&Scenario{Unstated: true, Nodes: []NodeGroup{{"H100", 20, 8}}, Calm: 10 * time.Minute, Models: []Model{m}, Faults: []Fault{rollout}}, 4*time.Hour)
	assert.LessOrEqual(t, writesAfter(w, 2*time.Hour), retried(2*time.Hour, 4*time.Hour), "writes in the third and fourth hour. %s", w.tell())
}

// A constant load on two variants, of which no argument states how many requests one holds. When
// the last scale-down showed to be one too many the replica with the queue was not alone: the other
// two were fuller than the trigger allows, too.
func TestOthersWithoutRoomAreNoExcuse(t *testing.T) {
	b, c := unstated("b", 1), unstated("c", 2)
	b.Startup, c.Startup = 30*time.Second, 25*time.Second
	b.Profile = serving.Profile{Base: 6.04, PerRequest: 0.01055, PerResidentToken: 2.451e-06, PerPrefillToken: 0.02425, BatchLimit: 106, KVTokens: 2313184}
	c.Profile = serving.Profile{Base: 31.15, PerRequest: 0.0417, PerResidentToken: 1.756e-05, PerPrefillToken: 0.03368, BatchLimit: 209, KVTokens: 84727}
	c.Accelerator, c.Policy.Min = "L40S", 2
	m := Model{Name: "m", Priority: decision.LeastPriority, Shape: capacity.TokenShape{Input: 2744, Output: 72}, Load: []Point{{Rate: 28.25}}, Variants: []Variant{b, c}}
	s := &Scenario{Unstated: true, Nodes: []NodeGroup{{"H100", 20, 8}, {"L40S", 20, 8}}, Calm: 10 * time.Minute, Models: []Model{m}}
	w := watched(s, 8*time.Hour)
	assert.LessOrEqual(t, writesAfter(w, 2*time.Hour), retried(2*time.Hour, 8*time.Hour), "writes from the third hour on. %s", w.tell())
}

// A router that knows no load gives one of the small replicas more than it serves, a little, so
// that its queue grows for an hour. That the others have room is no excuse: fewer do not suffice.
func TestASkewedRouterMakesNoCycle(t *testing.T) {
	a, b := unstated("a", 0), unstated("b", 3)
	a.Profile = serving.Profile{Base: 45.47, PerRequest: 0.07822, PerResidentToken: 7.947e-06, PerPrefillToken: 0.04065, BatchLimit: 429, KVTokens: 1_733_224}
	b.Profile = serving.Profile{Base: 15.387, PerRequest: 0.16734, PerResidentToken: 2.2345e-05, PerPrefillToken: 0.071413, BatchLimit: 164, KVTokens: 1_124_792}
	a.Told, b.Told = true, true
	a.Startup, b.Startup, b.Policy.Min = 15*time.Second, 10*time.Second, 1
	m := Model{Name: "m", Priority: decision.LeastPriority, Skew: 1.3, Shape: capacity.TokenShape{Input: 631, Output: 17}, Load: []Point{{Rate: 100.2333}}, Variants: []Variant{a, b}}
	w := watched(&Scenario{Unstated: true, Whole: true, Nodes: []NodeGroup{{"H100", 100, 8}}, Calm: 25 * time.Minute, Models: []Model{m}}, 8*time.Hour)
	assert.LessOrEqual(t, writesAfter(w, 2*time.Hour), retried(2*time.Hour, 8*time.Hour), "writes from the third hour on. %s", w.tell())
}

// All replicas hang soon after a scale-down. That was not one too many: when they serve again, those
// that came for the queue go.
func TestAHangAfterAScaleDownKeepsNoFleet(t *testing.T) {
	b := variant("b", serving.Profile{Base: 26.27, PerRequest: 0.01287, PerResidentToken: 2.748e-06, PerPrefillToken: 0.02203, BatchLimit: 103, KVTokens: 58_103}, 10, 3)
	b.OwnDown, b.Policy.Down.Policies = true, []decision.RatePolicy{{Pods: 1, Period: 10 * time.Minute}}
	s := constant(2.723, b)
	s.Models[0].Shape = capacity.TokenShape{Input: 130, Output: 260}
	s.Faults = []Fault{{Kind: FaultHang, From: 12*time.Minute + 55*time.Second, To: 18 * time.Minute, Count: 2}}
	holds(t, s)
}

// Requests of eight minutes, one in 80 seconds in the mean, on servers that hold four, which
// nothing states. Six are in service in the mean, so that two replicas are needed and one is too few.
func TestLongRequestsMakeNoCycle(t *testing.T) {
	for seed := uint64(1); seed <= 8; seed++ {
		a := unstated("a", 2)
		a.Profile = serving.Profile{Base: 24, BatchLimit: 4, KVTokens: 4_000_000}
		m := Model{
			Name: "m", Priority: decision.LeastPriority, Gateway: true, Shape: capacity.TokenShape{Input: 1000, Output: 20_000},
			Load: []Point{{Rate: 1.0 / 80}}, Variants: []Variant{a},
		}
		s := &Scenario{Unstated: true, Whole: true, Nodes: []NodeGroup{{"H100", 20, 8}}, Calm: 10 * time.Minute, Together: 1, Seed: seed, Models: []Model{m}}
		w := watched(s, 8*time.Hour)
		assert.LessOrEqual(t, writesAfter(w, 2*time.Hour), retried(2*time.Hour, 8*time.Hour), "writes from the third hour on, seed %d. %s", seed, w.tell())
	}
}
