package replay

import (
	"fmt"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// performPeak plays static fleets of the cheapest variants until it has the smallest one
// that keeps the SLO for the promised share of this trace's requests. Nobody could have
// known it before: it is a reference and no policy. Where no fleet that fits keeps it,
// the largest one is the answer.
func (p *play) performPeak() performed {
	kept := func(n performed) bool { return n.err != nil || n.result.Attainment >= p.scenario.Policy.Share }
	most := p.mostReplicas()
	low, high := 0, 1
	played := map[int]performed{}
	tell := p.tell
	try := func(n int) performed {
		if _, ok := played[n]; !ok {
			p.tell = halfOfTheRest(tell, len(played))
			played[n] = p.withStatic(n)
		}
		return played[n]
	}
	for high < most && !kept(try(high)) {
		low, high = high, min(2*high, most)
	}
	for high-low > 1 {
		if mid := (low + high) / 2; kept(try(mid)) {
			high = mid
		} else {
			low = mid
		}
	}
	return try(high)
}

// halfOfTheRest tells how far a search is that nobody knows the length of: each play
// counts for half of what the plays before it left.
func halfOfTheRest(tell func(float64) bool, before int) func(float64) bool {
	if tell == nil {
		return nil
	}
	return func(part float64) bool {
		left := math.Pow(0.5, float64(before))
		return tell(1 - left + left/2*part)
	}
}

// mostReplicas is a number of replicas that is enough for any minute, or all that fit.
func (p *play) mostReplicas() int {
	most := 1
	for m, v := range p.choice {
		slots, err := p.scenario.Cluster.Slots(p.scenario.Models[m].Variants[v].Request)
		if err == nil {
			most = max(most, slots)
		}
	}
	return most
}

// withStatic plays a fleet of n replicas of the cheapest variant of each model, which is
// there from the start.
func (p *play) withStatic(n int) performed {
	initial := make([][]int, len(p.scenario.Models))
	for m := range initial {
		initial[m] = make([]int, len(p.scenario.Models[m].Variants))
		initial[m][p.choice[m]] = n
	}
	return p.with(fleet{replicas: initial}, initial)
}

// fleet never changes.
type fleet struct{ replicas [][]int }

// Next implements Policy.
func (fleet) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return 1<<63 - 1
}

// Parameters implements Policy.
func (f fleet) Parameters() []Parameter {
	return []Parameter{{"replicas", fmt.Sprint(f.replicas)}}
}

// Decide implements Policy.
func (f fleet) Decide(*View) Answer { return Answer{Replicas: f.replicas} }

// check reports what a scenario lacks.
func (s *Scenario) check() error {
	if s == nil || s.Cluster == nil || len(s.Models) == 0 {
		return fmt.Errorf("the scenario has no cluster or no models; expected both")
	}
	seen, models := map[decision.Key]bool{}, map[decision.ModelKey]bool{}
	for i := range s.Models {
		m := &s.Models[i]
		id := decision.ModelKey{Namespace: m.Namespace, ID: m.ID}
		if models[id] {
			return fmt.Errorf("model %s: namespace %q has it twice; expected each model once", m.ID, m.Namespace)
		}
		models[id] = true
		if len(m.Variants) == 0 {
			return fmt.Errorf("model %s: it has no variants; expected at least one", m.ID)
		}
		for j := range m.Variants {
			v := &m.Variants[j]
			key := decision.Key{Namespace: m.Namespace, Name: v.Name}
			switch {
			case v.Name == "" || seen[key]:
				return fmt.Errorf("model %s: variant %q: expected a name that no other variant of namespace %q has", m.ID, v.Name, m.Namespace)
			case v.Request == nil:
				return fmt.Errorf("model %s: variant %s: the shape of a replica is not known; expected an accelerator and its count", m.ID, v.Name)
			case !v.Profile.Known():
				return fmt.Errorf("model %s: variant %s: it has no profile; expected the latency parameters of one replica", m.ID, v.Name)
			}
			seen[key] = true
		}
	}
	c := s.Collection
	if c.Scrape < second || c.Scrape%second != 0 || c.Window < 2*c.Scrape || s.Policy.Interval < second {
		return fmt.Errorf("metrics are scraped every %s, over a window of %s, for rounds every %s; expected whole seconds, a window of at least two scrapes and rounds of at least a second",
			c.Scrape, c.Window, s.Policy.Interval)
	}
	return nil
}
