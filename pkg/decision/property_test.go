package decision

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// scene is a random state of some models, told with a load that may be varied while
// everything else stays.
type scene struct {
	seed    uint64
	models  int
	load    float64
	limited bool
	hybrid  bool
	// plain leaves out late, failing and awaited replicas, bounds, and a second accelerator.
	plain bool
}

func (c scene) String() string { return fmt.Sprintf("seed %d, load %.3f", c.seed, c.load) }

// build makes the snapshot and its policy. As much chance is drawn whatever the load.
func (c scene) build() (Snapshot, Policy) {
	random := rand.New(rand.NewPCG(c.seed, 11))
	policy := DefaultPolicy()
	policy.Limited, policy.Hybrid = c.limited, c.hybrid
	policy.Variants, policy.Promises = map[Key]VariantPolicy{}, map[ModelKey]Promise{}
	s := Snapshot{Time: epoch.Add(time.Hour)}
	for i := range c.models {
		s.Models = append(s.Models, c.model(random, i, &policy))
	}
	var list []placement.Node
	for _, a := range []capacity.Accelerator{"A100", "H100"} {
		list = append(list, nodes(1+random.IntN(4), a, 8)...)
	}
	for i := range list {
		list[i].Free.Devices = random.IntN(9)
	}
	s.Cluster = &placement.Cluster{Nodes: list}
	return s, policy
}

func (c scene) model(random *rand.Rand, i int, policy *Policy) Model {
	m := Model{Namespace: "ns", ID: fmt.Sprint("m", i)}
	policy.Promises[ModelKey{Namespace: "ns", ID: m.ID}] = Promise{Class: "c", Priority: 1 + random.IntN(3), SLO: capacity.SLO{
		TTFT: capacity.Milliseconds(300 + random.IntN(2000)), ITL: capacity.Milliseconds(12 + random.IntN(60))}}
	total := 0.0
	for j := range 1 + random.IntN(3) {
		v := c.variant(random, fmt.Sprintf("m%d-%d", i, j), policy)
		total += float64(v.Ready) * float64(most(v.Profile))
		m.Variants = append(m.Variants, v)
	}
	share, gateway := random.Float64(), random.IntN(3) > 0
	arrival := c.load * (0.1 + 1.4*share) * max(total, 5)
	c.fill(&m, arrival, total, gateway)
	return m
}

func (c scene) variant(random *rand.Rand, name string, policy *Policy) Variant {
	scale := capacity.Milliseconds(0.5 + 2*random.Float64())
	accelerator := []capacity.Accelerator{"A100", "H100"}[random.IntN(2)]
	v := Variant{
		Name: name, Cost: capacity.Cost(1 + 20*random.Float64()), Ready: random.IntN(6), ChoosesVictims: true,
		Profile: serving.Profile{Base: 6 * scale, PerResidentToken: 4e-5 * scale, PerPrefillToken: 0.02 * scale, KVTokens: 400000, BatchLimit: 32 << random.IntN(3)},
		Request: request(accelerator, 1<<random.IntN(4)), Startup: time.Duration(20+random.IntN(200)) * time.Second,
	}
	v.BatchLimit, v.BatchSource, v.Current = v.Profile.BatchLimit, serving.BatchStated, v.Ready
	own := DefaultVariantPolicy()
	own.Down.Window = 0
	starting, late, least, bound := random.IntN(3), random.IntN(4), random.IntN(3), random.IntN(8)
	if !c.plain {
		own.Min = max(0, least-1)
		if bound == 0 {
			own.Max = max(own.Min, 4)
		}
		for k := range starting {
			created := epoch.Add(time.Hour - time.Duration(10+200*late*k)*time.Second)
			v.Starting = append(v.Starting, Starting{Name: fmt.Sprint(name, "-s", k), Since: created, Placed: late != 3, Unschedulable: late == 3})
		}
		v.Current += starting + late%2
	}
	policy.Variants[Key{Namespace: "ns", Name: name}] = own
	return v
}

// fill gives the model's replicas the steady state under the arrivals, and a queue
// where they are too many.
func (c scene) fill(m *Model, arrival, total float64, gateway bool) {
	now := epoch.Add(time.Hour - 3*time.Second)
	sample := func(v float64) Sample { return Sample{Value: v, Time: now, Present: true} }
	waits := 0.0
	if arrival > total {
		waits = 60 * (arrival - total)
	}
	if gateway {
		m.Arrival, m.Recent, m.RecentSpan = sample(arrival), sample(arrival), scrapeEvery
		m.Queue = sample(waits)
		waits = min(waits, 5)
	}
	for i := range m.Variants {
		v := &m.Variants[i]
		for k := range v.Ready {
			share := min(1, arrival/total) * float64(most(v.Profile))
			n, at := v.Profile.Under(capacity.Rate(share), conv)
			r := Replica{Name: fmt.Sprint(v.Name, "-", k), Node: fmt.Sprintf("%s-0", v.Request.Shape.Accelerator),
				KVUse: sample(n * float64(conv.Input+conv.Output/2) / 400000), KVTokens: sample(400000),
				Waiting: sample(waits), Running: sample(n), Served: sample(float64(at.Rate)), InFlightGrowth: sample(0),
				InService: sample(0), ITL: sample(float64(at.ITL) / 1000), TTFT: sample(float64(at.TTFT) / 1000),
				Input: sample(float64(conv.Input)), Output: sample(float64(conv.Output))}
			if at.Rate > 0 {
				r.InService = sample(n / float64(at.Rate))
			}
			v.Replicas = append(v.Replicas, r)
		}
	}
}

// served is the rate that a model's replicas are asked to serve at the load that the
// triggers allow.
func served(m *Model, plan *ModelPlan) float64 {
	sum := 0.0
	for i := range m.Variants {
		sum += float64(*plan.Variants[i].Desired) * allowed(m.Variants[i].Profile)
	}
	return sum
}

// askedOf is the rate that is asked for: of what waits in replicas that are too full, no
// more than these serve.
func askedOf(m *Model, plan *ModelPlan, policy Policy) float64 {
	if plan.Demand == nil {
		return 0
	}
	t := DefaultSaturation()
	waiting, serves := 0.0, 0.0
	for i := range m.Variants {
		v := &m.Variants[i]
		for _, p := range v.Replicas {
			full := p.KVUse.Value >= t.KVCacheThreshold || p.Waiting.Value >= t.QueueLengthThreshold ||
				v.BatchLimit > 0 && p.Running.Value/float64(v.BatchLimit) >= t.KVCacheThreshold
			if each := float64(plan.Variants[i].ServesEach); full && each > 0 {
				waiting, serves = waiting+p.Waiting.Value, serves+each
			}
		}
	}
	all := plan.Demand.BacklogAtReady / policy.Drain.Seconds()
	others := max(0, plan.Demand.BacklogAtReady-waiting) / policy.Drain.Seconds()
	return float64(plan.Demand.Forecast) + min(all, others+serves)
}

func replicas(plan *ModelPlan) int {
	sum := 0
	for _, v := range plan.Variants {
		sum += *v.Desired
	}
	return sum
}

func desired(plan *Plan) map[Key]int {
	all := map[Key]int{}
	for _, m := range plan.Models {
		for _, v := range m.Variants {
			all[v.Key] = *v.Desired
		}
	}
	return all
}

func first(s Snapshot, p Policy) Plan {
	plan, _ := Decide(s, p, Memory{}, RoundFull)
	return plan
}

// thorough is unset under the race detector.
var thorough = true

// cases is how many states each property is tried on; few in hybrid mode, whose sizing
// takes milliseconds.
func cases() int {
	if thorough {
		return 1000
	}
	return 160
}

// More load never has fewer replicas of one variant; of several never less served than
// either what there was for less load or what is asked for, whichever is less: the
// cheapest mix for more may have less to spare.
func TestMoreLoadNeverAsksForLess(t *testing.T) {
	for seed := range uint64(cases() / 2) {
		c := scene{seed: seed, models: 1, plain: seed%2 == 0, hybrid: seed%20 == 9, limited: seed%8 > 3}
		before, served1, replicas1 := "", -1.0, 0
		for _, load := range []float64{0, 0.2, 0.5, 0.9, 1, 1.05, 1.3, 2, 8} {
			c.load = load
			s, policy := c.build()
			policy.Horizon = 0 // A switch asks for both for a while.
			plan := first(s, policy)
			m := &plan.Models[0]
			got := served(&s.Models[0], m)
			require.GreaterOrEqual(t, got, min(served1, askedOf(&s.Models[0], m, policy))-1e-9, "%v after %s: %s", c, before, tellShort(m))
			if len(m.Variants) == 1 {
				require.GreaterOrEqual(t, replicas(m), replicas1, "%v", c)
			}
			before, served1, replicas1 = fmt.Sprintf("%.3f %s", load, tellShort(m)), got, replicas(m)
		}
	}
}

func tellShort(m *ModelPlan) string {
	text := ""
	for i := range m.Variants {
		text += lineOf(&m.Variants[i])
	}
	return text
}

// Costs and speeds are all different here, so that there are no ties: then every
// variant gets the same whatever it is called and wherever it stands, for models of
// different priorities in a crowded cluster. (In the order of names, pods that wait for
// a node keep room, cheaper variants take scarce room from dearer ones, and models of
// one priority get what whole replicas leave over.)
func TestOrderAndNamesChangeNothing(t *testing.T) {
	for seed := range uint64(cases()) {
		c := scene{seed: seed, models: 1 + int(seed%3), load: 1 + float64(seed%5)/2, hybrid: seed%20 == 9, limited: seed%2 == 0, plain: true}
		s, policy := c.build()
		policy.Horizon = 0
		for i := range s.Models {
			key := ModelKey{Namespace: "ns", ID: s.Models[i].ID}
			promise := policy.Promises[key]
			promise.Priority = 1 + (i*7+int(seed))%3
			policy.Promises[key] = promise
		}
		want := first(s, policy)
		turned, policyTurned, back := turn(s, policy)
		plan := first(turned, policyTurned)
		got := map[Key]int{}
		for key, n := range desired(&plan) {
			got[back[key]] = n
		}
		for i := range want.Models {
			for _, v := range want.Models[i].Variants {
				require.Equal(t, *v.Desired, got[v.Key], "%v limited %v\n%s\nturned: %v", c, c.limited, tellShort(&want.Models[i]), got)
			}
		}
	}
}

// turn gives models and variants names that turn their order around, and turns the
// replicas.
func turn(s Snapshot, p Policy) (Snapshot, Policy, map[Key]Key) {
	turned, policy, back := Snapshot{Time: s.Time, Cluster: s.Cluster}, p, map[Key]Key{}
	policy.Variants, policy.Promises = map[Key]VariantPolicy{}, map[ModelKey]Promise{}
	for i := len(s.Models) - 1; i >= 0; i-- {
		m := s.Models[i]
		id := fmt.Sprintf("z%02d", len(s.Models)-i)
		policy.Promises[ModelKey{Namespace: "ns", ID: id}] = p.Promises[ModelKey{Namespace: "ns", ID: m.ID}]
		m.ID = id
		m.Variants = slices.Clone(m.Variants)
		slices.Reverse(m.Variants)
		for j := range m.Variants {
			v := &m.Variants[j]
			name := fmt.Sprintf("%s-%02d", id, j)
			back[Key{Namespace: "ns", Name: name}] = Key{Namespace: "ns", Name: v.Name}
			policy.Variants[Key{Namespace: "ns", Name: name}] = p.Variants[Key{Namespace: "ns", Name: v.Name}]
			v.Name, v.Replicas = name, slices.Clone(v.Replicas)
			slices.Reverse(v.Replicas)
		}
		turned.Models = append(turned.Models, m)
	}
	return turned, policy, back
}

// The same round again, with what the first one left in memory, asks for the same; and
// so does the round after its plan was carried out and before any pod shows it.
func TestRepeatingARoundChangesNothing(t *testing.T) {
	for seed := range uint64(cases()) {
		c := scene{seed: seed, models: 1 + int(seed%3), load: 0.3 + float64(seed%7)/2, hybrid: seed%20 == 9, limited: seed%2 == 0}
		s, policy := c.build()
		plan, memory := Decide(s, policy, Memory{}, RoundFull)
		again, _ := Decide(s, policy, memory, RoundFull)
		require.Equal(t, desired(&plan), desired(&again), "%v", c)
		if !slices.ContainsFunc(s.Models, func(m Model) bool {
			return slices.ContainsFunc(m.Variants, func(v Variant) bool { return len(v.Starting) > 0 || v.Current != v.Ready })
		}) {
			carryOut(&s, &plan)
			after, _ := Decide(s, policy, memory, RoundFull)
			require.Equal(t, desired(&plan), desired(&after), "%v, carried out", c)
		}
	}
}

// carryOut has the targets ask for what was planned, while their pods are the same.
func carryOut(s *Snapshot, plan *Plan) {
	for i := range s.Models {
		s.Models[i].Variants = slices.Clone(s.Models[i].Variants)
		for j := range s.Models[i].Variants {
			s.Models[i].Variants[j].Current = *plan.Models[i].Variants[j].Desired
		}
	}
}

// samples are all samples of a model.
func samples(m *Model) []*Sample {
	all := []*Sample{&m.Arrival, &m.Recent, &m.Queue, &m.Met.Sample}
	for i := range m.Variants {
		for j := range m.Variants[i].Replicas {
			r := &m.Variants[i].Replicas[j]
			all = append(all, &r.KVUse, &r.KVTokens, &r.Waiting, &r.Running, &r.Served, &r.InService, &r.InFlightGrowth,
				&r.Recent, &r.TTFT, &r.ITL, &r.Input, &r.Output)
		}
	}
	return all
}

// Where data are missing, old or no numbers, nothing is lower than it would be with
// them, or than it is.
func TestUnknownDataNeverLower(t *testing.T) {
	for name, spoil := range map[string]func(*Sample){
		"absent":       func(s *Sample) { *s = Sample{} },
		"not a number": func(s *Sample) { s.Value = math.NaN() },
		"infinite":     func(s *Sample) { s.Value = math.Inf(1) },
		// What grows may be less than nothing; here that is 0 or absent.
		"less than nothing": func(s *Sample) { s.Value = -s.Value },
		"old":               func(s *Sample) { s.Time = s.Time.Add(-90 * time.Second) },
		"very old":          func(s *Sample) { s.Time = s.Time.Add(-time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			for i := range uint64(6 * (cases() / 3)) {
				seed := i / 6
				random := rand.New(rand.NewPCG(seed, []uint64{3, 5, 6, 10, 11, 12}[i%6]))
				c := scene{seed: seed, models: 1, load: 0.05 + random.Float64(), hybrid: seed%20 == 9, plain: seed%2 == 0}
				s, policy := c.build()
				policy.Horizon = 0 // A switch removes nothing yet, and what follows from it is no want of data.
				full := first(s, policy)
				share := random.Float64()
				for _, sample := range samples(&s.Models[0]) {
					if random.Float64() < share {
						spoil(sample)
					}
				}
				plan := first(s, policy)
				less, usual := reduced(&s.Models[0], &plan.Models[0], &policy), reduced(&s.Models[0], &full.Models[0], &policy)
				// Where both give up something, another mix may stay that serves what arrives.
				if asked := full.Models[0].Demand; usual > 0 && asked != nil && currently(&s.Models[0])-less >= float64(asked.Arrival) {
					less = min(less, usual)
				}
				require.LessOrEqual(t, less, usual+1e-9, "%v\n%v\nwith all data:\n%v", c, tellShort(&plan.Models[0]), tellShort(&full.Models[0]))
				for _, v := range plan.Models[0].Variants {
					if v.Fallback != nil && v.Reason != ReasonMaxReplicas {
						require.GreaterOrEqual(t, *v.Desired, v.Current, "%v: %s", c, lineOf(&v))
						require.GreaterOrEqual(t, v.Fallback.Replicas, *v.Desired, "%v: %s", c, lineOf(&v))
					}
				}
			}
		})
	}
}

// reduced is the rate that the allocation gives up; bounds and limits give up for
// reasons of their own, and what is above maxReplicas goes whatever the allocation says.
func reduced(m *Model, plan *ModelPlan, policy *Policy) float64 {
	sum := 0.0
	for i, v := range plan.Variants {
		for _, step := range v.Steps {
			if step.Stage == StageAllocation {
				before := step.Before
				if most := policy.Variants[Key{Namespace: m.Namespace, Name: m.Variants[i].Name}].Max; most >= 0 {
					before = max(min(before, most), step.After)
				}
				sum += float64(before-step.After) * allowed(m.Variants[i].Profile)
			}
		}
	}
	return max(0, sum)
}

func currently(m *Model) float64 {
	sum := 0.0
	for i := range m.Variants {
		sum += float64(m.Variants[i].Current) * allowed(m.Variants[i].Profile)
	}
	return sum
}

// Numbers and times that no world shows, names twice, nothing at all: no panic, no
// negative number, no number outside the bounds.
func TestAbsurdInput(t *testing.T) {
	absurd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1e300, -1e300, math.MaxFloat64, 5e-324}
	for seed := range uint64(cases() / 4) {
		random := rand.New(rand.NewPCG(seed, 6))
		odd := func() float64 { return absurd[random.IntN(len(absurd))] }
		c := scene{seed: seed, models: 1 + random.IntN(3), load: 2 * random.Float64(), hybrid: seed%20 == 9, limited: seed%2 == 0}
		s, policy := c.build()
		policy.Idle.Enabled = seed%3 == 0
		for i := range s.Models {
			m := &s.Models[i]
			for _, sample := range samples(m) {
				if random.IntN(4) == 0 {
					sample.Value = odd()
				}
				if random.IntN(20) == 0 {
					sample.Time = []time.Time{{}, epoch.Add(1e6 * time.Hour), epoch.Add(-1e6 * time.Hour)}[random.IntN(3)]
				}
			}
			for j := range m.Variants {
				absurdVariant(random, odd, &m.Variants[j])
			}
			if len(m.Variants) > 0 && random.IntN(5) == 0 {
				m.Variants = append(m.Variants, m.Variants[0])
			}
			if random.IntN(10) == 0 {
				m.Variants = nil
			}
		}
		if random.IntN(5) == 0 {
			s.Models = append(s.Models, s.Models[0])
		}
		if random.IntN(5) == 0 {
			s.Cluster = nil
		}
		var memory Memory
		for range 4 {
			var plan Plan
			plan, memory = Decide(s, policy, memory, RoundFull)
			for _, m := range plan.Models {
				for _, v := range m.Variants {
					if v.Desired == nil {
						continue
					}
					own := policy.Variant(v.Key)
					require.GreaterOrEqual(t, *v.Desired, 0, "seed %d", seed)
					require.False(t, own.Max >= 0 && *v.Desired > max(own.Max, v.Current), "seed %d: %d of %d", seed, *v.Desired, own.Max)
					require.LessOrEqual(t, *v.Desired, math.MaxInt32, "seed %d: %s", seed, lineOf(&v))
				}
			}
			// The clock goes any way.
			s.Time = s.Time.Add(time.Duration(random.IntN(600)-300) * time.Second)
		}
	}
	plan, _ := Decide(Snapshot{}, Policy{}, Memory{}, RoundFull)
	assert.Empty(t, plan.Models)
	plan, _ = Decide(Snapshot{Models: []Model{{}, {Variants: []Variant{{}, {Current: 3}}}}}, Policy{}, Memory{}, RoundFull)
	assert.Equal(t, 3, *plan.Models[1].Variants[1].Desired, "of which nothing is known")
}

func absurdVariant(random *rand.Rand, odd func() float64, v *Variant) {
	switch random.IntN(12) {
	case 0:
		v.Cost = capacity.Cost(odd())
	case 1:
		v.Profile = serving.Profile{Base: capacity.Milliseconds(odd()), PerPrefillToken: capacity.Milliseconds(odd()), KVTokens: capacity.Tokens(odd()), BatchLimit: -3}
	case 2:
		v.Ready = 1000
	case 3:
		v.Replicas, v.Starting = nil, nil
	case 4:
		v.BatchLimit, v.BatchSource, v.KVTokens = math.MaxInt, serving.BatchStated, capacity.Tokens(odd())
	case 5:
		v.Startup = time.Duration(math.MinInt64)
	case 6:
		v.Startup = time.Duration(math.MaxInt64)
	case 7:
		v.Request = nil
	case 8:
		v.Current = 0
	}
}

// Hybrid mode asks for what the promise needs, and where a trigger fires for no less
// than the triggers alone do, or, when the promise needs less than there is, for no
// less than that.
func TestHybridIsNeverBelowTriggersNorPromise(t *testing.T) {
	triggered := 0
	for seed := range uint64(cases() / 8) {
		c := scene{seed: seed, models: 1, load: 0.2 + 2*float64(seed%11)/10, plain: true}
		s, policy := c.build()
		policy.Growth = Growth{}
		for i := range s.Models[0].Variants {
			// Who grows decides how far ahead the forecast looks, and the two may buy differently.
			s.Models[0].Variants[i].Startup = s.Models[0].Variants[0].Startup
		}
		capacityOnly := first(s, policy)
		policy.Hybrid = true
		hybrid := first(s, policy)
		m, without, with := &s.Models[0], &capacityOnly.Models[0], &hybrid.Models[0]
		if currently(m) == 0 {
			continue // It is woken by one replica alone.
		}
		if without.Triggered {
			triggered++
			asked := min(served(m, without), askedOf(m, without, policy))
			if surplus(m, policy) {
				asked = currently(m)
			}
			require.GreaterOrEqual(t, served(m, with), asked-1e-9, "%v\n%s\nwithout:\n%s", c, tellShort(with), tellShort(without))
		}
		if with.Demand == nil {
			continue
		}
		kept, keeps := 0.0, false
		for i := range m.Variants {
			rate := promised(&m.Variants[i], policy.Promises[ModelKey{Namespace: "ns", ID: m.ID}].SLO)
			keeps = keeps || rate > 0
			kept += float64(*with.Variants[i].Desired) * rate
		}
		if keeps {
			require.GreaterOrEqual(t, kept, float64(with.Demand.Arrival)*(1-1e-9), "%v\n%s", c, tellShort(with))
		}
	}
	assert.Greater(t, triggered, cases()/80)
}

// promised is the rate of one replica within the promise and the triggers.
func promised(v *Variant, slo capacity.SLO) float64 {
	queue, ok := serving.NewQueue(v.Profile, conv, serving.Arrivals{})
	if !ok {
		return 0
	}
	most := float64(queue.MaxRate(slo, DefaultPolicy().Share))
	if most < rate.LeastPromised*allowed(v.Profile) {
		return 0
	}
	return min(most, allowed(v.Profile))
}

// surplus reports whether what serves keeps the promise with a replica to spare.
func surplus(m *Model, policy Policy) bool {
	kept, least := 0.0, math.Inf(1)
	for i := range m.Variants {
		rate := promised(&m.Variants[i], policy.Promises[ModelKey{Namespace: "ns", ID: m.ID}].SLO)
		kept += float64(m.Variants[i].Current) * rate
		if m.Variants[i].Current > 0 {
			least = min(least, rate)
		}
	}
	return kept > m.Arrival.Value+least
}

// In limited mode all that is added fits together, beside what was asked for before:
// every replica is really placed.
func TestLimitedModePlacesAllThatItAsksFor(t *testing.T) {
	added := 0
	for seed := range uint64(cases()) {
		c := scene{seed: seed, models: 1 + int(seed%6), load: 0.5 + float64(seed%9), hybrid: seed%20 == 9, limited: true}
		s, policy := c.build()
		plan, _ := Decide(s, policy, Memory{}, RoundFull)
		left := Reserve(s, policy)
		var wants []*placement.Request
		for i := range plan.Models {
			for j, v := range plan.Models[i].Variants {
				for range *v.Desired - v.Current {
					wants = append(wants, s.Models[i].Variants[j].Request)
				}
			}
		}
		slices.SortStableFunc(wants, func(a, b *placement.Request) int { return cmp.Compare(b.Shape.Devices, a.Shape.Devices) })
		for _, w := range wants {
			_, ok := left.Place(w)
			require.True(t, ok, "%v: %v of %d does not fit", c, w.Shape, len(wants))
		}
		added += len(wants)
	}
	assert.Greater(t, added, cases())
}

// A minimum holds in every round and mode, as far as there is room; a maximum always.
func TestBoundsAreNeverViolated(t *testing.T) {
	for seed := range uint64(cases()) {
		c := scene{seed: seed, models: 1 + int(seed%3), load: float64(seed%4) / 2, hybrid: seed%20 == 9, limited: seed%2 == 0}
		s, policy := c.build()
		policy.Idle.Enabled = true
		kind := []Round{RoundFull, RoundFast, RoundEvent}[seed%3]
		plan, _ := Decide(s, policy, Memory{}, kind)
		for i := range plan.Models {
			for j, v := range plan.Models[i].Variants {
				own := policy.Variant(v.Key)
				if own.Max >= 0 && (kind == RoundFull || v.Current <= own.Max) {
					require.LessOrEqual(t, *v.Desired, own.Max, "%v %s", c, lineOf(&v))
				}
				if *v.Desired >= own.Min {
					continue
				}
				require.True(t, c.limited, "%v %s", c, lineOf(&v))
				require.NotEmpty(t, detailOf(v.Facts, ReasonNoSlots), "%v %d %s", c, j, lineOf(&v))
			}
		}
	}
}

// What a more important model gets does not depend on what others want.
func TestPriorityIsStrict(t *testing.T) {
	crowded := 0
	for seed := range uint64(cases()) {
		c := scene{seed: seed, models: 3, load: 2 + float64(seed%5), limited: true, plain: true}
		s, policy := c.build()
		policy.Horizon = 0 // Savings come after everybody's growth.
		for i := range s.Models {
			policy.Promises[ModelKey{Namespace: "ns", ID: s.Models[i].ID}] = Promise{Priority: 3 - i}
			for j := range s.Models[i].Variants {
				v := &s.Models[i].Variants[j]
				v.Current = max(1, v.Current)
				v.Ready = v.Current
			}
		}
		together := first(s, policy)
		calm := s
		calm.Models = slices.Clone(s.Models)
		for i := range 2 {
			m := &calm.Models[i]
			m.Arrival, m.Recent, m.Queue = Sample{}, Sample{}, Sample{}
			m.Variants = slices.Clone(m.Variants)
			for j := range m.Variants {
				m.Variants[j].Replicas = nil
			}
		}
		want := first(calm, policy)
		m, got, alone := &s.Models[2], &together.Models[2], &want.Models[2]
		require.GreaterOrEqual(t, served(m, got), min(served(m, alone), askedOf(m, got, policy))-1e-9, "%v\n%s\nalone:\n%s", c, tellShort(got), tellShort(alone))
		if detailOf(together.Models[0].Variants[0].Facts, ReasonNoSlots) != "" {
			crowded++
		}
	}
	assert.Greater(t, crowded, cases()/10)
}

// Thousands of rounds of a load that goes up and down leave no more in memory than the
// first hundreds, and models that are gone leave nothing.
func TestMemoryStaysBounded(t *testing.T) {
	model := func(id string, phase float64) *flow {
		return &flow{id: id, arrivals: func(t time.Duration) float64 { return 6 + 5*math.Sin(t.Minutes()/7+phase) }, variants: []*vessel{vesselOf(id+"-a", 1), vesselOf(id+"-b", 1)}}
	}
	policy := DefaultPolicy()
	policy.Hybrid = true
	policy.Variants = map[Key]VariantPolicy{}
	rates := DefaultVariantPolicy()
	rates.Up.Policies = []RatePolicy{{Pods: 4, Period: time.Minute}}
	for _, name := range []string{"x-a", "x-b", "y-a", "y-b"} {
		policy.Variants[Key{Namespace: "ns", Name: name}] = rates
	}
	f := newFluid(machines(4), policy, model("x", 0), model("y", 2))
	most := 0
	for f.elapsed() < 5*time.Hour {
		f.step()
		size := longest(f.memory)
		if f.elapsed() < time.Hour {
			most = max(most, size)
		}
		require.LessOrEqual(t, size, most+most/4, "at %v", f.elapsed())
	}
	f.models = f.models[:1]
	f.round(RoundFull)
	assert.NotContains(t, spelled(f.memory), "y-a")
}

// longest is the number of things in a memory.
func longest(m Memory) int {
	n := len(m.Variants) + len(m.Models)
	for _, a := range m.Variants {
		n += len(a.History) + len(a.Latency.Learned.Seen) + len(a.Conflict.Changes)
	}
	for _, a := range m.Models {
		n += len(a.Seen)
	}
	return n
}
