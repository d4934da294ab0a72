package closedloop

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// scrape is what one replica showed at a time.
type scrape struct {
	at    time.Duration
	queue queue
}

// gatewayScrape is what a gateway showed at a time.
type gatewayScrape struct {
	at            time.Duration
	arrived, held float64
}

// promiseScrape is what the servers of a model showed at a time.
type promiseScrape struct {
	at             time.Duration
	judged, missed float64
}

// kept is how many scrapes are kept: those of the window.
const kept = int(window / scrapeEvery)

func (s scrape) when() time.Duration        { return s.at }
func (s gatewayScrape) when() time.Duration { return s.at }
func (s promiseScrape) when() time.Duration { return s.at }

// covered are the scrapes of which rates and means are told. Where metrics stand still, they stay
// as they were.
func covered[T interface{ when() time.Duration }](scrapes []T) []T {
	if len(scrapes) == 0 {
		return nil
	}
	return round.Covered(scrapes, T.when, scrapes[len(scrapes)-1].when(), window)
}

func keep[T any](scrapes []T, next T) []T {
	if len(scrapes) == kept {
		copy(scrapes, scrapes[1:])
		scrapes[kept-1] = next
		return scrapes
	}
	return append(scrapes, next)
}

// scrape looks at all replicas and the gateway, but for those whose metrics stand still.
func (w *world) scrape(m *modelState) {
	for _, v := range m.variants {
		if w.active(FaultFrozen, v) || w.active(FaultFuture, v) {
			continue
		}
		for _, p := range v.pods {
			if p.serving {
				shown := p.queue
				if w.scenario.Whole {
					shown = shown.whole()
				}
				p.scrapes = keep(p.scrapes, scrape{w.now, shown})
			}
		}
	}
	if m.Misses > 0 && !slices.ContainsFunc(m.variants, w.silent) {
		m.told = keep(m.told, promiseScrape{w.now, m.judged, m.missed})
	}
	if m.Gateway {
		arrived, held := m.arrived, m.held
		if w.scenario.Whole {
			arrived, held = math.Floor(arrived), math.Floor(held)
		}
		m.seen = keep(m.seen, gatewayScrape{w.now, arrived, held})
	}
}

// whole is what a server shows of its queue, which counts whole requests.
func (q queue) whole() queue {
	completed := math.Floor(q.completed)
	inFlight := math.Floor(q.completed+q.inFlight()) - completed
	share := completed / max(q.completed, 1)
	waiting := min(math.Floor(q.waiting), inFlight)
	return queue{running: inFlight - waiting, waiting: waiting, completed: completed, ttft: q.ttft * share, itl: q.itl * share, service: q.service * share}
}

// silent says that the metrics of a variant stand still or are missing.
func (w *world) silent(v *variantState) bool {
	return slices.ContainsFunc([]FaultKind{FaultFrozen, FaultFuture, FaultGone, FaultHalf}, func(k FaultKind) bool { return w.active(k, v) })
}

// snapshot is what a round is shown.
func (w *world) snapshot() decision.Snapshot {
	s := decision.Snapshot{Time: epoch.Add(w.now + w.ahead())}
	if !w.scenario.Hidden && !w.unread() {
		s.Cluster = &placement.Cluster{Quotas: w.quotas(), Nodes: make([]placement.Node, len(w.nodes))}
		for i, n := range w.nodes {
			s.Cluster.Nodes[i] = n.Node
		}
	}
	w.startups.Begin(epoch.Add(w.now))
	for _, m := range w.models {
		if len(w.managed(m)) > 0 {
			s.Models = append(s.Models, w.shownModel(m))
		}
	}
	w.startups.End(func(decision.Key) bool { return true })
	return s
}

func (w *world) shownModel(m *modelState) decision.Model {
	shown := decision.Model{Namespace: namespace, ID: m.Name}
	if seen := covered(m.seen); len(seen) > 0 && !w.active(FaultGateway, m.variants[0]) {
		n := len(seen)
		first, last := seen[0], seen[n-1]
		at := func(value float64) decision.Sample { return sample(value, last.at) }
		shown.Queue = at(last.held)
		if n > 1 {
			shown.Arrival = at((last.arrived - first.arrived) / (last.at - first.at).Seconds())
			shown.RecentSpan = last.at - seen[n-2].at
			shown.Recent = at((last.arrived - seen[n-2].arrived) / shown.RecentSpan.Seconds())
		}
	}
	if told := covered(m.told); len(told) > 1 && m.SLO != (capacity.SLO{}) {
		first, last := told[0], told[len(told)-1]
		if served := last.judged - first.judged; served > 0 {
			shown.Met = decision.Exactly(sample(1-(last.missed-first.missed)/served, last.at))
		}
	}
	for _, v := range w.managed(m) {
		shown.Variants = append(shown.Variants, w.shownVariant(v))
	}
	return shown
}

func sample(value float64, at time.Duration) decision.Sample {
	return decision.Sample{Value: value, Time: epoch.Add(at), Present: true}
}

func (w *world) shownVariant(v *variantState) decision.Variant {
	v.startup = cmp.Or(w.startups.Of(v.key, v.starts(), w.policy.StartupDeadline), v.startup)
	shown := decision.Variant{
		Name:       v.key.Name,
		Current:    v.target,
		Request:    w.request(v.Variant),
		Cost:       v.cost,
		BatchLimit: v.Profile.BatchLimit, BatchSource: serving.BatchStated,
		KVTokens:       v.Profile.KVTokens,
		KVSource:       serving.CacheArguments,
		Rolling:        v.rolling || v.updating,
		Writer:         v.writer,
		ChoosesVictims: !v.Kubernetes,
		Ordered:        v.Ordered,
		Numbered:       v.Ordered,
		Settling:       v.Settling,
		Startup:        v.startup,
	}
	if w.scenario.Unstated {
		shown.BatchLimit, shown.KVTokens, shown.KVSource = 0, 0, serving.CacheUnknown
	}
	if v.Told {
		shown.Profile = times(v.given(), v.stated)
	}
	for i, p := range v.pods {
		if p.serving {
			shown.Ready++
			replica := w.shownReplica(v, p, i)
			w.unshown(v, &replica)
			shown.Replicas = append(shown.Replicas, replica)
			continue
		}
		starting := decision.Starting{
			Name:          p.name,
			Since:         epoch.Add(max(p.created, p.placed, p.stopped)),
			Placed:        p.node != nil,
			Held:          p.node != nil,
			Pending:       p.node != nil && w.now-p.placed < step,
			Unschedulable: p.refused,
			Failing:       p.crashes,
		}
		if p.node != nil {
			starting.Node = p.node.Name
		}
		shown.Starting = append(shown.Starting, starting)
	}
	return shown
}

// starts are the pods as their start-ups tell of them, which are counted from when a node took
// them: in the manager the wait for a node is a part of them. A pod of a StatefulSet is another
// one each time that it is made, under the same name.
func (v *variantState) starts() []round.Replica {
	replicas := make([]round.Replica, len(v.pods))
	for i, p := range v.pods {
		replicas[i] = round.Replica{ID: fmt.Sprintf("%s of %s", p.name, p.created), Created: epoch.Add(p.placed)}
		if p.serving {
			replicas[i].Ready = epoch.Add(p.since)
		}
	}
	return replicas
}

// given is the profile that the decision is given.
func (v *Variant) given() serving.Profile {
	if v.Wrong > 0 {
		return times(v.Profile, v.Wrong)
	}
	return v.Profile
}

// times is a server on which everything takes so many times as long.
func times(p serving.Profile, factor float64) serving.Profile {
	for _, part := range []*capacity.Milliseconds{&p.Base, &p.PerRequest, &p.PerResidentToken, &p.PerPrefillToken, &p.PerPrompt, &p.Gamma} {
		*part *= capacity.Milliseconds(factor)
	}
	return p
}

func (w *world) shownReplica(v *variantState, p *pod, index int) decision.Replica {
	r := decision.Replica{Name: p.name, Node: p.node.Name, Since: epoch.Add(p.since)}
	gone := p.silent || w.active(FaultGone, v) || (index%2 == 1 && w.active(FaultHalf, v))
	window := covered(p.scrapes)
	if len(window) == 0 || gone {
		return r
	}
	last := window[len(window)-1]
	shownAt := last.at
	if end, ok := w.future(v); ok {
		shownAt = end
	}
	at := func(value float64) decision.Sample { return sample(value, shownAt) }

	var running, waiting float64
	for _, s := range window {
		running += s.queue.running / float64(len(window))
		waiting += s.queue.waiting / float64(len(window))
	}
	m := v.model
	r.Running, r.Waiting = at(running), at(waiting)
	r.KVUse = at(min(1, running*(float64(m.Shape.Input)+float64(m.Shape.Output)/2)/float64(v.Profile.KVTokens)))
	r.KVTokens = at(float64(v.Profile.KVTokens))
	if len(window) < 2 {
		return r
	}
	first := window[0]
	seconds := (last.at - first.at).Seconds()
	completed := last.queue.completed - first.queue.completed
	r.Served = at(completed / seconds)
	r.InFlightGrowth = at((last.queue.inFlight() - first.queue.inFlight()) / seconds)
	before := window[len(window)-2]
	r.RecentSpan = last.at - before.at
	r.Recent = at((last.queue.completed + last.queue.inFlight() - before.queue.completed - before.queue.inFlight()) / r.RecentSpan.Seconds())
	if completed > 0 {
		r.InService = at((last.queue.service - first.queue.service) / completed)
		r.TTFT = at((last.queue.ttft - first.queue.ttft) / completed)
		r.ITL = at((last.queue.itl - first.queue.itl) / completed)
		r.Input, r.Output = at(float64(m.Shape.Input)), at(float64(m.Shape.Output))
	}
	return r
}

// unshown leaves out what a renamed metric would.
func (w *world) unshown(v *variantState, r *decision.Replica) {
	hidden := []*decision.Sample{&r.KVUse, &r.Waiting, &r.Running}
	for i := range w.scenario.Faults {
		if f := &w.scenario.Faults[i]; f.Kind == FaultUnshown && f.From <= w.now && w.now < f.To && w.hits(f, v) {
			*hidden[f.Count%len(hidden)] = decision.Sample{}
		}
	}
}

// future is the time that the samples of a variant carry while they come from the
// future.
func (w *world) future(v *variantState) (time.Duration, bool) {
	for i := range w.scenario.Faults {
		f := &w.scenario.Faults[i]
		if f.Kind == FaultFuture && f.From <= w.now && w.now < f.To && w.hits(f, v) {
			return f.To, true
		}
	}
	return 0, false
}
