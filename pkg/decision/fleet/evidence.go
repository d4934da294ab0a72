package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Freshness finds out what the data allow. A variant whose shape is unknown still serves,
// and still counts.
func (m *Model) Freshness() signal.Evidence {
	fresh, ready := m.Load.fresh, m.Ready()
	found, reason := signal.EvidenceMissing, contract.ReasonMetricsMissing
	switch {
	case ready == 0 || float64(fresh) >= signal.LowerCoverage*float64(ready):
		found, reason = signal.EvidenceFull, contract.ReasonMetricsFound
	case m.Load.newest <= signal.AgeAgeing:
		found, reason = signal.EvidencePartial, contract.ReasonMetricsPartial
	case m.Load.newest == signal.AgeStale:
		found, reason = signal.EvidenceStale, contract.ReasonMetricsStale
	case m.justBegun():
		found, reason = signal.EvidencePartial, contract.ReasonMetricsPartial
	}
	counted := fmt.Sprintf("%d of %d serving replicas have fresh metrics", fresh, ready)
	signal.Each(m.Variants, func(v *Variant) {
		detail := counted
		if v.Uncached() {
			detail += "; they show no KV cache use, so their queues and what they have in service count"
		}
		if unread := cmp.Or(v.unread(), v.paced()); unread != "" {
			detail += "; " + unread
		}
		v.Note(contract.StageFreshness, reason, "%s", detail)
		if reason != contract.ReasonMetricsFound || ready > 0 {
			v.Fact(reason, "%s", detail)
		}
	})
	return found
}

// justBegun reports whether every serving replica began to serve too lately to be known:
// it is scraped in a while.
func (m *Model) justBegun() bool {
	for _, v := range m.Variants {
		known := func(p contract.Replica) bool { return !m.Round.Fledgling(&p) }
		if len(v.In.Replicas) < v.In.Ready || slices.ContainsFunc(v.In.Replicas, known) {
			return false
		}
	}
	return true
}

// reading is one metric that says how loaded a replica is.
type reading struct {
	name string
	age  signal.Age
}

// readings are the ages of all metrics that say how loaded a replica of the variant is.
func (v *Variant) readings(p *contract.Replica) []reading {
	all := []reading{{"waiting requests", v.Round.Age(p.Waiting)}}
	if !v.Uncached() {
		all = append([]reading{{"KV cache use", v.Round.AgeOfShare(p.KVUse)}}, all...)
	}
	if v.BatchLimit() > 0 || v.Uncached() {
		all = append(all, reading{"running requests", v.Round.Age(p.Running)})
	}
	return all
}

// ages are those of the oldest and the newest of the readings.
func ages(all []reading) (oldest, newest signal.Age) {
	newest = signal.AgeAbsent
	for _, one := range all {
		oldest, newest = max(oldest, one.age), min(newest, one.age)
	}
	return oldest, newest
}

// lacking says which of the readings are missing or old; empty where all are fresh.
func lacking(all []reading) (what string, missing bool) {
	var texts []string
	old := 0
	for _, one := range all {
		switch one.age {
		case signal.AgeFresh:
		case signal.AgeAbsent:
			texts, missing = append(texts, one.name+" missing"), true
		case signal.AgeAgeing, signal.AgeStale:
			texts, old = append(texts, one.name+" old"), old+1
		}
	}
	switch _, newest := ages(all); {
	case newest == signal.AgeAbsent:
		return "no metrics", true
	case old == len(all):
		return "metrics old", false
	}
	return strings.Join(texts, ", "), missing
}

// unread names the replicas of the variant of which some metric is missing or old, and what to do;
// empty where there is none.
func (v *Variant) unread() string {
	of, some := map[string][]string{}, false
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		all := v.readings(p)
		what, missing := lacking(all)
		if _, newest := ages(all); newest == signal.AgeAbsent && v.Round.Fledgling(p) {
			what, missing = "not scraped yet", false
		}
		if what != "" {
			of[what], some = append(of[what], p.Name), some || missing
		}
	}
	if len(of) == 0 {
		return ""
	}
	texts := make([]string, 0, len(of))
	for what, pods := range of {
		texts = append(texts, what+": "+signal.FewOf(pods))
	}
	slices.Sort(texts)
	if paced := v.paced(); paced != "" {
		texts = append(texts, paced)
	}
	if some {
		texts = append(texts, "let these pods be scraped and keep these metrics")
	}
	return strings.Join(texts, "; ")
}

// paced says how often the replicas of the variant are scraped, how late that is known, and over what
// they are read, where that is not as usual, and what to change; empty where it is as usual.
func (v *Variant) paced() string {
	var widest contract.Pace
	for _, p := range v.In.Replicas {
		if p.Pace.Window > 0 && p.Pace.Interval+p.Pace.Lag > widest.Interval+widest.Lag {
			widest = p.Pace
		}
	}
	interval, lag := max(coarse, widest.Interval.Round(coarse)), widest.Lag.Round(coarse)
	switch {
	case widest.Window == 0:
		return ""
	case lag > 0:
		return fmt.Sprintf("scraped about every %s, known about %s late and read over %s: a shorter delay, or right clocks, let the load be followed sooner",
			interval, lag, widest.Window.Round(time.Second))
	case widest.Window > v.Round.Policy.Window:
		return fmt.Sprintf("scraped about every %s and read over %s: to follow the load sooner, scrape at least twice within the metrics window of %s",
			interval, widest.Window.Round(time.Second), v.Round.Policy.Window)
	}
	return ""
}

// coarse is how exactly an interval and a lag are told. They are estimated anew each time, and a text
// that changed with each estimate would be written each time.
const coarse = 15 * time.Second

// Unrated says why the arrival rate is not known well enough to lower anything; empty where nobody knows.
func (m *Model) Unrated() string {
	if m.In.Arrival.Present && m.Next.Balance.Part == contract.PartNone {
		if m.Round.Age(m.In.Arrival) != signal.AgeFresh {
			return ": the gateway's count is old"
		}
		return ""
	}
	var pods []string
	m.EachReplica(func(p *contract.Replica) {
		if !m.Round.Fledgling(p) && (m.Round.Age(p.Served) != signal.AgeFresh || m.Round.AgeSigned(p.InFlightGrowth) != signal.AgeFresh) {
			pods = append(pods, p.Name)
		}
	})
	if len(pods) == 0 {
		return ""
	}
	return fmt.Sprintf(": no fresh rate of completed requests over %s: %s", m.WindowOf(), signal.FewOf(pods))
}
