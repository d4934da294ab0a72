package decision

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// The worked examples of the published saturation analyzers beyond those of a single
// variant, and the published rule of one step a round against our jump.

// exampleVariant has that many ready replicas, each that full and with that many
// requests waiting. Each request takes 10 s, and a full replica holds 100 of them: it
// serves 10 requests/s, and 7 at the load that the triggers allow.
func exampleVariant(name string, cost capacity.Cost, replicas int, full, queue float64) Variant {
	v := Variant{
		Name: name, Current: replicas, Ready: replicas, Request: request("H100", 1), Cost: cost,
		Profile: serving.Profile{Base: 100}, Startup: time.Minute,
	}
	for i := range replicas {
		v.Replicas = append(v.Replicas, Replica{
			Name: fmt.Sprint(name, "-", i), KVUse: seenNow(full), Waiting: seenNow(queue), Running: seenNow(100 * full),
			Served: seenNow(10 * full), InFlightGrowth: seenNow(0), Input: seenNow(1), Output: seenNow(100),
		})
	}
	return v
}

func seenNow(v float64) Sample { return Sample{Value: v, Time: epoch, Present: true} }

// examplePolicy lowers at once, and asks for nothing because of what waits.
func examplePolicy(s *Snapshot) Policy {
	policy := DefaultPolicy()
	policy.Drain, policy.Horizon = 1000*time.Hour, 0
	now := DefaultVariantPolicy()
	now.Down.Window = 0
	policy.Variants = map[Key]VariantPolicy{}
	for _, v := range s.Models[0].Variants {
		policy.Variants[Key{Namespace: "ns", Name: v.Name}] = now
	}
	return policy
}

// exampleOf decides once, by a new leader.
func exampleOf(variants ...Variant) ModelPlan {
	s := Snapshot{Time: epoch, Models: []Model{{Namespace: "ns", ID: "m", Variants: variants}}}
	plan, _ := Decide(s, examplePolicy(&s), Memory{}, RoundFull)
	return plan.Models[0]
}

func desiredOf(m ModelPlan) []int {
	list := make([]int, len(m.Variants))
	for i, v := range m.Variants {
		list[i] = *v.Desired
	}
	return list
}

// The published rule moves one variant by one replica a round: up the cheapest, down the
// most expensive. Ours moves the same ones, at once as far as the load says, and counts
// the cost of what a replica serves, not of a replica.
func TestPublishedExamplesOfCost(t *testing.T) {
	fleet := func(full float64) []Variant {
		return []Variant{exampleVariant("a", 20, 2, full, 0), exampleVariant("b", 5, 2, full, 0), exampleVariant("c", 15, 2, full, 0)}
	}
	for name, c := range map[string]struct {
		full            float64
		published, want []int
		why             string
	}{
		"up, one is missing": {0.75, []int{2, 3, 2}, []int{2, 3, 2},
			"45 requests/s are 6.4 replicas of 7: the same step"},
		"up, three are missing": {0.97, []int{2, 3, 2}, []int{2, 5, 2},
			"58.2 requests/s are 8.3 replicas: the published rule needs three rounds, each after a start-up"},
		"down, one can go": {0.45, []int{1, 2, 2}, []int{1, 2, 2},
			"27 requests/s and the headroom of 0.85/0.70 are 4.7 replicas: the same step"},
		"down, three can go": {0.28, []int{1, 2, 2}, []int{0, 2, 1},
			"16.8 requests/s and the headroom are 2.9 replicas: the published rule needs three rounds, and its first variant never goes below one"},
	} {
		t.Run(name, func(t *testing.T) {
			variants := fleet(c.full)
			theirs := publishedStep([]int{2, 2, 2}, []float64{20, 5, 15}, c.full, 0, 1)
			assert.Equal(t, c.published, theirs, "the published rule")
			assert.Equal(t, c.want, desiredOf(exampleOf(variants...)), c.why)
		})
	}
}

// While a variant of a model changes, the published rule moves none of them: it takes
// what starts for no supply, and would ask again for it. Ours counts what starts, so it
// holds where that suffices and need not where it does not.
func TestPublishedExamplesOfTransition(t *testing.T) {
	starting := func(v Variant, n int) Variant {
		for i := range n {
			v.Starting = append(v.Starting, Starting{Name: fmt.Sprint(v.Name, "-s", i), Since: epoch.Add(-20 * time.Second), Placed: true})
		}
		v.Current += n
		return v
	}
	partly := func(v Variant, reporting int) Variant {
		v.Replicas = v.Replicas[:reporting]
		return v
	}
	for name, c := range map[string]struct {
		variants []Variant
		want     []int
		why      string
	}{
		"v1 is to have 4 and has 2, v2 has 2": {
			[]Variant{starting(exampleVariant("v1", 5, 2, 0.75, 0), 2), exampleVariant("v2", 5, 2, 0.75, 0)}, []int{4, 2},
			"as published: 30 requests/s are 4.3 replicas, and the two that start carry it"},
		"the same at a load that what starts will not carry": {
			[]Variant{starting(exampleVariant("v1", 5, 2, 0.97, 0), 2), beyond(exampleVariant("v2", 6, 2, 0.97, 0), 6.2)}, []int{5, 2},
			"published: 4 and 2 until all have started; ours asks for the one more that 45 requests/s need now"},
		"the same at hardly any load": {
			[]Variant{starting(exampleVariant("v1", 5, 2, 0.1, 0), 2), exampleVariant("v2", 6, 2, 0.1, 0)}, []int{1, 0},
			"published: 4 and 2 until all have started; ours takes back what 4 requests/s do without"},
		"v1 has 3 of which 2 report, and a trigger fires not": {
			[]Variant{partly(exampleVariant("v1", 5, 3, 0.5, 0), 2)}, []int{3},
			"as published"},
		"v1 has 3 of which 2 report, at hardly any load": {
			[]Variant{partly(exampleVariant("v1", 5, 3, 0.1, 0), 2)}, []int{3},
			"as published: two of three are too few to remove one"},
		"v1 has 3 of which 2 report, and both are full": {
			[]Variant{partly(exampleVariant("v1", 5, 3, 0.97, 0), 2)}, []int{4},
			"published: 3 until the third reports; ours may add on partial data"},
	} {
		t.Run(name, func(t *testing.T) {
			m := exampleOf(c.variants...)
			assert.Equal(t, c.want, desiredOf(m), "%s: %v", c.why, m.Variants[0].Steps)
		})
	}
}

// beyond has more requests/s reach the replicas than they complete.
func beyond(v Variant, rate float64) Variant {
	for i := range v.Replicas {
		v.Replicas[i].InFlightGrowth = seenNow(rate / float64(len(v.Replicas)))
	}
	return v
}

// A replica that queues with its cache half full shows that not the cache limits it:
// published, what it holds then is its capacity, k2. Ours knows the same limit as the
// batch limit where it is stated. Where it is not, its curve still reckons with what the
// cache would hold, and so with more than k2; but a saturated replica is a trigger, which
// asks for one more each time until none is.
func TestPublishedExampleOfTheObservedLimit(t *testing.T) {
	const cache, inUse, each, residence = 16000, 8000, 200, 10
	queueing := func(limit int) Variant {
		v := exampleVariant("v", 10, 2, float64(inUse)/cache, 6)
		v.KVTokens, v.BatchLimit = cache, limit
		for i := range v.Replicas {
			r := &v.Replicas[i]
			r.KVTokens, r.Running, r.Served = seenNow(cache), seenNow(inUse/each), seenNow(inUse/each/residence)
			r.Input, r.Output = seenNow(150), seenNow(100)
		}
		return v
	}
	const allowed = 0.70 // The threshold minus the spare trigger.
	for name, c := range map[string]struct {
		limit int
		holds float64
	}{
		"the batch limit is stated": {inUse / each, inUse},
		"it is not":                 {0, cache},
	} {
		t.Run(name, func(t *testing.T) {
			m := exampleOf(queueing(c.limit))
			assert.InDelta(t, c.holds, float64(m.Variants[0].ServesEach)*residence*each/allowed, 1)
			assert.True(t, m.Triggered, "6 wait, which is 5 or more")
			assert.Equal(t, []int{3}, desiredOf(m))
		})
	}
}

// What waits at the gateway is demand. Published, it is tokens beside those in use: 10
// requests, or their bytes, make 5,000 to 6,000 or 10,500. Ours takes no stock for a
// rate: 10 requests are to be served within the drain time, and bytes are not read.
// Either way a fleet that just carries what arrives needs more when requests wait.
func TestPublishedExampleOfTheQueueDemand(t *testing.T) {
	decide := func(queue float64) ModelPlan {
		m := Model{Namespace: "ns", ID: "m", Queue: seenNow(queue), Variants: []Variant{exampleVariant("v", 10, 2, 0.699, 0)}}
		m.Variants[0].Startup = time.Second
		m.Arrival = seenNow(13.98)
		s := Snapshot{Time: epoch, Models: []Model{m}}
		policy := examplePolicy(&s)
		policy.Drain = 2 * time.Minute
		plan, _ := Decide(s, policy, Memory{}, RoundFull)
		return plan.Models[0]
	}
	without, with := decide(0), decide(10)
	assert.Equal(t, []int{2}, desiredOf(without))
	assert.InDelta(t, 0, without.Demand.BacklogAtReady, 1e-9)
	assert.Equal(t, []int{3}, desiredOf(with), "13.98 and 10/120 requests/s are more than the 14 of two replicas")
	assert.InDelta(t, 10, with.Demand.BacklogAtReady, 1e-9)
	assert.InDelta(t, float64(without.Demand.Forecast), float64(with.Demand.Forecast), 1e-9, "a stock is no rate")
}

// publishedStep is one round of the published percentage-based rule at its default
// thresholds, for replicas that are all equally full: its new number of each variant.
// The most expensive one that has more than least goes; published is 1.
func publishedStep(replicas []int, costs []float64, full, queue float64, least int) []int {
	const kvThreshold, queueThreshold, kvTrigger, queueTrigger = 0.80, 5.0, 0.10, 3.0
	n := 0
	for _, r := range replicas {
		n += r
	}
	next := append([]int(nil), replicas...)
	spareKV, spareQueue := 0.0, 0.0
	calm := full < kvThreshold && queue < queueThreshold
	if calm {
		spareKV, spareQueue = kvThreshold-full, queueThreshold-queue
	}
	if spareKV < kvTrigger || spareQueue < queueTrigger {
		up := 0
		for i := range costs {
			if costs[i] < costs[up] {
				up = i
			}
		}
		next[up]++
		return next
	}
	grown := float64(n) / float64(n-1)
	if n < 2 || kvThreshold-full*grown < kvTrigger || queueThreshold-queue*grown < queueTrigger {
		return next
	}
	down := -1
	for i := range costs {
		if replicas[i] > least && (down < 0 || costs[i] >= costs[down]) {
			down = i
		}
	}
	if down >= 0 {
		next[down]--
	}
	return next
}

// steadyFleet is a model of variants on the same hardware under a load that stays, with
// what each replica shows when they share it evenly.
type steadyFleet struct {
	profile serving.Profile
	tokens  capacity.TokenShape
	costs   []float64
	arrival float64
}

// share is how full each of n replicas is, and how many requests wait in it; a full one
// cannot serve its part, and has a long queue.
func (f steadyFleet) share(n int) (inService, full, queue float64) {
	limit := f.profile.Concurrency(f.tokens)
	inService, _ = f.profile.Under(capacity.Rate(f.arrival/float64(n)), f.tokens)
	if inService >= limit*(1-1e-9) {
		return limit, 1, 50
	}
	return inService, inService / limit, 0
}

func (f steadyFleet) plan(replicas []int) ModelPlan {
	n, full, queue := f.share(sumOf(replicas))
	m := Model{Namespace: "ns", ID: "m", Arrival: seenNow(f.arrival), Queue: seenNow(0)}
	for i, count := range replicas {
		v := Variant{Name: string(rune('a' + i)), Current: count, Ready: count, Request: request("H100", 1), Cost: capacity.Cost(f.costs[i]),
			Profile: f.profile, KVTokens: f.profile.KVTokens, Startup: time.Minute}
		for k := range count {
			v.Replicas = append(v.Replicas, Replica{
				Name: fmt.Sprint(v.Name, "-", k), KVUse: seenNow(full), Waiting: seenNow(queue), Running: seenNow(n),
				Served: seenNow(float64(f.profile.Steady(n, f.tokens).Rate)), InFlightGrowth: seenNow(0),
				Input: seenNow(float64(f.tokens.Input)), Output: seenNow(float64(f.tokens.Output)),
			})
		}
		m.Variants = append(m.Variants, v)
	}
	s := Snapshot{Time: epoch, Models: []Model{m}}
	plan, _ := Decide(s, examplePolicy(&s), Memory{}, RoundFull)
	return plan.Models[0]
}

// settle repeats the published step, each time with all replicas ready, until it stops
// or comes back to where it was. It returns the largest fleet of where it stays, and the
// steps that it took.
func (f steadyFleet) settle(replicas []int, least int) (rest []int, steps int, cycles bool) {
	seen := [][]int{replicas}
	for {
		_, full, queue := f.share(sumOf(replicas))
		next := publishedStep(replicas, f.costs, full, queue, least)
		if slices.Equal(next, replicas) {
			return next, len(seen) - 1, false
		}
		for i, old := range seen {
			if slices.Equal(old, next) {
				rest = slices.MaxFunc(seen[i:], func(a, b []int) int { return cmp.Compare(sumOf(a), sumOf(b)) })
				return rest, len(seen) - 1, true
			}
		}
		seen = append(seen, next)
		replicas = next
	}
}

func sumOf(list []int) int {
	sum := 0
	for _, n := range list {
		sum += n
	}
	return sum
}

// Our amounts reach in one jump where the published rule comes to rest when it is
// repeated, with nothing asked for because of what waits. Three differences are meant,
// and compare allows each only where its reason holds:
//   - Down, what stays must serve 0.85/0.70 of the demand, so that the next burst does
//     not raise it again; the published rule goes on to its own trigger.
//   - The published rule reckons that the load of those that stay grows as they become
//     fewer. Latency grows with it, so it grows more: the rule adds again what it
//     removed, and never comes to rest. Ours has the larger number of the two, and does
//     not trade an expensive replica for a cheap one at each turn as the rule then does:
//     switches of variants have their own stage.
//   - Down, the published rule leaves one replica of each variant, whatever it costs.
//     Ours leaves them where they serve for the least. The steps are compared without
//     that bound, and how often it counts is counted.
func TestOneJumpReachesTheFixedPointOfThePublishedSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 4))
	met := map[string]int{}
	for i := range 400 {
		f := steadyFleet{tokens: capacity.TokenShape{Input: capacity.Tokens(50 + random.IntN(2000)), Output: capacity.Tokens(20 + random.IntN(600))}}
		f.profile = serving.Profile{Base: 20, KVTokens: capacity.Tokens(100000 + random.IntN(400000))}
		if i%2 == 0 {
			f.profile.PerRequest, f.profile.PerResidentToken, f.profile.PerPrefillToken = 0.03, 4e-5, 0.02
		}
		var replicas []int
		for range 1 + random.IntN(3) {
			replicas = append(replicas, 1+random.IntN(6))
			f.costs = append(f.costs, 1+math.Floor(20*random.Float64())+0.1*float64(len(f.costs)))
		}
		n := sumOf(replicas)
		each := float64(f.profile.Steady(0.70*f.profile.Concurrency(f.tokens), f.tokens).Rate)
		f.arrival = each * float64(n) * (0.02 + 3*math.Pow(random.Float64(), 2))
		rest, steps, cycles := f.settle(replicas, 0)
		if kept, _, _ := f.settle(replicas, 1); sumOf(kept) != sumOf(rest) {
			met["theirs leaves one of each variant"]++
		}
		ours := desiredOf(f.plan(replicas))
		where := fmt.Sprintf("case %d: from %v under %.2f requests/s, of which a replica serves %.3f; costs %v; theirs %v after %d steps (again and again: %v), ours %v",
			i, replicas, f.arrival, each, f.costs, rest, steps, cycles, ours)
		met[f.compare(t, replicas, rest, ours, each, cycles, where)]++
	}
	for _, way := range []string{"up", "up, and theirs goes on", "none", "down", "down, with headroom", "down, but for the headroom",
		"down, and theirs goes on", "theirs leaves one of each variant"} {
		assert.Greater(t, met[way], 8, "%s: %v", way, met)
	}
}

// compare holds our answer against theirs and names the way in which they are alike.
func (f steadyFleet) compare(t *testing.T, replicas, rest, ours []int, each float64, cycles bool, where string) string {
	t.Helper()
	cost := func(list []int) float64 {
		sum := 0.0
		for i, n := range list {
			sum += f.costs[i] * float64(n)
		}
		return sum
	}
	n, theirs := sumOf(replicas), sumOf(rest)
	headroom := int(math.Ceil(0.85/0.70*f.arrival/each - 1e-9))
	switch {
	case theirs > n && cycles:
		require.Equal(t, theirs, sumOf(ours), where)
		return "up, and theirs goes on"
	case theirs > n:
		require.Equal(t, rest, ours, where)
		return "up"
	case theirs == n:
		require.Equal(t, replicas, ours, where)
		return "none"
	case headroom >= n:
		require.Equal(t, replicas, ours, where)
		return "down, but for the headroom"
	case headroom > theirs:
		require.Equal(t, headroom, sumOf(ours), where)
		return "down, with headroom"
	}
	require.Equal(t, theirs, sumOf(ours), where)
	if cycles {
		return "down, and theirs goes on"
	}
	require.LessOrEqual(t, cost(ours), cost(rest), where)
	return "down"
}
