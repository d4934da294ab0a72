package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One scrape of zeros of everything, as while servers make their pages anew, buys nothing.
func TestZerosAreNoArrivals(t *testing.T) {
	for _, way := range ways {
		// Without a gateway, also where nobody tells a time in service.
		for _, c := range []struct{ gateway, untimed bool }{{}, {untimed: true}, {gateway: true}} {
			for _, n := range []int{2, 10} {
				t.Run(fmt.Sprintf("%s, gateway %v, untimed %v, %d replicas", way, c.gateway, c.untimed, n), func(t *testing.T) {
					f, web := oddFleet(n, way, 0.6)
					f.models[0].direct, f.untimed = !c.gateway, c.untimed
					f.run(calm + 30*time.Minute)
					before, writes := web.replicas, len(f.writes)
					f.zeroed = true
					for f.elapsed() < calm+time.Hour {
						f.step()
						// What a gateway counts as none for one scrape is as if it scattered more.
						require.LessOrEqual(t, web.replicas, before+2, "%v", f.writes[writes:])
						require.GreaterOrEqual(t, web.replicas, before-1, "%v", f.writes[writes:])
					}
				})
			}
		}
	}
}

// A replica completes no more than it had, and than it can have begun and ended within the window.
func TestWhatAReplicaCannotHaveDone(t *testing.T) {
	s := func(v float64) Sample { return Sample{Value: v, Time: epoch, Present: true} }
	// By its tokens a request takes 1 s + 99 * 40 ms here, a little less than five seconds.
	byTokens := func(p *Replica) {
		p.InService, p.Waiting, p.TTFT, p.ITL, p.Output = Sample{}, s(0), s(1), s(0.04), s(100)
	}
	for name, c := range map[string]struct {
		running, inService, served, inFlight float64
		change                               func(*Replica)
		cannot                               bool
	}{
		"as much as it has in service over that time":       {running: 10, inService: 5, served: 2},
		"a quarter more, by chance":                         {running: 10, inService: 5, served: 2.5},
		"a hundred times as much":                           {running: 10, inService: 5, served: 200, cannot: true},
		"what it had, which is gone":                        {running: 0, inService: 60, served: 1, inFlight: 60},
		"more than the model had":                           {running: 0, inService: 60, served: 1.1, inFlight: 60, cannot: true},
		"answers at once, which no scrape finds in service": {running: 0, inService: 0.005, served: 150},
		"nobody tells a time":                               {running: 10, served: 200, change: func(p *Replica) { p.InService = Sample{} }},
		"as much as its tokens tell":                        {running: 10, served: 2, change: byTokens},
		"tokens that come three at once":                    {running: 10, served: 6, change: byTokens},
		"a hundred times as much as its tokens tell":        {running: 10, served: 200, change: byTokens, cannot: true},
		"most of it waits": {running: 10, served: 40, change: func(p *Replica) {
			byTokens(p)
			p.Waiting = s(90)
		}},
		"nobody tells lengths": {running: 10, served: 200, change: func(p *Replica) {
			byTokens(p)
			p.Output = Sample{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Replica{Name: "v-0", Running: s(c.running), Served: s(c.served), InService: s(c.inService), Recent: s(c.served), InFlightGrowth: s(0)}
			if c.change != nil {
				c.change(&p)
			}
			in := &Variant{Name: "v", Current: 1, Ready: 1, Replicas: []Replica{p}}
			r, m, v := bare(DefaultPolicy(), Memory{}, in)
			m.Old.Seen = []Observation{{Time: epoch, InFlight: c.inFlight}}
			within(r, m).Disbelieve()
			assert.Equal(t, c.cannot, !v.In.Replicas[0].Served.Present)
			assert.Equal(t, c.cannot, !v.In.Replicas[0].Recent.Present)
			assert.True(t, in.Replicas[0].Served.Present, "the snapshot stays as it is")
		})
	}
}

// Requests are no longer than a replica's cache holds, and than it can have answered.
func TestHowLongRequestsCannotBe(t *testing.T) {
	s := func(v float64) Sample { return Sample{Value: v, Time: epoch, Present: true} }
	for name, c := range map[string]struct {
		change  func(*Replica)
		tooLong bool
	}{
		"as they are":                        {change: func(*Replica) {}},
		"four tokens at once":                {change: func(p *Replica) { p.Output = s(400) }},
		"a hundred times as long":            {change: func(p *Replica) { p.Output = s(10000) }, tooLong: true},
		"nobody tells a time in service":     {change: func(p *Replica) { p.Output, p.InService = s(10000), Sample{} }},
		"nobody tells a time between two":    {change: func(p *Replica) { p.Output, p.ITL = s(10000), Sample{} }},
		"one token, which takes no time":     {change: func(p *Replica) { p.Output, p.InService = s(1), s(0.01) }},
		"prompts that fill the cache":        {change: func(p *Replica) { p.Input = s(100000) }},
		"prompts that do not fit it":         {change: func(p *Replica) { p.Input = s(100001) }, tooLong: true},
		"prompts for a cache nobody knows":   {change: func(p *Replica) { p.Input, p.KVTokens = s(1e6), Sample{} }},
		"prompts for a cache of no tokens":   {change: func(p *Replica) { p.Input, p.KVTokens = s(1e6), s(0) }},
		"it is long ago that they were so":   {change: func(p *Replica) { p.Output = Sample{Value: 10000, Time: epoch.Add(-time.Hour), Present: true} }},
		"answers at once, with next to none": {change: func(p *Replica) { p.Output, p.InService, p.ITL = s(4), s(0.001), s(0.001) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := Replica{Name: "v-0", Running: s(10), Served: s(2.5), InService: s(4), ITL: s(0.04), TTFT: s(0.1), Input: s(300), Output: s(100), KVTokens: s(100000)}
			c.change(&p)
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 1, Ready: 1, Replicas: []Replica{p}})
			within(r, m).Disbelieve()
			was, is := p, v.In.Replicas[0]
			if c.tooLong {
				was.Input, was.Output = Sample{}, Sample{}
			}
			assert.Equal(t, was, is)
		})
	}
}

// A gateway counts what reaches the replicas, or waits, but for a little that they are read later.
func TestWhatAGatewayCannotHaveCounted(t *testing.T) {
	for name, c := range map[string]struct {
		arrival float64
		change  func(m *Model)
		cannot  bool
	}{
		"what they serve":           {arrival: 2},
		"a step that they show yet": {arrival: 8},
		"all of its life at once":   {arrival: 200, cannot: true},
		"it waits":                  {arrival: 200, change: func(m *Model) { m.Queue.Value = 12000 }},
		"nobody tells what waits":   {arrival: 200, change: func(m *Model) { m.Queue = Sample{} }},
		"one is not heard":          {arrival: 200, change: func(m *Model) { m.Variants[0].Ready = 2 }},
		"they began anew as well":   {arrival: 200, change: func(m *Model) { m.Variants[0].Replicas[0].Served.Value = 200 }, cannot: true},
		"they are full, and refuse": {arrival: 200, change: func(m *Model) { m.Variants[0].Replicas[0].KVUse = Sample{Value: 0.9, Time: epoch, Present: true} }},
		"nothing is counted":        {arrival: 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := func(v float64) Sample { return Sample{Value: v, Time: epoch, Present: true} }
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 1, Ready: 1, Replicas: []Replica{{Running: s(10), Served: s(2), InService: s(5)}}})
			m.In.Arrival, m.In.Recent, m.In.Queue = s(c.arrival), s(c.arrival), s(0)
			if m.In.Variants = []Variant{*v.In}; c.change != nil {
				c.change(m.In)
			}
			v.In = &m.In.Variants[0]
			within(r, m).Disbelieve()
			v.Load = within(r, v).LoadOf(&within(r, m).Model.Model.Model.Model)
			m.Load = m.LoadOfAll()
			within(r, m).DisbelieveGateway()
			assert.Equal(t, c.cannot, !m.In.Arrival.Present)
		})
	}
}
