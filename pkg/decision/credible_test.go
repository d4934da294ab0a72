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
		for _, gateway := range []bool{false, true} {
			for _, n := range []int{2, 10} {
				t.Run(fmt.Sprintf("%s, gateway %v, %d replicas", way, gateway, n), func(t *testing.T) {
					f, web := oddFleet(n, way, 0.6)
					f.models[0].direct = !gateway
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
	for name, c := range map[string]struct {
		running, inService, served, inFlight float64
		unknown                              bool
		cannot                               bool
	}{
		"as much as it has in service over that time":       {running: 10, inService: 5, served: 2},
		"a quarter more, by chance":                         {running: 10, inService: 5, served: 2.5},
		"a hundred times as much":                           {running: 10, inService: 5, served: 200, cannot: true},
		"what it had, which is gone":                        {running: 0, inService: 60, served: 1, inFlight: 60},
		"more than the model had":                           {running: 0, inService: 60, served: 1.1, inFlight: 60, cannot: true},
		"answers at once, which no scrape finds in service": {running: 0, inService: 0.005, served: 150},
		"nobody tells a time in service":                    {running: 10, served: 200, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := func(v float64) Sample { return Sample{v, epoch, true} }
			p := Replica{Name: "v-0", Running: s(c.running), Served: s(c.served), InService: s(c.inService), Recent: s(c.served), InFlightGrowth: s(0)}
			if c.unknown {
				p.InService = Sample{}
			}
			in := &Variant{Name: "v", Current: 1, Ready: 1, Replicas: []Replica{p}}
			r, m, v := bare(DefaultPolicy(), Memory{}, in)
			m.old.Seen = []Observation{{Time: epoch, InFlight: c.inFlight}}
			r.disbelieve(m)
			assert.Equal(t, c.cannot, !v.in.Replicas[0].Served.Present)
			assert.Equal(t, c.cannot, !v.in.Replicas[0].Recent.Present)
			assert.True(t, in.Replicas[0].Served.Present, "the snapshot stays as it is")
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
		"they are full, and refuse": {arrival: 200, change: func(m *Model) { m.Variants[0].Replicas[0].KVUse = Sample{0.9, epoch, true} }},
		"nothing is counted":        {arrival: 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := func(v float64) Sample { return Sample{v, epoch, true} }
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 1, Ready: 1, Replicas: []Replica{{Running: s(10), Served: s(2), InService: s(5)}}})
			m.in.Arrival, m.in.Recent, m.in.Queue = s(c.arrival), s(c.arrival), s(0)
			if m.in.Variants = []Variant{*v.in}; c.change != nil {
				c.change(m.in)
			}
			v.in = &m.in.Variants[0]
			r.disbelieve(m)
			v.load = r.loadOf(m, v)
			m.load = m.loadOfAll()
			r.disbelieveGateway(m)
			assert.Equal(t, c.cannot, !m.in.Arrival.Present)
		})
	}
}
