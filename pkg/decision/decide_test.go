package decision

import (
	"fmt"
	"math/rand/v2"
	"reflect"
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
	assert.Equal(t, 1, w.variants[0].replicas, "H100 costs more per request")
	assert.Equal(t, 5, w.variants[1].replicas)
}

func TestLimitedModeAsksOnlyForWhatFits(t *testing.T) {
	w := newWorld(118)
	w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 3), nodes(2, "L40S", 3)...)}
	policy := demoPolicy()
	policy.Limited = true
	plan, _ := Decide(w.snapshot(), policy, Memory{}, RoundFull)
	h100, l40s := plan.Models[0].Variants[0], plan.Models[0].Variants[1]
	assert.Equal(t, 4, *h100.Desired, "three more fit")
	assert.Equal(t, 2, *l40s.Desired, "three free devices on a node hold one replica of two")
	assert.Contains(t, reasons(h100.Facts), ReasonNoSlots)

	policy.Limited = false
	plan, _ = Decide(w.snapshot(), policy, Memory{}, RoundFull)
	total := *plan.Models[0].Variants[0].Desired + *plan.Models[0].Variants[1].Desired
	assert.Greater(t, total, 6, "a cluster that grows is asked for the rest")
}

func TestLimitedModeWithoutNodesAddsNothing(t *testing.T) {
	w := newWorld(118)
	policy := demoPolicy()
	policy.Limited = true
	plan, _ := Decide(w.snapshot(), policy, Memory{}, RoundFull)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired)
	assert.Contains(t, reasons(plan.Models[0].Variants[0].Facts), ReasonCapacityUnknown)
}

func TestModelsDoNotTakeTheSameRoomTwice(t *testing.T) {
	one, two := newWorld(60), newWorld(60)
	for _, w := range []*world{one, two} {
		w.variants = w.variants[:1]
	}
	snapshot := one.snapshot()
	second := two.snapshot().Models[0]
	second.ID = "n"
	second.Variants[0].Name = "n-h100"
	snapshot.Models = append(snapshot.Models, second)
	snapshot.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 4)}
	policy := demoPolicy()
	policy.Limited = true
	plan, _ := Decide(snapshot, policy, Memory{}, RoundFull)
	added := *plan.Models[0].Variants[0].Desired + *plan.Models[1].Variants[0].Desired - 2
	assert.Equal(t, 4, added)
	assert.Equal(t, 4, snapshot.Cluster.Nodes[0].Free.Devices, "the snapshot is not changed")
}

func TestStartingReplicasCountUntilTheirDeadline(t *testing.T) {
	w := newWorld(60)
	w.startup = 10 * time.Minute
	policy, memory := demoPolicy(), Memory{}
	plan, memory := Decide(w.snapshot(), policy, memory, RoundFull)
	w.apply(plan)
	w.now = w.now.Add(15 * time.Second)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.False(t, w.apply(plan), "what starts will carry it")
	assert.Equal(t, ReasonStartingSuffices, plan.Models[0].Variants[1].Reason)

	w.startup = 24 * time.Hour // they never become ready
	snapshot := func() Snapshot {
		s := w.snapshot()
		for i := range s.Models[0].Variants {
			s.Models[0].Variants[i].Startup = time.Minute
		}
		// The first replica serves on.
		served := newWorld(60)
		served.now = w.now
		s.Models[0].Variants[0] = served.snapshot().Models[0].Variants[0]
		return s
	}
	w.now = w.now.Add(4 * time.Minute)
	plan, _ = Decide(snapshot(), policy, memory, RoundFull)
	assert.Contains(t, reasons(plan.Models[0].Variants[1].Facts), ReasonStartupOverdue)
	assert.Greater(t, *plan.Models[0].Variants[0].Desired, 1, "the demand goes to the other variant")
	assert.Equal(t, w.variants[1].replicas, *plan.Models[0].Variants[1].Desired)
}

func TestOnlyAFullRoundLowers(t *testing.T) {
	for _, kind := range []Round{RoundFast, RoundEvent} {
		w, memory := newWorld(1), Memory{}
		w.setReplicas(0, 5)
		w.now = w.now.Add(time.Hour)
		for range 20 {
			var plan Plan
			plan, memory = Decide(w.snapshot(), demoPolicy(), memory, kind)
			require.False(t, w.apply(plan))
			w.now = w.now.Add(10 * time.Second)
		}
		plan, _ := Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
		assert.True(t, w.apply(plan), "what the %s rounds saw covers the window", kind)
	}
}

func TestARisingRateIsCarriedOnToTheStartOfNewReplicas(t *testing.T) {
	w, memory := newWorld(2), Memory{}
	var plan Plan
	for range 5 {
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
		w.now = w.now.Add(10 * time.Second)
		w.arrival += 4
	}
	demand := plan.Models[0].Demand
	require.NotNil(t, demand)
	// 0.4 requests/s more per second, 15 s of start-up, 10 s to the next round and
	// half of a 20 s window ahead.
	assert.InDelta(t, float64(demand.Arrival)+0.4*35, float64(demand.Forecast), 0.01)
	w.arrival = 3
	plan, _ = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
	assert.Equal(t, plan.Models[0].Demand.Arrival, plan.Models[0].Demand.Forecast, "a fall is not carried on")
}

func TestRequestsThatBecomeLongerAreARiseToo(t *testing.T) {
	w, memory := newWorld(10), Memory{}
	var plan Plan
	for range 4 {
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
		w.now = w.now.Add(10 * time.Second)
		w.tokens.Output += 100
	}
	demand := plan.Models[0].Demand
	assert.Greater(t, float64(demand.Forecast), 1.4*float64(demand.Arrival))
}

func TestAFewShortRequestsDoNotLowerTheTokensReckonedWith(t *testing.T) {
	w, memory := newWorld(10), Memory{}
	for range 20 {
		_, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
		w.now = w.now.Add(15 * time.Second)
	}
	w.tokens.Output = 50
	var plan Plan
	plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
	assert.Greater(t, float64(plan.Models[0].Demand.Tokens.Output), 180.0)
	for range 80 {
		w.now = w.now.Add(15 * time.Second)
		plan, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFull)
	}
	assert.InDelta(t, 50, float64(plan.Models[0].Demand.Tokens.Output), 5, "in the end they do")
}

func TestCautionWhileTheLoadGrows(t *testing.T) {
	more := func(growing bool, completed float64) int {
		w, memory := newWorld(20), Memory{}
		if growing {
			w.arrival = 5
			for range 3 {
				_, memory = Decide(w.snapshot(), demoPolicy(), memory, RoundFast)
				w.now = w.now.Add(10 * time.Second)
				w.arrival += 5
			}
		}
		s := w.snapshot()
		s.Models[0].Variants[0].Replicas[0].Served.Value *= completed
		s.Models[0].Variants[0].Replicas[0].InService = w.sample(128 / float64(onH100.Steady(128, conv).Rate))
		s.Models[0].Variants[0].Replicas[0].Waiting.Value = 9
		plan, _ := Decide(s, demoPolicy(), memory, RoundFast)
		return *plan.Models[0].Variants[0].Desired + *plan.Models[0].Variants[1].Desired
	}
	assert.Greater(t, more(true, 0.5), more(true, 1))
	assert.Equal(t, more(false, 0.5), more(false, 1), "without growth completions are what they are")
}

func TestASaturatedReplicaAndAShortfallTriggerBesideIdleOnes(t *testing.T) {
	w := newWorld(60)
	w.setReplicas(1, 1)
	w.now = w.now.Add(time.Hour)
	s := w.snapshot()
	s.Models[0].Variants[1].Replicas[0].Running.Value = 3
	s.Models[0].Variants[1].Replicas[0].Waiting.Value = 0
	s.Models[0].Variants[1].Replicas[0].KVUse.Value = 0.01
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.True(t, plan.Models[0].Triggered, "the idle one has only just come; 60 requests/s are more than both serve")
	s.Models[0].Arrival.Value = 20
	plan, _ = Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.False(t, plan.Models[0].Triggered, "20 are not")
}

func TestUnknownRatesBuyOneReplicaAtATime(t *testing.T) {
	w := newWorld(17)
	s := w.snapshot()
	for i := range s.Models[0].Variants {
		v := &s.Models[0].Variants[i]
		v.Profile = serving.Profile{}
		for j := range v.Replicas {
			p := &v.Replicas[j]
			p.Served.Value, p.Waiting.Value = 0, 40
			p.Input, p.Output = Sample{}, Sample{}
		}
	}
	plan, memory := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired)
	assert.Equal(t, 1, *plan.Models[0].Variants[1].Desired, "one more, of the cheapest")
	s.Models[0].Variants[1].Current = 1
	s.Models[0].Variants[1].Starting = []Starting{{Name: "b", Created: s.Time}}
	s.Time = s.Time.Add(10 * time.Second)
	plan, _ = Decide(s, demoPolicy(), memory, RoundFast)
	assert.Equal(t, ReasonStartingSuffices, plan.Models[0].Variants[1].Reason)
}

func TestSomebodyElsesChangeIsTheNewStartingPoint(t *testing.T) {
	w, memory := newWorld(1), Memory{}
	policy := demoPolicy()
	var plan Plan
	round := func() {
		plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
		w.apply(plan)
		w.now = w.now.Add(15 * time.Second)
	}
	for range 4 {
		round()
	}
	w.setReplicas(0, 4)
	round()
	assert.Equal(t, 4, w.variants[0].replicas)
	assert.Contains(t, reasons(plan.Models[0].Variants[0].Facts), ReasonReplicasChanged)
	round()
	assert.Equal(t, 4, w.variants[0].replicas, "held for one window")
	for range 4 {
		round()
		assert.NotContains(t, reasons(plan.Models[0].Variants[0].Facts), ReasonReplicasChanged, "its own changes are its own")
	}
	assert.Equal(t, 1, w.variants[0].replicas)
}

func TestASharedTargetCountsOnce(t *testing.T) {
	w := newWorld(60)
	s := w.snapshot()
	shared := s.Models[0].Variants[0]
	shared.Name, shared.Target, shared.Current, shared.Ready, shared.Replicas = "z-shared", TargetShared, 50, 0, nil
	s.Models[0].Variants = append(s.Models[0].Variants, shared)
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	alone, _ := Decide(w.snapshot(), demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, *alone.Models[0].Variants[0].Desired, *plan.Models[0].Variants[0].Desired, "what it has is no supply")
	assert.Equal(t, *alone.Models[0].Variants[1].Desired, *plan.Models[0].Variants[1].Desired)
	assert.Nil(t, plan.Models[0].Variants[2].Desired)
}

func TestWhatFitsNowhereIsGivenBack(t *testing.T) {
	w := newWorld(1)
	s := w.snapshot()
	s.Models[0].Variants[1].Current = 3
	s.Models[0].Variants[1].Starting = []Starting{
		{Name: "old", Created: s.Time.Add(-45 * time.Second), Unschedulable: true},
		{Name: "new", Created: s.Time.Add(-5 * time.Second), Unschedulable: true},
		{Name: "placed", Created: s.Time.Add(-45 * time.Second), Placed: true},
	}
	s.Models[0].Variants[1].Startup = time.Hour
	s.Models[0].Variants[0].Replicas[0].Waiting.Present = false // nothing goes for want of load
	s.Cluster = &placement.Cluster{}
	policy := demoPolicy()
	policy.Limited = true
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	v := plan.Models[0].Variants[1]
	assert.Contains(t, reasons(v.Facts), ReasonNoSlots)
	for _, step := range v.Steps {
		if step.Stage == StageLimits {
			assert.Equal(t, step.Before-1, step.After, "the one that waited long enough, no other")
		}
	}
}

func TestDecideIsAFunctionOfItsArguments(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		snapshot, policy := randomSnapshot(random), demoPolicy()
		policy.Limited = random.IntN(2) == 0
		_, memory := Decide(randomSnapshot(random), policy, Memory{}, RoundFull)
		before := fmt.Sprintf("%+v %+v %+v", snapshot, memory, snapshot.Cluster)
		plan, next := Decide(snapshot, policy, memory, RoundFull)
		again, nextAgain := Decide(snapshot, policy, memory, RoundFull)
		require.Equal(t, plan, again)
		require.Equal(t, next, nextAgain)
		require.Equal(t, before, fmt.Sprintf("%+v %+v %+v", snapshot, memory, snapshot.Cluster), "the arguments are not changed")
	}
}

// Whatever is unknown, nothing goes that full knowledge would call needed.
func TestMissingDataNeverRemovesWhatIsNeeded(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	lowered, held := 0, 0
	for range 3000 {
		w := newWorld(60 * random.Float64())
		w.setReplicas(0, 1+random.IntN(6))
		w.setReplicas(1, random.IntN(6))
		w.now = w.now.Add(time.Hour)
		w.gateway = random.IntN(2) == 0
		policy := demoPolicy()
		_, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
		w.now = w.now.Add(time.Minute)
		full, _ := Decide(w.snapshot(), policy, memory, RoundFull)
		broken := w.snapshot()
		breakSamples(random, &broken)
		plan, _ := Decide(broken, policy, memory, RoundFull)
		before := w.serves()
		w.apply(plan)
		switch {
		case w.serves() < before:
			lowered++
			require.Greater(t, w.serves(), w.arrival, "%+v", broken)
		case *full.Models[0].Variants[0].Desired < full.Models[0].Variants[0].Current:
			held++
		}
	}
	assert.Greater(t, lowered, 100, "the test must see scale-downs")
	assert.Greater(t, held, 100, "and scale-downs that the missing data prevent")
}

// breakSamples makes samples of up to all replicas old, absent or both.
func breakSamples(random *rand.Rand, s *Snapshot) {
	share := random.Float64()
	for i := range s.Models[0].Variants {
		for j := range s.Models[0].Variants[i].Replicas {
			p := &s.Models[0].Variants[i].Replicas[j]
			for _, sample := range []*Sample{&p.KVUse, &p.Waiting, &p.Running, &p.Served, &p.InFlightGrowth, &p.Input, &p.Output} {
				if random.Float64() >= share {
					continue
				}
				switch random.IntN(3) {
				case 0:
					*sample = Sample{}
				case 1:
					sample.Time = s.Time.Add(-90 * time.Second)
				default:
					sample.Time = s.Time.Add(-time.Hour)
				}
			}
		}
	}
}

func TestNothingIsKnownHoldsEverything(t *testing.T) {
	for name, breakAll := range map[string]func(*Sample){
		"absent": func(s *Sample) { *s = Sample{} },
		"stale":  func(s *Sample) { s.Time = s.Time.Add(-3 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(100)
			w.setReplicas(1, 3)
			w.now = w.now.Add(time.Hour)
			s := w.snapshot()
			for i := range s.Models[0].Variants {
				for j := range s.Models[0].Variants[i].Replicas {
					p := reflect.ValueOf(&s.Models[0].Variants[i].Replicas[j]).Elem()
					for k := range p.NumField() {
						if sample, ok := p.Field(k).Addr().Interface().(*Sample); ok {
							breakAll(sample)
						}
					}
				}
			}
			plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFull)
			assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired)
			assert.Equal(t, 3, *plan.Models[0].Variants[1].Desired)
			want := map[string]Reason{"absent": ReasonMetricsMissing, "stale": ReasonMetricsStale}[name]
			assert.Equal(t, want, plan.Models[0].Variants[0].Reason)
		})
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
		"woken by requests that wait":   {5, 8, 8, []int{0, 1}, ReasonSaturated},
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

func TestOffIsLeftAloneUnlessAllAre(t *testing.T) {
	policy := demoPolicy()
	off := DefaultVariantPolicy()
	off.Actuation = ActuationOff
	policy.Variants[Key{"ns", "b-l40s"}] = off
	plan, _ := Decide(newWorld(60).snapshot(), policy, Memory{}, RoundFull)
	assert.Equal(t, 0, *plan.Models[0].Variants[1].Desired)
	assert.Greater(t, *plan.Models[0].Variants[0].Desired, 1)

	policy.Variants[Key{"ns", "a-h100"}] = off
	plan, _ = Decide(newWorld(60).snapshot(), policy, Memory{}, RoundFull)
	assert.Greater(t, *plan.Models[0].Variants[1].Desired, 1, "advice is given when nothing is acted on")
}

func TestBounds(t *testing.T) {
	policy := demoPolicy()
	bounded := DefaultVariantPolicy()
	bounded.Min, bounded.Max = 2, 3
	policy.Variants[Key{"ns", "b-l40s"}] = bounded
	plan, _ := Decide(newWorld(0.1).snapshot(), policy, Memory{}, RoundFull)
	assert.Equal(t, 2, *plan.Models[0].Variants[1].Desired)
	assert.Equal(t, ReasonMinReplicas, plan.Models[0].Variants[1].Reason)
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

func BenchmarkDecide5000Variants(b *testing.B) {
	var s Snapshot
	for i := range 2500 {
		w := newWorld(40 + float64(i%80))
		w.setReplicas(0, 4)
		w.setReplicas(1, 6)
		w.now = w.now.Add(time.Hour)
		m := w.snapshot().Models[0]
		m.ID = fmt.Sprint("m", i)
		s.Time = w.now
		s.Models = append(s.Models, m)
	}
	s.Cluster = &placement.Cluster{Nodes: append(nodes(2500, "H100", 8), nodes(2500, "L40S", 8)...)}
	policy := DefaultPolicy()
	policy.Limited = true
	var memory Memory
	b.ReportAllocs()
	for b.Loop() {
		_, memory = Decide(s, policy, memory, RoundFull)
	}
}
