package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

const (
	// scrapeEvery is the usual time between two scrapes of Prometheus.
	scrapeEvery = 15 * time.Second
	// scrapeOffset is when after a full round the scrapes are: samples lag.
	scrapeOffset = 4 * time.Second
	eventSpacing = 5 * time.Second
	// podQueue is how many requests a gateway lets wait in each replica.
	podQueue = 5
	// crashSeen is when a pod that crashes has done so often enough to be seen.
	crashSeen = time.Minute
	// drops is the number of portions in which a second's requests are spread.
	drops = 16
)

// fluid is the plant that the stories control: models whose requests flow like water
// through a gateway's queue into replicas, on one cluster, seen through scrapes, with
// the rounds that the controller has. It takes steps of one second.
type fluid struct {
	now, event time.Time
	cluster    *placement.Cluster
	models     []*flow
	policy     Policy
	memory     Memory
	writes     []write
	// every is the time between two scrapes, unscraped stops them.
	every     time.Duration
	unscraped bool
	// late is how long after a scrape it is known.
	late time.Duration
	// unheard is how many replicas of each variant, the first ones, never say anything.
	unheard int
	// deaf has every write fail.
	deaf bool
	// told sees every round.
	told func(*Snapshot, *Plan)
	// change puts something else into what is seen before each round.
	change func(*Snapshot)
	// zeroed has the next scrape show zeros alone.
	zeroed bool
	// untimed has no server show a time in service.
	untimed bool
	// happened is set when a pod became ready.
	happened bool
}

// write is a change of a target's replicas.
type write struct {
	at       time.Duration
	name     string
	from, to int
}

func (w write) String() string { return fmt.Sprintf("%v %s %d->%d", w.at, w.name, w.from, w.to) }

// flow is one model.
type flow struct {
	id       string
	arrivals func(time.Duration) float64
	// direct leaves out the gateway: requests wait in the replicas alone.
	direct bool
	// evenly sends every replica the same share, however full it is.
	evenly   bool
	queue    float64
	arrived  float64
	scrapes  []scrape
	variants []*vessel
}

// vessel is one variant.
type vessel struct {
	name    string
	profile serving.Profile
	// unstated keeps the profile from the object; stated, unless zero, is there instead.
	unstated bool
	stated   serving.Profile
	cost     capacity.Cost
	unpriced bool
	request  *placement.Request
	startup  time.Duration
	// seen is the start-up that was observed last.
	seen     time.Duration
	replicas int
	pods     []*vat
	made     int
	// version and surge are those of a rolling update.
	version, surge int
	// refused keeps new pods from every node, crashing from ever becoming ready.
	refused, crashing bool
	// ordered makes a pod only once those before it are ready.
	ordered bool
}

// vat is one pod.
type vat struct {
	name    string
	version int
	created time.Time
	node    int
	placed  time.Time
	// since is when it became ready.
	since time.Time
	ready bool
	// hung keeps it from becoming ready, failing does so with containers that restart.
	hung, failing bool
	// frozen keeps it from completing anything although it is ready.
	frozen bool
	// pace is how many times as long as the others it takes for everything; 0 counts as 1.
	pace float64
	// hollow has it answer whatever comes at once, with one token.
	hollow bool
	// running and waiting are requests, done counts the completed ones.
	running, waiting, done float64
	scrapes                []scrape
}

// scrape is what one look at a pod, or at a gateway, showed.
type scrape struct {
	at                     time.Time
	running, waiting, done float64
}

// hollowTime is how long a pod takes that answers at once.
const hollowTime = 5 * time.Millisecond

// of is the profile of the pod: the variant's at its own pace.
func (v *vessel) of(p *vat) serving.Profile { return v.profile.Paced(cmp.Or(p.pace, 1)) }

func newFluid(cluster *placement.Cluster, policy Policy, models ...*flow) *fluid {
	f := &fluid{now: epoch, cluster: cluster, policy: policy, models: models, every: scrapeEvery}
	for _, m := range models {
		for _, v := range m.variants {
			f.reconcile(v)
			for _, p := range v.pods {
				p.ready = p.node >= 0
			}
		}
	}
	return f
}

func constant(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

// elapsed is the time since the world began.
func (f *fluid) elapsed() time.Duration { return f.now.Sub(epoch) }

// run lets the world go on until the given time since it began.
func (f *fluid) run(until time.Duration) {
	for f.elapsed() < until {
		f.step()
	}
}

func (f *fluid) step() {
	for _, m := range f.models {
		for _, v := range m.variants {
			f.reconcile(v)
		}
		f.flow(m)
	}
	t := f.elapsed()
	if t%f.every == scrapeOffset && !f.unscraped {
		f.scrape()
	}
	switch {
	case t%f.policy.Interval == 0:
		f.round(RoundFull)
	case t%FastInterval == 0:
		f.round(RoundFast)
	case f.due():
		f.round(RoundEvent)
	}
	f.now = f.now.Add(time.Second)
}

// due reports whether something happened that is worth a round of its own.
func (f *fluid) due() bool {
	for _, m := range f.models {
		f.happened = f.happened || m.sleeps() && m.queue > 0
	}
	return f.happened && f.now.Sub(f.event) >= eventSpacing
}

func (m *flow) sleeps() bool {
	return !slices.ContainsFunc(m.variants, func(v *vessel) bool { return v.replicas > 0 })
}

func (f *fluid) round(kind Round) {
	f.happened, f.event = false, f.now
	s := f.snapshot()
	if f.change != nil {
		f.change(&s)
	}
	var plan Plan
	plan, f.memory = Decide(s, f.policy, f.memory, kind)
	if f.told != nil {
		f.told(&s, &plan)
	}
	for i, m := range f.models {
		for j, v := range m.variants {
			p := &plan.Models[i].Variants[j]
			if p.Desired == nil || p.Fallback != nil || *p.Desired == v.replicas {
				continue
			}
			f.writes = append(f.writes, write{f.elapsed(), v.name, v.replicas, *p.Desired})
			if f.deaf {
				continue
			}
			f.memory.Wrote(p.Key)
			v.replicas = *p.Desired
			f.remove(v, p.Victims)
		}
	}
}

// remove takes off what is too much: the named pods, else those that do not serve,
// the newest first.
func (f *fluid) remove(v *vessel, victims []string) {
	for len(v.pods) > v.replicas {
		at := len(v.pods) - 1
		for i, p := range v.pods {
			if !p.ready {
				at = i
			}
		}
		if len(victims) > 0 {
			at = slices.IndexFunc(v.pods, func(p *vat) bool { return p.name == victims[0] })
			victims = victims[1:]
		}
		f.drop(v, at)
	}
}

func (f *fluid) drop(v *vessel, at int) {
	if p := v.pods[at]; p.node >= 0 {
		f.cluster.Remove(v.request, p.node)
	}
	v.pods = slices.Delete(v.pods, at, at+1)
}

// reconcile makes the pods that are asked for, replaces old ones, binds what fits and
// starts what is bound.
func (f *fluid) reconcile(v *vessel) {
	for current := v.count(func(p *vat) bool { return p.version == v.version }); current < v.replicas && len(v.pods) < v.replicas+v.extra() && !v.inTurn(); current++ {
		v.pods = append(v.pods, &vat{name: fmt.Sprintf("%s-%d", v.name, v.made), version: v.version, created: f.now, node: -1})
		v.made++
	}
	for _, p := range v.pods {
		if p.node < 0 && !v.refused {
			if node, ok := f.cluster.Place(v.request); ok {
				p.node, p.placed = node, f.now
			}
		}
		if !p.ready && p.node >= 0 && !v.crashing && !p.hung && !p.failing && f.now.Sub(p.placed) >= v.startup {
			p.ready, p.since, f.happened = true, f.now, true
			v.seen = f.now.Sub(p.created)
		}
	}
	if old := slices.IndexFunc(v.pods, func(p *vat) bool { return p.version != v.version }); old >= 0 && v.count(serves) > v.replicas {
		f.drop(v, old)
	}
}

func serves(p *vat) bool { return p.ready }

// inTurn reports whether the next pod has to wait for one that is not ready.
func (v *vessel) inTurn() bool { return v.ordered && v.count(serves) < len(v.pods) }

// lose takes the readiness of a pod away.
func (f *fluid) lose(p *vat) { p.ready, p.created = false, f.now }

func (v *vessel) rolling() bool {
	return slices.ContainsFunc(v.pods, func(p *vat) bool { return p.version != v.version })
}

// extra is how many pods beyond the replicas a rolling update may make.
func (v *vessel) extra() int {
	if v.rolling() {
		return v.surge
	}
	return 0
}

func (v *vessel) count(of func(*vat) bool) int {
	n := 0
	for _, p := range v.pods {
		if of(p) {
			n++
		}
	}
	return n
}

// flow lets one second of a model's requests flow.
func (f *fluid) flow(m *flow) {
	arriving := m.arrivals(f.elapsed())
	m.arrived += arriving
	m.queue += arriving
	var ready []*vat
	var limits []float64
	for _, v := range m.variants {
		limit := v.profile.Concurrency(conv)
		for _, p := range v.pods {
			if !p.ready {
				continue
			}
			own := v.of(p)
			done := min(p.running, max(0.01, float64(own.Steady(p.running, conv).Rate)))
			switch {
			case p.frozen:
				done = 0
			case p.hollow:
				done = p.running
			}
			p.running -= done
			p.done += done
			ready, limits = append(ready, p), append(limits, limit)
		}
	}
	depth := float64(podQueue)
	if m.direct {
		depth = math.Inf(1)
	}
	m.pour(ready, limits, depth)
	for i, p := range ready {
		if p.hollow {
			p.done, p.waiting = p.done+p.waiting, 0
			continue
		}
		enters := min(p.waiting, limits[i]-p.running)
		p.running += enters
		p.waiting -= enters
	}
	if m.direct || m.queue < 1e-6 {
		m.queue = 0
	}
}

// pour gives what is queued to the replicas that are least full, up to depth waiting
// requests beyond what each can serve at once.
func (m *flow) pour(ready []*vat, limits []float64, depth float64) {
	if m.evenly && len(ready) > 0 {
		for _, p := range ready {
			p.waiting += m.queue / float64(len(ready))
		}
		m.queue = 0
		return
	}
	portion := m.queue / drops
	for range drops {
		least := -1
		for i, p := range ready {
			if p.running+p.waiting < limits[i]+depth && (least < 0 ||
				(p.running+p.waiting)/limits[i] < (ready[least].running+ready[least].waiting)/limits[least]) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		p := ready[least]
		taken := min(portion, limits[least]+depth-p.running-p.waiting)
		p.waiting += taken
		m.queue = max(0, m.queue-taken)
	}
}

func (f *fluid) scrape() {
	// A zero is what a server shows whose counters are not there yet, or whose page somebody else serves.
	shows := func(s scrape) scrape {
		if f.zeroed {
			return scrape{at: f.now}
		}
		return s
	}
	for _, m := range f.models {
		m.scrapes = f.recent(append(m.scrapes, shows(scrape{at: f.now, waiting: m.queue, done: m.arrived})))
		for _, v := range m.variants {
			for _, p := range v.pods {
				if p.ready {
					p.scrapes = f.recent(append(p.scrapes, shows(scrape{f.now, p.running, p.waiting, p.done})))
				}
			}
		}
	}
	f.zeroed = false
}

// recent are the scrapes of one metrics window, and those that are not known yet.
func (f *fluid) recent(all []scrape) []scrape {
	return all[max(0, len(all)-int((f.window()+f.late+f.every-1)/f.every)):]
}

// window is what the reader of metrics widens the metrics window to: it holds two scrapes.
func (f *fluid) window() time.Duration {
	if 2*f.every <= f.policy.Window {
		return f.policy.Window
	}
	if 2*f.every <= f.policy.Window*5/2 {
		return f.policy.Window * 5 / 2
	}
	return f.policy.Window * 5
}

// pace is what the reader says of it.
func (f *fluid) pace() Pace {
	if f.late == 0 && f.window() == f.policy.Window {
		return Pace{}
	}
	return Pace{Interval: f.every, Lag: f.late, Window: f.window()}
}

// known are the scrapes of the window that ends with the newest one that is known.
func (f *fluid) known(all []scrape) []scrape {
	if f.pace() == (Pace{}) {
		return all
	}
	for len(all) > 0 && f.now.Sub(all[len(all)-1].at) < f.late {
		all = all[:len(all)-1]
	}
	return all[max(0, len(all)-int(f.window()/f.every)):]
}

// snapshot is what can be seen of the world.
func (f *fluid) snapshot() Snapshot {
	s := Snapshot{Time: f.now, Cluster: f.cluster.Clone()}
	for _, m := range f.models {
		in, scrapes := Model{Namespace: "ns", ID: m.id}, f.known(m.scrapes)
		if n := len(scrapes); n > 0 && !m.direct {
			last := scrapes[n-1]
			in.Pace = f.pace()
			in.Queue = Sample{Value: last.waiting, Time: last.at, Present: true}
			// The gateway's queue is looked at every second while a model sleeps.
			if m.sleeps() && !f.unscraped {
				in.Queue = Sample{Value: m.queue, Time: f.now, Present: true}
			}
			if n > 1 {
				in.Arrival = increaseOf(scrapes)
				in.Recent = increaseOf(scrapes[n-2:])
				in.RecentSpan = last.at.Sub(scrapes[n-2].at)
			}
		}
		for _, v := range m.variants {
			in.Variants = append(in.Variants, f.observe(v))
		}
		s.Models = append(s.Models, in)
	}
	return s
}

func rateOf(scrapes []scrape, of func(scrape) float64) Sample {
	first, last := scrapes[0], scrapes[len(scrapes)-1]
	return Sample{Value: (of(last) - of(first)) / last.at.Sub(first.at).Seconds(), Time: last.at, Present: true}
}

// increaseOf is the rate of a counter: one that fell began anew from zero, as Prometheus has it.
func increaseOf(scrapes []scrape) Sample {
	total := 0.0
	for i, s := range scrapes[1:] {
		if before := scrapes[i].done; s.done >= before {
			total += s.done - before
		} else {
			total += s.done
		}
	}
	first, last := scrapes[0], scrapes[len(scrapes)-1]
	return Sample{Value: total / last.at.Sub(first.at).Seconds(), Time: last.at, Present: true}
}

func meanOf(scrapes []scrape, of func(scrape) float64) Sample {
	sum := 0.0
	for _, s := range scrapes {
		sum += of(s)
	}
	return Sample{Value: sum / float64(len(scrapes)), Time: scrapes[len(scrapes)-1].at, Present: true}
}

func (f *fluid) observe(v *vessel) Variant {
	in := Variant{
		Name: v.name, Current: v.replicas, Ready: v.count(serves), Request: v.request, Cost: v.cost, Unpriced: v.unpriced,
		BatchLimit: v.profile.BatchLimit, BatchSource: serving.BatchStated, KVTokens: v.profile.KVTokens, Startup: v.seen, ChoosesVictims: true, Ordered: v.ordered,
	}
	switch {
	case v.stated.Known():
		in.Profile = v.stated
	case !v.unstated:
		in.Profile = v.profile
	}
	if v.rolling() {
		in.Rolling, in.Surge = true, max(0, v.replicas+v.surge-len(v.pods))
	}
	for _, p := range v.pods {
		if p.ready {
			if in.Replicas = append(in.Replicas, f.shown(v.of(p), p)); len(in.Replicas) <= f.unheard {
				in.Replicas[len(in.Replicas)-1] = Replica{Name: p.name, Node: f.node(p), Since: p.since}
			}
			continue
		}
		in.Starting = append(in.Starting, Starting{
			Name: p.name, Since: p.created.Add(max(0, p.placed.Sub(p.created))), Placed: p.node >= 0, Node: f.node(p), Held: p.node >= 0,
			Unschedulable: p.node < 0, Failing: p.failing || p.node >= 0 && v.crashing && f.now.Sub(p.placed) > crashSeen,
		})
	}
	slices.SortFunc(in.Replicas, func(a, b Replica) int {
		if len(a.Name) != len(b.Name) {
			return len(a.Name) - len(b.Name)
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return in
}

func (f *fluid) node(p *vat) string {
	if p.node < 0 {
		return ""
	}
	return f.cluster.Nodes[p.node].Name
}

// shown is what the metrics of a serving replica show; rates need two scrapes.
func (f *fluid) shown(profile serving.Profile, p *vat) Replica {
	r := Replica{Name: p.name, Node: f.node(p), Since: p.since, Pace: f.pace()}
	scrapes := f.known(p.scrapes)
	n := len(scrapes)
	if n == 0 {
		return r
	}
	sample := func(v float64) Sample { return Sample{Value: v, Time: scrapes[n-1].at, Present: true} }
	r.Running = meanOf(scrapes, func(s scrape) float64 { return s.running })
	r.Waiting = meanOf(scrapes, func(s scrape) float64 { return s.waiting })
	r.KVUse = sample(r.Running.Value * float64(conv.Input+conv.Output/2) / float64(profile.KVTokens))
	r.KVTokens = sample(float64(profile.KVTokens))
	if n == 1 {
		return r
	}
	inFlight := func(s scrape) float64 { return s.running + s.waiting }
	r.Served = increaseOf(scrapes)
	r.InFlightGrowth = rateOf(scrapes, inFlight)
	r.Recent = increaseOf(scrapes[n-2:])
	r.Recent.Value += rateOf(scrapes[n-2:], inFlight).Value
	r.RecentSpan = scrapes[n-1].at.Sub(scrapes[n-2].at)
	if r.Served.Value <= 0 {
		return r
	}
	if p.hollow {
		r.InService, r.TTFT = sample(hollowTime.Seconds()), sample(hollowTime.Seconds())
		r.Input, r.Output = sample(float64(conv.Input)), sample(1)
		return r
	}
	at := profile.Steady(max(1, r.Running.Value), conv)
	if !f.untimed {
		r.InService = sample(r.Running.Value / float64(profile.Steady(r.Running.Value, conv).Rate))
	}
	r.ITL = sample(float64(at.ITL) / 1000)
	r.TTFT = sample(float64(at.TTFT)/1000 + r.Waiting.Value/r.Served.Value)
	r.Input, r.Output = sample(float64(conv.Input)), sample(float64(conv.Output))
	return r
}
