package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// atOnce lets the policy's variants go without a window, so that a single round switches.
func atOnce(p Policy) Policy {
	for key, own := range p.Variants {
		own.Down.Window = 0
		p.Variants[key] = own
	}
	return p
}

func TestASwitchMustPayForItsStart(t *testing.T) {
	for name, test := range map[string]struct {
		cost    capacity.Cost
		horizon time.Duration
		comes   int
	}{
		"it saves much":                           {2, 30 * time.Minute, 1},
		"with its start it saves too little":      {3.52, 30 * time.Minute, 0},
		"the same saves enough over a day":        {3.52, 24 * time.Hour, 1},
		"it saves less than is worth a switch":    {3.56, 24 * time.Hour, 0},
		"it costs more":                           {3.9, 24 * time.Hour, 0},
		"it costs much more":                      {100, 24 * time.Hour, 0},
		"much is saved, and switching is not for": {2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := bigAndSmall(5)
			w.variants[0].cost = test.cost
			w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}
			policy := atOnce(policyFor(true, "a-8xh100", "b-l40s"))
			policy.Horizon = test.horizon
			plan, _ := Decide(w.snapshot(), policy, Memory{}, RoundFull)
			v := plan.Models[0].Variants[0]
			assert.Equal(t, test.comes, *v.Desired)
			if test.comes > 0 {
				assert.Equal(t, ReasonCheaperVariant, v.Reason)
				assert.Equal(t, 1, *plan.Models[0].Variants[1].Desired, "the old one stays until the new one serves")
			}
		})
	}
}

// A replica that is saturated, and one of a variant that may not scale down, stay; so
// nothing is started in their place.
func TestWhatStaysIsNotReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Snapshot, *VariantPolicy)
		comes  bool
	}{
		"all may go":      {func(*Snapshot, *VariantPolicy) {}, true},
		"one is full":     {func(s *Snapshot, _ *VariantPolicy) { s.Models[0].Variants[1].Replicas[0].Waiting.Value = 9 }, false},
		"none may go":     {func(_ *Snapshot, p *VariantPolicy) { p.Down.Select = SelectDisabled }, false},
		"a minimum holds": {func(_ *Snapshot, p *VariantPolicy) { p.Min = 3 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := bigAndSmall(12)
			w.variants[0].cost = 2
			w.setReplicas(1, 3)
			w.now = w.now.Add(time.Hour)
			w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}
			policy := atOnce(policyFor(true, "a-8xh100", "b-l40s"))
			s, own := w.snapshot(), policy.Variants[Key{"ns", "b-l40s"}]
			c.change(&s, &own)
			policy.Variants[Key{"ns", "b-l40s"}] = own
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			assert.Equal(t, c.comes, *plan.Models[0].Variants[0].Desired > 0, lineOf(&plan.Models[0].Variants[0]))
			assert.Equal(t, 3, *plan.Models[0].Variants[1].Desired)
		})
	}
}

// A new price turns no whole cluster over at once.
func TestSwitchesAreFewInARound(t *testing.T) {
	w := bigAndSmall(5)
	w.variants[0].cost = 2
	s := Snapshot{Time: w.now, Cluster: &placement.Cluster{Nodes: append(nodes(20, "H100", 8), nodes(10, "L40S", 8)...)}}
	for i := range 20 {
		m := w.snapshot().Models[0]
		m.ID = fmt.Sprintf("m%02d", i)
		for j := range m.Variants {
			m.Variants[j].Name = fmt.Sprintf("%s-%02d", m.Variants[j].Name, i)
		}
		s.Models = append(s.Models, m)
	}
	policy := DefaultPolicy()
	policy.Variants = map[Key]VariantPolicy{}
	for i := range s.Models {
		for _, v := range s.Models[i].Variants {
			policy.Variants[Key{s.Models[i].Namespace, v.Name}] = DefaultVariantPolicy()
		}
	}
	plan, _ := Decide(s, atOnce(policy), Memory{}, RoundFull)
	switched := 0
	for _, m := range plan.Models {
		switched += *m.Variants[0].Desired
	}
	assert.Equal(t, switchesPerRound, switched)
}
