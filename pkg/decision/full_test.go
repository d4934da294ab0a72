package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// fedWorld shows three replicas without a queue, that serve 9 requests per second each, and then
// with 20 in service and a hundred waiting at each, changed for one round at a time. It returns
// what is known of a full one after each of these rounds, which are half a metrics window apart.
func fedWorld(t *testing.T, rounds ...func(*Variant)) []ObservedLimit {
	t.Helper()
	w, policy, memory := newWorld(10), DefaultPolicy(), Memory{}
	w.setReplicas(0, 3)
	found := make([]ObservedLimit, 0, len(rounds))
	unfed := every(func(p *Replica) { p.Running.Value, p.Served.Value, p.InService.Value, p.Waiting.Value = 10, 9, 1.1, 0 })
	for i, change := range append([]func(*Variant){unfed}, rounds...) {
		w.now = w.now.Add(policy.Window / 2)
		s := w.snapshot()
		v := &s.Models[0].Variants[0]
		for i := range v.Replicas {
			p := &v.Replicas[i]
			p.Since = w.now.Add(-time.Hour)
			p.Running, p.Waiting, p.Served, p.InService = w.sample(20), w.sample(100), w.sample(10), w.sample(2)
			p.InFlightGrowth = w.sample(0)
		}
		change(v)
		_, memory = Decide(s, policy, memory, RoundFull)
		if i > 0 {
			full := memory.Variants[Key{Namespace: "ns", Name: v.Name}].Full
			if !rate.IsFull(&full) {
				full.InService = 0
			}
			found = append(found, full)
		}
	}
	return found
}

// testRound is the time between two rounds of a shared fault.
const testRound = 15 * time.Second

func asItIs(*Variant) {}

// every changes all replicas.
func every(change func(*Replica)) func(*Variant) {
	return func(v *Variant) {
		for i := range v.Replicas {
			change(&v.Replicas[i])
		}
	}
}

// What a replica has in service while others wait is what it holds; it is known when most were
// fed for a whole window.
func TestAFedReplicaShowsWhatItHolds(t *testing.T) {
	full := fedWorld(t, asItIs, asItIs, asItIs)
	assert.Zero(t, full[1].InService, "the window began before the queue")
	assert.InDelta(t, 20, full[2].InService, 1e-9)
	assert.InDelta(t, 10, float64(full[2].Rate), 1e-9)

	unfed := func(n int) func(*Variant) {
		return func(v *Variant) {
			for i := range n {
				v.Replicas[i].Waiting.Value = 20
			}
		}
	}
	assert.InDelta(t, 20, fedWorld(t, unfed(1), unfed(1), unfed(1))[2].InService, 1e-9, "two of three are most")
	assert.Zero(t, fedWorld(t, unfed(2), unfed(2), unfed(2))[2].InService, "one of three may have a reason of its own")
	assert.Zero(t, fedWorld(t, asItIs, unfed(3), asItIs)[2].InService, "not fed without a break")
	hung := every(func(p *Replica) { p.Served.Value = 0 })
	assert.Zero(t, fedWorld(t, hung, hung, hung)[2].InService, "it holds any number and serves nothing")
	slow := every(func(p *Replica) { p.Running.Value, p.Served.Value, p.InService.Value = 3, 6, 0.5 })
	assert.Zero(t, fedWorld(t, slow, slow, slow)[2].InService, "it served more without a queue")
	silent := func(v *Variant) { v.Replicas = v.Replicas[:1] }
	assert.Zero(t, fedWorld(t, silent, silent, silent)[2].InService, "two of three show nothing")
}

// What was seen stands when the queue is gone, until a replica shows that it was not full.
func TestWhatAFullReplicaHoldsStands(t *testing.T) {
	for name, c := range map[string]struct {
		after  func(*Variant)
		stands float64
	}{
		"a queue that drains": {every(func(p *Replica) { p.Running.Value, p.InService.Value = 12, 1.2 }), 20},
		"hardly any load":     {every(func(p *Replica) { p.Running.Value, p.Served.Value, p.Waiting.Value = 2, 1, 0 }), 20},
		"some more fed":       {every(func(p *Replica) { p.Running.Value, p.InService.Value = 22, 2.2 }), 22},
		"a few more in service, unfed": {func(v *Variant) {
			every(func(p *Replica) { p.Waiting.Value = 0 })(v)
			v.Replicas[1].Running.Value, v.Replicas[1].InService.Value = 25, 2.5
		}, 20},
		"many more in service, unfed": {func(v *Variant) {
			every(func(p *Replica) { p.Waiting.Value = 0 })(v)
			v.Replicas[1].Running.Value, v.Replicas[1].InService.Value = 26, 2.6
		}, 0},
		"it serves more with fewer": {func(v *Variant) {
			every(func(p *Replica) { p.Waiting.Value = 0 })(v)
			v.Replicas[1].Served.Value, v.Replicas[1].Running.Value, v.Replicas[1].InService.Value = 14, 14, 1
		}, 0},
		"longer prompts":  {every(func(p *Replica) { p.Input.Value *= 8 }), 0},
		"longer answers":  {every(func(p *Replica) { p.Output.Value *= 8 }), 0},
		"another version": {func(v *Variant) { v.Rolling = true }, 0},
		"another accelerator": {func(v *Variant) {
			other := *v.Request
			other.Shape.Accelerator = capacity.Accelerator("other")
			v.Request = &other
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.InDelta(t, c.stands, fedWorld(t, asItIs, asItIs, asItIs, c.after)[3].InService, 1e-9)
		})
	}
}

// One that serves less than others did without a queue is slow; where none was ever without one,
// as after a start with too many requests, what they serve is all that is known.
func TestSlowReplicasAreNotFull(t *testing.T) {
	for name, f := range map[string]ObservedLimit{
		"less than without one":  {Sure: true, InService: 20, Rate: 7.4, Unfed: 10},
		"no queue was seen":      {Sure: true, Unfed: 10},
		"for less than a window": {InService: 20, Rate: 10, Unfed: 10},
	} {
		assert.False(t, rate.IsFull(&f), name)
	}
	for name, f := range map[string]ObservedLimit{
		"as much as without one": {Sure: true, InService: 20, Rate: 7.6, Unfed: 10},
		"none was without one":   {Sure: true, InService: 20, Rate: 10},
	} {
		assert.True(t, rate.IsFull(&f), name)
	}
}

// All replicas take twenty times as long for a while, as where a store of caches is down that
// they share: they have queues and little in service. More of them are asked for one by one.
func TestASharedFaultBuysNoFleet(t *testing.T) {
	const ready, arrive, serve, healthy, rounds = 4, 8.0, 0.1, 12, 40
	w, policy, memory := newWorld(arrive), DefaultPolicy(), Memory{}
	w.variants, w.cluster, policy.Limited = w.variants[:1], nil, false
	n, backlog := ready, 0.0
	for i := range rounds {
		w.setReplicas(0, n)
		w.now = w.now.Add(testRound)
		s := w.snapshot()
		each := arrive / float64(n)
		change := func(p *Replica) {
			p.Running, p.Waiting, p.Served, p.InService = w.sample(2*each), w.sample(0), w.sample(each), w.sample(2)
		}
		if i >= healthy {
			backlog += testRound.Seconds() * (arrive - serve*float64(n))
			change = func(p *Replica) {
				p.Running, p.Waiting, p.Served, p.InService = w.sample(3), w.sample(backlog/float64(n)), w.sample(serve), w.sample(3/serve)
				p.InFlightGrowth = w.sample(each - serve)
			}
		}
		every(change)(&s.Models[0].Variants[0])
		var plan Plan
		plan, memory = Decide(s, policy, memory, RoundFull)
		n = *plan.Models[0].Variants[0].Desired
	}
	assert.LessOrEqual(t, n, 3*ready)
	assert.Greater(t, n, ready)
}
