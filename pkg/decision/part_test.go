package decision

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			require.GreaterOrEqual(t, part[i], int((1-leastMissing)*float64(min(whole[i], own[i]))), about)
			// Before it is told they were too few, which is remembered for a day.
			require.LessOrEqual(t, part[i], max(whole[i], own[i])*5/4+1, about)
		}
	}
}
