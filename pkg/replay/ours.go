package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// ours asks decision.Decide in the rounds of the manager (package round): full and fast ones, and
// one at once when a look at the gateways' queues finds requests for a model that sleeps.
type ours struct {
	scenario *Scenario
	policy   decision.Policy
	memory   decision.Memory
	clock    round.Clock
	sleepers round.Sleepers
	starts   map[simulation.VariantIndex]*starts
	order    []modelOrder
	past     []past
}

// modelOrder is a model with its variants in the order of names that a snapshot has.
type modelOrder struct {
	model    int
	variants []int
}

// starts are the latest start-up times of a variant.
type starts struct {
	seen map[string]bool
	took []time.Duration
}

func newOurs(s *Scenario, hybrid bool) *ours {
	o := &ours{scenario: s, policy: s.Policy, starts: map[simulation.VariantIndex]*starts{}}
	o.policy.Hybrid = hybrid
	o.policy.Window = s.Collection.Window
	o.policy.Variants = map[decision.Key]decision.VariantPolicy{}
	o.policy.Promises = map[decision.ModelKey]decision.Promise{}
	o.past = make([]past, len(s.Models))
	for m := range s.Models {
		model := &s.Models[m]
		promise := s.Policy.PromiseTo(model.key())
		promise.SLO = model.SLO
		o.policy.Promises[model.key()] = promise
		order := modelOrder{model: m}
		for v := range model.Variants {
			o.policy.Variants[decision.Key{Namespace: model.Namespace, Name: model.Variants[v].Name}] = model.Variants[v].Policy
			order.variants = append(order.variants, v)
		}
		slices.SortFunc(order.variants, func(a, b int) int {
			return strings.Compare(model.Variants[a].Name, model.Variants[b].Name)
		})
		o.order = append(o.order, order)
	}
	slices.SortFunc(o.order, func(a, b modelOrder) int {
		x, y := &s.Models[a.model], &s.Models[b.model]
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.ID, y.ID))
	})
	return o
}

// Next implements Policy.
func (o *ours) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	_, wait := o.clock.Next(at(now), o.policy.Interval)
	if look, ok := o.sleepers.Next(at(now)); ok && o.scenario.Collection.Gateway {
		wait = min(wait, look)
	}
	return now + wait
}

// Looks implements Looker.
func (o *ours) Looks() (every, back time.Duration) { return 0, o.policy.Window }

// Decide implements Policy.
func (o *ours) Decide(view *View) Answer {
	kind, wait := o.clock.Next(at(view.Now), o.policy.Interval)
	queued := o.look(view)
	switch {
	case wait > 0 && len(queued) == 0:
		return Answer{Replicas: view.Asked()}
	case wait > 0:
		kind = decision.RoundEvent
	}
	o.clock.Begin(kind, at(view.Now))
	o.clock.Looked()
	snapshot := o.snapshot(view)
	for i, order := range o.order {
		if slices.Contains(queued, order.model) {
			snapshot.Models[i].Queue = known(float64(view.Models[order.model].Queue), view.Now)
		}
	}
	plan, memory := decision.Decide(snapshot, o.policy, o.memory, kind)
	o.memory = memory
	answer := Answer{Plan: &plan, Replicas: make([][]int, len(view.Models)), Victims: make([][][]string, len(view.Models))}
	for i, order := range o.order {
		replicas, victims := make([]int, len(order.variants)), make([][]string, len(order.variants))
		for j, v := range order.variants {
			p := &plan.Models[i].Variants[j]
			replicas[v], victims[v] = view.Models[order.model].Variants[v].Replicas, p.Victims
			if p.Desired != nil && o.policy.Variants[p.Key].Actuation == decision.ActuationScale {
				replicas[v] = *p.Desired
			}
		}
		answer.Replicas[order.model], answer.Victims[order.model] = replicas, victims
	}
	o.sleepers.Settle(o.asleep(answer.Replicas))
	return answer
}

// look asks the gateways for what waits for models that sleep, where that is due. It tells
// the places of those that are worth a round.
func (o *ours) look(view *View) (queued []int) {
	now := at(view.Now)
	if wait, ok := o.sleepers.Next(now); !ok || wait > 0 || !o.scenario.Collection.Gateway {
		return nil
	}
	o.sleepers.Begin(now)
	o.sleepers.End(now, round.LookAnswered)
	waits := map[decision.ModelKey]int{}
	for m := range view.Models {
		waits[o.scenario.Models[m].key()] = view.Models[m].Queue
	}
	calls := o.sleepers.Calls(now, func(key decision.ModelKey) round.Heard {
		if waits[key] > 0 {
			return round.HeardRequests
		}
		return round.HeardSilence
	})
	for m := range view.Models {
		if slices.ContainsFunc(calls, func(c round.Call) bool { return c.Model == o.scenario.Models[m].key() }) {
			queued = append(queued, m)
		}
	}
	return queued
}

// asleep are the models that sleep, with so many replicas.
func (o *ours) asleep(replicas [][]int) (models []decision.ModelKey) {
	for m := range replicas {
		model := &o.scenario.Models[m]
		targets := make([]round.Target, len(replicas[m]))
		for v, n := range replicas[m] {
			targets[v] = round.Target{Replicas: n, Wakes: model.Variants[v].Policy.Actuation != decision.ActuationOff}
		}
		if round.Asleep(targets) {
			models = append(models, model.key())
		}
	}
	return models
}

// snapshot is what the manager would observe.
func (o *ours) snapshot(view *View) decision.Snapshot {
	// The scheduler's table is not the autoscaler's.
	cluster := *view.Cluster
	cluster.Table = nil
	snapshot := decision.Snapshot{Time: at(view.Now), Cluster: &cluster}
	for _, order := range o.order {
		in, seen := &view.Scenario.Models[order.model], &view.Models[order.model]
		m := decision.Model{Namespace: in.Namespace, ID: in.ID}
		gateway(&m, seen.Gateway, view.Now, o.policy.Window)
		o.past[order.model].add(seen)
		m.History = o.past[order.model].around(view.Now)
		m.Met = decision.Exactly(seen.met(view.Now, o.policy.Window))
		for _, v := range order.variants {
			m.Variants = append(m.Variants, o.variant(view, simulation.VariantIndex{Model: order.model, Variant: v}))
		}
		snapshot.Models = append(snapshot.Models, m)
	}
	return snapshot
}

func (o *ours) variant(view *View, index simulation.VariantIndex) decision.Variant {
	in, seen := &o.scenario.Models[index.Model].Variants[index.Variant], &view.Models[index.Model].Variants[index.Variant]
	v := decision.Variant{
		Name: in.Name, Current: seen.Replicas, Request: in.Request, Cost: in.Cost, Unpriced: in.Unpriced, Profile: in.Given,
		BatchLimit: in.Profile.BatchLimit, BatchSource: serving.BatchStated, ChoosesVictims: true, Startup: o.startup(index, seen.Pods),
	}
	var waiting []Pod
	for _, pod := range seen.Pods {
		if pod.Stage != simulation.Serving {
			waiting = append(waiting, pod)
			continue
		}
		v.Ready++
		w := WindowOf(pod.Scrapes, view.Now, o.policy.Window)
		v.Replicas = append(v.Replicas, w.replica(pod, view.node(pod)))
	}
	slices.SortFunc(waiting, func(a, b Pod) int { return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Name, b.Name)) })
	for _, pod := range waiting {
		placed, begun := pod.Node >= 0, max(pod.Created, pod.Placed)
		if pod.Stage == simulation.NotReady {
			begun = pod.Unready
		}
		v.Starting = append(v.Starting, decision.Starting{
			Name: pod.Name, Since: at(begun), Placed: placed, Node: view.node(pod), Held: placed, Unschedulable: !placed,
			Failing: pod.Restarts > 0,
		})
	}
	return v
}

// node is the name of the node that holds a replica, or empty.
func (v *View) node(pod Pod) string {
	if pod.Node < 0 {
		return ""
	}
	return v.Cluster.Nodes[pod.Node].Name
}

// startupSamples is how many of the latest start-ups make the median that the manager
// takes.
const startupSamples = 9

// startup is the median of the latest start-up times of the variant; 0 before the
// first. Replicas that were there from the beginning show none.
func (o *ours) startup(index simulation.VariantIndex, pods []Pod) time.Duration {
	s := o.starts[index]
	if s == nil {
		s = &starts{seen: map[string]bool{}}
		o.starts[index] = s
	}
	for _, pod := range pods {
		if pod.Stage == simulation.Serving && !s.seen[pod.Name] {
			s.seen[pod.Name] = true
			if pod.Ready > pod.Created {
				s.took = append(s.took, pod.Ready-pod.Created)
			}
		}
	}
	if len(s.took) == 0 {
		return 0
	}
	s.took = s.took[max(0, len(s.took)-startupSamples):]
	latest := slices.Sorted(slices.Values(s.took))
	return latest[len(latest)/2]
}

// untold is the scenario of which the autoscaler is given no profile.
func (s *Scenario) untold() *Scenario {
	changed := *s
	changed.Models = slices.Clone(s.Models)
	for m := range changed.Models {
		variants := slices.Clone(changed.Models[m].Variants)
		for v := range variants {
			variants[v].Given = serving.Profile{}
		}
		changed.Models[m].Variants = variants
	}
	return &changed
}
