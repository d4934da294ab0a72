package decision

import (
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
