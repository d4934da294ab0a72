package decision

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
)

func TestASaturatedReplicaAndAShortfallTriggerBesideIdleOnes(t *testing.T) {
	w := newWorld(60)
	w.setReplicas(1, 1)
	w.now = w.now.Add(time.Hour)
	s := w.snapshot()
	s.Models[0].Variants[1].Replicas[0].Running.Value = 3
	s.Models[0].Variants[1].Replicas[0].Waiting.Value = 0
	s.Models[0].Variants[1].Replicas[0].KVUse.Value = 0.01
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.True(t, plan.Models[0].Triggered, "the idle one has only just come; 60 requests/s are more than both serve")
	s.Models[0].Arrival.Value = 20
	plan, _ = Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.False(t, plan.Models[0].Triggered, "20 are not")
}

// The worked examples that the published saturation analyzer is described with, at
// its default thresholds 0.80 / 5 / 0.10 / 3. They say which direction is right.
func TestPublishedWorkedExamples(t *testing.T) {
	type replica struct{ kv, queue float64 }
	for name, tc := range map[string]struct {
		replicas  []replica
		triggered bool
		lower     bool
	}{
		"kv 0.75 and 0.76, queue 2":          {[]replica{{0.75, 2}, {0.76, 2}}, true, false},
		"kv 0.5, queue 3 and 3":              {[]replica{{0.5, 3}, {0.5, 3}}, true, false},
		"kv 0.5, queue 1, two replicas":      {[]replica{{0.5, 1}, {0.5, 1}}, false, false},
		"kv 0.2, 0.3, 0.25, queue 1":         {[]replica{{0.2, 1}, {0.3, 1}, {0.25, 1}}, false, true},
		"kv 0.70 and 0.75":                   {[]replica{{0.70, 0}, {0.75, 0}}, true, false},
		"one idle replica":                   {[]replica{{0, 0}}, false, false},
		"all saturated":                      {[]replica{{0.9, 0}, {0.1, 7}}, true, false},
		"a saturated one beside idle ones":   {[]replica{{0.9, 0}, {0.1, 0}, {0.1, 0}}, false, true},
		"a saturated one beside one idle":    {[]replica{{0.9, 0}, {0.1, 0}}, false, false},
		"a saturated one beside busy ones":   {[]replica{{0.9, 0}, {0.36, 0}, {0.36, 0}}, false, false},
		"kv 0.35 at two leaves no headroom":  {[]replica{{0.35, 0}, {0.35, 0}}, false, false},
		"kv 0.36 at two is not safe":         {[]replica{{0.36, 0}, {0.36, 0}}, false, false},
		"kv 0.29 at two leaves too little":   {[]replica{{0.29, 0}, {0.29, 0}}, false, false},
		"kv 0.28 at two leaves enough":       {[]replica{{0.28, 0}, {0.28, 0}}, false, true},
		"kv 0.46 at three leaves none":       {[]replica{{0.46, 0}, {0.46, 0}, {0.46, 0}}, false, false},
		"kv 0.47 at three is not safe":       {[]replica{{0.47, 0}, {0.47, 0}, {0.47, 0}}, false, false},
		"kv 0.39 at three leaves too little": {[]replica{{0.39, 0}, {0.39, 0}, {0.39, 0}}, false, false},
		"kv 0.38 at three leaves enough":     {[]replica{{0.38, 0}, {0.38, 0}, {0.38, 0}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := Model{Namespace: "ns", ID: "m", Variants: []Variant{{
				Name: "v", Current: len(tc.replicas), Ready: len(tc.replicas), Request: request("H100", 1), Cost: 10,
				Profile: serving.Profile{Base: 100},
			}}}
			sample := func(v float64) Sample { return Sample{Value: v, Time: epoch, Present: true} }
			for i, r := range tc.replicas {
				// Each request takes 10 s, so that what a replica serves grows with its
				// load, and the load alone decides.
				m.Variants[0].Replicas = append(m.Variants[0].Replicas, Replica{
					Name: fmt.Sprint(i), KVUse: sample(r.kv), Waiting: sample(r.queue), Running: sample(100 * r.kv),
					Served: sample(10 * r.kv), InFlightGrowth: sample(0), Input: sample(1), Output: sample(100),
				})
			}
			policy := DefaultPolicy()
			now := DefaultVariantPolicy()
			now.Down.Window = 0
			policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "v"}: now}
			policy.Drain = time.Hour * 1000
			plan, _ := Decide(Snapshot{Time: epoch, Models: []Model{m}}, policy, Memory{}, RoundFull)
			assert.Equal(t, tc.triggered, plan.Models[0].Triggered)
			v := plan.Models[0].Variants[0]
			assert.Equal(t, tc.triggered, *v.Desired > v.Current)
			assert.Equal(t, tc.lower, *v.Desired < v.Current, textOf(v.Message))
		})
	}
}

// What the published token-based analyzer reckons for one replica, in tokens: the KV
// cache times its threshold, or the batch limit times the mean request, whichever is
// less. What a request holds is its prompt and half of its answer. (Its queue demand
// in tokens has no counterpart here: a backlog is a rate over the drain time.)
func TestPublishedTokenCapacities(t *testing.T) {
	for name, c := range map[string]struct {
		cache  capacity.Tokens
		limit  int
		tokens capacity.TokenShape
		share  float64
		want   float64
	}{
		"a cache of 16000 at 0.8":               {16000, 256, capacity.TokenShape{Input: 500, Output: 100}, 0.8, 12800},
		"256 at once, prompts 500, answers 100": {1e6, 256, capacity.TokenShape{Input: 500, Output: 100}, 1, 140800},
		"64 at once, prompts 100, answers 200":  {1e6, 64, capacity.TokenShape{Input: 100, Output: 200}, 1, 12800},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", KVTokens: c.cache, BatchLimit: c.limit, BatchSource: serving.BatchStated})
			each := float64(c.tokens.Input) + float64(c.tokens.Output)/2
			limit, _ := within(r, v).Holds(c.tokens)
			assert.InDelta(t, c.want, c.share*limit*each, 1e-6)
		})
	}
}

// Its thresholds are up at 0.85 of the supply and down at 0.70: between them nothing
// happens.
func TestPublishedUtilisations(t *testing.T) {
	for utilisation, want := range map[float64]struct{ more, less bool }{
		0.86: {true, false}, 0.84: {false, false}, 0.78: {false, false}, 0.71: {false, false}, 0.69: {false, true},
	} {
		t.Run(fmt.Sprint(utilisation), func(t *testing.T) {
			_, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2})
			m.SizeFor, m.Demand.Now = capacity.Rate(utilisation), capacity.Rate(utilisation)
			n := need.Need{Required: m.SizeFor, Supply: 0.85}
			assert.Equal(t, want.more, m.Beyond(&n) > 0)
			assert.Equal(t, want.less, m.Least() < n.Supply)
		})
	}
}

// A trigger that fires although the promise needs fewer replicas moves nothing.
func TestATriggerAndThePromiseDisagree(t *testing.T) {
	for name, c := range map[string]struct {
		sized bool
		total capacity.Rate
		want  Reason
	}{
		"the promise needs fewer":         {true, 10, ReasonSteady},
		"the promise needs what there is": {true, 4.5, ReasonSaturated},
		"nothing is promised":             {false, 10, ReasonSaturated},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 4})
			m.Sized, m.SizeFor = c.sized, 2
			n := need.Need{Supply: c.total, Detail: Words("replicas are full")}
			within(r, m).More(&n)
			assert.Equal(t, c.want, n.Reason)
			assert.Equal(t, c.want == ReasonSaturated, n.Want == need.WantMore)
			if c.want == ReasonSteady {
				assert.Contains(t, textOf(n.Detail), "the SLO needs fewer: no change")
			}
		})
	}
}

// What must still be served after a scale-down: the published distance of thresholds,
// or, where sizing knows the scatter of the arrivals, the errors of the estimates alone.
func TestLeast(t *testing.T) {
	for name, c := range map[string]struct {
		sized    bool
		forecast capacity.Rate
		want     float64
	}{
		"triggers alone": {false, 70, 85},
		"a promise":      {true, 100, 105},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
			m.Sized, m.SizeFor = c.sized, c.forecast
			m.Demand.Now = c.forecast
			assert.InDelta(t, c.want, float64(m.Least()), 1e-9)
		})
	}
}

// When less may do, and what must stay then: a replica that shows nothing is taken to
// be as full as the triggers allow.
func TestLess(t *testing.T) {
	fresh := Sample{Value: 4, Time: epoch, Present: true}
	still := Sample{Time: epoch, Present: true}
	for name, c := range map[string]struct {
		sized   bool
		queued  capacity.Rate
		replica Replica
		want    Reason
		least   float64
	}{
		"all is known":                        {false, 0, Replica{Served: fresh, InFlightGrowth: still}, ReasonSteady, need.LowerHeadroom * (4 + 2.5)},
		"what is in flight grows":             {false, 0, Replica{Served: fresh, InFlightGrowth: Sample{Value: 1, Time: epoch, Present: true}}, ReasonSteady, need.LowerHeadroom * (4 + 1 + 2.5)},
		"with a promise":                      {true, 0, Replica{Served: fresh, InFlightGrowth: still}, ReasonSteady, need.ModelHeadroom * (4 + 2.5)},
		"a backlog is worth less than one":    {false, 2.4, Replica{Served: fresh, InFlightGrowth: still}, ReasonSteady, need.LowerHeadroom*(4+2.5) + 2.4},
		"a backlog is worth a replica":        {false, 2.5, Replica{Served: fresh, InFlightGrowth: still}, ReasonBacklog, 0},
		"nobody knows what arrives":           {false, 0, Replica{}, ReasonMetricsPartial, 0},
		"with a promise, and nobody knows it": {true, 0, Replica{}, ReasonMetricsPartial, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2, Replicas: []Replica{c.replica}})
			m.Sized, m.Ahead = c.sized, 1
			n := need.Need{Queued: c.queued, Supply: 5, Backlog: 300, Detail: Words("replicas are idle")}
			m.Demand.Certain, m.Demand.IsCertain = within(r, m).Certain()
			within(r, m).Less(&n)
			assert.Equal(t, c.want, n.Reason)
			assert.Equal(t, c.want == ReasonSteady, n.Want == need.WantLess)
			assert.InDelta(t, c.least, float64(n.Least), 1e-9)
			if c.want == ReasonBacklog {
				assert.Equal(t, "replicas are idle; no scale-down while 300 requests wait", textOf(n.Detail))
			}
		})
	}
}

// Only of a variant with a saturated replica it matters who chooses which one goes.
func TestWhoSparesTheSaturated(t *testing.T) {
	for name, c := range map[string]struct {
		saturated int
		picks     bool
		want      bool
	}{
		"it has one, and the choice is ours":  {1, true, true},
		"it has one, and Kubernetes chooses":  {1, false, false},
		"it has none, and Kubernetes chooses": {0, false, true},
		"it has none, and the choice is ours": {0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2, ChoosesVictims: c.picks, Request: request("H100", 1)})
			r.Snapshot.Cluster = machines(2)
			r.Trial = placement.NewTrial(r.Snapshot.Cluster)
			v.Load.Saturated = c.saturated
			assert.Equal(t, c.want, within(r, m).Spares())
		})
	}
}

// What a silent replica serves is not known where its variant's rate is another one's.
func TestWhoIsGuessedToServe(t *testing.T) {
	for name, c := range map[string]struct {
		silent  int
		guessed bool
		want    bool
	}{
		"all are heard":                     {0, true, false},
		"one is silent whose rate was seen": {1, false, false},
		"one is silent whose rate was not":  {1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2})
			v.Load.Silent, m.Demand.IsCertain, v.Rate.Guessed = c.silent, true, c.guessed
			assert.Equal(t, c.want, m.GuessesSilent())
			n := need.Need{Supply: 5}
			within(r, m).Less(&n)
			assert.Equal(t, c.want, n.Reason == ReasonMetricsPartial)
		})
	}
}

// What waits in a saturated replica is served by it alone: more replicas than take over
// what arrives are no use, and those that are too many go before it is served, where it is
// ours to spare the saturated one.
func TestWhatWaitsInAReplicaIsItsOwn(t *testing.T) {
	told := func(v float64) Sample { return Sample{Value: v, Time: epoch, Present: true} }
	of := func(running, waiting, served float64) Replica {
		return Replica{KVUse: told(0), Running: told(running), Waiting: told(waiting), Served: told(served), InFlightGrowth: told(0), Input: told(16), Output: told(28)}
	}
	idle, full := of(1, 0, 0.5), of(10, 600, 3.5)
	many := func(n int, one, other Replica) []Replica {
		return append(slices.Repeat([]Replica{other}, n-1), one)
	}
	for name, c := range map[string]struct {
		replicas []Replica
		queue    float64
		picks    bool
		want     int
		reason   Reason
	}{
		"one has all that waits":                  {many(1, full, idle), 0, true, 3, ReasonSaturated},
		"the gateway has it, and anybody may":     {many(1, of(9, 0, 3.5), idle), 600, true, 4, ReasonSaturated},
		"one has it, and others serve":            {many(3, full, idle), 0, true, 3, ReasonSteady},
		"one has it, and others are too many":     {many(9, full, idle), 0, true, 3, ReasonSpareCapacity},
		"so do two":                               {append(many(8, full, idle), full), 0, true, 4, ReasonSpareCapacity},
		"Kubernetes may choose the full one":      {many(9, full, idle), 0, false, 9, ReasonBacklog},
		"others are too many, the gateway has it": {many(9, idle, idle), 600, true, 9, ReasonBacklog},
	} {
		t.Run(name, func(t *testing.T) {
			v := Variant{
				Name: "v", Current: len(c.replicas), Ready: len(c.replicas), Request: request("H100", 1), Cost: 10, BatchLimit: 10, BatchSource: serving.BatchStated,
				Profile: serving.Profile{Base: 100, BatchLimit: 10, KVTokens: 4096}, Startup: 15 * time.Second, ChoosesVictims: c.picks, Replicas: c.replicas,
			}
			for i := range v.Replicas {
				v.Replicas[i].Name = fmt.Sprint(i)
			}
			policy := DefaultPolicy()
			now := DefaultVariantPolicy()
			now.Down.Window = 0
			policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "v"}: now}
			s := Snapshot{Time: epoch, Cluster: &placement.Cluster{Nodes: nodes(4, "H100", 8)}, Models: []Model{{
				Namespace: "ns", ID: "m", Arrival: told(4), Queue: told(c.queue), Variants: []Variant{v},
			}}}
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			got := plan.Models[0].Variants[0]
			assert.Equal(t, c.want, *got.Desired, textOf(got.Message))
			assert.Equal(t, c.reason, got.Reason, textOf(got.Message))
			for _, victim := range got.Victims {
				assert.Zero(t, v.Replicas[slices.IndexFunc(v.Replicas, func(r Replica) bool { return r.Name == victim })].Waiting.Value)
			}
		})
	}
}

// While a ready replica is not heard of, what starts may be what it needs.
func TestNoneThatStartsGoesWhileOneIsUnheard(t *testing.T) {
	for name, c := range map[string]struct {
		known         int
		silent, other int
		want          bool
	}{
		"all are heard":                          {known: 3, want: true},
		"nobody knows how full one is":           {known: 2},
		"one does not say what it serves":        {known: 3, silent: 1},
		"nor does one of the model's other ones": {known: 3, other: 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 3, Current: 4})
			m.Variants = append(m.Variants, variantOf(func(it *limit.Variant) { it.In, it.Load = &Variant{}, fleet.Load{Silent: c.other} }))
			m.Stack()
			m.Load, v.Load.Silent, m.Need.Least = fleet.Load{Unsaturated: c.known}, c.silent, 4
			now := allocate.Standing{Ready: 15, Coming: 20, Up: 3, NotReady: 1, Total: 4, Unsaturated: c.known}
			after := allocate.Standing{Ready: 15, Coming: 15, Up: 3, Total: 3, Unsaturated: c.known}
			assert.Equal(t, c.want, allocate.IsSafe(m, now, after))
			after.Coming = now.Coming
			assert.Equal(t, c.want, allocate.IsSafe(m, now, after), "nor one that is late")
			after = allocate.Standing{Ready: 10, Coming: 10, Up: 2, Total: 2, Unsaturated: c.known}
			assert.Equal(t, c.want, allocate.IsSafe(m, now, after), "nor beside one that serves")
			after = allocate.Standing{Ready: 10, Coming: 15, Up: 2, NotReady: 1, Total: 3, Unsaturated: c.known}
			assert.True(t, allocate.IsSafe(m, now, after), "one that serves has others to take its load over")
		})
	}
}

// A ready replica goes only where others are known to have room for its load.
func TestSafe(t *testing.T) {
	for name, c := range map[string]struct {
		load    fleet.Load
		unknown int
		after   allocate.Standing
		want    bool
	}{
		"two with room":                      {fleet.Load{Saturation: 0.3, Unsaturated: 2}, 0, allocate.Standing{Ready: 5, Coming: 5, Up: 2, Total: 2}, true},
		"one with room":                      {fleet.Load{Saturation: 0.3, Unsaturated: 1}, 0, allocate.Standing{Ready: 5, Coming: 5, Up: 2, Total: 2}, false},
		"one with room, a starting goes":     {fleet.Load{Saturation: 0.3, Unsaturated: 1}, 0, allocate.Standing{Ready: 7.5, Coming: 7.5, Up: 3, Total: 3}, true},
		"the others would be full":           {fleet.Load{Saturation: 0.5, Unsaturated: 3}, 0, allocate.Standing{Ready: 5, Coming: 5, Up: 2, Total: 2}, false},
		"queues would trigger":               {fleet.Load{Queue: 1.5, Unsaturated: 3}, 0, allocate.Standing{Ready: 5, Coming: 5, Up: 2, Total: 2}, false},
		"an unknown load takes nothing over": {fleet.Load{Saturation: 0.4, Unsaturated: 2}, 1, allocate.Standing{Ready: 5, Coming: 5, Up: 2, Total: 2}, false},
		"too little would be served":         {fleet.Load{Saturation: 0.1, Unsaturated: 3}, 0, allocate.Standing{Ready: 2.5, Coming: 2.5, Up: 1, Total: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: c.unknown})
			m.Load, m.Need.Least = c.load, 4
			assert.Equal(t, c.want, allocate.IsSafe(m, allocate.Standing{Ready: 7.5, Coming: 10, Up: 3, Total: 4, Unsaturated: c.load.Unsaturated}, c.after))
		})
	}
}
