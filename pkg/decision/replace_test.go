package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
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

// A replica that is saturated, and those of a variant that may not scale down, stay; so
// nothing is started in their place.
func TestWhatStaysIsNotReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Snapshot, *VariantPolicy)
		comes  string
	}{
		"all may go":  {func(*Snapshot, *VariantPolicy) {}, "2.00/h, was 11.16/h"},
		"one is full": {func(s *Snapshot, _ *VariantPolicy) { s.Models[0].Variants[1].Replicas[0].Waiting.Value = 9 }, "5.72/h, was 11.16/h"},
		"one is full, and nobody knows what it serves": {func(s *Snapshot, _ *VariantPolicy) {
			p := &s.Models[0].Variants[1].Replicas[0]
			p.Waiting.Value, p.Served = 9, Sample{}
		}, "5.72/h, was 11.16/h"},
		"none may go":     {func(_ *Snapshot, p *VariantPolicy) { p.Down.Select = SelectDisabled }, ""},
		"a minimum holds": {func(_ *Snapshot, p *VariantPolicy) { p.Min = 3 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := bigAndSmall(12)
			w.variants[0].cost = 2
			w.setReplicas(1, 3)
			w.now = w.now.Add(time.Hour)
			w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}
			policy := atOnce(policyFor(true, "a-8xh100", "b-l40s"))
			s, own := w.snapshot(), policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}]
			c.change(&s, &own)
			policy.Variants[Key{Namespace: "ns", Name: "b-l40s"}] = own
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			assert.Equal(t, c.comes != "", *plan.Models[0].Variants[0].Desired > 0, lineOf(&plan.Models[0].Variants[0]))
			assert.Contains(t, textOf(plan.Models[0].Variants[0].Message), c.comes)
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
			policy.Variants[Key{Namespace: s.Models[i].Namespace, Name: v.Name}] = DefaultVariantPolicy()
		}
	}
	plan, _ := Decide(s, atOnce(policy), Memory{}, RoundFull)
	switched := 0
	for _, m := range plan.Models {
		switched += *m.Variants[0].Desired
	}
	assert.Equal(t, allocate.SwitchesPerRound, switched)
}

// switching is a world in which one whole node of H100 could take over, and the policy
// that waits five minutes before it removes anything.
func switching(arrival float64) (*world, Policy) {
	w := bigAndSmall(arrival)
	w.cluster = &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(4, "L40S", 8)...)}
	policy := policyFor(true, "a-8xh100", "b-l40s")
	for key, own := range policy.Variants {
		own.Down.Window = 5 * time.Minute
		policy.Variants[key] = own
	}
	return w, policy
}

// Prices that change places faster than the window lasts move nothing, however much they
// differ; a saving that lasts is taken when the window is over, once.
func TestASwitchWaitsForASavingThatLasts(t *testing.T) {
	for name, c := range map[string]struct {
		alternates time.Duration
		comes      time.Duration
	}{
		"it alternates fast":   {2 * time.Minute, 0},
		"almost for a window":  {4*time.Minute + 45*time.Second, 0},
		"it lasts for ever":    {24 * time.Hour, 5 * time.Minute},
		"it lasts long enough": {20 * time.Minute, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w, policy := switching(5)
			memory, begin := Memory{}, w.now
			came := time.Duration(0)
			for w.now.Sub(begin) < 15*time.Minute {
				cheap := int(w.now.Sub(begin)/c.alternates)%2 == 0
				w.variants[0].cost = 12
				if cheap {
					w.variants[0].cost = 2
				}
				var plan Plan
				plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
				if came == 0 && *plan.Models[0].Variants[0].Desired > 0 {
					came = w.now.Sub(begin)
					assert.Equal(t, ReasonCheaperVariant, plan.Models[0].Variants[0].Reason)
				}
				w.apply(plan)
				w.now = w.now.Add(15 * time.Second)
			}
			assert.Equal(t, c.comes, came)
			if c.comes > 0 {
				assert.Equal(t, []int{1, 0}, []int{w.variants[0].replicas, w.variants[1].replicas}, "and the dearer one went")
			}
		})
	}
}

// A switch pays against what could be removed without it, not against what stands there.
func TestASwitchIsHeldAgainstAShrink(t *testing.T) {
	for name, c := range map[string]struct {
		cost  capacity.Cost
		comes bool
	}{
		"hardly less than the one that would stay": {3.6, false},
		"much less than it":                        {2, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, policy := switching(5)
			w.variants[0].cost = c.cost
			w.setReplicas(1, 3)
			w.now = w.now.Add(time.Hour)
			plan, _ := Decide(w.snapshot(), atOnce(policy), Memory{}, RoundFast)
			assert.Equal(t, c.comes, *plan.Models[0].Variants[0].Desired > 0, lineOf(&plan.Models[0].Variants[0]))
		})
	}
}

// Since when a switch pays is remembered while replicas change or nothing is known, and
// forgotten when it does not pay any more; the memory that was given stays as it is.
func TestTheTimeOfASavingIsKept(t *testing.T) {
	key, since := ModelKey{Namespace: "ns", ID: "m"}, epoch.Add(58*time.Minute)
	for name, c := range map[string]struct {
		change func(*world, *Snapshot)
		kept   bool
	}{
		"nothing changes": {func(*world, *Snapshot) {}, true},
		"a replica starts": {func(_ *world, s *Snapshot) {
			v := &s.Models[0].Variants[1]
			v.Current, v.Starting = 2, []Starting{{Name: "new", Since: s.Time, Placed: true}}
		}, true},
		"an update rolls": {func(_ *world, s *Snapshot) { s.Models[0].Variants[1].Rolling = true }, true},
		"nothing is known": {func(_ *world, s *Snapshot) {
			s.Models[0].Variants[1].Replicas, s.Models[0].Arrival = nil, Sample{}
		}, true},
		"more is wanted": {func(_ *world, s *Snapshot) {
			s.Models[0].Variants[1].Replicas[0].Waiting.Value = 50
		}, false},
		"it does not pay": {func(_ *world, s *Snapshot) { s.Models[0].Variants[0].Cost = 12 }, false},
		"the node is gone": {func(_ *world, s *Snapshot) {
			s.Cluster = &placement.Cluster{Nodes: nodes(4, "L40S", 8)}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, policy := switching(5)
			w.variants[0].cost = 2
			s := w.snapshot()
			c.change(w, &s)
			given := Memory{Models: map[ModelKey]*ModelMemory{key: {Cheaper: since}}}
			_, next := Decide(s, policy, given, RoundFull)
			got := next.Models[key].Cheaper
			assert.Equal(t, c.kept, !got.IsZero())
			if c.kept {
				assert.Equal(t, since, got)
			}
			assert.Equal(t, since, given.Models[key].Cheaper)
		})
	}
	w, policy := switching(5)
	w.variants[0].cost = 2
	_, next := Decide(w.snapshot(), policy, Memory{}, RoundFull)
	assert.Equal(t, w.now, next.Models[key].Cheaper, "it begins now")
}

// What is started in the place of others is only worth its start if these can go then.
func TestASwitchIsOnlyBegunThatCanBeFinished(t *testing.T) {
	for name, c := range map[string]struct {
		comes int
		load  fleet.Load
		idle  capacity.Rate
		want  bool
	}{
		"the dear ones can go":                     {3, fleet.Load{Saturation: 0.3, Unsaturated: 2}, 0, true},
		"nothing comes":                            {0, fleet.Load{Saturation: 0.3, Unsaturated: 2}, 0, false},
		"what comes is not enough for the promise": {1, fleet.Load{Saturation: 0.3, Unsaturated: 2}, 0, false},
		"it is, but not beside one that hangs":     {2, fleet.Load{Saturation: 0.3, Unsaturated: 2}, 1.5, false},
		"it is enough":                             {2, fleet.Load{Saturation: 0.3, Unsaturated: 2}, 0, true},
		"what comes would be full":                 {2, fleet.Load{Saturation: 0.72, Unsaturated: 2}, 0, false},
		"more of it would not":                     {3, fleet.Load{Saturation: 0.72, Unsaturated: 2}, 0, true},
		"one has room now, and then two have it":   {3, fleet.Load{Saturation: 0.3, Unsaturated: 1}, 0, true},
		"of none the load is known":                {1, fleet.Load{Saturation: 0.3}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, dear := bare(DefaultPolicy(), Memory{}, &Variant{Name: "dear", Ready: 2, Current: 2})
			dear.Load.Unsaturated = c.load.Unsaturated
			cheap := variantOf(func(it *limit.Variant) {
				it.In, it.Key, it.Managed, it.Policy, it.Rate = &Variant{Name: "cheap"}, Key{Namespace: "ns", Name: "cheap"}, true, DefaultVariantPolicy(), rate.Rate{Trigger: 2.5, Max: 3}
			})
			dear.In.Target, cheap.In.Target = TargetFound, TargetFound
			m.Variants = append(m.Variants, cheap)
			m.Stack()
			m.Load, m.Need.Least, m.Need.Idle = c.load, 4, c.idle
			assert.Equal(t, c.want, allocate.StaysSafe(m, []*limit.Variant{dear, cheap}, map[*limit.Variant]int{dear: 0, cheap: c.comes}))
		})
	}
}

// Both variants fit alone, and only one of them beside the other; a mix of which a part
// finds no room would be surplus.
func TestAMixIsStartedOnlyWhereAllOfItFits(t *testing.T) {
	r, _, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "unused"})
	cluster := &placement.Cluster{Nodes: nodes(1, "L40S", 8)}
	r.Snapshot.Cluster = cluster
	r.Trial = placement.NewTrial(r.Snapshot.Cluster)
	large := variantOf(func(it *limit.Variant) {
		it.In, it.Key, it.Policy = &Variant{Name: "large", Request: request("L40S", 4)}, Key{Namespace: "ns", Name: "large"}, DefaultVariantPolicy()
	})
	small := variantOf(func(it *limit.Variant) {
		it.In, it.Key, it.Policy = &Variant{Name: "small", Request: request("L40S", 1)}, Key{Namespace: "ns", Name: "small"}, DefaultVariantPolicy()
	})
	options := []allocation.Option{{Cost: 1, Serves: 4, Now: 1, Least: 0, Most: 3}, {Cost: 1, Serves: 1, Most: 8}}
	mix := allocate.CheapestAllowed(r, []*limit.Variant{within(r, large), within(r, small)}, options, 14, func(v *limit.Variant) int { return map[string]int{"large": 1}[v.In.Name] }, nil, false, func([]int) {})
	assert.Equal(t, []int{3, 0}, mix.Replicas, "what is there needs no room")
	assert.InDelta(t, 2, float64(mix.Unserved), 1e-9)
	assert.Len(t, r.Placed, 2)
}

// A mix that serves what must stay by a hair is not begun: what its replicas show when they
// serve may be a little less, and then they would go again. One replica more may pay, too.
func TestASwitchHasALittleToSpare(t *testing.T) {
	for name, c := range map[string]struct {
		spare capacity.Rate
		most  int
		comes int
	}{
		"two suffice":           {1.05, 3, 2},
		"two suffice by a hair": {1.01, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, dear := bare(DefaultPolicy(), Memory{}, &Variant{Name: "dear", Ready: 4, Current: 4})
			dear.Price, dear.Load.Unsaturated = 100, 4
			cheap := variantOf(func(it *limit.Variant) {
				it.In, it.Key, it.Managed, it.Policy, it.Price, it.Rate = &Variant{Name: "cheap"}, Key{Namespace: "ns", Name: "cheap"}, true, DefaultVariantPolicy(), 1, dear.Rate
			})
			cheap.Policy.Max = c.most
			dear.Policy.Down.Window, cheap.Policy.Down.Window = 0, 0
			dear.In.Target, cheap.In.Target = TargetFound, TargetFound
			m.Variants = append(m.Variants, cheap)
			m.Stack()
			m.Load, m.Need.Least = fleet.Load{Saturation: 0.01, Unsaturated: 4}, 2*dear.Rate.Serves()/c.spare
			dear.Rate.Trigger /= 2
			_, began := allocate.ReplaceMix(r, within(r, m), nil, true)
			assert.Equal(t, c.comes > 0, began)
			assert.Equal(t, c.comes, cheap.Target)
		})
	}
}

// What a switch went to in vain is not tried again for about the same load, or more: it
// would start replicas that go again, for ever. By what was learned it may be another mix.
func TestASwitchThatWasUndoneIsNotMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		load   capacity.Rate
		tooFew int
		comes  bool
	}{
		"undone":                   {10, 2, false},
		"undone, about the same":   {10.4, 2, false},
		"not undone":               {0, 2, true},
		"undone, of less load":     {9, 2, false},
		"undone, of more load":     {11, 2, true},
		"undone, of fewer ones":    {10, 1, true},
		"undone, of more replicas": {10, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, dear := bare(DefaultPolicy(), Memory{}, &Variant{Name: "dear", Ready: 4, Current: 4})
			dear.Price, dear.Load.Unsaturated = 100, 4
			cheap := variantOf(func(it *limit.Variant) {
				it.In, it.Key, it.Managed, it.Policy, it.Price, it.Rate = &Variant{Name: "cheap"}, Key{Namespace: "ns", Name: "cheap"}, true, DefaultVariantPolicy(), 1, dear.Rate
			})
			dear.Policy.Down.Window, cheap.Policy.Down.Window = 0, 0
			m.Variants = append(m.Variants, cheap)
			m.Stack()
			m.Load, m.Need.Least, m.Demand.Now = fleet.Load{Saturation: 0.01, Unsaturated: 4}, 2*dear.Rate.Serves()/1.05, 10
			dear.Rate.Trigger /= 2
			m.Next.TooFew.Load, cheap.Next.TooFew = c.load, c.tooFew
			_, began := allocate.ReplaceMix(r, within(r, m), nil, true)
			assert.Equal(t, c.comes, began)
			assert.Equal(t, c.comes, cheap.Target == 2)
		})
	}
}

// Replicas that scaleDown leaves alone stay, and the others go that are then not needed.
func TestWhatMayNotGoIsCountedOn(t *testing.T) {
	for name, c := range map[string]struct {
		keep Select
		want []int
	}{
		"the dear one may go":     {SelectMax, []int{0, 1}},
		"the dear one may not go": {SelectDisabled, []int{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := bigAndSmall(5)
			w.now = epoch
			w.variants[0].cost = 12
			w.setReplicas(0, 1)
			w.setReplicas(1, 3)
			w.now = w.now.Add(time.Hour)
			w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}
			policy := atOnce(policyFor(true, "a-8xh100", "b-l40s"))
			dear := policy.Variants[Key{Namespace: "ns", Name: "a-8xh100"}]
			dear.Down.Select = c.keep
			policy.Variants[Key{Namespace: "ns", Name: "a-8xh100"}] = dear
			plan, _ := Decide(w.snapshot(), policy, Memory{}, RoundFull)
			assert.Equal(t, c.want, []int{*plan.Models[0].Variants[0].Desired, *plan.Models[0].Variants[1].Desired})
		})
	}
}

// A model that does not switch, or not yet, leaves the room to the next one.
func TestASwitchThatWaitsTakesNoRoom(t *testing.T) {
	for name, c := range map[string]struct{ first capacity.Cost }{"it waits for its window": {2}, "it does not pay": {3.56}} {
		t.Run(name, func(t *testing.T) {
			w := bigAndSmall(5)
			w.variants[0].cost = 2
			s := Snapshot{Time: w.now, Cluster: &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(4, "L40S", 8)...)}}
			policy := DefaultPolicy()
			policy.Horizon, policy.Variants = 24*time.Hour, map[Key]VariantPolicy{}
			memory := Memory{Models: map[ModelKey]*ModelMemory{}}
			for i := range 2 {
				m := w.snapshot().Models[0]
				m.ID = fmt.Sprintf("m%d", i)
				for j := range m.Variants {
					v := &m.Variants[j]
					v.Name = fmt.Sprintf("%s-%d", v.Name, i)
					policy.Variants[Key{Namespace: m.Namespace, Name: v.Name}] = DefaultVariantPolicy()
				}
				s.Models = append(s.Models, m)
			}
			s.Models[0].Variants[0].Cost = c.first
			memory.Models[ModelKey{Namespace: s.Models[1].Namespace, ID: "m1"}] = &ModelMemory{Cheaper: w.now.Add(-time.Hour)}
			plan, _ := Decide(s, policy, memory, RoundFull)
			assert.Equal(t, 0, *plan.Models[0].Variants[0].Desired)
			assert.Equal(t, 1, *plan.Models[1].Variants[0].Desired)
		})
	}
}

// What must stay is the least that serves the demand and keeps the replicas clear of the
// triggers, less what variants of somebody else serve.
func TestWhatAMixMustServe(t *testing.T) {
	for name, c := range map[string]struct {
		load   fleet.Load
		idle   capacity.Rate
		others int
		want   capacity.Rate
	}{
		"the demand":                   {fleet.Load{Saturation: 0.1, Unsaturated: 4}, 0, 0, 4},
		"and what hangs":               {fleet.Load{Saturation: 0.1, Unsaturated: 4}, 2.5, 0, 6.5},
		"what keeps them from filling": {fleet.Load{Saturation: 0.49, Unsaturated: 4}, 0, 0, 10 * 0.49 / 0.70},
		"queues count as much":         {fleet.Load{Queue: 1, Unsaturated: 4}, 0, 0, 10 * 1 / 2.0},
		"others serve a part of it":    {fleet.Load{Saturation: 0.49, Unsaturated: 5}, 0, 1, 12.5*0.49/0.70 - 2.5},
		"others serve the demand":      {fleet.Load{Saturation: 0.01, Unsaturated: 6}, 0, 2, rate.OneMore},
	} {
		t.Run(name, func(t *testing.T) {
			_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Target: TargetFound, Ready: 4, Current: 4})
			v.Load.Unsaturated = 4
			other := variantOf(func(it *limit.Variant) {
				it.In, it.Target, it.Rate = &Variant{Name: "other", Target: TargetFound, Ready: c.others, Current: c.others}, c.others, v.Rate
			})
			other.Load.Unsaturated, other.Fleet.Supply = c.others, c.others
			m.Variants = append(m.Variants, other)
			m.Stack()
			m.Load, m.Need.Least, m.Need.Idle = c.load, 4, c.idle
			candidates, need := allocate.MixOf(m)
			assert.Equal(t, []*limit.Variant{v}, candidates)
			assert.InDelta(t, float64(c.want), float64(need), 1e-9)
		})
	}
}

// Where nothing must stay it does not matter that nobody knows what a replica serves: a model
// that is not asked for anything waits on its cheapest variant.
func TestASwitchOfAModelThatIsNotAsked(t *testing.T) {
	for least, begins := range map[capacity.Rate]bool{0: true, rate.OneMore: false} {
		r, m, dear := bare(DefaultPolicy(), Memory{}, &Variant{Name: "dear", Ready: 2, Current: 2})
		dear.Price, dear.Load.Unsaturated = 100, 2
		dear.Rate = rate.Rate{Trigger: 1, Max: 1}
		cheap := variantOf(func(it *limit.Variant) {
			it.In, it.Key, it.Managed, it.Policy, it.Price, it.Rate = &Variant{Name: "cheap"}, Key{Namespace: "ns", Name: "cheap"}, true, DefaultVariantPolicy(), 1, dear.Rate
		})
		dear.Policy.Down.Window, cheap.Policy.Down.Window = 0, 0
		m.Variants = append(m.Variants, cheap)
		m.Stack()
		m.Rated, m.Load, m.Need.Least = false, fleet.Load{Unsaturated: 2}, least
		_, began := allocate.ReplaceMix(r, within(r, m), nil, true)
		assert.Equal(t, begins, began, "%v must stay", least)
	}
}
