package prometheus

import (
	"math"
	"time"

	"github.com/prometheus/common/model"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// flow is what happened between the last two scrapes of pages: what left in a second, and by how much
// in a second what is there grew. The span is the longest time between the two.
type flow struct {
	leaving, growth       float64
	hasLeaving, hasGrowth bool
	span                  time.Duration
}

func (f flow) whole() bool { return f.hasLeaving && f.hasGrowth && f.span > 0 }

// left is the rate of what left, as a sample.
func (f flow) left(at time.Time) decision.Sample {
	if !f.hasLeaving {
		return decision.Sample{}
	}
	return modelserver.Known(f.leaving, at)
}

// changed is by how much what is there changed within the span.
func (f flow) changed(at time.Time) decision.Sample {
	if !f.hasGrowth {
		return decision.Sample{}
	}
	return modelserver.Known(f.growth*f.span.Seconds(), at)
}

// page is what one job finds at one address.
type page struct {
	namespace, pod, address, job model.LabelValue
}

func pageOf(labels model.Metric) page {
	return page{labels[modelserver.LabelNamespace], labels[labelPod], labels[address], labels[job]}
}

// flowsOf joins what the pages of each pod or model show. Each page has a time of its own between its last
// two scrapes, and a change is that of this time: two jobs may scrape one address at different intervals, and tell
// the same. Of those the one with the shorter time counts, unless it shows less. Where the time of an
// address is not known, nor is what all of them show. Leaving are rates, which know nothing of those that also
// left; these and the changes are numbers.
func flowsOf[K comparable](leaving, alsoLeft, changes, spans model.Vector, keyOf func(model.Metric) (K, bool)) map[K]flow {
	pages := map[K]map[page]flow{}
	each := func(vector model.Vector, take func(f *flow, value float64)) {
		for _, s := range vector {
			key, ok := keyOf(s.Metric)
			if !ok {
				continue
			}
			if pages[key] == nil {
				pages[key] = map[page]flow{}
			}
			at := pageOf(s.Metric)
			f := pages[key][at]
			take(&f, number(s))
			pages[key][at] = f
		}
	}
	each(spans, func(f *flow, value float64) { f.span = max(f.span, seconds(value)) })
	each(leaving, func(f *flow, value float64) { f.leaving, f.hasLeaving = f.leaving+value, true })
	each(alsoLeft, func(f *flow, value float64) { f.leaving += value / f.span.Seconds() })
	each(changes, func(f *flow, value float64) { f.growth, f.hasGrowth = f.growth+value/f.span.Seconds(), true })
	all := make(map[K]flow, len(pages))
	for key, shown := range pages {
		all[key] = joined(shown)
	}
	return all
}

// joined is what several pages show together.
func joined(pages map[page]flow) flow {
	addresses := map[page]flow{}
	for at, f := range pages {
		if !f.hasLeaving && !f.hasGrowth && f.leaving == 0 {
			continue
		}
		at.job = ""
		before, found := addresses[at]
		if !found || f.better(before) {
			addresses[at] = f
		}
	}
	var all flow
	for _, f := range addresses {
		if f.span <= 0 {
			return flow{}
		}
		all.leaving, all.growth, all.span = all.leaving+f.leaving, all.growth+f.growth, max(all.span, f.span)
		all.hasLeaving, all.hasGrowth = all.hasLeaving || f.hasLeaving, all.hasGrowth || f.hasGrowth
	}
	return all
}

// better reports whether of two jobs that scrape one address this one counts.
func (f flow) better(than flow) bool {
	switch {
	case f.whole() != than.whole():
		return f.whole()
	case f.span != than.span:
		return f.span > 0 && (than.span <= 0 || f.span < than.span)
	}
	return f.leaving+f.growth > than.leaving+than.growth || math.IsNaN(than.leaving+than.growth)
}
