package decision

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

func TestConstantDemandIsAFixedPointAfterOneDecision(t *testing.T) {
	for _, arrival := range []float64{0.5, 5, 17, 19, 25, 60, 82, 118, 400} {
		t.Run(fmt.Sprintf("%v requests per second", arrival), func(t *testing.T) {
			w, memory := newWorld(arrival), Memory{}
			policy := demoPolicy()
			changes := 0
			for range 240 {
				var plan Plan
				plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
				if w.apply(plan) {
					changes++
				}
				w.now = w.now.Add(15 * time.Second)
			}
			assert.LessOrEqual(t, changes, 1)
			assert.GreaterOrEqual(t, w.serves(), min(arrival, w.serves()))
			_, saturated := w.inService()
			assert.False(t, saturated)
		})
	}
}

func TestWithoutProfilesItSettlesAndServes(t *testing.T) {
	for _, gateway := range []bool{true, false} {
		for _, arrival := range []float64{5, 25, 82, 300} {
			t.Run(fmt.Sprintf("%v requests per second, gateway %v", arrival, gateway), func(t *testing.T) {
				w, memory := newWorld(arrival), Memory{}
				w.gateway = gateway
				for _, v := range w.variants {
					v.told = serving.Profile{}
				}
				last := 0
				for round := range 240 {
					var plan Plan
					plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
					if w.apply(plan) {
						last = round
					}
					w.now = w.now.Add(15 * time.Second)
				}
				_, saturated := w.inService()
				assert.False(t, saturated)
				assert.Less(t, last, 120, "it must settle")
				assert.Less(t, w.serves(), 1.6*arrival+2*float64(onH100.Steady(90, conv).Rate), "and not far above the demand")
			})
		}
	}
}

func TestDemandThatEndsGivesReplicasBackAfterTheWindow(t *testing.T) {
	w, memory := newWorld(82), Memory{}
	policy := demoPolicy()
	var plan Plan
	run := func(d time.Duration) {
		for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(15 * time.Second) {
			plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
			w.apply(plan)
		}
	}
	run(2 * time.Minute)
	peak := w.variants[0].replicas + w.variants[1].replicas
	require.GreaterOrEqual(t, peak, 5)
	w.arrival = 0
	run(15 * time.Second)
	assert.Equal(t, peak, w.variants[0].replicas+w.variants[1].replicas, "within the window nothing goes")
	run(3 * time.Minute)
	assert.Equal(t, 1, w.variants[0].replicas+w.variants[1].replicas)
}

func TestItBuysTheCheapestPerRequest(t *testing.T) {
	w := newWorld(74)
	plan, _ := Decide(w.snapshot(), demoPolicy(), Memory{}, RoundFull)
	w.apply(plan)
	h100, l40s := w.variants[0].replicas-1, w.variants[1].replicas
	need := float64(plan.Models[0].Demand.Forecast) + plan.Models[0].Demand.BacklogAtReady/120 - w.eachServes(0)
	cost := func(a, b int) float64 { return 6.88*float64(a) + 3.72*float64(b) }
	for a := range 9 {
		for b := range 13 {
			if float64(a)*w.eachServes(0)+float64(b)*w.eachServes(1) >= need {
				// Spare capacity is worth a little.
				assert.LessOrEqual(t, cost(h100, l40s), 1.1*cost(a, b))
			}
		}
	}
}

func TestDecideIsAFunctionOfItsArguments(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		snapshot, policy := randomSnapshot(random), demoPolicy()
		policy.Limited = random.IntN(2) == 0
		_, memory := Decide(randomSnapshot(random), policy, Memory{}, RoundFull)
		before := fmt.Sprintf("%+v %s %+v", snapshot, spelled(memory), snapshot.Cluster)
		plan, next := Decide(snapshot, policy, memory, RoundFull)
		again, nextAgain := Decide(snapshot, policy, memory, RoundFull)
		require.Equal(t, plan, again)
		require.Equal(t, next, nextAgain)
		require.Equal(t, before, fmt.Sprintf("%+v %s %+v", snapshot, spelled(memory), snapshot.Cluster), "the arguments are not changed")
	}
}

func TestTargetsThatMayNotBeChanged(t *testing.T) {
	for state, want := range map[TargetState]struct {
		reason  Reason
		desired bool
	}{
		TargetMissing:   {ReasonTargetMissing, false},
		TargetForbidden: {ReasonTargetForbidden, false},
		TargetConflict:  {ReasonConflict, true},
	} {
		w := newWorld(100)
		s := w.snapshot()
		s.Models[0].Variants[0].Target = state
		plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFull)
		v := plan.Models[0].Variants[0]
		assert.Equal(t, want.reason, v.Reason)
		assert.Equal(t, want.desired, v.Desired != nil)
		if want.desired {
			assert.Equal(t, v.Current, *v.Desired)
		}
	}
}

func TestUnknownShapeIsHeld(t *testing.T) {
	w := newWorld(100)
	s := w.snapshot()
	s.Models[0].Variants[0].Request = nil
	s.Cluster = &placement.Cluster{}
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFull)
	assert.Equal(t, ReasonShapeUnknown, plan.Models[0].Variants[0].Reason)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired)
	assert.Greater(t, *plan.Models[0].Variants[1].Desired, 1, "the other variant still answers")
}

func TestAModelKeepsOneReplica(t *testing.T) {
	for name, tc := range map[string]struct {
		queue  float64
		h100s  int
		l40s   int
		want   []int
		reason Reason
	}{
		"on the cheapest that fits":     {0, 8, 8, []int{0, 1}, ReasonKeepOne},
		"on the next when it is full":   {0, 8, 1, []int{1, 0}, ReasonKeepOne},
		"woken by requests that wait":   {5, 8, 8, []int{0, 1}, ReasonWake},
		"none when nothing fits at all": {0, 0, 1, []int{0, 0}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			w.setReplicas(0, 0)
			s := w.snapshot()
			s.Models[0].Queue = w.sample(tc.queue)
			s.Cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", tc.h100s), nodes(1, "L40S", tc.l40s)...)}
			policy := demoPolicy()
			policy.Limited = true
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			for i, v := range plan.Models[0].Variants {
				assert.Equal(t, tc.want[i], *v.Desired)
				if *v.Desired > 0 {
					assert.Equal(t, tc.reason, v.Reason)
				}
			}
		})
	}
}

func TestOffIsOnlyShown(t *testing.T) {
	policy := demoPolicy()
	off := DefaultVariantPolicy()
	off.Actuation = ActuationOff
	policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}] = off
	plan, _ := Decide(newWorld(60).snapshot(), policy, Memory{}, RoundFull)
	assert.Positive(t, *plan.Models[0].Variants[1].Desired, "what it would ask for beside the other one")
	assert.Greater(t, *plan.Models[0].Variants[0].Desired, 1, "nobody counts on what is only shown")

	policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = off
	plan, _ = Decide(newWorld(60).snapshot(), policy, Memory{}, RoundFull)
	assert.Positive(t, *plan.Models[0].Variants[1].Desired, "advice is given when nothing is acted on")
}

func TestBounds(t *testing.T) {
	policy := demoPolicy()
	bounded := DefaultVariantPolicy()
	bounded.Min, bounded.Max = 2, 3
	policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}] = bounded
	plan, _ := Decide(newWorld(0.1).snapshot(), policy, Memory{}, RoundFull)
	assert.Equal(t, 2, *plan.Models[0].Variants[1].Desired)
	assert.Equal(t, ReasonMinReplicas, plan.Models[0].Variants[1].Reason)
	assert.Equal(t, "minReplicas is 2", textOf(plan.Models[0].Variants[1].Message))
	slow := bounded
	slow.Up.Policies = []RatePolicy{{Pods: 1, Period: time.Minute}}
	policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}] = slow
	plan, _ = Decide(newWorld(0.1).snapshot(), policy, Memory{}, RoundFull)
	assert.Equal(t, "minReplicas is 2 and bypasses scaleUp", textOf(plan.Models[0].Variants[1].Message))
	policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}] = bounded
	plan, _ = Decide(newWorld(118).snapshot(), policy, Memory{}, RoundFull)
	assert.LessOrEqual(t, *plan.Models[0].Variants[1].Desired, 3)
	assert.Greater(t, *plan.Models[0].Variants[0].Desired, 3, "the rest goes to the other variant")
}

// randomSnapshot is a model in some state, with some data missing.
func randomSnapshot(random *rand.Rand) Snapshot {
	w := newWorld(120 * random.Float64())
	w.setReplicas(0, random.IntN(5))
	w.setReplicas(1, random.IntN(5))
	w.now = w.now.Add(time.Duration(random.IntN(60)) * time.Second)
	if random.IntN(3) > 0 {
		w.cluster = &placement.Cluster{Nodes: append(nodes(2, "H100", random.IntN(9)), nodes(2, "L40S", random.IntN(5))...)}
	}
	s := w.snapshot()
	breakSamples(random, &s)
	return s
}

func reasons(facts []Fact) []Reason {
	var list []Reason
	for _, f := range facts {
		list = append(list, f.Reason)
	}
	return list
}

// BenchmarkDecideVictims is the round after a peak: every variant gives up replicas.
func BenchmarkDecideVictims(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	s := Snapshot{Cluster: &placement.Cluster{Nodes: append(nodes(2500, "H100", 8), nodes(2500, "L40S", 8)...)}}
	for i := range s.Cluster.Nodes {
		s.Cluster.Nodes[i].Free.Devices = random.IntN(3)
	}
	policy := DefaultPolicy()
	policy.Variants = map[Key]VariantPolicy{}
	for i := range 2500 {
		w := newWorld(40)
		w.setReplicas(0, 4)
		w.setReplicas(1, 6)
		w.now = w.now.Add(time.Hour)
		m := w.snapshot().Models[0]
		m.ID = fmt.Sprint("m", i)
		s.Time = w.now
		for j := range m.Variants {
			v := &m.Variants[j]
			v.Name, v.ChoosesVictims = fmt.Sprint(v.Name, "-", i), true
			for k := range v.Replicas {
				v.Replicas[k].Node = s.Cluster.Nodes[2500*j+random.IntN(2500)].Name
			}
			own := DefaultVariantPolicy()
			own.Max, own.Down.Window = 2, 0
			policy.Variants[Key{Namespace: "ns", Name: v.Name}] = own
		}
		s.Models = append(s.Models, m)
	}
	b.ReportAllocs()
	for b.Loop() {
		plan, _ := Decide(s, policy, Memory{}, RoundFull)
		require.GreaterOrEqual(b, len(plan.Models[7].Variants[1].Victims), 4)
	}
}
