package fleet

import (
	"slices"
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
	counted := contract.SaysFresh.With(fresh, ready)
	signal.Each(m.Variants, func(v *Variant) {
		detail := v.withUnread(counted)
		v.Note(contract.StageFreshness, reason, detail)
		if reason != contract.ReasonMetricsFound || ready > 0 {
			v.Fact(reason, detail)
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
	of  contract.Sentence
	age signal.Age
}

// readings are the ages of all metrics that say how loaded a replica of the variant is.
func (v *Variant) readings(p *contract.Replica) []reading {
	all := []reading{{contract.SaysWaitingRequests, v.Round.Age(p.Waiting)}}
	if !v.Uncached() {
		all = append([]reading{{contract.SaysCacheUse, v.Round.AgeOfShare(p.KVUse)}}, all...)
	}
	if v.BatchLimit() > 0 || v.Uncached() {
		all = append(all, reading{contract.SaysRunningRequests, v.Round.Age(p.Running)})
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

// lacking says which of the readings are missing or old; nothing where all are fresh.
func lacking(all []reading) (what contract.Finding, missing bool) {
	var list []any
	old := 0
	for _, one := range all {
		switch one.age {
		case signal.AgeFresh:
		case signal.AgeAbsent:
			list, missing = append(list, contract.SaysMissing.With(one.of.With())), true
		case signal.AgeAgeing, signal.AgeStale:
			list, old = append(list, contract.SaysOld.With(one.of.With())), old+1
		}
	}
	switch _, newest := ages(all); {
	case newest == signal.AgeAbsent:
		return contract.SaysNoMetrics.With(), true
	case old == len(all):
		return contract.SaysMetricsOld.With(), false
	case len(list) == 0:
		return contract.Finding{}, false
	}
	return contract.SaysListed.With(list...), missing
}

// withUnread is what was counted, and which replicas of the variant are not read, or not as usual, and
// what to do.
func (v *Variant) withUnread(counted contract.Finding) contract.Finding {
	all := []contract.Finding{counted}
	if v.Uncached() {
		all = append(all, contract.SaysNoCacheUse.With())
	}
	unread, missing := v.unread()
	all = append(all, unread, v.paced())
	if missing {
		all = append(all, contract.SaysLetScrape.With())
	}
	return contract.Clauses(all...)
}

// unread names the replicas of the variant of which some metric is missing or old. It says nothing
// where there is none.
func (v *Variant) unread() (names contract.Finding, missing bool) {
	var whats []contract.Finding
	var pods [][]string
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		all := v.readings(p)
		what, lacks := lacking(all)
		if _, newest := ages(all); newest == signal.AgeAbsent && v.Round.Fledgling(p) {
			what, lacks = contract.SaysNotScraped.With(), false
		}
		if what.None() {
			continue
		}
		at := slices.IndexFunc(whats, what.Equal)
		if at < 0 {
			at, whats, pods = len(whats), append(whats, what), append(pods, nil)
		}
		pods[at], missing = append(pods[at], p.Name), missing || lacks
	}
	if len(whats) == 0 {
		return contract.Finding{}, false
	}
	texts := make([]any, len(whats))
	for i, what := range whats {
		texts[i] = contract.SaysLacking.With(what, pods[i])
	}
	return contract.SaysUnread.With(texts...), missing
}

// paced says how often the replicas of the variant are scraped, how late that is known, and over what
// they are read, where that is not as usual, and what to change; nothing where it is as usual.
func (v *Variant) paced() contract.Finding {
	var widest contract.Pace
	for _, p := range v.In.Replicas {
		if p.Pace.Window > 0 && p.Pace.Interval+p.Pace.Lag > widest.Interval+widest.Lag {
			widest = p.Pace
		}
	}
	interval, lag := max(coarse, widest.Interval.Round(coarse)), widest.Lag.Round(coarse)
	switch {
	case widest.Window == 0:
	case lag > 0:
		return contract.SaysScrapedLate.With(interval, lag, widest.Window.Round(time.Second))
	case widest.Window > v.Round.Policy.Window:
		return contract.SaysScrapedSeldom.With(interval, widest.Window.Round(time.Second), v.Round.Policy.Window)
	}
	return contract.Finding{}
}

// coarse is how exactly an interval and a lag are told. They are estimated anew each time, and a text
// that changed with each estimate would be written each time.
const coarse = 15 * time.Second

// Unrated says why the arrival rate is not known well enough to lower anything; nothing where nobody knows.
func (m *Model) Unrated() contract.Finding {
	if m.In.Arrival.Present && m.Next.Balance.Part == contract.PartNone {
		if m.Round.Age(m.In.Arrival) != signal.AgeFresh {
			return contract.SaysGatewayOld.With()
		}
		return contract.Finding{}
	}
	var pods []string
	m.EachReplica(func(p *contract.Replica) {
		if !m.Round.Fledgling(p) && (m.Round.Age(p.Served) != signal.AgeFresh || m.Round.AgeSigned(p.InFlightGrowth) != signal.AgeFresh) {
			pods = append(pods, p.Name)
		}
	})
	if len(pods) == 0 {
		return contract.Finding{}
	}
	slices.Sort(pods)
	return contract.SaysUnrated.With(m.WindowOf(), pods)
}
