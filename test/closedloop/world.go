package closedloop

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

const (
	// step is how far the world moves at a time.
	step = 5 * time.Second
	// scrapeEvery is the time between two scrapes, and window that over which rates and means
	// are taken: four scrapes, as a range of Prometheus 3 covers them, which is open on the left.
	scrapeEvery = 15 * time.Second
	window      = time.Minute
	// leastQueue is the waiting requests per replica that are a queue.
	leastQueue = 5
)

// epoch is when every scenario begins.
var epoch = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// Decider is the decision, or what a test puts in its place.
type Decider func(decision.Snapshot, decision.Policy, decision.Memory, decision.Round) (decision.Plan, decision.Memory)

type world struct {
	scenario *Scenario
	decide   Decider
	now      time.Duration
	models   []*modelState
	nodes    []*node
	// coming is when a node that was asked for is there, by accelerator.
	coming map[capacity.Accelerator]time.Duration
	// hit is how many nodes failed by a fault.
	hit    map[*Fault]int
	policy decision.Policy
	memory decision.Memory
	// led is since when this leader decides.
	led time.Duration
	// opened is when nodes last took pods again that had taken none, or pods started again.
	opened time.Duration
	// changed says that a pod came up or found no node in this step, and disturbed
	// is when anything that a round is shown last changed.
	changed   bool
	disturbed time.Duration
	clock     round.Clock
	startups  round.Startups
	story     *story
	// rounds counts them.
	rounds int
}

type modelState struct {
	*Model
	index    int
	variants []*variantState
	// held wait at the gateway; arrived, lost and gaveUp count requests.
	held, arrived, lost float64
	seen                []gatewayScrape
	// judged counts requests that were served, and missed those that missed the promise.
	judged, missed float64
	told           []promiseScrape
	// chance is how they come, nil where they come evenly.
	chance *chance
	// shares are what each replica gets of a step's arrivals.
	shares []float64
	// waited is for how long, without a break, more than a few requests waited before each
	// replica, waiting since when they do, and queued when they last did.
	waited, waiting, queued time.Duration
}

type variantState struct {
	*Variant
	model *modelState
	index int
	// truth is that of the version that is deployed now, of which stated is what the given
	// profile speaks of; truths are those of all versions.
	truth           truth
	version, stated float64
	truths          map[float64]*truth
	// updating says that replicas of an earlier version are being replaced.
	updating bool
	// cost is what a replica costs now.
	cost   capacity.Cost
	policy decision.VariantPolicy
	// bounded is since when that is the policy, and nobody else set the replicas.
	bounded time.Duration
	// returned is when it was last made anew, or seen at another time than it is.
	returned time.Duration
	// fought is when a plan last said that somebody else keeps changing them.
	fought time.Duration
	key    decision.Key
	target int
	pods   []*pod
	// leaving hold their devices until their grace is over.
	leaving []*pod
	born    int
	// startup is as long as starts were seen to take.
	startup time.Duration
	writer  string
	// metric is what was decided last in mode Metric, negative before, asks its changes, and
	// shown what the HorizontalPodAutoscaler saw of it.
	metric int
	asks   []write
	shown  []shown
	// rolling says that a rolling update is under way, replacing that it takes pods away.
	rolling, replacing bool
	writes             []write
	// highest is the most that was ever decided, and fights the rounds that named a fight.
	highest, fights int
	// said is what the last plan says that each replica serves, and why what it says of the
	// number.
	said capacity.Rate
	why  string
	// gaveBack is when replicas were last given back that the scheduler refuses, and askedAgain when
	// a cluster that grows was last asked for them again at once.
	gaveBack, askedAgain time.Duration
	// placedAt is when a node last took a pod of it.
	placedAt time.Duration
}

// write is one change of a target's replicas.
type write struct {
	at       time.Duration
	from, to int
	// external is set for those of somebody else.
	external bool
}

type pod struct {
	queue
	name    string
	created time.Duration
	// node holds it, since placed; nil is none.
	node   *node
	placed time.Duration
	// refused says that the scheduler found no node.
	refused bool
	serving bool
	since   time.Duration
	// hung replicas complete nothing; crashing ones do not come up.
	hung, crashes bool
	// extra is set for a pod beyond the target's replicas, of a rolling update.
	extra bool
	// version is how many times as long as usual everything takes, and starts is how long its
	// start does.
	version float64
	starts  time.Duration
	// flaps is set for one that is ready and not ready in turns, absent while it is not, since
	// stopped; silent for one that shows no metrics.
	flaps, absent, silent bool
	stopped               time.Duration
	// cut is set for one that served when its node failed, and does again when that returns.
	cut bool
	// ends is when a pod that goes gives its devices back.
	ends    time.Duration
	scrapes []scrape
}

func newWorld(s *Scenario, decide Decider) *world {
	w := &world{scenario: s, decide: decide, story: &story{}, coming: map[capacity.Accelerator]time.Duration{}, hit: map[*Fault]int{}, opened: -backoff}
	for _, group := range s.Nodes {
		for i := range group.Nodes {
			w.addNode(group.Accelerator, group.Devices, fmt.Sprintf("%s-%04d", group.Accelerator, i))
		}
	}
	w.policy = decision.DefaultPolicy()
	w.policy.Limited, w.policy.Hybrid = s.Limited, s.Hybrid
	w.policy.Saturation, w.policy.Share = s.thresholds(), s.share()
	w.policy.Promises = map[decision.ModelKey]decision.Promise{}
	w.policy.IdleByModel = map[decision.ModelKey]decision.Idle{}
	w.policy.Variants = map[decision.Key]decision.VariantPolicy{}
	for i := range s.Models {
		w.addModel(&s.Models[i], i)
	}
	for _, m := range w.models {
		for _, v := range m.variants {
			w.begin(v)
		}
	}
	return w
}

func (w *world) addModel(m *Model, index int) {
	own := *m
	state := &modelState{Model: &own, index: index}
	key := decision.ModelKey{Namespace: namespace, ID: m.Name}
	w.policy.Promises[key] = decision.Promise{Class: "class", Priority: m.Priority, Weight: m.Weight, SLO: m.SLO}
	if m.Sleeps > 0 {
		w.policy.IdleByModel[key] = decision.Idle{Enabled: true, Retention: m.Sleeps}
	}
	for j := range m.Variants {
		v := &m.Variants[j]
		variant := &variantState{Variant: v, model: state, index: j, version: 1, stated: 1, metric: -1, cost: v.Cost, policy: v.Policy}
		variant.key = decision.Key{Namespace: namespace, Name: m.Name + "-" + v.Name}
		if v.Seen {
			variant.startup = v.Startup
		}
		w.policy.Variants[variant.key] = v.Policy
		state.variants = append(state.variants, variant)
	}
	w.learnTruths(state)
	if w.scenario.Together > 0 {
		state.chance = &chance{random: rand.New(rand.NewPCG(w.scenario.Seed, uint64(index)))}
	}
	w.models = append(w.models, state)
}

// namespace is that of all models.
const namespace = "fuzz"

// begin has a variant's first replicas serve since an hour, as far as they find nodes.
func (w *world) begin(v *variantState) {
	v.target = v.Replicas
	for range v.Replicas {
		p := w.create(v)
		p.created -= time.Hour
		if w.place(v, p) {
			p.placed -= time.Hour
			p.serving, p.since = true, -time.Hour
		}
	}
}

func (w *world) create(v *variantState) *pod {
	v.born++
	p := &pod{name: fmt.Sprintf("%s-%05d", v.key.Name, v.born), created: w.now, version: v.version}
	if v.Ordered {
		p.name = fmt.Sprintf("%s-%d", v.key.Name, len(v.pods))
	}
	v.pods = append(v.pods, p)
	return p
}

// advance moves the world by one step: requests, pods, scrapes.
func (w *world) advance() {
	w.now += step
	w.applyFaults()
	for _, m := range w.models {
		if w.flow(m) {
			w.disturbed = w.now
		}
	}
	if w.now%appliesEvery == 0 {
		w.applyMetrics()
	}
	w.runPods()
	for _, m := range w.models {
		if m.chance != nil {
			w.watchChance(m)
		}
	}
	if w.changed {
		w.changed, w.disturbed = false, w.now
	}
	if w.now%scrapeEvery == 0 {
		for _, m := range w.models {
			w.scrape(m)
		}
	}
}

// decideRound asks for a plan and writes it.
func (w *world) decideRound(kind decision.Round) {
	snapshot := w.snapshot()
	plan := w.ask(snapshot, kind)
	w.checkRound(&snapshot, &plan, kind)
	for i := range plan.Models {
		for j := range plan.Models[i].Variants {
			planned := &plan.Models[i].Variants[j]
			v := w.find(planned.Key)
			switch {
			case v == nil || planned.Desired == nil:
			case v.Metric && *planned.Desired != v.metric:
				_, before := v.asked()
				v.asks = append(v.asks, write{at: w.now, from: before, to: *planned.Desired})
				v.metric = *planned.Desired
			case v.Metric:
			case *planned.Desired != v.target:
				w.checkRetry(v, *planned.Desired)
				w.story.decided(w.now, v, *planned.Desired, kind, string(planned.Reason)+": "+sentence.Of(planned.Message))
				w.scale(v, *planned.Desired, planned.Victims, false)
				w.memory.Wrote(v.key)
			}
		}
	}
}

func (w *world) find(key decision.Key) *variantState {
	for _, m := range w.models {
		for _, v := range m.variants {
			if v.key == key {
				return v
			}
		}
	}
	return nil
}

// scale sets a target's replicas.
func (w *world) scale(v *variantState, to int, victims []string, external bool) {
	w.disturbed = w.now
	v.writes = append(v.writes, write{at: w.now, from: v.target, to: to, external: external})
	v.target = to
	if v.Ordered {
		return
	}
	w.makeUp(v)
	for v.own() > to {
		w.remove(v, v.victim(victims))
	}
}

// takeTurns has a StatefulSet that keeps its order make its next pod, or take its last one
// away. Either waits until those that stay serve, and have done so for Settling, and the
// one that went before is gone.
func (w *world) takeTurns(v *variantState) {
	for _, p := range v.pods[:min(v.target, len(v.pods))] {
		if !p.serving || w.now < p.since+v.Settling {
			return
		}
	}
	switch {
	case len(v.leaving) > 0:
	case len(v.pods) < v.target && !w.allows(v):
	case len(v.pods) < v.target:
		w.create(v)
		w.disturbed = w.now
	case len(v.pods) > v.target:
		w.remove(v, len(v.pods)-1)
		w.disturbed = w.now
	}
}

// waitTheirTurn is how many replicas have no pod, and get one when those before them serve:
// none behind one that is not hoped for.
func (v *variantState) waitTheirTurn(w *world) int {
	if !v.Ordered || v.hoped(w) < len(v.pods) {
		return 0
	}
	return max(0, v.target-len(v.pods))
}

// own is the number of pods without those of a rolling update.
func (v *variantState) own() (n int) {
	for _, p := range v.pods {
		if !p.extra {
			n++
		}
	}
	return n
}

// victim is the pod that Kubernetes takes first: one without a node, then one that does not
// serve, of equals one that was chosen, else the youngest.
func (v *variantState) victim(chosen []string) int {
	rank := func(p *pod) (state, choice int) {
		choice = slices.Index(chosen, p.name)
		if choice < 0 {
			choice = len(chosen)
		}
		switch {
		case p.node == nil:
			return 0, choice
		case !p.serving:
			return 1, choice
		}
		return 2, choice
	}
	best := -1
	for i, p := range v.pods {
		if p.extra {
			continue
		}
		if best >= 0 {
			state, choice := rank(p)
			least, first := rank(v.pods[best])
			if cmp.Or(cmp.Compare(state, least), cmp.Compare(choice, first)) > 0 {
				continue
			}
		}
		best = i
	}
	return best
}

// remove has a pod go. What is in service there is finished out of sight, as a server
// does that is asked to end; what waits goes to others.
func (w *world) remove(v *variantState, i int) {
	p := v.pods[i]
	v.pods = slices.Delete(v.pods, i, i+1)
	if waiting := p.waiting; v.model.Gateway || len(w.servers(v.model)) > 0 {
		v.model.held += waiting
	} else {
		v.model.lost += waiting
	}
	if p.node != nil && p.serving && v.Grace > 0 {
		p.ends = w.now + v.Grace
		v.leaving = append(v.leaving, p)
		return
	}
	w.free(v, p)
}
