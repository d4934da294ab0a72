package replay

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// past is how many requests a model completed in each step since the beginning, as
// Prometheus keeps it.
type past struct {
	counts []float64
	// counted are the requests that each pod had completed when it was last scraped.
	counted map[string]float64
}

// add takes in the newest scrapes.
func (p *past) add(m *ModelView) {
	if p.counted == nil {
		p.counted = map[string]float64{}
	}
	for i := range m.Variants {
		for _, pod := range m.Variants[i].Pods {
			last, ok := pod.Last()
			if !ok {
				continue
			}
			step := int(last.At / forecast.HistoryStep)
			for len(p.counts) <= step {
				p.counts = append(p.counts, 0)
			}
			p.counts[step] += last.Ended() - p.counted[pod.Name]
			p.counted[pod.Name] = last.Ended()
		}
	}
}

// around is what the manager would know of earlier days: the steps from an instant on.
func (p *past) around(now time.Duration) []forecast.History {
	var all []forecast.History
	for _, ago := range forecast.HistoryAgo {
		first := int((now - ago - forecast.HistoryBehind) / forecast.HistoryStep)
		if now < ago+forecast.HistoryBehind {
			continue
		}
		// The step under way is not counted to its end.
		last := min(first+int((forecast.HistoryBehind+forecast.HistoryAhead)/forecast.HistoryStep), len(p.counts)-1)
		h := forecast.History{Ago: ago, From: at(time.Duration(first) * forecast.HistoryStep), Step: forecast.HistoryStep}
		for _, count := range p.counts[first:max(first, last)] {
			h.Rates = append(h.Rates, count/forecast.HistoryStep.Seconds())
		}
		all = append(all, h)
	}
	return all
}
