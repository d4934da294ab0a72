package decision

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/test/feasibility"
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
	p.Limited, p.Horizon = limited, DefaultPolicy().Horizon
	down := DefaultVariantPolicy()
	down.Down.Window = 30 * time.Second
	p.Variants = map[Key]VariantPolicy{}
	for _, n := range names {
		p.Variants[Key{Namespace: "ns", Name: n}] = down
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
	require.Zero(t, *plan.Models[0].Variants[0].Desired, "there is room now, but perhaps not for long")
	w.now = w.now.Add(policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}].Down.Window)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundEvent)
	big = plan.Models[0].Variants[0]
	require.Equal(t, 1, *big.Desired, "it stayed")
	assert.Equal(t, ReasonCheaperVariant, big.Reason)

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
			v := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			v.OnUnknown = test.answer
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = v
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			got := plan.Models[0].Variants[0]
			assert.Equal(t, test.grows, *got.Desired > 1)
			assert.Contains(t, reasons(got.Facts), test.reason)
			assert.Nil(t, got.Slots)
		})
	}
}

// Held replicas neither grow nor go, whatever is unknown: what went could not come back.
// What the upper bound takes away goes.
func TestHeldReplicasStay(t *testing.T) {
	for name, test := range map[string]struct {
		limited, shape bool
		answer         OnUnknown
		most, want     int
		round          Round
		rolling        bool
	}{
		"no nodes, held":                    {answer: OnUnknownHold, most: -1, want: 5},
		"no nodes, limited":                 {limited: true, most: -1, want: 5},
		"no nodes, held, bounded":           {answer: OnUnknownHold, most: 2, want: 2},
		"no nodes, unlimited":               {most: -1, want: 1},
		"no nodes, limited, allowed":        {limited: true, answer: OnUnknownAllow, most: -1, want: 1},
		"no shape":                          {shape: true, most: -1, want: 5},
		"no shape, held, bounded":           {shape: true, answer: OnUnknownHold, most: 2, want: 2},
		"no shape, allowed":                 {shape: true, answer: OnUnknownAllow, most: -1, want: 1},
		"no nodes, held, in a fast round":   {answer: OnUnknownHold, most: 2, want: 5, round: RoundFast},
		"no nodes, held, while it rolls":    {answer: OnUnknownHold, most: 2, want: 5, rolling: true},
		"no shape, limited, held, in bound": {shape: true, limited: true, answer: OnUnknownHold, most: 7, want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			w.variants = w.variants[:1]
			w.setReplicas(0, 5)
			policy := policyFor(test.limited, "a-h100")
			v := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			v.OnUnknown, v.Max, v.Down.Window = test.answer, test.most, 0
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = v
			memory := Memory{}
			var got VariantPlan
			for range 10 {
				w.now = w.now.Add(time.Minute)
				s := w.snapshot()
				s.Models[0].Variants[0].Rolling = test.rolling
				if test.shape {
					s.Cluster = &placement.Cluster{Nodes: nodes(9, "H100", 8)}
					s.Models[0].Variants[0].Request = nil
				}
				var plan Plan
				plan, memory = Decide(s, policy, memory, cmp.Or(test.round, RoundFull))
				got = plan.Models[0].Variants[0]
			}
			assert.Equal(t, test.want, *got.Desired, textOf(got.Message))
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

	s.Time = s.Time.Add(fleet.PodPatience + time.Second)
	plan, memory = Decide(s, policy, memory, RoundFast)
	assert.Equal(t, 4, plan.Models[0].Variants[0].Slots.Count, "something keeps them away")
	assert.Contains(t, detailOf(plan.Models[0].Variants[0].Facts, ReasonStartupOverdue), "2 without pod")

	s.Models[0].Variants[0].Current = 5
	plan, _ = Decide(s, policy, memory, RoundFast)
	assert.Equal(t, 0, plan.Models[0].Variants[0].Slots.Count, "a new number is a new start")
}

// There is room: a Deployment that is paused makes no pods.
func TestAPausedRolloutIsNoLackOfRoom(t *testing.T) {
	s := newWorld(1).snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 4)}
	v := &s.Models[0].Variants[0]
	v.Current, v.Ready, v.Replicas, v.Paused = 2, 0, nil, true
	plan, memory := Decide(s, demoPolicy(), Memory{}, RoundFull)
	told := func() string { return detailOf(plan.Models[0].Variants[0].Facts, ReasonRolloutPaused) }
	assert.Empty(t, told(), "a write is not visible at once")
	s.Time = s.Time.Add(fleet.PodPatience + time.Second)
	plan, _ = Decide(s, demoPolicy(), memory, RoundFull)
	assert.Contains(t, told(), "2 without pod: the rollout is paused")
	for _, step := range plan.Models[0].Variants[0].Steps {
		assert.NotEqual(t, ReasonNoSlots, step.Reason, textOf(step.Detail))
	}
}

// Room that is kept looks free to whoever looks at the nodes: the account names who has it, and nobody of
// another namespace.
func TestWhoHasTheRoomIsTold(t *testing.T) {
	for namespace, who := range map[string]string{"ns": "greedy", "theirs": "a variant of another namespace"} {
		t.Run(namespace, func(t *testing.T) { whoHasTheRoom(t, namespace, who) })
	}
}

func whoHasTheRoom(t *testing.T, namespace, who string) {
	s := newWorld(1).snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 4)}
	first := s.Models[0].Variants[0]
	other := first
	other.Name, other.Current, other.Replicas, other.Ready = "greedy", 40, nil, 0
	s.Models = append(s.Models, Model{Namespace: namespace, ID: "other", Variants: []Variant{other}})
	policy := policyFor(true, first.Name)
	v := policy.Variants[Key{Namespace: "ns", Name: first.Name}]
	v.Min = 4
	policy.Variants[Key{Namespace: "ns", Name: first.Name}] = v
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	told := "wants 1xH100: 1 H100 node has fewer than 1 free (largest hole 0); room is kept for 4 replicas of " + who + " without a node"
	assert.Equal(t, "minReplicas is 4; "+told, detailOf(plan.Models[0].Variants[0].Facts, ReasonNoSlots))
	assert.NotContains(t, detailOf(plan.Models[1].Variants[0].Facts, ReasonNoSlots), "room is kept", "it waits for its own")
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
	v.Starting = []Starting{{Name: "w", Since: s.Time, Unschedulable: true}}
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, 2, plan.Models[0].Variants[0].Unplaced, "of four without a node, two fit")
}

func TestAMinimumHoldsInLimitedModeAsFarAsItFits(t *testing.T) {
	w := newWorld(1)
	policy := policyFor(true, "a-h100", "b-l40s")
	v := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
	v.Min = 4
	policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = v
	s := w.snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 2)}
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 3, *plan.Models[0].Variants[0].Desired)
	assert.Contains(t, detailOf(plan.Models[0].Variants[0].Facts, ReasonNoSlots), "minReplicas is 4")

	policy.Limited = false
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 4, *plan.Models[0].Variants[0].Desired)
}

// A rule that the model does not know keeps a pod off a node on which it would fit:
// its room is not kept for ever.
func TestRoomOfARefusedPodGoesToOthers(t *testing.T) {
	s := newWorld(0).snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 8)}
	small, big := &s.Models[0].Variants[0], &s.Models[0].Variants[1]
	big.Request = request("H100", 8)
	small.Current, small.Ready, small.Replicas = 1, 0, nil
	small.Starting = []Starting{{Name: "refused", Since: s.Time, Unschedulable: true}}
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

func TestANominatedPodIsCountedOnce(t *testing.T) {
	s := newWorld(1).snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 4)}
	s.Cluster.Nodes[0].Free.Devices = 3 // the inventory holds its room
	v := &s.Models[0].Variants[0]
	v.Current = 2
	v.Starting = []Starting{{Name: "nominated", Since: s.Time, Held: true}}
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.Equal(t, 3, plan.Models[0].Variants[0].Slots.Count)
	assert.Equal(t, 0, plan.Models[0].Variants[0].Unplaced)
}

func TestModeOffBesideOthersIsShown(t *testing.T) {
	s := newWorld(1).snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(1, "L40S", 4)}
	policy := policyFor(false, "a-h100", "b-l40s")
	own := policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}]
	own.Actuation = ActuationOff
	policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}] = own
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	require.NotNil(t, plan.Models[0].Variants[1].Slots)
	assert.Equal(t, 2, plan.Models[0].Variants[1].Slots.Count)
}

func detailOf(facts []Fact, reason Reason) string {
	for _, f := range facts {
		if f.Reason == reason {
			return textOf(f.Detail)
		}
	}
	return ""
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
				policy.Variants[Key{Namespace: "ns", Name: v.Name}] = own
				v.Surge = random.IntN(2)
				v.Current += random.IntN(2)
				if random.IntN(2) == 0 {
					v.Starting = append(v.Starting, Starting{Name: "waits", Since: s.Time})
				}
				// What is asked for already has its room before anything is added.
				for range v.Unscheduled() + v.NoPod() + v.Surge {
					left.Place(v.Request)
				}
			}
		}
		plan, _ := Decide(s, policy, Memory{}, RoundFull)
		var wants []feasibility.Want
		for i, m := range plan.Models {
			for j, v := range m.Variants {
				in := &s.Models[i].Variants[j]
				if more := *v.Desired - v.Current; more > 0 {
					wants = append(wants, feasibility.Want{Request: in.Request, Count: more})
				}
			}
		}
		require.True(t, feasibility.Of(left, wants).OK, "seed %d: %v", seed, wants)
	}
}

// Replicas that hold a node and do not start are not told of as if no node had room.
func TestReplicasThatDoNotStartAreNotCalledUnplaced(t *testing.T) {
	w := newWorld(1)
	s := w.snapshot()
	v := &s.Models[0].Variants[0]
	v.Current, v.Startup = 2, 15*time.Second
	v.Starting = []Starting{{Since: s.Time.Add(-time.Hour), Placed: true}}
	plan := first(s, demoPolicy()).Models[0].Variants[0]
	assert.Contains(t, detailOf(plan.Facts, ReasonStartupOverdue), "1 overdue")
	assert.NotContains(t, reasons(plan.Facts), ReasonNoSlots)
	v.Starting[0].Placed, v.Starting[0].Unschedulable = false, true
	plan = first(s, demoPolicy()).Models[0].Variants[0]
	assert.Contains(t, reasons(plan.Facts), ReasonNoSlots)
}
