package decision

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stick makes replicas take requests and serve none: so many wait in each, and so many are in
// service there. It returns what is seen of them.
func stick(pods []*vat, running, waiting float64) func(*Snapshot) {
	names := map[string]bool{}
	for _, p := range pods {
		p.frozen, names[p.name] = true, true
		p.running, p.waiting = 1e3, 1e3 // A router sends them nothing more.
	}
	return func(s *Snapshot) {
		replicas := s.Models[0].Variants[0].Replicas
		for i := range replicas {
			p := &replicas[i]
			if !names[p.Name] {
				continue
			}
			at := p.Running.Time
			zero := Sample{Value: 0, Time: at, Present: true}
			p.Running, p.Waiting, p.KVUse = Sample{Value: running, Time: at, Present: true}, Sample{Value: waiting, Time: at, Present: true}, zero
			p.Served, p.InFlightGrowth, p.Recent = zero, zero, zero
			p.InService, p.TTFT, p.ITL, p.Input, p.Output = Sample{}, Sample{}, Sample{}, Sample{}, Sample{}
		}
	}
}

// uncounted leaves out what replicas complete.
func uncounted(pods []*vat, change func(*Snapshot)) func(*Snapshot) {
	names := map[string]bool{}
	for _, p := range pods {
		names[p.name] = true
	}
	return func(s *Snapshot) {
		change(s)
		replicas := s.Models[0].Variants[0].Replicas
		for i := range replicas {
			if p := &replicas[i]; names[p.Name] {
				p.Served, p.Recent = Sample{}, Sample{}
			}
		}
	}
}

// Replicas whose requests nobody serves hold no others, are named, and go first; those that serve
// stay, and there is one in any case.
func TestPropertyDeadQueuesHoldNoReplicas(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 4))
		replicas := 2 + random.IntN(9)
		bad := 1 + random.IntN(replicas)
		load := []float64{0, 0, 1, 4}[random.IntN(4)]
		running := []float64{0, 0, 7}[random.IntN(3)]
		gateway := random.IntN(2) == 0
		// One that never completed any may not show how many it did.
		counts := running > 0 || random.IntN(2) == 0
		about := fmt.Sprintf("seed %d: %d of %d dead with %g in service, %g req/s, gateway %v, counts %v", seed, bad, replicas, running, load, gateway, counts)
		run := func(bad int) (*vessel, *fluid, string) {
			web := vesselOf("web", replicas)
			m := &flow{id: "m", arrivals: constant(load), direct: !gateway, variants: []*vessel{web}}
			f := newFluid(machines(8), DefaultPolicy(), m)
			f.change = stick(web.pods[:bad], running, 5+200*random.Float64())
			if !counts {
				f.change = uncounted(web.pods[:bad], f.change)
			}
			told := ""
			f.told = func(_ *Snapshot, plan *Plan) {
				if detail := detailOf(plan.Models[0].Variants[0].Facts, ReasonQueueDead); told == "" {
					told = detail
				}
			}
			for f.elapsed() < 2*time.Hour {
				f.step()
				// Before they are known to be dead one that serves is told from them by nothing.
				healthy := web.count(func(p *vat) bool { return p.ready && !p.frozen })
				if f.elapsed() > time.Minute && bad < replicas {
					require.Positive(t, healthy, about)
				}
			}
			return web, f, told
		}
		want, _, _ := run(0)
		got, f, told := run(bad)
		assert.LessOrEqual(t, got.replicas, want.replicas, "%s: %v", about, f.writes)
		assert.Zero(t, got.count(func(p *vat) bool { return p.frozen }), "%s: %v", about, f.writes)
		assert.Positive(t, got.count(serves), about)
		assert.Contains(t, told, "web-0", about)
		assert.LessOrEqual(t, strings.Count(told, "web-"), mostNamed, about)
	}
}

// A replica is dead once nothing happened to what waits in it for some windows, or where requests
// are in service for as long as clients wait. What gets a token, or is completed, is served.
func TestWhenAQueueIsDead(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Replica)
		after  time.Duration
		dead   bool
	}{
		"none in service, not yet":                                 {func(*Replica) {}, 2 * time.Minute, false},
		"none in service":                                          {func(*Replica) {}, 3 * time.Minute, true},
		"some in service, not yet":                                 {func(p *Replica) { p.Running.Value = 5 }, 9 * time.Minute, false},
		"some in service":                                          {func(p *Replica) { p.Running.Value = 5 }, 10 * time.Minute, true},
		"some in service and more come":                            {func(p *Replica) { p.Running.Value, p.InFlightGrowth.Value = 5, 0.1 }, time.Hour, false},
		"none in service, more come":                               {func(p *Replica) { p.InFlightGrowth.Value = 0.1 }, time.Hour, true},
		"some are completed":                                       {func(p *Replica) { p.Served.Value = 0.02 }, time.Hour, false},
		"some get tokens":                                          {func(p *Replica) { p.Running.Value, p.ITL = 5, Sample{Value: 1, Time: p.Running.Time, Present: true} }, time.Hour, false},
		"none ever was completed":                                  {func(p *Replica) { p.Served = Sample{} }, 3 * time.Minute, true},
		"some run, none is counted":                                {func(p *Replica) { p.Running.Value, p.Served = 5, Sample{} }, time.Hour, false},
		"nobody tells how full it is":                              {func(p *Replica) { p.KVUse = Sample{} }, 3 * time.Minute, true},
		"a prompt of many tokens is read, and none is said to run": {func(p *Replica) { p.KVUse.Value = p.Running.Time.Sub(epoch).Hours() / 10 }, time.Hour, false},
		"it has none":                                              {func(p *Replica) { p.Waiting.Value = 0 }, time.Hour, false},
		"none waits, some in service, not yet":                     {func(p *Replica) { p.Waiting.Value, p.Running.Value = 0, 5 }, 9 * time.Minute, false},
		"none waits, some in service":                              {func(p *Replica) { p.Waiting.Value, p.Running.Value = 0, 5 }, 10 * time.Minute, true},
		"none waits, and more come":                                {func(p *Replica) { p.Waiting.Value, p.Running.Value, p.InFlightGrowth.Value = 0, 5, 0.1 }, time.Hour, false},
		"none waits, and a long answer fills the cache": {func(p *Replica) {
			p.Waiting.Value, p.Running.Value, p.KVUse.Value = 0, 5, p.Running.Time.Sub(epoch).Hours()/10
		}, time.Hour, false},
		"none waits, and nobody tells how full it is": {func(p *Replica) { p.Waiting.Value, p.Running.Value, p.KVUse = 0, 5, Sample{} }, time.Hour, false},
		"nobody knows what is in flight":              {func(p *Replica) { p.Running = Sample{} }, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			memory, found := Memory{}, false
			for age := time.Duration(0); age <= c.after; age += time.Minute {
				now := epoch.Add(age)
				at := func(value float64) Sample { return Sample{Value: value, Time: now, Present: true} }
				p := Replica{Name: "p", Since: epoch.Add(-time.Hour), Running: at(0), Waiting: at(9), Served: at(0), KVUse: at(0), InFlightGrowth: at(0)}
				c.change(&p)
				v := Variant{Name: "v", Current: 1, Ready: 1, Request: request("H100", 1), ChoosesVictims: true, Replicas: []Replica{p}}
				var plan Plan
				plan, memory = Decide(Snapshot{Time: now, Cluster: machines(1), Models: []Model{{Namespace: "ns", ID: "m", Variants: []Variant{v}}}}, DefaultPolicy(), memory, RoundFull)
				found = plan.Models[0].Variants[0].Has(ReasonQueueDead)
			}
			assert.Equal(t, c.dead, found)
		})
	}
}

// A gateway's queue from which idle replicas get nothing holds none of them, and wakes nobody until
// something arrives.
func TestADeadQueueInTheGateway(t *testing.T) {
	for _, rests := range []bool{false, true} {
		web := vesselOf("web", 4)
		m := &flow{id: "m", arrivals: constant(0), variants: []*vessel{web}}
		policy := DefaultPolicy()
		policy.Idle.Enabled = rests
		f := newFluid(machines(4), policy, m)
		shown, told := 30.0, ""
		f.change = func(s *Snapshot) { s.Models[0].Queue.Value += shown }
		f.told = func(_ *Snapshot, plan *Plan) { told = detailOf(plan.Models[0].Variants[0].Facts, ReasonQueueDead) }
		f.run(2 * time.Hour)
		want := 1
		if rests {
			want = 0
		}
		assert.Equal(t, want, web.replicas, "%v", f.writes)
		assert.Contains(t, told, "30 waiting requests")
		shown = 31
		f.run(2*time.Hour + 2*time.Minute)
		assert.Positive(t, web.replicas, "one more waits: %v", f.writes)
	}
}
