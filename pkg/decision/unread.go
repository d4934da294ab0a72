package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// reading is one metric that says how loaded a replica is.
type reading struct {
	name string
	age  age
}

// readings are the ages of all metrics that say how loaded a replica of the variant is.
func (r *round) readings(v *variant, p *Replica) []reading {
	all := []reading{{"waiting requests", r.age(p.Waiting)}}
	if !r.uncached(v) {
		all = append([]reading{{"KV cache use", r.ageOfShare(p.KVUse)}}, all...)
	}
	if v.batchLimit() > 0 || r.uncached(v) {
		all = append(all, reading{"running requests", r.age(p.Running)})
	}
	return all
}

// ages are those of the oldest and the newest of the readings.
func ages(all []reading) (oldest, newest age) {
	newest = ageAbsent
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
		case ageFresh:
		case ageAbsent:
			texts, missing = append(texts, one.name+" missing"), true
		case ageAgeing, ageStale:
			texts, old = append(texts, one.name+" old"), old+1
		}
	}
	switch _, newest := ages(all); {
	case newest == ageAbsent:
		return "no metrics", true
	case old == len(all):
		return "metrics old", false
	}
	return strings.Join(texts, ", "), missing
}

// unread names the replicas of the variant of which some metric is missing or old, and what to do;
// empty where there is none.
func (r *round) unread(v *variant) string {
	of, some := map[string][]string{}, false
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		all := r.readings(v, p)
		what, missing := lacking(all)
		if _, newest := ages(all); newest == ageAbsent && r.fledgling(p) {
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
		texts = append(texts, what+": "+fewOf(pods))
	}
	slices.Sort(texts)
	if paced := r.paced(v); paced != "" {
		texts = append(texts, paced)
	}
	if some {
		texts = append(texts, "let these pods be scraped and keep these metrics")
	}
	return strings.Join(texts, "; ")
}

// paced says how often the replicas of the variant are scraped, how late that is known, and over what
// they are read, where that is not as usual, and what to change; empty where it is as usual.
func (r *round) paced(v *variant) string {
	var widest Pace
	for _, p := range v.in.Replicas {
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
	case widest.Window > r.policy.Window:
		return fmt.Sprintf("scraped about every %s and read over %s: to follow the load sooner, scrape at least twice within the metrics window of %s",
			interval, widest.Window.Round(time.Second), r.policy.Window)
	}
	return ""
}

// coarse is how exactly an interval and a lag are told. They are estimated anew each time, and a text
// that changed with each estimate would be written each time.
const coarse = 15 * time.Second

// fewOf names some replicas and says how many others there are.
func fewOf(names []string) string {
	slices.Sort(names)
	if more := len(names) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// unrated says why the arrival rate is not known well enough to lower anything; empty where nobody knows.
func (r *round) unrated(m *model) string {
	if m.in.Arrival.Present && m.next.Balance.Part == PartNone {
		if r.age(m.in.Arrival) != ageFresh {
			return ": the gateway's count is old"
		}
		return ""
	}
	var pods []string
	m.eachReplica(func(p *Replica) {
		if !r.fledgling(p) && (r.age(p.Served) != ageFresh || r.ageSigned(p.InFlightGrowth) != ageFresh) {
			pods = append(pods, p.Name)
		}
	})
	if len(pods) == 0 {
		return ""
	}
	return fmt.Sprintf(": no fresh rate of completed requests over %s: %s", r.windowOf(m), fewOf(pods))
}
