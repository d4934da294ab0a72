package decision

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// turnOff has the policy of some variants in mode Off.
func turnOff(policy *Policy, names ...string) {
	policy.Variants = map[Key]VariantPolicy{}
	for _, name := range names {
		own := DefaultVariantPolicy()
		own.Actuation = ActuationOff
		policy.Variants[Key{Namespace: "ns", Name: name}] = own
	}
}

// keepOff carries out no plan of mode Off: it sets the replicas back.
func keepOff(f *fluid, off *flow, replicas int) {
	f.told = func(_ *Snapshot, plan *Plan) {
		for i := range plan.Models {
			if plan.Models[i].ID == off.id {
				n := replicas
				plan.Models[i].Variants[0].Desired = &n
				plan.Models[i].Variants[0].Victims = nil
			}
		}
	}
}

// A model in mode Off is only looked at: no replica of another model goes for its sake, as it would
// never take the room.
func TestNobodyGivesWayToAModelThatIsOff(t *testing.T) {
	for name, off := range map[string]bool{"it is on": false, "it is off": true} {
		t.Run(name, func(t *testing.T) {
			batch := &flow{id: "batch", arrivals: constant(18), variants: []*vessel{vesselOf("batch", 7)}}
			chat := &flow{id: "chat", arrivals: constant(7), variants: []*vessel{vesselOf("chat", 1)}}
			policy := DefaultPolicy()
			policy.Limited = true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "chat"}: {Priority: 1}, {Namespace: "ns", ID: "batch"}: {Priority: 50}}
			if off {
				turnOff(&policy, "chat")
			}
			f := newFluid(machines(1), policy, batch, chat)
			if off {
				keepOff(f, chat, 1)
			}
			least := 7
			for f.elapsed() < 2*time.Hour {
				f.step()
				least = min(least, batch.variants[0].replicas)
			}
			if off {
				assert.Equal(t, 1, chat.variants[0].replicas)
				assert.GreaterOrEqual(t, least, 7, "batch, which needs all its replicas, loses some to a model in mode Off that never takes the room; writes: %v", f.writes)
				return
			}
			require.Less(t, least, 7)
		})
	}
}

// Nor does it keep free devices from those that would take them.
func TestAModelThatIsOffTakesNoRoom(t *testing.T) {
	w := newWorld(60)
	w.variants = w.variants[:1]
	w.cluster = machines(1)
	w.cluster.Nodes[0].Free.Devices = 4
	s := w.snapshot()
	second := w.snapshot().Models[0]
	second.ID, second.Variants[0].Name = "n", "n-h100"
	s.Models = append(s.Models, second)
	policy := demoPolicy()
	policy.Limited = true
	off := DefaultVariantPolicy()
	off.Actuation = ActuationOff
	policy.Variants[Key{Namespace: "ns", Name: "n-h100"}] = off
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	alone := s
	alone.Models = s.Models[:1]
	without, _ := Decide(alone, policy, Memory{}, RoundFull)
	assert.Equal(t, *without.Models[0].Variants[0].Desired, *plan.Models[0].Variants[0].Desired, "a model in mode Off keeps devices from one that needs them, and never takes them: %s", textOf(plan.Models[0].Variants[0].Message))
}

// Nobody waits for room that a model in mode Off is to give: it never does.
func TestAModelThatIsOffGivesNothing(t *testing.T) {
	idle := &flow{id: "idle", arrivals: constant(12), variants: []*vessel{vesselOf("idle", 4)}}
	batch := &flow{id: "batch", arrivals: constant(5), variants: []*vessel{vesselOf("batch", 3)}}
	chat := &flow{id: "chat", arrivals: constant(8), variants: []*vessel{vesselOf("chat", 1)}}
	policy := DefaultPolicy()
	policy.Limited = true
	policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "chat"}: {Priority: 1}, {Namespace: "ns", ID: "batch"}: {Priority: 50}, {Namespace: "ns", ID: "idle"}: {Priority: 90}}
	turnOff(&policy, "idle")
	f := newFluid(machines(1), policy, batch, chat, idle)
	keepOff(f, idle, 4)
	f.run(time.Hour)
	assert.Equal(t, 4, idle.variants[0].replicas)
	assert.Greater(t, chat.variants[0].replicas, 1, "the most important model waits for an hour for a replica of one in mode Off, beside one that would give: %v", f.writes)
}

// shadowOf plays a model in mode Off of which somebody else makes so many replicas, and tells what its
// rounds ask for, each number once.
func shadowOf(t *testing.T, arrivals func(time.Duration) float64, there int, change func(own *VariantPolicy), until time.Duration) (asked []int, at []time.Duration) {
	t.Helper()
	chat := &flow{id: "chat", arrivals: arrivals, variants: []*vessel{vesselOf("chat", there)}}
	policy := DefaultPolicy()
	turnOff(&policy, "chat")
	key := Key{Namespace: "ns", Name: "chat"}
	own := policy.Variants[key]
	change(&own)
	policy.Variants[key] = own
	f := newFluid(machines(2), policy, chat)
	f.told = func(_ *Snapshot, plan *Plan) {
		v := &plan.Models[0].Variants[0]
		if n := v.Shown(); len(asked) == 0 || asked[len(asked)-1] != n {
			asked, at = append(asked, n), append(at, f.elapsed())
		}
		v.Desired, v.Victims = new(there), nil
	}
	f.run(until)
	return asked, at
}

// What a model in mode Off asks for is held as it would be in mode Scale: against what it asked for
// itself, and not against what somebody else made.
func TestAModelThatIsOffHoldsWhatItAskedFor(t *testing.T) {
	plain := func(*VariantPolicy) {}
	t.Run("more are there than it asks for", func(t *testing.T) {
		asked, at := shadowOf(t, constant(4), 8, plain, 40*time.Minute)
		assert.Equal(t, []int{8, 2}, asked, "a round that may not lower asks for what is there: %v", at)
	})
	t.Run("its policies let one go each minute", func(t *testing.T) {
		asked, at := shadowOf(t, constant(4), 8, func(own *VariantPolicy) {
			own.Down.Policies = []RatePolicy{{Pods: 1, Period: time.Minute}}
		}, 40*time.Minute)
		assert.Equal(t, []int{8, 7, 6, 5, 4, 3, 2}, asked, "%v", at)
	})
	t.Run("fewer are there than it asked for", func(t *testing.T) {
		burst := func(at time.Duration) float64 {
			if at > 20*time.Minute && at < 24*time.Minute {
				return 12
			}
			return 2
		}
		asked, at := shadowOf(t, burst, 3, plain, 40*time.Minute)
		highest := slices.Index(asked, slices.Max(asked))
		require.Greater(t, asked[highest], 3, "%v at %v", asked, at)
		assert.Greater(t, at[highest+1], 28*time.Minute, "what it asked for goes at once when the load falls, and not after the window: %v at %v", asked, at)
		assert.Equal(t, 1, asked[len(asked)-1])
	})
}

// While nothing can be decided it goes on to ask for what it asked for.
func TestAModelThatIsOffAsksForTheSameInAnOutage(t *testing.T) {
	chat := &flow{id: "chat", arrivals: constant(4), variants: []*vessel{vesselOf("chat", 8)}}
	policy := DefaultPolicy()
	turnOff(&policy, "chat")
	f := newFluid(machines(2), policy, chat)
	var late []int
	f.told = func(_ *Snapshot, plan *Plan) {
		v := &plan.Models[0].Variants[0]
		if f.elapsed() > 18*time.Minute {
			late = append(late, v.Shown())
		}
		v.Desired, v.Victims = new(8), nil
	}
	f.run(20 * time.Minute)
	f.unscraped = true
	f.run(10 * time.Minute)
	f.unscraped = false
	f.run(10 * time.Minute)
	for _, n := range late {
		require.Equal(t, 2, n, "%v", late)
	}
}

// A variant in mode Off of a model that is scaled by another one is shown what it would ask for, and
// nothing changes for that one.
func TestAVariantThatIsOffIsShownBesideOneThatIsOn(t *testing.T) {
	f, cheap, dear := takeover(DefaultPolicy(), 110*time.Second, time.Minute)
	own := f.policy.Variants[Key{Namespace: "ns", Name: "cheap"}]
	own.Actuation = ActuationOff
	f.policy.Variants[Key{Namespace: "ns", Name: "cheap"}] = own
	alone, _, _ := takeover(DefaultPolicy(), 110*time.Second, time.Minute)
	alone.models[0].variants = alone.models[0].variants[1:]
	var asked []int
	var said []Reason
	f.told = func(_ *Snapshot, plan *Plan) {
		v := &plan.Models[0].Variants[0]
		if n := *v.Desired; len(asked) == 0 || asked[len(asked)-1] != n {
			asked, said = append(asked, n), append(said, v.Reason)
		}
		v.Desired = new(0)
	}
	f.run(30 * time.Minute)
	alone.run(30 * time.Minute)
	assert.Equal(t, []int{0, 4}, asked, "it would serve the same for less, and stays at what it asked for: %v", said)
	assert.Equal(t, ReasonCheaperVariant, said[1])
	assert.Equal(t, 0, cheap.replicas)
	assert.Equal(t, 4, dear.replicas)
	assert.Equal(t, alone.writes, f.writes, "the other one is scaled as if it were alone")
}
