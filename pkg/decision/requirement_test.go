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
			policy.Variants = map[Key]VariantPolicy{{"ns", "v"}: now}
			policy.Drain = time.Hour * 1000
			plan, _ := Decide(Snapshot{Time: epoch, Models: []Model{m}}, policy, Memory{}, RoundFull)
			assert.Equal(t, tc.triggered, plan.Models[0].Triggered)
			v := plan.Models[0].Variants[0]
			assert.Equal(t, tc.triggered, *v.Desired > v.Current)
			assert.Equal(t, tc.lower, *v.Desired < v.Current, v.Message)
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
			limit, _ := r.holds(v, c.tokens)
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
			m.sizeFor, m.demand.now = capacity.Rate(utilisation), capacity.Rate(utilisation)
			n := need{required: m.sizeFor, supply: 0.85}
			assert.Equal(t, want.more, m.beyond(&n) > 0)
			assert.Equal(t, want.less, m.least() < n.supply)
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
			m.sized, m.sizeFor = c.sized, 2
			n := need{supply: c.total, detail: "replicas are full"}
			r.more(m, &n)
			assert.Equal(t, c.want, n.reason)
			assert.Equal(t, c.want == ReasonSaturated, n.want == wantMore)
			if c.want == ReasonSteady {
				assert.Contains(t, n.detail, "the SLO needs fewer: no change")
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
			m.sized, m.sizeFor = c.sized, c.forecast
			m.demand.now = c.forecast
			assert.InDelta(t, c.want, float64(m.least()), 1e-9)
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
		"all is known":                        {false, 0, Replica{Served: fresh, InFlightGrowth: still}, ReasonSteady, lowerHeadroom * (4 + 2.5)},
		"what is in flight grows":             {false, 0, Replica{Served: fresh, InFlightGrowth: Sample{Value: 1, Time: epoch, Present: true}}, ReasonSteady, lowerHeadroom * (4 + 1 + 2.5)},
		"with a promise":                      {true, 0, Replica{Served: fresh, InFlightGrowth: still}, ReasonSteady, modelHeadroom * (4 + 2.5)},
		"a backlog is worth less than one":    {false, 2.4, Replica{Served: fresh, InFlightGrowth: still}, ReasonSteady, lowerHeadroom*(4+2.5) + 2.4},
		"a backlog is worth a replica":        {false, 2.5, Replica{Served: fresh, InFlightGrowth: still}, ReasonBacklog, 0},
		"nobody knows what arrives":           {false, 0, Replica{}, ReasonMetricsPartial, 0},
		"with a promise, and nobody knows it": {true, 0, Replica{}, ReasonMetricsPartial, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2, Replicas: []Replica{c.replica}})
			m.sized, m.ahead = c.sized, 1
			n := need{queued: c.queued, supply: 5, backlog: 300, detail: "replicas are idle"}
			m.demand.certain, m.demand.isCertain = r.certain(m)
			r.less(m, &n)
			assert.Equal(t, c.want, n.reason)
			assert.Equal(t, c.want == ReasonSteady, n.want == wantLess)
			assert.InDelta(t, c.least, float64(n.least), 1e-9)
			if c.want == ReasonBacklog {
				assert.Equal(t, "replicas are idle; no scale-down while 300 requests wait", n.detail)
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
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 2, Ready: 2, Picks: c.picks, Request: request("H100", 1)})
			r.trial = placement.NewTrial(machines(2))
			v.load.saturated = c.saturated
			assert.Equal(t, c.want, r.spares(m))
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
			v.load.silent, m.demand.isCertain, v.rate.guessed = c.silent, true, c.guessed
			assert.Equal(t, c.want, m.guessesSilent())
			n := need{supply: 5}
			r.less(m, &n)
			assert.Equal(t, c.want, n.reason == ReasonMetricsPartial)
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
				Profile: serving.Profile{Base: 100, BatchLimit: 10, KVTokens: 4096}, Startup: 15 * time.Second, Picks: c.picks, Replicas: c.replicas,
			}
			for i := range v.Replicas {
				v.Replicas[i].Name = fmt.Sprint(i)
			}
			policy := DefaultPolicy()
			now := DefaultVariantPolicy()
			now.Down.Window = 0
			policy.Variants = map[Key]VariantPolicy{{"ns", "v"}: now}
			s := Snapshot{Time: epoch, Cluster: &placement.Cluster{Nodes: nodes(4, "H100", 8)}, Models: []Model{{
				Namespace: "ns", ID: "m", Arrival: told(4), Queue: told(c.queue), Variants: []Variant{v},
			}}}
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			got := plan.Models[0].Variants[0]
			assert.Equal(t, c.want, *got.Desired, got.Message)
			assert.Equal(t, c.reason, got.Reason, got.Message)
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
			m.variants = append(m.variants, variantOf(variant{in: &Variant{}, load: load{silent: c.other}}))
			m.load, v.load.silent, m.need.least = load{unsaturated: c.known}, c.silent, 4
			now := standing{ready: 15, coming: 20, up: 3, notReady: 1, total: 4, unsaturated: c.known}
			after := standing{ready: 15, coming: 15, up: 3, total: 3, unsaturated: c.known}
			assert.Equal(t, c.want, m.safe(now, after))
			after.coming = now.coming
			assert.Equal(t, c.want, m.safe(now, after), "nor one that is late")
			after = standing{ready: 10, coming: 10, up: 2, total: 2, unsaturated: c.known}
			assert.Equal(t, c.want, m.safe(now, after), "nor beside one that serves")
			after = standing{ready: 10, coming: 15, up: 2, notReady: 1, total: 3, unsaturated: c.known}
			assert.True(t, m.safe(now, after), "one that serves has others to take its load over")
		})
	}
}

// A ready replica goes only where others are known to have room for its load.
func TestSafe(t *testing.T) {
	for name, c := range map[string]struct {
		load    load
		unknown int
		after   standing
		want    bool
	}{
		"two with room":                      {load{saturation: 0.3, unsaturated: 2}, 0, standing{ready: 5, coming: 5, up: 2, total: 2}, true},
		"one with room":                      {load{saturation: 0.3, unsaturated: 1}, 0, standing{ready: 5, coming: 5, up: 2, total: 2}, false},
		"one with room, a starting goes":     {load{saturation: 0.3, unsaturated: 1}, 0, standing{ready: 7.5, coming: 7.5, up: 3, total: 3}, true},
		"the others would be full":           {load{saturation: 0.5, unsaturated: 3}, 0, standing{ready: 5, coming: 5, up: 2, total: 2}, false},
		"queues would trigger":               {load{queue: 1.5, unsaturated: 3}, 0, standing{ready: 5, coming: 5, up: 2, total: 2}, false},
		"an unknown load takes nothing over": {load{saturation: 0.4, unsaturated: 2}, 1, standing{ready: 5, coming: 5, up: 2, total: 2}, false},
		"too little would be served":         {load{saturation: 0.1, unsaturated: 3}, 0, standing{ready: 2.5, coming: 2.5, up: 1, total: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: c.unknown})
			m.load, m.need.least = c.load, 4
			assert.Equal(t, c.want, m.safe(standing{ready: 7.5, coming: 10, up: 3, total: 4, unsaturated: c.load.unsaturated}, c.after))
		})
	}
}
