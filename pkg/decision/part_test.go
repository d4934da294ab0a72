package decision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/demand"
)

// counting is a gateway that counts a share of a flow's requests, and queues none; told sees what it
// says of the plan.
func counting(m *flow, share func() float64) func(*Snapshot) {
	return func(s *Snapshot) {
		n := len(m.scrapes)
		if n < 2 {
			return
		}
		of, in := share(), &s.Models[0]
		count := func(s scrape) float64 { return s.done }
		in.Arrival, in.Recent = rateOf(m.scrapes, count), rateOf(m.scrapes[n-2:], count)
		in.RecentSpan = m.scrapes[n-1].at.Sub(m.scrapes[n-2].at)
		in.Arrival.Value, in.Recent.Value = in.Arrival.Value*of, in.Recent.Value*of
	}
}

// A gateway's count that is less than what the replicas show lowers nothing, is replaced, and is
// told: that of one replica's series alone, and that of the base model's name, where most
// requests ask for adapters on the same servers.
func TestAGatewayThatCountsAPartIsNotBelieved(t *testing.T) {
	const at = 30 * time.Minute
	climb := func(share func(ready int) float64) (reached time.Duration, told string) {
		web := vesselOf("web", 4)
		m := &flow{id: "m", arrivals: step(at, 6, 40), variants: []*vessel{web}, direct: true}
		f := newFluid(machines(8), DefaultPolicy(), m)
		f.change = counting(m, func() float64 { return share(max(1, web.count(serves))) })
		f.told = func(_ *Snapshot, plan *Plan) {
			told = detailOf(plan.Models[0].Variants[0].Facts, ReasonGatewayCountsPart)
		}
		for f.elapsed() < 90*time.Minute && web.count(serves) < 16 {
			f.step()
		}
		return f.elapsed() - at, told
	}
	right, told := climb(func(int) float64 { return 1 })
	assert.Empty(t, told)
	for name, share := range map[string]func(int) float64{
		"one replica's": func(ready int) float64 { return 1 / float64(ready) },
		"one in twenty": func(int) float64 { return 0.05 },
		"nothing":       func(int) float64 { return 0 },
	} {
		reached, told := climb(share)
		assert.LessOrEqual(t, reached, right, name)
		assert.Contains(t, told, "the gateway counts", name)
	}
}

// However requests are split over names, pools and ways around the gateway, no fewer replicas stay
// than the replicas' own count asks for, and hardly more than the whole does.
func TestPropertyHoweverRequestsAreSplit(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 45))
		loads, shares := make([]float64, 4), make([]float64, 4)
		for i := range loads {
			loads[i], shares[i] = 1+30*random.Float64(), random.Float64()
		}
		const stage = 45 * time.Minute
		now := func(of []float64, t time.Duration) float64 { return of[min(len(of)-1, int(t/stage))] }
		// ends are the replicas at the end of each stage.
		ends := func(gateway bool, share func(time.Duration) float64) (all []int) {
			web := vesselOf("web", 6)
			m := &flow{id: "m", direct: true, arrivals: func(t time.Duration) float64 { return now(loads, t) }, variants: []*vessel{web}}
			f := newFluid(machines(8), DefaultPolicy(), m)
			if gateway {
				f.change = counting(m, func() float64 { return share(f.elapsed()) })
			}
			for i := range loads {
				f.run(time.Duration(i+1) * stage)
				all = append(all, web.replicas)
			}
			return all
		}
		whole := ends(true, func(time.Duration) float64 { return 1 })
		own := ends(false, nil)
		part := ends(true, func(t time.Duration) float64 { return now(shares, t) })
		about := fmt.Sprintf("seed %d: %.1f req/s, of which the gateway counts %.2f: the whole %v, own %v, part %v", seed, loads, shares, whole, own, part)
		for i := range part {
			// So little may be missing that nobody can tell.
			require.GreaterOrEqual(t, part[i], int((1-demand.LeastMissing)*float64(min(whole[i], own[i]))), about)
			// Before it is told they were too few, which is remembered for a day.
			require.LessOrEqual(t, part[i], max(whole[i], own[i])*5/4+1, about)
		}
	}
}

// What people report of gateways that count something else than what reaches the replicas. A step is
// served as soon as with a right count, and when it is over there are as many replicas as with one.
func TestReportsOfGatewaysThatCountSomethingElse(t *testing.T) {
	const begin, end = 45 * time.Minute, 105 * time.Minute
	run := func(share func(time.Duration) float64) (served time.Duration, least, most, left int, told map[Reason]bool) {
		web := vesselOf("web", 4)
		m := &flow{id: "m", direct: true, variants: []*vessel{web}, arrivals: func(d time.Duration) float64 {
			if d >= begin && d < end {
				return 40
			}
			return 6
		}}
		f := newFluid(machines(8), DefaultPolicy(), m)
		f.change = counting(m, func() float64 { return share(f.elapsed()) })
		told, least = map[Reason]bool{}, web.replicas
		f.told = func(_ *Snapshot, plan *Plan) {
			for _, fact := range plan.Models[0].Variants[0].Facts {
				told[fact.Reason] = true
			}
		}
		for f.elapsed() < end+time.Hour {
			f.step()
			least, most = min(least, web.replicas), max(most, web.replicas)
			if served == 0 && f.elapsed() > begin && web.count(serves) >= 16 {
				served = f.elapsed() - begin
			}
		}
		return served, least, most, web.replicas, told
	}
	always := func(share float64) func(time.Duration) float64 {
		return func(time.Duration) float64 { return share }
	}
	right, few, many, after, told := run(always(1))
	assert.False(t, told[ReasonGatewayCountsPart] || told[ReasonReplicasCountPart])
	for name, c := range map[string]struct {
		share func(time.Duration) float64
		told  Reason
	}{
		"one of two pickers is scraped":               {always(0.5), ReasonGatewayCountsPart},
		"a third of the requests goes to the Service": {always(2. / 3), ReasonGatewayCountsPart},
		"a request with n=4 is four for the server":   {always(0.25), ReasonGatewayCountsPart},
		"the mirror of another model's requests":      {always(0.8), ReasonGatewayCountsPart},
		"the second pool came with the step":          {func(d time.Duration) float64 { return map[bool]float64{true: 0.3, false: 1}[d >= begin] }, ReasonGatewayCountsPart},
		"the picker starts anew every quarter of an hour": {func(d time.Duration) float64 {
			return map[bool]float64{true: 0, false: 1}[d%(15*time.Minute) < 2*time.Minute]
		}, ""},
		"adapters are asked for in turns": {func(d time.Duration) float64 {
			return map[bool]float64{true: 0.1, false: 0.9}[d%(10*time.Minute) < 5*time.Minute]
		}, ReasonGatewayCountsPart},
		"each attempt is counted, and half of them repeat": {always(1.5), ReasonReplicasCountPart},
		"two gateways in a row count each request":         {always(2), ReasonReplicasCountPart},
	} {
		served, least, most, left, told := run(c.share)
		t.Logf("%s: 16 serve after %s (%s), %d to %d (%d to %d), %d are left (%d)", name, served, right, least, most, few, many, left, after)
		assert.NotZero(t, served, name)
		assert.LessOrEqual(t, served, right+time.Minute, name)
		assert.GreaterOrEqual(t, least, few, name)
		assert.LessOrEqual(t, left, after+1, name)
		assert.LessOrEqual(t, most, many*5/4+1, name)
		if c.told != "" {
			assert.True(t, told[c.told], name)
		}
	}
}

// Where the gateway or the servers are scraped less often than the others, one of them knows of a step
// before the other. Both count all.
func TestCountsOfDifferentPacesAreNoParts(t *testing.T) {
	const at = 40 * time.Minute
	type paced struct{ every, late time.Duration }
	usual := paced{every: scrapeEvery}
	rarely := []paced{{30 * time.Second, 0}, {time.Minute, 0}, {2 * time.Minute, 0}, {scrapeEvery, 45 * time.Second}, {time.Minute, 45 * time.Second}}
	pairs := [][2]paced{{usual, usual}}
	for _, one := range rarely {
		pairs = append(pairs, [2]paced{one, usual}, [2]paced{usual, one})
	}
	for _, pair := range pairs {
		gateway, servers := pair[0], pair[1]
		for i, load := range [][2]float64{{40, 6}, {6, 40}, {10, 8}, {30, 0}, {40, 6}, {30, 0}} {
			// The servers are scraped at 0 s.
			phase := time.Second
			if i >= 4 {
				phase = 11 * time.Second
			}
			t.Run(fmt.Sprintf("gateway %v, servers %v, %v req/s, %s apart", gateway, servers, load, phase), func(t *testing.T) {
				web := vesselOf("web", 16)
				m := &flow{id: "m", direct: true, arrivals: step(at, load[0], load[1]), variants: []*vessel{web}}
				f := newFluid(machines(8), DefaultPolicy(), m)
				f.every, f.late = servers.every, servers.late
				// seen is the gateway's page, as often as it is scraped and as late as that is known.
				seen, reader := []scrape{}, fluid{every: gateway.every, late: gateway.late, policy: f.policy}
				f.change = func(s *Snapshot) {
					known := slices.DeleteFunc(slices.Clone(seen), func(o scrape) bool { return f.now.Sub(o.at) < gateway.late })
					n := len(known)
					if n < 2 {
						return
					}
					known = known[max(0, n-int(reader.window()/gateway.every)):]
					of, count := &s.Models[0], func(s scrape) float64 { return s.done }
					n = len(known)
					of.Arrival, of.Recent, of.Pace = rateOf(known, count), rateOf(known[n-2:], count), reader.pace()
					of.RecentSpan = known[n-1].at.Sub(known[n-2].at)
				}
				told := map[string]time.Duration{}
				f.told = func(_ *Snapshot, plan *Plan) {
					for _, fact := range plan.Models[0].Variants[0].Facts {
						if fact.Reason == ReasonGatewayCountsPart || fact.Reason == ReasonReplicasCountPart {
							told[textOf(fact.Detail)] = f.elapsed()
						}
					}
				}
				for f.elapsed() < 2*at {
					if f.step(); f.elapsed()%gateway.every == phase%gateway.every {
						seen = append(seen, scrape{at: f.now, done: m.arrived})
					}
				}
				assert.Empty(t, told)
			})
		}
	}
}
