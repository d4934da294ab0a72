package replay

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// Window is a replica's scrapes within a time, oldest first, with the samples that the
// manager's queries would make of them: means of gauges, rates and ratios of sums over the window,
// and what happened between the last two scrapes.
type Window []Scrape

// WindowOf are the scrapes of the last length of time before now.
func WindowOf(scrapes []Scrape, now, length time.Duration) Window {
	return round.Covered(scrapes, func(s Scrape) time.Duration { return s.At }, now, length)
}

// gatewayWindow is the same of a gateway.
func gatewayWindow(scrapes []GatewayScrape, now, length time.Duration) []GatewayScrape {
	return round.Covered(scrapes, func(s GatewayScrape) time.Duration { return s.At }, now, length)
}

// Last is the newest scrape. The window must not be empty.
func (w Window) Last() Scrape { return w[len(w)-1] }

func known(value float64, t time.Duration) decision.Sample {
	return decision.Sample{Value: value, Time: at(t), Present: true}
}

// mean is that of a gauge; absent without a scrape.
func (w Window) mean(of func(Scrape) float64) decision.Sample {
	if len(w) == 0 {
		return decision.Sample{}
	}
	sum := 0.0
	for _, s := range w {
		sum += of(s)
	}
	return known(sum/float64(len(w)), w.Last().At)
}

// Rate is how much a sum grew per second; absent before the second scrape.
func (w Window) Rate(of func(Scrape) float64) decision.Sample {
	if len(w) < 2 {
		return decision.Sample{}
	}
	return known((of(w.Last())-of(w[0]))/(w.Last().At-w[0].At).Seconds(), w.Last().At)
}

// Ratio is how much one sum grew for each unit of another; absent while that one does
// not grow.
func (w Window) Ratio(sum, count func(Scrape) float64) decision.Sample {
	if len(w) < 2 || count(w.Last()) <= count(w[0]) {
		return decision.Sample{}
	}
	return known((sum(w.Last())-sum(w[0]))/(count(w.Last())-count(w[0])), w.Last().At)
}

// slope is that of the least-squares line through a gauge, per second, as PromQL's
// deriv has it; absent before the second scrape.
func (w Window) slope(of func(Scrape) float64) decision.Sample {
	if len(w) < 2 {
		return decision.Sample{}
	}
	return known(slope(len(w), func(i int) (x, y float64) { return w[i].At.Seconds(), of(w[i]) }), w.Last().At)
}

// slope is that of the least-squares line through n points.
func slope(n int, point func(i int) (x, y float64)) float64 {
	meanX, meanY := 0.0, 0.0
	for i := range n {
		x, y := point(i)
		meanX += x / float64(n)
		meanY += y / float64(n)
	}
	products, squares := 0.0, 0.0
	for i := range n {
		x, y := point(i)
		products += (x - meanX) * (y - meanY)
		squares += (x - meanX) * (x - meanX)
	}
	return products / squares
}

// recent is the rate at which requests arrived between the last two scrapes: those that
// ended and the change of what is there.
func (w Window) recent() (decision.Sample, time.Duration) {
	if len(w) < 2 {
		return decision.Sample{}, 0
	}
	a, b := w[len(w)-2], w[len(w)-1]
	span := b.At - a.At
	arrived := b.Ended() - a.Ended() + b.InFlight() - a.InFlight()
	return known(max(0, arrived)/span.Seconds(), b.At), span
}

// Ended counts the requests that a replica has answered.
func (s Scrape) Ended() float64 { return float64(s.Finished) }

// InFlight counts those that it has, running and waiting.
func (s Scrape) InFlight() float64 { return float64(s.Running + s.Waiting) }

// met is the share of the requests that kept the promise, of those that the model's replicas
// completed within the window.
func (m *ModelView) met(now, length time.Duration) decision.Sample {
	finished, missed, last := uint64(0), uint64(0), time.Duration(0)
	for v := range m.Variants {
		for _, pod := range m.Variants[v].Pods {
			w := WindowOf(pod.Scrapes, now, length)
			if len(w) < 2 || w.Last().Finished < w[0].Finished {
				continue
			}
			finished += w.Last().Finished - w[0].Finished
			missed += w.Last().Missed - w[0].Missed
			last = max(last, w.Last().At)
		}
	}
	if finished == 0 {
		return decision.Sample{}
	}
	return known(1-float64(missed)/float64(finished), last)
}

// replica is what the manager would know of a serving replica.
func (w Window) replica(pod Pod, node string) decision.Replica {
	r := decision.Replica{
		Name: pod.Name, Node: node, Since: at(pod.Ready),
		Waiting:        w.mean(func(s Scrape) float64 { return float64(s.Waiting) }),
		Running:        w.mean(func(s Scrape) float64 { return float64(s.Running) }),
		Served:         w.Rate(Scrape.Ended),
		InFlightGrowth: w.slope(Scrape.InFlight),
		InService:      w.Ratio(func(s Scrape) float64 { return s.InService.Seconds() }, Scrape.Ended),
		Input:          w.Ratio(func(s Scrape) float64 { return float64(s.Input) }, Scrape.Ended),
		Output:         w.Ratio(func(s Scrape) float64 { return float64(s.Output) }, Scrape.Ended),
		TTFT: w.Ratio(func(s Scrape) float64 { return s.FirstToken.Seconds() },
			func(s Scrape) float64 { return float64(s.FirstTokens) }),
		ITL: w.Ratio(func(s Scrape) float64 { return s.BetweenTokens.Seconds() },
			func(s Scrape) float64 { return float64(s.Tokens) }),
	}
	r.Recent, r.RecentSpan = w.recent()
	if len(w) > 0 && w.Last().KVCapacity > 0 {
		r.KVUse = w.mean(Scrape.KVUse)
		r.KVTokens = known(float64(w.Last().KVCapacity), w.Last().At)
	}
	return r
}

// gateway fills in what the manager would know of a model from the gateway's scrapes.
func gateway(m *decision.Model, scrapes []GatewayScrape, now, length time.Duration) {
	w := gatewayWindow(scrapes, now, length)
	if len(w) == 0 {
		return
	}
	last := w[len(w)-1]
	m.Queue = known(float64(last.Queue), last.At)
	if len(w) < 2 {
		return
	}
	dispatched := float64(last.Dispatched-w[0].Dispatched) / (last.At - w[0].At).Seconds()
	growth := slope(len(w), func(i int) (x, y float64) { return w[i].At.Seconds(), float64(w[i].Queue) })
	m.Arrival = known(max(0, dispatched+growth), last.At)
	before := w[len(w)-2]
	m.RecentSpan = last.At - before.At
	arrived := float64(last.Dispatched-before.Dispatched) + float64(last.Queue-before.Queue)
	m.Recent = known(max(0, arrived)/m.RecentSpan.Seconds(), last.At)
}
