package decision

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// bigAndSmall is a world whose cheaper variant takes whole nodes of H100.
func bigAndSmall(arrival float64) *world {
	w := newWorld(arrival)
	w.variants = []*worldVariant{
		{name: "a-8xh100", profile: onH100, told: onH100, cost: 1, request: request("H100", 8)},
		{name: "b-l40s", profile: on2xL40S, told: on2xL40S, cost: 3.72, request: request("L40S", 2)},
	}
	w.now = epoch
	w.setReplicas(1, 1)
	w.now = w.now.Add(time.Hour)
	return w
}

func policyFor(limited bool, names ...string) Policy {
	p := demoPolicy()
	p.Limited = limited
	down := DefaultVariantPolicy()
	down.Down.Window = 30 * time.Second
	p.Variants = map[Key]VariantPolicy{}
	for _, n := range names {
		p.Variants[Key{"ns", n}] = down
	}
	return p
}

func TestFreeDevicesOnEightNodesAreNoRoomForOneOfEight(t *testing.T) {
	w := bigAndSmall(40)
	halfFull := nodes(8, "H100", 8)
	for i := range halfFull {
		halfFull[i].Free.Devices = 1
	}
	w.cluster = &placement.Cluster{Nodes: append(halfFull, nodes(4, "L40S", 8)...)}
	policy := policyFor(true, "a-8xh100", "b-l40s")
	plan, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
	big, small := plan.Models[0].Variants[0], plan.Models[0].Variants[1]
	assert.Equal(t, 0, *big.Desired, "none fits")
	assert.Equal(t, 0, big.Slots.Count)
	assert.Equal(t, 1, *big.LargestHole)
	assert.Contains(t, detailOf(big.Facts, ReasonNoSlots), "8 H100 nodes have fewer than 8 free (largest hole 1)")
	assert.Greater(t, *small.Desired, 1, "the next variant scales")

	w.apply(plan)
	w.now = w.now.Add(time.Minute)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.NotEmpty(t, detailOf(plan.Models[0].Variants[0].Facts, ReasonNoSlots), "it still stands back for lack of room")

	w.cluster.Nodes[3].Free.Devices = 8
	w.now = w.now.Add(time.Minute)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundEvent)
	big = plan.Models[0].Variants[0]
	require.Equal(t, 1, *big.Desired, "there is room now")
	assert.Equal(t, ReasonRoomAppeared, big.Reason)

	w.apply(plan)
	w.cluster.Nodes[3].Free.Devices = 0
	before := w.variants[1].replicas
	for range 6 {
		w.now = w.now.Add(time.Minute)
		plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
		w.apply(plan)
	}
	assert.Less(t, w.variants[1].replicas, before, "the dearer ones go in time")
	assert.Equal(t, 1, w.variants[0].replicas)
}

func TestWhatWasDeniedIsRemembered(t *testing.T) {
	w := bigAndSmall(40)
	w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 1), nodes(8, "L40S", 8)...)}
	w.cluster.Nodes[0].Allocatable.Devices = 8
	policy := policyFor(true, "a-8xh100", "b-l40s")
	plan, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
	key := Key{"ns", "a-8xh100"}
	denied := memory.Denied[key]
	require.Positive(t, denied)
	w.apply(plan)

	// A little more is asked, for which the small variant is the best answer anyway.
	w.variants[0].cost = 20
	w.arrival = 60
	w.now = w.now.Add(time.Minute)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	require.Greater(t, *plan.Models[0].Variants[1].Desired, w.variants[1].replicas, "it is a round in which replicas are added")
	assert.GreaterOrEqual(t, memory.Denied[key], denied)
}

func TestOneThatWouldNotBeFullComesBackWhenThatSaves(t *testing.T) {
	for name, test := range map[string]struct {
		cost  capacity.Cost
		comes int
	}{"it costs less than what it replaces": {3.5, 1}, "it costs more": {3.9, 0}} {
		t.Run(name, func(t *testing.T) {
			w := bigAndSmall(5)
			w.variants[0].cost = test.cost
			w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}
			memory := Memory{Denied: map[Key]capacity.Rate{{"ns", "a-8xh100"}: 50}}
			plan, _ := Decide(w.snapshot(), policyFor(true, "a-8xh100", "b-l40s"), memory, RoundFull)
			assert.Equal(t, test.comes, *plan.Models[0].Variants[0].Desired)
		})
	}
}

func TestADeniedVariantDoesNotComeBackForNothing(t *testing.T) {
	w := bigAndSmall(5)
	w.variants[0].cost = 100
	w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}
	memory := Memory{Denied: map[Key]capacity.Rate{{"ns", "a-8xh100"}: 50}}
	plan, _ := Decide(w.snapshot(), policyFor(true, "a-8xh100", "b-l40s"), memory, RoundFull)
	assert.Equal(t, 0, *plan.Models[0].Variants[0].Desired, "it is the dearer one")
}

func TestUnknownCapacity(t *testing.T) {
	for name, test := range map[string]struct {
		limited, shape bool
		answer         OnUnknown
		grows          bool
		reason         Reason
	}{
		"no nodes, unlimited":               {grows: true, reason: ReasonCapacityUnknown},
		"no nodes, limited":                 {limited: true, reason: ReasonCapacityUnknown},
		"no nodes, limited, allowed":        {limited: true, answer: OnUnknownAllow, grows: true, reason: ReasonCapacityUnknown},
		"no nodes, unlimited, held":         {answer: OnUnknownHold, reason: ReasonCapacityUnknown},
		"no shape, unlimited":               {shape: true, reason: ReasonShapeUnknown},
		"no shape, limited":                 {shape: true, limited: true, reason: ReasonShapeUnknown},
		"no shape, unlimited, allowed":      {shape: true, answer: OnUnknownAllow, grows: true, reason: ReasonCapacityUnknown},
		"no shape, limited, allowed":        {shape: true, limited: true, answer: OnUnknownAllow, grows: true, reason: ReasonCapacityUnknown},
		"no shape, unlimited, held in word": {shape: true, answer: OnUnknownHold, reason: ReasonShapeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(118)
			w.variants = w.variants[:1]
			s := w.snapshot()
			if test.shape {
				s.Cluster = &placement.Cluster{Nodes: nodes(9, "H100", 8)}
				s.Models[0].Variants[0].Request = nil
			}
			policy := policyFor(test.limited, "a-h100")
			v := policy.Variants[Key{"ns", "a-h100"}]
			v.OnUnknown = test.answer
			policy.Variants[Key{"ns", "a-h100"}] = v
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			got := plan.Models[0].Variants[0]
			assert.Equal(t, test.grows, *got.Desired > 1)
			assert.Contains(t, reasons(got.Facts), test.reason)
			assert.Nil(t, got.Slots)
		})
	}
}

func TestReplicasWithoutPodsHoldTheirRoomForAWhile(t *testing.T) {
	w := newWorld(1)
	s := w.snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 4)}
	s.Models[0].Variants[0].Current = 3 // one pod
	policy := demoPolicy()
	plan, memory := Decide(s, policy, Memory{}, RoundFast)
	assert.Equal(t, 2, plan.Models[0].Variants[0].Slots.Count, "two were asked for and no pod shows them")
	assert.Equal(t, 0, plan.Models[0].Variants[0].Unplaced)

	s.Time = s.Time.Add(visibility + time.Second)
	plan, memory = Decide(s, policy, memory, RoundFast)
	assert.Equal(t, 4, plan.Models[0].Variants[0].Slots.Count, "something keeps them away")
	assert.Contains(t, detailOf(plan.Models[0].Variants[0].Facts, ReasonStartupOverdue), "2 of them have no pod")

	s.Models[0].Variants[0].Current = 5
	plan, _ = Decide(s, policy, memory, RoundFast)
	assert.Equal(t, 0, plan.Models[0].Variants[0].Slots.Count, "a new number is a new start")
}

func TestTheSurgeOfARollingUpdateTakesRoom(t *testing.T) {
	w := newWorld(1)
	s := w.snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 4)}
	s.Models[0].Variants[0].Surge = 3
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, 1, plan.Models[0].Variants[0].Slots.Count)
}

func TestUnplacedAreThoseThatFitNowhere(t *testing.T) {
	w := newWorld(1)
	s := w.snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 2)}
	v := &s.Models[0].Variants[0]
	v.Current = 5
	v.Starting = []Starting{{Name: "w", Created: s.Time, Unschedulable: true}}
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, 2, plan.Models[0].Variants[0].Unplaced, "of four without a node, two fit")
}

func TestAMinimumHoldsInLimitedModeAsFarAsItFits(t *testing.T) {
	w := newWorld(1)
	policy := policyFor(true, "a-h100", "b-l40s")
	v := policy.Variants[Key{"ns", "a-h100"}]
	v.Min = 4
	policy.Variants[Key{"ns", "a-h100"}] = v
	s := w.snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 2)}
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 3, *plan.Models[0].Variants[0].Desired)
	assert.Contains(t, detailOf(plan.Models[0].Variants[0].Facts, ReasonNoSlots), "minReplicas is 4")

	policy.Limited = false
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 4, *plan.Models[0].Variants[0].Desired)
}

func TestBackOff(t *testing.T) {
	w := newWorld(30)
	w.cluster = &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(4, "L40S", 8)...)}
	policy := policyFor(true, "a-h100", "b-l40s")
	// A rule that the model does not know keeps the second replica off every node.
	stuck := func(s *Snapshot) {
		v := &s.Models[0].Variants[0]
		v.Current = 2
		v.Starting = []Starting{{Name: "stuck", Created: s.Time.Add(-45 * time.Second), Unschedulable: true}}
	}
	s := w.snapshot()
	stuck(&s)
	plan, memory := Decide(s, policy, Memory{}, RoundFull)
	key := Key{"ns", "a-h100"}
	assert.Equal(t, leastPause, memory.Backoffs[key].Pause)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "given back")
	assert.Positive(t, *plan.Models[0].Variants[1].Desired, "the next variant takes its part")

	w.now = w.now.Add(30 * time.Second)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "left alone, although the model says that it fits")

	w.now = w.now.Add(time.Minute)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.Greater(t, *plan.Models[0].Variants[0].Desired, 1, "tried again")

	s = w.snapshot()
	stuck(&s)
	_, memory = Decide(s, policy, memory, RoundFull)
	assert.Equal(t, 2*leastPause, memory.Backoffs[key].Pause, "the next pause is twice as long")

	w.now = w.now.Add(time.Hour)
	_, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.Empty(t, memory.Backoffs, "it has been well for long")
}

func TestInAClusterThatGrowsTheNextVariantTakesOver(t *testing.T) {
	w := newWorld(30)
	w.cluster = &placement.Cluster{Nodes: nodes(4, "L40S", 8)}
	s := w.snapshot()
	v := &s.Models[0].Variants[0]
	v.Current = 2
	v.Starting = []Starting{{Name: "stuck", Created: s.Time.Add(-nodePatience - time.Second), Unschedulable: true}}
	v.Startup = 0
	policy := policyFor(false, "a-h100", "b-l40s")
	plan, memory := Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 2, *plan.Models[0].Variants[0].Desired, "not given back before another one has a node")
	others := *plan.Models[0].Variants[1].Desired
	require.Positive(t, others)
	assert.Contains(t, memory.Backoffs, Key{"ns", "a-h100"})

	s.Models[0].Variants[1].Current = others
	for i := range others {
		s.Models[0].Variants[1].Starting = append(s.Models[0].Variants[1].Starting, Starting{Name: fmt.Sprint(i), Created: s.Time, Placed: true, Node: "L40S-0"})
	}
	s.Time = s.Time.Add(10 * time.Second)
	plan, _ = Decide(s, policy, memory, RoundFull)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "given back, because the other one serves")
	s.Models[0].Variants[1].Current, s.Models[0].Variants[1].Starting = 0, nil

	s.Models[0].Variants = s.Models[0].Variants[:1]
	plan, _ = Decide(s, policyFor(false, "a-h100"), Memory{}, RoundFull)
	assert.GreaterOrEqual(t, *plan.Models[0].Variants[0].Desired, 2, "nobody else serves, and a node may still come")
}

// Constant demand for which nothing fits is a fixed point too: what waits in vain is
// asked for once.
func TestNothingFitsAnywhereIsAFixedPoint(t *testing.T) {
	for _, variants := range []int{1, 2} {
		t.Run(fmt.Sprint(variants, " variants"), func(t *testing.T) {
			w := newWorld(60)
			w.variants = w.variants[:variants]
			full := append(nodes(1, "H100", 8), nodes(1, "L40S", 8)...)
			for i := range full {
				full[i].Free.Devices = 0
			}
			s := w.snapshot()
			s.Cluster = &placement.Cluster{Nodes: full}
			var memory Memory
			changes, last := 0, time.Duration(0)
			for range 240 {
				w.now = w.now.Add(30 * time.Second)
				samples := w.snapshot()
				s.Time = samples.Time
				s.Models[0].Arrival, s.Models[0].Queue = samples.Models[0].Arrival, samples.Models[0].Queue
				s.Models[0].Variants[0].Replicas = samples.Models[0].Variants[0].Replicas
				var plan Plan
				plan, memory = Decide(s, policyFor(false, "a-h100", "b-l40s"), memory, RoundFull)
				for i := range s.Models[0].Variants {
					v := &s.Models[0].Variants[i]
					desired := *plan.Models[0].Variants[i].Desired
					if desired != v.Current {
						changes++
						last = s.Time.Sub(epoch)
					}
					v.Current = desired
					for len(v.Starting) > desired-v.Ready {
						v.Starting = v.Starting[:len(v.Starting)-1]
					}
					for len(v.Starting) < desired-v.Ready {
						v.Starting = append(v.Starting, Starting{Name: fmt.Sprint("p", len(v.Starting)), Created: s.Time, Unschedulable: true})
					}
				}
			}
			assert.LessOrEqual(t, changes, 2*variants)
			assert.Less(t, last, time.Hour+10*time.Minute)
			assert.Greater(t, s.Models[0].Variants[0].Current, 1, "a node may still come")
		})
	}
}

// A quota keeps the pods away: what has no pod is asked for once, and others get what
// they can serve.
func TestReplicasThatNeverGetAPodAreAFixedPoint(t *testing.T) {
	for name, limited := range map[string]bool{"limited": true, "unlimited": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(60)
			w.variants = w.variants[:1]
			s := w.snapshot()
			s.Cluster = &placement.Cluster{Nodes: nodes(8, "H100", 8)}
			var memory Memory
			most, changes := 0, 0
			for range 240 {
				w.now = w.now.Add(30 * time.Second)
				samples := w.snapshot()
				v := &s.Models[0].Variants[0]
				s.Time, s.Models[0].Arrival, s.Models[0].Queue = samples.Time, samples.Models[0].Arrival, samples.Models[0].Queue
				v.Replicas = samples.Models[0].Variants[0].Replicas
				var plan Plan
				plan, memory = Decide(s, policyFor(limited, "a-h100"), memory, RoundFull)
				if desired := *plan.Models[0].Variants[0].Desired; desired != v.Current {
					changes++
					v.Current = desired
				}
				most = max(most, v.Current)
			}
			assert.LessOrEqual(t, most, 5, "never more than the demand needs")
			assert.LessOrEqual(t, changes, 30, "at most two for each pause")
		})
	}
}

// A rule that the model does not know keeps a pod off a node on which it would fit:
// its room is not kept for ever.
func TestRoomOfARefusedPodGoesToOthers(t *testing.T) {
	s := newWorld(0).snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 8)}
	small, big := &s.Models[0].Variants[0], &s.Models[0].Variants[1]
	big.Request = request("H100", 8)
	small.Current, small.Ready, small.Replicas = 1, 0, nil
	small.Starting = []Starting{{Name: "refused", Created: s.Time, Unschedulable: true}}
	s.Models[0].Queue = Sample{Value: 40, Time: s.Time, Present: true}
	var memory Memory
	var plan Plan
	for range 4 {
		plan, memory = Decide(s, policyFor(true, "a-h100", "b-l40s"), memory, RoundFull)
		s.Time = s.Time.Add(30 * time.Second)
		s.Models[0].Queue.Time = s.Time
	}
	assert.Equal(t, 1, *plan.Models[0].Variants[1].Desired, "requests wait, and this one fits")
}

func TestTheOnlyReplicaWaitsInVain(t *testing.T) {
	for name, limited := range map[string]bool{"limited": true, "unlimited": false} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(5).snapshot()
			s.Cluster = &placement.Cluster{Nodes: nodes(4, "L40S", 8)}
			s.Models[0].Arrival = Sample{}
			a, b := &s.Models[0].Variants[0], &s.Models[0].Variants[1]
			a.Ready, a.Replicas = 0, nil
			a.Starting = []Starting{{Name: "only", Created: epoch, Unschedulable: true}}
			policy := policyFor(limited, "a-h100", "b-l40s")
			plan, memory := Decide(s, policy, Memory{}, RoundFull)
			assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "while it waits it says why")
			require.Equal(t, 1, *plan.Models[0].Variants[1].Desired, "another one fits and keeps the model's replica")

			b.Current, b.Starting = 1, []Starting{{Name: "b", Created: s.Time, Placed: true, Node: "L40S-0"}}
			s.Time = s.Time.Add(time.Minute)
			plan, _ = Decide(s, policy, memory, RoundFull)
			if limited {
				assert.Equal(t, 0, *plan.Models[0].Variants[0].Desired)
			}
			assert.Equal(t, 1, *plan.Models[0].Variants[1].Desired)
		})
	}
}

func TestHoldHoldsMinimaAndTheLastReplicaToo(t *testing.T) {
	for name, limited := range map[string]bool{"limited": true, "unlimited": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			w.variants = w.variants[:1]
			s := w.snapshot()
			v := &s.Models[0].Variants[0]
			v.Current, v.Ready, v.Replicas = 0, 0, nil
			policy := policyFor(limited, "a-h100")
			own := policy.Variants[Key{"ns", "a-h100"}]
			own.Min, own.OnUnknown = 5, OnUnknownHold
			policy.Variants[Key{"ns", "a-h100"}] = own
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			got := plan.Models[0].Variants[0]
			assert.Equal(t, 0, *got.Desired)
			assert.Equal(t, ReasonCapacityUnknown, got.Reason)
			assert.NotContains(t, reasons(got.Facts), ReasonNoSlots, "unknown is not none")
		})
	}
}

func TestANominatedPodIsCountedOnce(t *testing.T) {
	s := newWorld(1).snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 4)}
	s.Cluster.Nodes[0].Free.Devices = 3 // the inventory holds its room
	v := &s.Models[0].Variants[0]
	v.Current = 2
	v.Starting = []Starting{{Name: "nominated", Created: s.Time, Held: true}}
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, 3, plan.Models[0].Variants[0].Slots.Count)
	assert.Equal(t, 0, plan.Models[0].Variants[0].Unplaced)
}

func TestTheLastReplicaOfADearerVariantMakesRoomForACheaperOne(t *testing.T) {
	w := bigAndSmall(2)
	w.variants[0].request = request("H100", 1)
	w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}
	w.cluster.Nodes[0].Free.Devices = 0
	w.setReplicas(1, 0)
	policy := policyFor(true, "a-8xh100", "b-l40s")
	plan, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
	require.Equal(t, 1, *plan.Models[0].Variants[1].Desired)
	w.apply(plan)
	w.cluster.Nodes[0].Free.Devices = 8
	for range 10 {
		w.now = w.now.Add(time.Minute)
		plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
		w.apply(plan)
	}
	assert.Equal(t, 1, w.variants[0].replicas, "the cheaper one")
	assert.Equal(t, 0, w.variants[1].replicas)
}

func TestModeOffBesideOthersIsShown(t *testing.T) {
	s := newWorld(1).snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "L40S", 4)}
	policy := policyFor(false, "a-h100", "b-l40s")
	own := policy.Variants[Key{"ns", "b-l40s"}]
	own.Actuation = ActuationOff
	policy.Variants[Key{"ns", "b-l40s"}] = own
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	require.NotNil(t, plan.Models[0].Variants[1].Slots)
	assert.Equal(t, 2, plan.Models[0].Variants[1].Slots.Count)
}

func detailOf(facts []Fact, reason Reason) string {
	for _, f := range facts {
		if f.Reason == reason {
			return f.Detail
		}
	}
	return ""
}

func TestVictims(t *testing.T) {
	w := newWorld(2)
	w.variants = w.variants[:1]
	w.now = epoch
	w.setReplicas(0, 5)
	w.now = w.now.Add(time.Hour)
	w.cluster = &placement.Cluster{Nodes: nodes(2, "H100", 4)}
	w.cluster.Nodes[0].Free.Devices, w.cluster.Nodes[1].Free.Devices = 1, 2
	s := w.snapshot()
	v := &s.Models[0].Variants[0]
	for i := range v.Replicas {
		v.Replicas[i].Node = []string{"H100-0", "H100-1", "H100-0", "H100-1", "H100-0"}[i]
	}
	// A second model wants whole nodes.
	big := Model{Namespace: "ns", ID: "n", Variants: []Variant{{Name: "big", Request: request("H100", 4), Cost: 1}}}
	s.Models = append(s.Models, big)
	policy := policyFor(false, "a-h100", "big")
	down := policy.Variants[Key{"ns", "a-h100"}]
	down.Down.Window = 0
	down.Max = 3
	policy.Variants[Key{"ns", "a-h100"}] = down

	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	assert.Empty(t, plan.Models[0].Variants[0].Victims, "the choice is not ours")
	v.Picks = true
	down.Min = 3
	policy.Variants[Key{"ns", "a-h100"}] = down
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	require.Equal(t, 3, *plan.Models[0].Variants[0].Desired)
	assert.ElementsMatch(t, []string{"a-h100-1", "a-h100-3"}, plan.Models[0].Variants[0].Victims, "the two that empty a node")

	v.Current = 4
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	assert.Len(t, plan.Models[0].Variants[0].Victims, 2, "one is still there from before")

	v.Replicas[0].Marked = true
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, "a-h100-0", plan.Models[0].Variants[0].Victims[0], "what was chosen before stays chosen")
	v.Replicas[0].Marked = false

	v.Current, v.Starting = 6, []Starting{{Name: "waits", Created: s.Time}}
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	require.Equal(t, 3, *plan.Models[0].Variants[0].Desired)
	assert.Equal(t, "waits", plan.Models[0].Variants[0].Victims[0], "what no node holds goes first")
	assert.Len(t, plan.Models[0].Variants[0].Victims, 3)
}

func TestLimitedModeNeverAsksForMoreThanFits(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 3))
		s := randomSnapshot(random)
		if s.Cluster == nil {
			continue
		}
		other := randomSnapshot(random).Models[0]
		other.ID = "n"
		for i := range other.Variants {
			other.Variants[i].Name = "n-" + other.Variants[i].Name
		}
		s.Models = append(s.Models, other)
		policy := demoPolicy()
		policy.Limited = true
		policy.Variants = map[Key]VariantPolicy{}
		left := s.Cluster.Clone()
		for _, m := range s.Models {
			for j := range m.Variants {
				v := &m.Variants[j]
				own := DefaultVariantPolicy()
				own.Min = random.IntN(4)
				policy.Variants[Key{"ns", v.Name}] = own
				v.Surge = random.IntN(2)
				v.Current += random.IntN(2)
				if random.IntN(2) == 0 {
					v.Starting = append(v.Starting, Starting{Name: "waits", Created: s.Time})
				}
				// What is asked for already has its room before anything is added.
				for range v.waiting() + v.missing() + v.Surge {
					left.Place(v.Request)
				}
			}
		}
		plan, _ := Decide(s, policy, Memory{}, RoundFull)
		var wants []placement.Want
		for i, m := range plan.Models {
			for j, v := range m.Variants {
				in := &s.Models[i].Variants[j]
				if more := *v.Desired - v.Current; more > 0 {
					wants = append(wants, placement.Want{Request: in.Request, Count: more})
				}
			}
		}
		fits := left.Feasible(wants)
		require.True(t, fits.OK, "seed %d: %s", seed, fits.Binds)
	}
}
