package decision

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
)

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

func TestWhatFitsNowhereIsGivenBack(t *testing.T) {
	w := newWorld(1)
	s := w.snapshot()
	s.Models[0].Variants[1].Current = 3
	s.Models[0].Variants[1].Starting = []Starting{
		{Name: "old", Since: s.Time.Add(-45 * time.Second), Unschedulable: true},
		{Name: "new", Since: s.Time.Add(-5 * time.Second), Unschedulable: true},
		{Name: "placed", Since: s.Time.Add(-45 * time.Second), Placed: true},
	}
	s.Models[0].Variants[1].Startup = time.Hour
	s.Models[0].Variants[0].Replicas[0].Waiting.Time = s.Time.Add(-90 * time.Second) // nothing goes for want of load
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

// What no node holds goes at once, also while a window holds what could go for want
// of load.
func TestAWindowDoesNotHoldWhatFitsNowhere(t *testing.T) {
	for name, limited := range map[string]bool{"limited": true, "unlimited": false} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(1).snapshot()
			v := &s.Models[0].Variants[1]
			v.Current = 3
			v.Starting = []Starting{
				{Name: "old", Since: s.Time.Add(-fleet.NodePatience - time.Second), Unschedulable: true},
				{Name: "new", Since: s.Time.Add(-5 * time.Second), Unschedulable: true},
				{Name: "placed", Since: s.Time.Add(-5 * time.Second), Placed: true},
			}
			s.Cluster = &placement.Cluster{}
			policy := demoPolicy()
			policy.Limited = limited
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			got := plan.Models[0].Variants[1]
			assert.Equal(t, 2, *got.Desired, "%+v", got.Steps)
			assert.Equal(t, ReasonNoSlots, got.Reason)
		})
	}
}

// In a cluster that grows, what fits nowhere now may be needed: it goes only where it is
// known that the others serve what is asked.
func TestWhatFitsNowhereStaysWhileNobodyKnowsWhatIsAsked(t *testing.T) {
	for name, known := range map[string]bool{"known": true, "unknown": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			w.gateway = false
			s := w.snapshot()
			_, before := Decide(s, demoPolicy(), Memory{}, RoundFull)
			v := &s.Models[0].Variants[1]
			v.Current = 1
			v.Starting = []Starting{{Name: "one", Since: s.Time.Add(-fleet.NodePatience - time.Second), Unschedulable: true}}
			if !known {
				s.Models[0].Variants[0].Replicas[0].Served = Sample{}
			}
			s.Cluster = &placement.Cluster{}
			plan, _ := Decide(s, demoPolicy(), Memory{Models: before.Models}, RoundFull)
			assert.Equal(t, known, *plan.Models[0].Variants[1].Desired == 0, "%+v", plan.Models[0].Variants[1].Steps)
		})
	}
}

// Two pods that fit nowhere went with an earlier scale-down and are still there. They are not
// given back again in place of the one that starts.
func TestWhatIsOnItsWayOutIsNotGivenBackAgain(t *testing.T) {
	for mode, limited := range bothModes {
		t.Run(mode, func(t *testing.T) {
			s := newWorld(1).snapshot()
			v := &s.Models[0].Variants[1]
			v.Current = 1
			v.Starting = []Starting{
				{Name: "one", Since: s.Time.Add(-fleet.NodePatience - time.Second), Unschedulable: true},
				{Name: "two", Since: s.Time.Add(-fleet.NodePatience - time.Second), Unschedulable: true},
				{Name: "placed", Since: s.Time.Add(-5 * time.Second), Placed: true},
			}
			s.Cluster = &placement.Cluster{}
			policy := demoPolicy()
			policy.Limited = limited
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			assert.Equal(t, 1, *plan.Models[0].Variants[1].Desired, "%+v", plan.Models[0].Variants[1].Steps)
		})
	}
}

// A replica that crashes has its room: minReplicas would ask for it again at once.
func TestAMinimumThatCrashesIsNotGivenBack(t *testing.T) {
	for _, least := range []int{0, 1, 2} {
		s := newWorld(1).snapshot()
		v := &s.Models[0].Variants[1]
		v.Current = 2
		for i := range 2 {
			v.Starting = append(v.Starting, Starting{Name: fmt.Sprint("crashes-", i), Since: s.Time.Add(-time.Hour), Placed: true, Held: true, Failing: true})
		}
		s.Cluster = &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(2, "L40S", 8)...)}
		policy := demoPolicy()
		policy.Limited = true
		key := Key{Namespace: s.Models[0].Namespace, Name: v.Name}
		of := policy.Variants[key]
		of.Min = least
		policy.Variants = map[Key]VariantPolicy{key: of}
		plan, _ := Decide(s, policy, Memory{}, RoundFull)
		assert.Equal(t, least, *plan.Models[0].Variants[1].Desired, "%+v", plan.Models[0].Variants[1].Steps)
	}
}

// Where no node comes, minReplicas does not ask for what fits nowhere, and it is given back.
func TestAMinimumThatFitsNowhereIsGivenBack(t *testing.T) {
	s := newWorld(1).snapshot()
	v := &s.Models[0].Variants[1]
	v.Current = 1
	v.Starting = []Starting{{Name: "waits", Since: s.Time.Add(-time.Hour), Unschedulable: true}}
	s.Cluster = &placement.Cluster{Nodes: nodes(2, "H100", 8)}
	policy := demoPolicy()
	policy.Limited = true
	key := Key{Namespace: s.Models[0].Namespace, Name: v.Name}
	of := policy.Variants[key]
	of.Min = 1
	policy.Variants = map[Key]VariantPolicy{key: of}
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	given := slices.IndexFunc(plan.Models[0].Variants[1].Steps, func(s Step) bool { return s.Stage == StageLimits })
	require.GreaterOrEqual(t, given, 0)
	assert.Equal(t, 0, plan.Models[0].Variants[1].Steps[given].After, "%+v", plan.Models[0].Variants[1].Steps)
}

// minReplicas asks for a replica again as soon as it is gone, where the cluster may grow or
// nobody knows what fits: so it stays, and says why.
func TestAMinimumIsNotGivenBack(t *testing.T) {
	for name, cluster := range map[string]*placement.Cluster{"a cluster that grows": {}, "nodes unknown": nil} {
		for _, limited := range []bool{false, true} {
			if limited && cluster != nil {
				continue
			}
			t.Run(fmt.Sprint(name, ", limited ", limited), func(t *testing.T) {
				s := newWorld(1).snapshot()
				v := &s.Models[0].Variants[1]
				v.Current = 2
				v.Starting = []Starting{
					{Name: "old", Since: s.Time.Add(-fleet.NodePatience - time.Second), Unschedulable: true},
					{Name: "older", Since: s.Time.Add(-2 * fleet.NodePatience), Unschedulable: true},
				}
				s.Cluster = cluster
				policy := demoPolicy()
				policy.Limited = limited
				key := Key{Namespace: s.Models[0].Namespace, Name: v.Name}
				of := policy.Variants[key]
				of.Min = 1
				policy.Variants = map[Key]VariantPolicy{key: of}
				plan, memory := Decide(s, policy, Memory{}, RoundFull)
				got := plan.Models[0].Variants[1]
				assert.GreaterOrEqual(t, *got.Desired, 1, "%+v", got.Steps)
				v.Current, v.Starting = 1, v.Starting[1:]
				for range 4 {
					s.Time = s.Time.Add(10 * time.Second)
					plan, memory = Decide(s, policy, memory, RoundFull)
					assert.GreaterOrEqual(t, *plan.Models[0].Variants[1].Desired, 1)
				}
			})
		}
	}
}

func TestTheLastReplicaIsNotGivenBack(t *testing.T) {
	w := newWorld(0)
	s := w.snapshot()
	v := &s.Models[0].Variants[0]
	v.Ready, v.Replicas = 0, nil
	v.Starting = []Starting{{Name: "only", Since: epoch, Unschedulable: true}}
	s.Cluster = &placement.Cluster{}
	policy := demoPolicy()
	policy.Limited = true
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "while it waits it says why")
	assert.Contains(t, reasons(plan.Models[0].Variants[0].Facts), ReasonNoSlots)

	v.Current, v.Starting = 0, nil
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 0, *plan.Models[0].Variants[0].Desired)
	assert.Equal(t, ReasonNoSlots, plan.Models[0].Variants[0].Reason, "none fits, and that is no health")
}

// With room enough and a bound in the way, the bound is the reason.
func TestABoundThatHoldsIsTheReason(t *testing.T) {
	for name, limited := range bothModes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(60)
			w.variants, w.cluster = w.variants[:1], machines(8)
			policy := policyFor(limited, "a-h100")
			own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			own.Max = 1
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
			v := first(w.snapshot(), policy).Models[0].Variants[0]
			assert.Equal(t, 1, *v.Desired)
			assert.Equal(t, ReasonMaxReplicas, v.Reason)
			assert.Contains(t, textOf(v.Message), "maxReplicas is 1; ")
			assert.NotContains(t, reasons(v.Facts), ReasonNoSlots, "there is room")
		})
	}
}

// A bound that was lowered below what is there is enforced by the next full round. Until
// then nothing is added either, and nobody is told that there is no room.
func TestABoundBelowWhatIsThereIsNoWantOfRoom(t *testing.T) {
	for name, limited := range bothModes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(60)
			w.variants, w.cluster = w.variants[:1], machines(8)
			w.setReplicas(0, 2)
			policy := policyFor(limited, "a-h100")
			_, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
			own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			own.Max = 1
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
			w.now = w.now.Add(10 * time.Second)
			plan, _ := Decide(w.snapshot(), policy, memory, RoundFast)
			v := plan.Models[0].Variants[0]
			assert.Equal(t, 2, *v.Desired)
			assert.Equal(t, ReasonRoundMayNotLower, v.Reason, textOf(v.Message))
			assert.NotContains(t, reasons(v.Facts), ReasonNoSlots, "there is room")
		})
	}
}

// The user's bounds hold while the metrics are missing, and what is shown keeps to
// them as well.
func TestBoundsHoldWithoutMetrics(t *testing.T) {
	for name, c := range map[string]struct{ least, most, want int }{
		"none":              {0, -1, 5},
		"a lower maximum":   {0, 2, 2},
		"a greater minimum": {7, -1, 7},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(60)
			w.variants = w.variants[:1]
			w.setReplicas(0, 5)
			w.now = w.now.Add(time.Hour)
			policy := policyFor(false, "a-h100")
			_, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
			own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			own.Min, own.Max = c.least, c.most
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
			var plan Plan
			for range 4 {
				w.now = w.now.Add(time.Minute)
				s := w.snapshot()
				for i := range s.Models[0].Variants[0].Replicas {
					p := &s.Models[0].Variants[0].Replicas[i]
					*p = Replica{Name: p.Name}
				}
				plan, memory = Decide(s, policy, memory, RoundFull)
			}
			v := plan.Models[0].Variants[0]
			assert.Equal(t, c.want, *v.Desired, textOf(v.Message))
			require.NotNil(t, v.Fallback)
			assert.Equal(t, c.want, v.Fallback.Replicas)
		})
	}
}

// Pods that only keep room, of a lower priority, are evicted for replicas: a cluster that
// is full of them has room, and replicas that wait for them to go are not taken for lost.
func TestRoomThatOthersKeepIsRoom(t *testing.T) {
	w := newWorld(118)
	w.variants = w.variants[:1]
	full := nodes(2, "H100", 4)
	over := *w.variants[0].request
	for i := range full {
		full[i].Free.Devices = 0
		over.Yields = append(over.Yields, placement.Yield{Resources: placement.Resources{Devices: 4, Pods: 4}})
	}
	w.cluster = &placement.Cluster{Nodes: full}
	policy := policyFor(true, "a-h100")
	assert.Equal(t, 1, *first(w.snapshot(), policy).Models[0].Variants[0].Desired, "of its own priority nobody yields")
	w.variants[0].request = &over
	v := first(w.snapshot(), policy).Models[0].Variants[0]
	assert.Equal(t, 8, *v.Desired, "%s", textOf(v.Message))
	assert.Equal(t, 8, v.Slots.Count)

	s := w.snapshot()
	s.Models[0].Variants[0].Current = 7
	for range 6 {
		s.Models[0].Variants[0].Starting = append(s.Models[0].Variants[0].Starting, Starting{Name: "new", Since: s.Time.Add(-10 * time.Second)})
	}
	v = first(s, policy).Models[0].Variants[0]
	assert.Zero(t, v.Unplaced)
	assert.Equal(t, 2, v.Slots.Count)
}

// Where nobody knows what fits, minReplicas asks for what was given back again at once, so
// none of it is.
func TestWhatMinReplicasWouldAskForAgainStaysWhereNobodyKnowsWhatFits(t *testing.T) {
	for name, c := range map[string]struct {
		known bool
		want  int
	}{
		"no node has room": {true, 1},
		"nobody knows":     {false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			s := w.snapshot()
			v := &s.Models[0].Variants[0]
			v.Current = 3
			for _, pod := range []string{"a", "b"} {
				v.Starting = append(v.Starting, Starting{Name: pod, Since: s.Time.Add(-time.Hour), Unschedulable: true})
			}
			if c.known {
				s.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 0)}
			}
			policy := demoPolicy()
			policy.Limited = true
			own := policy.Variant(Key{Namespace: "ns", Name: "a-h100"})
			own.Min, own.OnUnknown = 3, OnUnknownAllow
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
			for _, step := range first(s, policy).Models[0].Variants[0].Steps {
				if step.Stage == StageLimits {
					assert.Equal(t, c.want, step.After)
				}
			}
		})
	}
}
