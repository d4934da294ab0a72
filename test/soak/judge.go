package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

type request = localcluster.Request

const (
	// notice is how long a manager may take to see a HorizontalPodAutoscaler: its watch may
	// just be coming back.
	notice = 5 * time.Second
	// memoryOf is how far back the load is looked at that a scale-down must leave served,
	// and supplyOf the same for the replicas of other variants that are to serve it: longer
	// than a start takes.
	loadOf, supplyOf = 30 * time.Second, 10 * time.Second
	// vain is how long replicas are asked for that never served, until they may be taken
	// back: nobody misses them.
	vain = time.Minute
	// aftermath is how long after an outage of the API server a program may still end
	// because of it, and others are found late.
	aftermath = 15 * time.Second
)

// judge says what was wrong.
func judge(s *seen) *result {
	r := &result{Seed: s.Seed, Seconds: s.Ended.Sub(s.Began).Seconds(), Done: map[string]int{}}
	for _, d := range s.Deeds {
		name := d.Kind
		if d.Kind == killed {
			name = d.Subject + " " + killed
		}
		r.Done[name]++
	}
	h := &history{seen: s, result: r, replicas: map[string][]count{}, rivals: map[string]time.Time{}}
	for _, one := range s.Requests {
		h.take(one)
	}
	if r.Raised == 0 || r.Lowered == 0 {
		r.wrong("%d writes raise and %d lower: nothing is proven without either", r.Raised, r.Lowered)
	}
	for _, q := range s.Queued {
		r.wrong("%s after nothing was killed for %s", q, drained)
	}
	s.judgeEnds(r)
	s.judgeDeaths(r)
	s.judgeMemory(r)
	return r
}

// history goes through the audit log in its order.
type history struct {
	*seen
	*result
	// leader is who wrote the lease last, without having given it up; empty for nobody.
	leader string
	// before is who led until changed.
	before  string
	changed time.Time
	// replicas are what each Deployment asked for, in time.
	replicas map[string][]count
	// rivals are the HorizontalPodAutoscalers that there are, since when.
	rivals map[string]time.Time
}

// count is a number of replicas from a time on.
type count struct {
	from     time.Time
	replicas int32
}

// take is the next request. Those that were refused changed nothing.
func (h *history) take(r request) {
	if r.Code >= 300 {
		if r.Subresource == "scale" {
			h.Refused++
		}
		return
	}
	switch {
	case r.Resource == "leases" && r.Namespace == home:
		h.takeLease(r)
	case r.Namespace != namespace:
	case r.Resource == "horizontalpodautoscalers" && r.Verb == "create":
		h.rivals[nameOf(r)] = r.At
	case r.Resource == "horizontalpodautoscalers":
		delete(h.rivals, r.Name)
	case r.Subresource == "scale":
		h.takeWrite(r)
	case r.Resource == "deployments" && r.Verb == "create":
		h.replicas[nameOf(r)] = append(h.replicas[nameOf(r)], count{r.At, replicasIn(r, 1)})
	case r.Resource == "deployments":
		h.replicas[r.Name] = append(h.replicas[r.Name], count{r.At, 0})
	}
}

func (h *history) takeLease(r request) {
	var body struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		h.wrong("a lease in the audit log cannot be read: %v", err)
		return
	}
	next, known := h.Owners[r.Credential]
	if !known {
		return // the scheduler has a lease of its own
	}
	if body.Spec.HolderIdentity == "" {
		next = ""
	}
	if next != h.leader {
		h.before, h.leader, h.changed = h.leader, next, r.At
		h.Leaders++
	}
}

// leaderAt is who led when a request came; those that come are answered within moments, so
// that only the last change can lie between.
func (h *history) leaderAt(at time.Time) string {
	if at.Before(h.changed) {
		return h.before
	}
	return h.leader
}

// takeWrite judges a write of a scale subresource.
func (h *history) takeWrite(r request) {
	replicas := replicasIn(r, 0)
	now := h.asksFor(r.Name, r.At)
	what := fmt.Sprintf("%s: %s writes %d replicas of %s, which had %d", h.clock(r.Received), h.writer(r), replicas, r.Name, now)
	h.replicas[r.Name] = append(h.replicas[r.Name], count{r.At, replicas})
	m, _, known := modelOf(r.Name)
	owner := h.Owners[r.Credential]
	switch {
	case !known || owner == "":
		h.wrong("%s: nobody but the managers may", what)
		return
	case m.instance != "" && owner != m.instance, m.instance == "" && owner == witness:
		h.wrong("%s: it is not of its instance", what)
	case m.instance == "" && h.leaderAt(r.Received) != owner:
		h.wrong("%s, and the leader is %q", what, h.leaderAt(r.Received))
	}
	if since, rival := h.rivals[r.Name]; rival && r.Received.After(since.Add(notice)) && !h.within(r.Received, aftermath, killed, apiServer) {
		h.wrong("%s, although a HorizontalPodAutoscaler has been there for %s", what, r.Received.Sub(since).Round(time.Second))
	}
	switch {
	case replicas > now:
		h.Raised++
		return
	case replicas == now:
		h.wrong("%s: it changes nothing", what)
		return
	}
	h.Lowered++
	for _, d := range h.Deeds {
		if d.Kind == killed && d.Subject == prometheus && r.Received.After(d.From.Add(blind+notice)) && r.Received.Before(d.Until) {
			h.wrong("%s, although there was no Prometheus for %s", what, r.Received.Sub(d.From).Round(time.Second))
		}
	}
	rate := h.leastRate(m.id, r.Received)
	need := int32(math.Ceil(rate / completes))
	if supply := replicas + h.others(m, r.Name, r.Received); supply < need && !h.inVain(r.Name, replicas, now, r.Received) {
		h.wrong("%s: that leaves %d for the %.1f requests/s that were asked at least for the last %s, which need %d at their limit",
			what, supply, rate, loadOf, need)
	}
}

// inVain reports whether so many of the replicas that a Deployment asks for have been asked
// for in vain: for a while already, in which never more than the others served.
func (h *history) inVain(name string, others, asked int32, at time.Time) bool {
	since := at.Add(-vain)
	if h.asksFor(name, since) < asked {
		return false
	}
	for _, c := range h.replicas[name] {
		if c.from.After(since) && !c.from.After(at) && c.replicas < asked {
			return false
		}
	}
	looked := false
	for _, r := range h.Ready {
		if r.At.Before(since) || r.At.After(at) {
			continue
		}
		if looked = true; r.Ready[name] > others {
			return false
		}
	}
	return looked
}

func (h *history) writer(r request) string {
	if owner := h.Owners[r.Credential]; owner != "" {
		return owner
	}
	return r.User
}

func (h *history) clock(at time.Time) string { return at.Sub(h.Began).Round(time.Millisecond).String() }

// asksFor is what a Deployment asked for at a time.
func (h *history) asksFor(name string, at time.Time) int32 {
	all := h.replicas[name]
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].from.After(at) {
			return all[i].replicas
		}
	}
	return 0
}

// others are the replicas of a model's other variants that were there all the time before.
func (h *history) others(m model, name string, at time.Time) int32 {
	sum := int32(0)
	for _, v := range m.variants {
		if v.name == name {
			continue
		}
		least := h.asksFor(v.name, at.Add(-supplyOf))
		for _, c := range h.replicas[v.name] {
			if c.from.After(at.Add(-supplyOf)) && !c.from.After(at) {
				least = min(least, c.replicas)
			}
		}
		sum += least
	}
	return sum
}

// leastRate is the lowest rate that a model was asked at before a time.
func (s *seen) leastRate(id string, at time.Time) float64 {
	for _, a := range s.Loads {
		if a.Model.id != id {
			continue
		}
		least := math.Inf(1)
		for i, step := range a.Steps {
			over := i+1 < len(a.Steps) && a.Steps[i+1].From.Before(at.Add(-loadOf))
			if !over && !step.From.After(at) {
				least = min(least, step.Value)
			}
		}
		if !math.IsInf(least, 1) {
			return least
		}
	}
	return 0
}

// within says whether a time lies in something that was done, or so long after it.
func (s *seen) within(at time.Time, after time.Duration, kind, subject string) bool {
	return slices.ContainsFunc(s.Deeds, func(d deed) bool {
		return d.Kind == kind && d.Subject == subject && !at.Before(d.From) && at.Before(d.Until.Add(after))
	})
}

// judgeEnds compares what is asked for with what the load needs.
func (s *seen) judgeEnds(r *result) {
	for _, a := range s.Loads {
		last := a.Steps[len(a.Steps)-1].Value
		o := outcome{
			Model: a.Model.id, Rate: last, Need: int32(math.Ceil(last / carries)), Most: int32(math.Ceil(last*headroom/carries)) + 1,
			Sent: a.Sent, Failed: a.Failed, Variants: a.Ends,
		}
		said := make([]string, 0, len(a.Ends))
		for _, e := range a.Ends {
			o.Asked += e.Asked
			said = append(said, e.Variant+" says "+strconv.Quote(e.Says))
			if e.Ready != e.Asked {
				r.wrong("at the end, %d of the %d replicas of %s are ready", e.Ready, e.Asked, e.Variant)
			}
			if e.State != "True" {
				r.wrong("at the end, %s is not Ready: %s", e.Variant, e.State)
			}
		}
		if o.Asked < o.Need || o.Asked > o.Most {
			r.wrong("at the end, %d replicas of %s are asked for, and %.1f requests/s need %d to %d; %s", o.Asked, o.Model, last, o.Need, o.Most, strings.Join(said, ", "))
		}
		r.Models = append(r.Models, o)
	}
}

// judgeDeaths lets a program end by itself only where it must: without an API server, and
// on settings that are wrong.
func (s *seen) judgeDeaths(r *result) {
	for _, d := range s.Deaths {
		r.Deaths++
		if !s.within(d.At, aftermath, killed, apiServer) && !s.within(d.At, notice, misedited, settings) {
			r.wrong("%s: %s ended %s", d.At.Sub(s.Began).Round(time.Second), d.Name, d.How)
		}
	}
}

// What one life of a program may grow by between its first third and its last, and how long
// it must be to be judged.
const (
	judgedLife      = 45 * time.Second
	moreGoroutines  = 60
	moreMemory      = 48 << 20
	growth          = 1.25
	samplesPerThird = 3
)

// judgeMemory compares the highest of the first third of a life with the lowest of the
// last: what comes and goes is no leak.
func (s *seen) judgeMemory(r *result) {
	lives := map[string][]sample{}
	var order []string
	for _, one := range s.Samples {
		key := fmt.Sprint(one.Program, " ", one.Started)
		if lives[key] == nil {
			order = append(order, key)
		}
		lives[key] = append(lives[key], one)
	}
	for _, key := range order {
		all := lives[key]
		third := len(all) / 3
		long := all[len(all)-1].At.Sub(all[0].At)
		if long < judgedLife || third < samplesPerThird {
			continue
		}
		first, last := all[:third], all[len(all)-third:]
		l := life{
			Program: all[0].Program, Seconds: long.Seconds(),
			Goroutines: span(first, last, func(s sample) float64 { return s.Goroutines }),
			Memory:     span(first, last, func(s sample) float64 { return s.Memory }),
		}
		if l.Goroutines[1] > growth*l.Goroutines[0]+moreGoroutines {
			r.wrong("%s has %.0f goroutines at least at the end of a life of %s and %.0f at most at its begin", l.Program, l.Goroutines[1], long.Round(time.Second), l.Goroutines[0])
		}
		if l.Memory[1] > growth*l.Memory[0]+moreMemory {
			r.wrong("%s has %.0f MiB at least at the end of a life of %s and %.0f at most at its begin", l.Program, l.Memory[1]/(1<<20), long.Round(time.Second), l.Memory[0]/(1<<20))
		}
		r.Lives = append(r.Lives, l)
	}
}

// span is the highest of the first samples and the lowest of the last.
func span(first, last []sample, value func(sample) float64) [2]float64 {
	both := [2]float64{0, math.Inf(1)}
	for _, s := range first {
		both[0] = max(both[0], value(s))
	}
	for _, s := range last {
		both[1] = min(both[1], value(s))
	}
	return both
}

// nameOf is the name of the object that a request creates, which stands in its body.
func nameOf(r request) string {
	if r.Name != "" {
		return r.Name
	}
	var body struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(r.Body, &body)
	return body.Metadata.Name
}

// replicasIn are those that a request asks for.
func replicasIn(r request, otherwise int32) int32 {
	var body struct {
		Spec struct {
			Replicas *int32 `json:"replicas"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil || body.Spec.Replicas == nil {
		return otherwise
	}
	return *body.Spec.Replicas
}
