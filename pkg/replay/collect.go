package replay

import (
	"cmp"
	"hash/fnv"
	"slices"
	"sort"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// kept is how long scrapes are kept at least: as long as the published policies look
// back. A longer window of the scenario's keeps them longer.
const kept = 5 * time.Minute

// collector scrapes the replicas and the gateways of a world, each at its own beat, and
// shows what was scraped.
type collector struct {
	scenario *Scenario
	world    *simulation.World
	pods     map[string]*history
	gateways [][]GatewayScrape
	// every is the time between two scrapes of one replica, and keep how long they are kept.
	every, keep time.Duration
}

// Looker is a policy that has its own eyes.
type Looker interface {
	// Looks is the time between two scrapes of one replica, or 0 for that of the scenario,
	// and how far back the policy looks at them.
	Looks() (every, back time.Duration)
}

// LatencyReader is a policy that reads histograms of latencies, which the gateway then keeps.
type LatencyReader interface {
	// Latencies are the buckets of the histograms.
	Latencies() simulation.Buckets
}

// latenciesOf are the buckets that a policy reads; nil for others.
func latenciesOf(policy Policy) *simulation.Buckets {
	if reader, ok := policy.(LatencyReader); ok {
		return new(reader.Latencies())
	}
	return nil
}

// history is the scrapes of one replica.
type history struct {
	// phase is when within the interval it is scraped.
	phase   time.Duration
	scrapes []Scrape
	// seen is when the replica was last scraped.
	seen time.Duration
}

func newCollector(s *Scenario, w *simulation.World, policy Policy) *collector {
	c := &collector{
		scenario: s, world: w, pods: map[string]*history{}, gateways: make([][]GatewayScrape, len(s.Models)),
		every: s.Collection.Scrape, keep: max(kept, s.Collection.Window),
	}
	if own, ok := policy.(Looker); ok {
		every, back := own.Looks()
		c.every, c.keep = cmp.Or(every, c.every), max(c.keep, back)
	}
	return c
}

// phaseOf spreads the scrapes of different replicas over the interval, as Prometheus
// does, in whole seconds.
func (c *collector) phaseOf(name string) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	interval := max(second, c.every.Truncate(second))
	return (time.Duration(h.Sum64()%uint64(interval/second))*second + c.scenario.Collection.Later) % interval
}

// tick scrapes what is due at now, which is a whole second.
func (c *collector) tick(now time.Duration) {
	interval := c.every
	for m := range c.scenario.Models {
		if c.scenario.Collection.Gateway && now%interval == c.phaseOf(c.scenario.Models[m].ID) {
			c.gateways[m] = trim(append(c.gateways[m], GatewayScrape{At: now, Gateway: c.world.Gateway(m), Latencies: c.world.Latencies(m)}),
				now-c.keep, func(s GatewayScrape) time.Duration { return s.At })
		}
		for v := range c.scenario.Models[m].Variants {
			due := c.world.Asked(simulation.VariantIndex{Model: m, Variant: v}, func(r *simulation.Replica) bool { return c.due(now, r) })
			for i := range due {
				h := c.pods[due[i].Name]
				h.scrapes = trim(append(h.scrapes, Scrape{At: now, Metrics: due[i].Metrics}), now-c.keep, func(s Scrape) time.Duration { return s.At })
			}
		}
	}
	if now%c.keep == 0 {
		c.forget(now)
	}
}

// due reports whether a replica is to be scraped now and answers.
func (c *collector) due(now time.Duration, r *simulation.Replica) bool {
	h := c.pods[r.Name]
	switch {
	case h == nil && !r.Answers():
		return false
	case h == nil:
		h = &history{phase: c.phaseOf(r.Name)}
		c.pods[r.Name] = h
	}
	if now%c.every != h.phase {
		return false
	}
	if !r.Answers() {
		// A scrape that fails ends the series.
		h.scrapes = nil
		return false
	}
	h.seen = now
	return true
}

// trim forgets what is older than a time. The slice moves only when more than half of it is
// old.
func trim[S any](scrapes []S, since time.Duration, at func(S) time.Duration) []S {
	if n := len(scrapes); n == 0 || at(scrapes[n/2]) >= since {
		return scrapes
	}
	old := sort.Search(len(scrapes), func(i int) bool { return at(scrapes[i]) >= since })
	return slices.Delete(scrapes, 0, old)
}

func (c *collector) forget(now time.Duration) {
	for name, h := range c.pods {
		if h.seen < now-c.keep {
			delete(c.pods, name)
		}
	}
}

// view is what a policy may know now.
func (c *collector) view(now time.Duration) *View {
	view := &View{Now: now, Scenario: c.scenario, Cluster: c.world.Cluster(), Models: make([]ModelView, len(c.scenario.Models))}
	for m := range c.scenario.Models {
		view.Models[m].Gateway = c.gateways[m]
		if c.scenario.Collection.Gateway {
			view.Models[m].Queue = c.world.Gateway(m).Queue
		}
		for v := range c.scenario.Models[m].Variants {
			view.Models[m].Variants = append(view.Models[m].Variants, c.variant(simulation.VariantIndex{Model: m, Variant: v}))
		}
	}
	return view
}

func (c *collector) variant(v simulation.VariantIndex) VariantView {
	out := VariantView{Replicas: c.world.Wanted(v)}
	for _, r := range c.world.Replicas(v) {
		if r.Stage == simulation.Leaving || r.Stage == simulation.Gone {
			continue
		}
		// Nobody sees what a server says between two scrapes.
		pod := Pod{Replica: r}
		pod.Metrics = simulation.Metrics{}
		if h := c.pods[r.Name]; h != nil {
			pod.Scrapes = h.scrapes
		}
		out.Pods = append(out.Pods, pod)
	}
	slices.SortFunc(out.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return out
}
