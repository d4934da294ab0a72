package decision

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/preempt"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Of several nodes the one gives room on which the fewest replicas go, the first of equal
// ones, and nobody gives more than it may, however many of its replicas are in the way.
func TestWhoMakesRoom(t *testing.T) {
	for name, c := range map[string]struct {
		// free is by node, and wanted in one of them.
		free   []int
		wanted int
		// least and replicas are those of the variant that gives, two of which each node has,
		// and others those of another variant of its model.
		least, replicas, others int
		// node is where room is made; -1 is nowhere.
		node, given int
	}{
		"fewer go from the first":           {free: []int{2, 1}, wanted: 3, replicas: 6, node: 0, given: 1},
		"fewer go from the last":            {free: []int{1, 1, 2}, wanted: 3, replicas: 6, node: 2, given: 1},
		"as many go from each":              {free: []int{1, 1}, wanted: 3, replicas: 6, node: 0, given: 2},
		"it keeps its minimum":              {free: []int{1}, wanted: 3, replicas: 6, least: 5, node: -1},
		"down to its minimum":               {free: []int{1}, wanted: 3, replicas: 6, least: 4, node: 0, given: 2},
		"it keeps its last":                 {free: []int{1}, wanted: 3, replicas: 2, node: -1},
		"its model has others":              {free: []int{1}, wanted: 3, replicas: 2, others: 1, node: 0, given: 2},
		"not even all of them make room":    {free: []int{1, 1}, wanted: 4, replicas: 6, node: -1},
		"who has gone leaves enough as now": {free: []int{1, 3}, wanted: 3, replicas: 6, node: 1},
	} {
		t.Run(name, func(t *testing.T) {
			batch := variantOf(func(it *limit.Variant) {
				it.In, it.Priority, it.Target = &Variant{Name: "batch", Current: c.replicas, Request: request("H100", 1)}, 50, c.replicas
			})
			batch.Policy.Min = c.least
			gives := modelOf(func(it *limit.Model) {
				it.Variants = []*limit.Variant{batch, variantOf(func(it *limit.Variant) { it.In, it.Target = &Variant{Current: c.others}, c.others })}
			})
			chat := variantOf(func(it *limit.Variant) {
				it.In, it.Priority = &Variant{Name: "chat", Request: request("H100", c.wanted)}, 1
			})
			room := &placement.Cluster{Nodes: nodes(len(c.free), "H100", 4)}
			givers := make([][]preempt.Giver, len(c.free))
			for i, free := range c.free {
				room.Nodes[i].Free.Devices = free
				givers[i] = []preempt.Giver{{M: gives, V: batch, Name: fmt.Sprint(i, " a"), Number: -1}, {M: gives, V: batch, Name: fmt.Sprint(i, " b"), Number: -1}}
			}
			giving := map[*limit.Variant][]string{}
			preempt.NewClearing(room, givers, allocate.Answer{Giving: giving}, epoch).Make(modelOf(func(it *limit.Model) { it.In, it.Promise = &Model{ID: "chat"}, Promise{Priority: 1} }), chat, true, false)

			var gone []string
			for _, g := range givers[max(0, c.node)][:c.given] {
				gone = append(gone, g.Name)
			}
			assert.Equal(t, gone, giving[batch])
			assert.Equal(t, c.replicas-c.given, batch.Target)
			for i, free := range c.free {
				if i == c.node {
					free += c.given - c.wanted
				}
				assert.Equal(t, free, room.Nodes[i].Free.Devices, "node %d", i)
			}
		})
	}
}

// Nobody gives way to who lacks nothing, or may not grow.
func TestNobodyGivesWayInVain(t *testing.T) {
	const at = 20 * time.Minute
	for name, c := range map[string]struct {
		// before and after are the loads of the model that matters more; batch has the devices
		// that it leaves at first, but for those that are free.
		before, after  float64
		replicas, free int
		own            func(*VariantPolicy)
		gives          bool
		// more is what batch could use beside what it has, which a window of scaleUp holds.
		more float64
	}{
		"it lacks one":               {before: 2, after: 4, replicas: 1, gives: true},
		"the last device suffices":   {before: 2, after: 2.6, replicas: 1, free: 1},
		"the last device wakes it":   {before: 0, after: 1, free: 1},
		"it has its minimum":         {before: 0.1, after: 0.1, replicas: 2, own: func(p *VariantPolicy) { p.Min = 2 }},
		"it may not grow":            {before: 2, after: 4, replicas: 1, own: func(p *VariantPolicy) { p.Up.Select = SelectDisabled }},
		"it has all that it may":     {before: 2, after: 4, replicas: 1, own: func(p *VariantPolicy) { p.Max = 1 }},
		"it lacks one of its minima": {before: 0.1, after: 0.1, replicas: 1, own: func(p *VariantPolicy) { p.Min = 2 }, gives: true},
		"who gives wants more":       {before: 2, after: 4, replicas: 1, gives: true, more: 9},
	} {
		t.Run(name, func(t *testing.T) {
			others := 8 - c.replicas - c.free
			batch := &flow{id: "batch", arrivals: constant(2.4*float64(others) + c.more), variants: []*vessel{vesselOf("batch", others)}}
			chat := &flow{id: "chat", arrivals: step(at, c.before, c.after), variants: []*vessel{vesselOf("chat", c.replicas)}}
			policy := DefaultPolicy()
			policy.Limited, policy.Idle.Enabled = true, true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "chat"}: {Priority: 1}, {Namespace: "ns", ID: "batch"}: {Priority: 50}}
			own := DefaultVariantPolicy()
			if c.own != nil {
				c.own(&own)
			}
			policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "chat"}: own}
			if c.more > 0 {
				patient := DefaultVariantPolicy()
				patient.Up.Window = 30 * time.Second
				policy.Variants[Key{Namespace: "ns", Name: "batch"}] = patient
			}
			f := newFluid(machines(1), policy, batch, chat)
			gave := false
			f.told = func(_ *Snapshot, plan *Plan) {
				gave = gave || detailOf(plan.Models[0].Variants[0].Facts, ReasonPreempted) != ""
			}
			f.run(at + 20*time.Minute)
			assert.Equal(t, c.gives, gave, "%v", f.writes)
			assert.Equal(t, c.gives, batch.variants[0].replicas < others, "%v", f.writes)
			require.LessOrEqual(t, batch.variants[0].replicas+chat.variants[0].replicas, 8)
		})
	}
}

// Room that was made for a replica is kept for it, also while who gives still holds a part of
// it, and no longer than a scale-down waits.
func TestRoomThatIsMadeIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		node              string
		age               time.Duration
		free, slots, chat int
		// other is what a second node has.
		other int
	}{
		"nobody made any":             {"", 0, 3, 3, 1, 0},
		"who gives is on its way out": {"H100-0", 10 * time.Second, 1, 0, 0, 0},
		"who gives is gone":           {"H100-0", 10 * time.Second, 2, 0, 0, 0},
		"there is room for others":    {"H100-0", 10 * time.Second, 5, 3, 1, 0},
		"it is too long ago":          {"H100-0", 5 * time.Minute, 3, 3, 1, 0},
		"the node is gone":            {"H100-7", 10 * time.Second, 3, 3, 1, 0},
		"another one went elsewhere":  {"H100-0", 10 * time.Second, 1, 2, 0, 3},
		"both went":                   {"H100-0", 10 * time.Second, 2, 3, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, chat := bare(DefaultPolicy(), Memory{}, &Variant{Name: "chat", Request: request("H100", 2)})
			batch := variantOf(func(it *limit.Variant) { it.In, it.Priority = &Variant{Name: "batch", Request: request("H100", 1)}, 50 })
			m.Variants, r.Models = append(m.Variants, batch), []*limit.Model{m}
			within(r, m)
			cluster := &placement.Cluster{Nodes: nodes(2, "H100", 8)}
			cluster.Nodes[0].Free.Devices, cluster.Nodes[1].Free.Devices = c.free, c.other
			r.Snapshot.Cluster = cluster
			if c.node != "" {
				chat.Old.Nominated = []ReservedRoom{{Node: c.node, At: epoch.Add(-c.age)}}
			}
			r.Reserve()
			assert.Equal(t, c.slots, r.Slots(batch.In.Request))
			assert.Equal(t, c.chat, r.Slots(chat.In.Request))
		})
	}
}

// Whoever room was made for takes it once it fits, and leaves it to others where it wants none.
func TestWhoEntersTheRoomThatWasMade(t *testing.T) {
	for name, c := range map[string]struct {
		free   int
		change func(*limit.Round, *limit.Model, *limit.Variant)
		// target is how many there are then, kept whether room is still kept, and left what is
		// free for others.
		target int
		kept   bool
		left   int
	}{
		"it wants more":              {2, func(_ *limit.Round, m *limit.Model, _ *limit.Variant) { m.Need.Want = need.WantMore }, 2, false, 0},
		"it does not fit yet":        {1, func(_ *limit.Round, m *limit.Model, _ *limit.Variant) { m.Need.Want = need.WantMore }, 1, true, 0},
		"it wants no more":           {2, func(*limit.Round, *limit.Model, *limit.Variant) {}, 1, false, 2},
		"it lacks one of its minima": {2, func(_ *limit.Round, _ *limit.Model, v *limit.Variant) { v.Policy.Min = 2 }, 2, false, 0},
		"it misses the SLO": {2, func(_ *limit.Round, m *limit.Model, v *limit.Variant) {
			m.Need.Want, v.Rate = need.WantMore, rate.Rate{Trigger: 2.5, Max: 3, Bound: true}
		}, 1, false, 2},
		"it may not grow": {2, func(_ *limit.Round, m *limit.Model, v *limit.Variant) {
			m.Need.Want, v.Policy.Up.Select = need.WantMore, SelectDisabled
		}, 1, true, 0},
		"it may not grow, and lacks one of its minima": {2, func(_ *limit.Round, _ *limit.Model, v *limit.Variant) {
			v.Policy.Min, v.Policy.Up.Select = 2, SelectDisabled
		}, 2, false, 0},
		"it is left alone": {2, func(_ *limit.Round, m *limit.Model, v *limit.Variant) {
			m.Need.Want, v.Fleet.Paused = need.WantMore, time.Minute
		}, 1, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 1, Ready: 1, Request: request("H100", 2)})
			r.Snapshot.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", c.free)}
			v.Old.Nominated, r.Models = []ReservedRoom{{Node: "H100-0", At: epoch.Add(-time.Minute)}}, []*limit.Model{m}
			within(r, m)
			r.Reserve()
			c.change(r, m, v)
			allocate.EnterRoom(r, within(r, m), allocate.Answer{Ideal: map[*limit.Variant]int{}})
			other := variantOf(func(it *limit.Variant) { it.In = &Variant{Name: "other", Request: request("H100", 1)} })
			assert.Equal(t, c.target, v.Target)
			assert.Equal(t, c.kept, len(v.Nominated) > 0)
			assert.Equal(t, c.left, r.Slots(other.In.Request))
		})
	}
}

// Room that is made is room only once the quotas allow a replica, too.
func TestRoomThatIsMadeIsWithinTheQuotas(t *testing.T) {
	for left, target := range map[int64]int{1: 1, 2: 2} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			wants := request("H100", 2)
			wants.Charges = []placement.Amount{{Index: 0, Count: 2}}
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 1, Ready: 1, Request: wants})
			r.Snapshot.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 2), Quotas: []placement.Quota{{Hard: 8, Left: left}}}
			v.Old.Nominated, r.Models, m.Need.Want = []ReservedRoom{{Node: "H100-0", At: epoch.Add(-time.Minute)}}, []*limit.Model{within(r, m)}, need.WantMore
			r.Reserve()
			allocate.EnterRoom(r, within(r, m), allocate.Answer{Ideal: map[*limit.Variant]int{}})
			assert.Equal(t, target, v.Target)
			assert.Equal(t, target == 1, len(v.Nominated) > 0, "it is kept")
		})
	}
}

// While those go that give, nobody gives once more for the same: pods may take minutes to go. Who was
// held gives.
func TestNobodyGivesTwice(t *testing.T) {
	for name, c := range map[string]struct {
		current  int
		arrivals capacity.Rate
		age      time.Duration
		given    int
	}{
		"who gives goes":               {current: 3, arrivals: 4, age: time.Minute},
		"more arrive than it is for":   {current: 3, arrivals: 7, age: time.Minute, given: 1},
		"who gives was held":           {current: 4, arrivals: 4, age: time.Minute, given: 1},
		"three of it are needed":       {current: 4, arrivals: 9, age: time.Minute, given: 3},
		"nothing was freed in so long": {current: 3, arrivals: 4, age: fleet.NodePatience, given: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, gives, batch := bare(DefaultPolicy(), Memory{}, &Variant{Name: "batch", Current: c.current, ChoosesVictims: true, Request: request("H100", 1)})
			for i := range c.current {
				batch.In.Replicas = append(batch.In.Replicas, Replica{Name: fmt.Sprint(i), Node: "H100-0"})
			}
			batch.Load.Of, batch.Priority, batch.Key.Name, gives.Evidence = make([]fleet.Class, c.current), 50, "batch", signal.EvidenceFull
			chat := variantOf(func(it *limit.Variant) {
				it.In, it.Priority, it.Target, it.Rate = &Variant{Name: "chat", Current: 1, Ready: 1, Request: request("H100", 1)}, 1, 1, rate.Rate{Trigger: 2.5}
			})
			chat.Managed, chat.Policy, chat.Policy.Down.Window = true, DefaultVariantPolicy(), 0
			chat.Old.Nominated = []ReservedRoom{{Node: "H100-0", At: epoch.Add(-c.age), By: batch.Key, To: 3}}
			wants := modelOf(func(it *limit.Model) {
				it.In, it.Promise, it.Rated, it.Variants = &Model{ID: "chat"}, Promise{Priority: 1}, true, []*limit.Variant{chat}
			})
			wants.Demand.Now, wants.Need.Want = c.arrivals, need.WantMore
			r.Policy.Limited, r.Models = true, []*limit.Model{within(r, gives), within(r, wants)}
			r.Snapshot.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 8)}
			r.Snapshot.Cluster.Nodes[0].Free.Devices = 0
			r.Reserve()
			found := allocate.Answer{Lacks: map[*limit.Model]allocate.Lack{wants: {Short: c.arrivals}}, Giving: map[*limit.Variant][]string{}}
			assert.True(t, preempt.MakeWay(r, within(r, wants), preempt.NewClearing(r.WithoutNominated(), preempt.GiversOf(r, []*limit.Model{gives}), found, epoch), true))
			assert.Len(t, found.Giving[batch], c.given)
		})
	}
}

// Whose choice it is not which of its replicas goes makes room only where it is known which one
// does: the one with the highest number, or any, where all are on one node.
func TestOfWhomItIsKnownWhichGoes(t *testing.T) {
	for name, c := range map[string]struct {
		picks, numbered bool
		// on are the nodes of its replicas by number.
		on []int
		// given is how many go for one that takes half of a node and finds a quarter free there.
		given int
		node  string
	}{
		"we choose":                          {picks: true, on: []int{0, 1, 0}, given: 1, node: "H100-0"},
		"by number, on the first":            {numbered: true, on: []int{1, 1, 0}, given: 1, node: "H100-0"},
		"by number, on the last":             {numbered: true, on: []int{0, 0, 1}, given: 1, node: "H100-1"},
		"by number, the others are not next": {numbered: true, on: []int{0, 1, 2}},
		"nobody knows":                       {on: []int{0, 1, 0}},
		"nobody knows, and all are there":    {on: []int{1, 1, 1}, given: 1, node: "H100-1"},
	} {
		t.Run(name, func(t *testing.T) {
			batch := &Variant{Name: "batch", Current: 3, Ready: 3, Request: request("H100", 1), ChoosesVictims: c.picks, Numbered: c.numbered}
			for number, node := range c.on {
				batch.Replicas = append(batch.Replicas, Replica{Name: fmt.Sprint("batch-", number), Node: fmt.Sprint("H100-", node)})
			}
			r, gives, v := bare(DefaultPolicy(), Memory{}, batch)
			gives.Evidence, v.Priority, v.Load.Of = signal.EvidenceFull, 50, make([]fleet.Class, 3)
			r.Snapshot.Cluster = &placement.Cluster{Nodes: nodes(3, "H100", 4)}
			for i := range r.Snapshot.Cluster.Nodes {
				r.Snapshot.Cluster.Nodes[i].Free.Devices = 1
			}
			r.Snapshot.Cluster.Nodes[2].Free.Devices = 0
			r.Trial = placement.NewTrial(r.Snapshot.Cluster)
			chat := variantOf(func(it *limit.Variant) { it.In, it.Priority = &Variant{Name: "chat", Request: request("H100", 2)}, 1 })
			found := allocate.Answer{Giving: map[*limit.Variant][]string{}}
			made := preempt.NewClearing(r.Trial.Cluster(), preempt.GiversOf(r, []*limit.Model{within(r, gives)}), found, epoch).Make(modelOf(func(it *limit.Model) { it.In, it.Promise = &Model{ID: "chat"}, Promise{Priority: 1} }), within(r, chat), true, false)
			assert.Equal(t, c.given > 0, made)
			assert.Len(t, found.Giving[v], c.given)
			assert.Equal(t, c.node != "", slices.ContainsFunc(chat.Nominated, func(n limit.Nominated) bool { return n.Node == c.node }))
		})
	}
}

// Those that go by number make room in their order, however many it takes.
func TestTheyMakeRoomByNumber(t *testing.T) {
	for name, c := range map[string]struct {
		on    []int
		first int
		given []string
	}{
		"the last two":           {on: []int{1, 0, 0}, given: []string{"batch-10", "batch-9"}},
		"one of another node":    {on: []int{0, 1, 0}},
		"they begin with a five": {on: []int{1, 0, 0}, first: 5, given: []string{"batch-15", "batch-14"}},
	} {
		t.Run(name, func(t *testing.T) {
			batch := &Variant{Name: "batch", Current: 11, Ready: 3, Request: request("H100", 1), Numbered: true, First: c.first}
			for i, node := range c.on {
				batch.Replicas = append(batch.Replicas, Replica{Name: fmt.Sprint("batch-", c.first+8+i), Node: fmt.Sprint("H100-", node)})
			}
			r, gives, v := bare(DefaultPolicy(), Memory{}, batch)
			gives.Evidence, v.Priority, v.Load.Of, v.Target = signal.EvidenceFull, 50, make([]fleet.Class, 3), 11
			r.Snapshot.Cluster = &placement.Cluster{Nodes: nodes(2, "H100", 4)}
			r.Snapshot.Cluster.Nodes[0].Free.Devices, r.Snapshot.Cluster.Nodes[1].Free.Devices = 1, 0
			r.Trial = placement.NewTrial(r.Snapshot.Cluster)
			chat := variantOf(func(it *limit.Variant) { it.In, it.Priority = &Variant{Name: "chat", Request: request("H100", 3)}, 1 })
			found := allocate.Answer{Giving: map[*limit.Variant][]string{}}
			preempt.NewClearing(r.Trial.Cluster(), preempt.GiversOf(r, []*limit.Model{within(r, gives)}), found, epoch).Make(modelOf(func(it *limit.Model) { it.In, it.Promise = &Model{ID: "chat"}, Promise{Priority: 1} }), within(r, chat), true, false)
			assert.Equal(t, c.given, found.Giving[v])
		})
	}
}

// Room is made for the variant that serves for the least, and the first of equal ones.
func TestForWhomRoomIsMade(t *testing.T) {
	for _, prices := range [][]capacity.Cost{{20, 5, 30}, {20, 30, 5}, {20, 5, 5}} {
		t.Run(fmt.Sprint(prices), func(t *testing.T) {
			batch := &flow{id: "batch", arrivals: constant(16.8), variants: []*vessel{vesselOf("batch", 7)}}
			chat := &flow{id: "chat", arrivals: step(20*time.Minute, 2, 4)}
			first := ""
			for i, price := range prices {
				v := vesselOf(fmt.Sprint("chat-", i), 0)
				v.cost = price
				if i == 0 {
					v.replicas = 1
				}
				if first == "" && price == 5 {
					first = v.name
				}
				chat.variants = append(chat.variants, v)
			}
			policy := DefaultPolicy()
			policy.Limited = true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "chat"}: {Priority: 1}, {Namespace: "ns", ID: "batch"}: {Priority: 50}}
			f := newFluid(machines(1), policy, batch, chat)
			waits := ""
			f.told = func(_ *Snapshot, plan *Plan) {
				for _, v := range plan.Models[1].Variants {
					for _, fact := range v.Facts {
						if waits == "" && textOf(fact.Detail) == "waits for room that batch gives" {
							waits = v.Key.Name
						}
					}
				}
			}
			f.run(40 * time.Minute)
			assert.Equal(t, first, waits, "%v", f.writes)
		})
	}
}

// A model's only replica waits for a node in a full cluster: less important models, and equals,
// give one for it, once.
func TestAReplicaThatWaitsForANodeGetsRoom(t *testing.T) {
	for name, c := range map[string]struct {
		priority         int
		unstated, direct bool
		change           func(*Policy)
		gets             int
	}{
		"more important":               {priority: 1, gets: 1},
		"not known at all":             {priority: 1, unstated: true, gets: 1},
		"nobody sees what is asked":    {priority: 1, unstated: true, direct: true, gets: 1},
		"as important":                 {priority: 50, gets: 1},
		"less important":               {priority: 51},
		"it may sleep, nobody asks it": {priority: 1, direct: true, change: func(p *Policy) { p.Idle = Idle{Enabled: true, Retention: time.Hour} }},
		"it may sleep, and is asked":   {priority: 1, change: func(p *Policy) { p.Idle = Idle{Enabled: true, Retention: time.Hour} }, gets: 1},
		"nothing may go": {priority: 1, change: func(p *Policy) {
			p.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "batch"}: {Min: 8, Max: -1}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			web, batch := vesselOf("chat", 1), vesselOf("batch", 8)
			web.unstated = c.unstated
			policy := DefaultPolicy()
			policy.Limited = true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "chat"}: {Priority: c.priority}, {Namespace: "ns", ID: "batch"}: {Priority: 50}}
			if c.change != nil {
				c.change(&policy)
			}
			f := newFluid(machines(1), policy, &flow{id: "batch", arrivals: constant(16), variants: []*vessel{batch}},
				&flow{id: "chat", direct: c.direct, arrivals: constant(1), variants: []*vessel{web}})
			f.run(2 * time.Hour)
			assert.Equal(t, c.gets, web.count(serves), "%v", f.writes)
			assert.Equal(t, 8-c.gets, batch.replicas, "%v", f.writes)
			assert.LessOrEqual(t, len(f.writes), 1, "%v", f.writes)
		})
	}
}

// A variant whose tolerance would hold every replica that it were to give is passed over for
// one that gives, although it is the dearest.
func TestWhoToleratesALossMakesNoRoom(t *testing.T) {
	for tolerance, givesDear := range map[float64]int{0: 1, 0.2: 1, 0.25: 0, 0.5: 0} {
		t.Run(fmt.Sprint(tolerance), func(t *testing.T) {
			dear, cheap := vesselOf("dear", 4), vesselOf("cheap", 3)
			dear.cost = 2 * cheap.cost
			batch := &flow{id: "batch", arrivals: constant(30), variants: []*vessel{dear, cheap}}
			chat := &flow{id: "chat", arrivals: step(20*time.Minute, 2, 4), variants: []*vessel{vesselOf("chat", 1)}}
			policy := DefaultPolicy()
			policy.Limited = true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "chat"}: {Priority: 1}, {Namespace: "ns", ID: "batch"}: {Priority: 50}}
			own := DefaultVariantPolicy()
			own.Down.Tolerance = tolerance
			policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "dear"}: own}
			f := newFluid(machines(1), policy, batch, chat)
			f.run(40 * time.Minute)
			assert.Equal(t, 4-givesDear, dear.replicas, "%v", f.writes)
			assert.Equal(t, 2+givesDear, cheap.replicas, "%v", f.writes)
			assert.Equal(t, 2, chat.variants[0].replicas, "%v", f.writes)
		})
	}
}

// Equally important models share a full cluster by their weights, whoever came first, and a
// model that has nothing gets a replica.
func TestEqualsShareAFullCluster(t *testing.T) {
	for name, c := range map[string]struct {
		first, second float64
		weight        float64
		there         int
		// least and most are how many the second one has in the end.
		least, most int
	}{
		"both need as much":                {16, 16, 1, 1, 3, 4},
		"as much, and the second has none": {16, 16, 1, 0, 3, 4},
		"the second needs little":          {20, 2, 1, 0, 1, 1},
		"the second weighs more":           {16, 16, 3, 1, 5, 6},
		"the second weighs less":           {16, 16, 1. / 3, 1, 1, 2},
		"there is enough for both":         {6, 6, 1, 1, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			first := &flow{id: "first", arrivals: constant(c.first), variants: []*vessel{vesselOf("first", 8-c.there)}}
			second := &flow{id: "second", arrivals: step(10*time.Minute, 0.1, c.second), variants: []*vessel{vesselOf("second", c.there)}}
			policy := DefaultPolicy()
			policy.Limited, policy.Idle.Enabled = true, true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "first"}: {Priority: 7}, {Namespace: "ns", ID: "second"}: {Priority: 7, Weight: c.weight}}
			f := newFluid(machines(1), policy, first, second)
			f.run(3 * time.Hour)
			n := second.variants[0].replicas
			assert.GreaterOrEqual(t, n, c.least, "%v", f.writes)
			assert.LessOrEqual(t, n, c.most, "%v", f.writes)
			settled := len(f.writes)
			f.run(6 * time.Hour)
			assert.Len(t, f.writes, settled, "%v", f.writes)
		})
	}
}

// Who is as important gives as long as it keeps at least as much of what it needs as the other
// one gets, with all that it gives for it.
func TestWhatEqualsGive(t *testing.T) {
	for name, c := range map[string]struct {
		// There are so many replicas of the one that gives, each of which serves 2.5 of its need,
		// and the other one, which needs 10, wants so many devices.
		replicas int
		need     capacity.Rate
		devices  int
		has      int
		given    int
		// bought are wanted of it beside those.
		bought int
	}{
		"it has more":                  {8, 10, 1, 1, 1, 0},
		"it would have as much":        {3, 10, 1, 1, 1, 0},
		"it would have less":           {2, 10, 1, 1, 0, 0},
		"two of it would be too many":  {3, 10, 2, 1, 0, 0},
		"two of it are all right":      {4, 10, 2, 1, 2, 0},
		"it needs more":                {4, 40, 1, 1, 0, 0},
		"the other one has nothing":    {2, 40, 1, 0, 1, 0},
		"nothing is needed of it":      {2, 0, 1, 3, 1, 0},
		"the other one would have all": {8, 20, 1, 3, 0, 0},
		"what it gets waits":           {3, 10, 1, 1, 1, 2},
		"what it gets does not count":  {2, 10, 1, 1, 0, 2},
		"its last does not go":         {1, 0, 1, 0, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			rated := rate.Rate{Trigger: 2.5, Max: 2.5}
			batch := variantOf(func(it *limit.Variant) {
				it.In, it.Priority, it.Target, it.Rate = &Variant{Name: "batch", Current: c.replicas, Request: request("H100", 1)}, 7, c.replicas+c.bought, rated
			})
			gives := modelOf(func(it *limit.Model) { it.Promise, it.Variants = Promise{Priority: 7}, []*limit.Variant{batch} })
			gives.Demand.Now = c.need
			chat := variantOf(func(it *limit.Variant) {
				it.In, it.Priority, it.Target, it.Rate = &Variant{Name: "chat", Current: c.has, Request: request("H100", c.devices)}, 7, c.has, rated
			})
			wants := modelOf(func(it *limit.Model) {
				it.In, it.Promise, it.Variants = &Model{ID: "chat"}, Promise{Priority: 7}, []*limit.Variant{chat}
			})
			wants.Demand.Now = 10
			room := &placement.Cluster{Nodes: nodes(1, "H100", 8)}
			room.Nodes[0].Free.Devices = 0
			givers := make([][]preempt.Giver, 1)
			for i := range c.replicas {
				givers[0] = append(givers[0], preempt.Giver{M: gives, V: batch, Name: fmt.Sprint(i), Number: -1})
			}
			giving := map[*limit.Variant][]string{}
			preempt.NewClearing(room, givers, allocate.Answer{Giving: giving}, epoch).Make(wants, chat, true, false)
			assert.Len(t, giving[batch], c.given)
			if c.given > 0 {
				assert.Equal(t, c.replicas-c.given, batch.Target)
				assert.Equal(t, ReservedRoom{Node: "H100-0", At: epoch, To: c.replicas - c.given}, chat.Nominated[0].ReservedRoom)
			}
		})
	}
	idle := modelOf(func(it *limit.Model) {
		it.Variants = []*limit.Variant{variantOf(func(it *limit.Variant) { it.In, it.Target = &Variant{}, 1 })}
	})
	assert.True(t, math.IsInf(preempt.HasShare(idle, 0), 1), "nothing is needed of it")
}

// Of models that nobody is less important than, a round makes room for two, those that have the
// least of what they need.
func TestForHowManyEqualsRoomIsMade(t *testing.T) {
	holds := &flow{id: "holds", arrivals: constant(10), variants: []*vessel{vesselOf("holds", 5)}}
	flows := []*flow{holds}
	for i, load := range []float64{7, 12, 10, 8} {
		id := fmt.Sprint("lacks-", i)
		flows = append(flows, &flow{id: id, arrivals: constant(load), variants: []*vessel{vesselOf(id, 1)}})
	}
	policy := DefaultPolicy()
	policy.Limited, policy.Promises = true, map[ModelKey]Promise{}
	for _, m := range flows {
		policy.Promises[ModelKey{Namespace: "ns", ID: m.id}] = Promise{Priority: 7}
	}
	cluster := machines(2)
	cluster.Nodes[1].Free.Devices = 1
	f := newFluid(cluster, policy, flows...)
	var first []string
	f.told = func(_ *Snapshot, plan *Plan) {
		var waits []string
		for _, m := range plan.Models {
			for _, fact := range m.Variants[0].Facts {
				if textOf(fact.Detail) == "waits for room that holds gives" {
					waits = append(waits, m.ID)
				}
			}
		}
		if first == nil {
			first = waits
		}
	}
	f.run(20 * time.Minute)
	assert.Equal(t, []string{"lacks-1", "lacks-2"}, first, "%v", f.writes)
}

// A second possibility makes it no worse, and those that nobody can help hide no others.
func TestRoomIsLookedForWhereItCanBeMade(t *testing.T) {
	both := vesselOf("both-h100", 0)
	both.cost = 1
	for name, c := range map[string]struct {
		others   []*vessel
		hopeless int
	}{
		"one variant":        {nil, 0},
		"two variants":       {[]*vessel{both}, 0},
		"hopeless ones, too": {nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &placement.Cluster{Nodes: append(nodes(1, "H100", 8), nodes(1, "A100", 8)...)}
			top, holds, lacks := vesselOf("top", 8-c.hopeless), vesselOf("holds", 7), vesselOf("lacks", 1)
			holds.request, lacks.request = request("A100", 1), request("A100", 1)
			policy := DefaultPolicy()
			policy.Limited = true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "top"}: {Priority: 1}}
			flows := []*flow{
				{id: "top", arrivals: constant(2.1 * float64(8-c.hopeless)), variants: []*vessel{top}},
				{id: "holds", arrivals: constant(14), variants: []*vessel{holds}},
				{id: "lacks", arrivals: step(10*time.Minute, 1, 8), variants: append(c.others, lacks)},
			}
			for i := range c.hopeless {
				id := fmt.Sprint("hopeless-", i)
				flows = append(flows, &flow{id: id, arrivals: step(10*time.Minute, 1, 40), variants: []*vessel{vesselOf(id, 1)}})
			}
			for _, m := range flows[1:] {
				policy.Promises[ModelKey{Namespace: "ns", ID: m.id}] = Promise{Priority: 7}
			}
			f := newFluid(cluster, policy, flows...)
			f.run(2 * time.Hour)
			assert.Equal(t, 2, lacks.replicas, "%v", f.writes)
		})
	}
}

// Where more of one priority are than a round looks at, they take turns.
func TestEqualsTakeTurns(t *testing.T) {
	r, _, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
	var lack []*limit.Model
	for i := range 3 + 2*preempt.EqualsPerRound {
		lack = append(lack, modelOf(func(it *limit.Model) { it.Promise = Promise{Priority: min(2, i+1)} }))
	}
	seen := map[*limit.Model]bool{}
	for minute := range 4 {
		r.Snapshot.Time = epoch.Add(time.Duration(minute) * time.Minute)
		some := preempt.InTurns(r, lack)
		assert.Len(t, some, 1+preempt.EqualsPerRound)
		assert.True(t, some[lack[0]], "nobody is as important")
		assert.Len(t, preempt.InTurns(r, lack[:1+preempt.EqualsPerRound]), 1+preempt.EqualsPerRound)
		for m := range some {
			seen[m] = true
		}
	}
	assert.Len(t, seen, len(lack))
}

func TestNumberOf(t *testing.T) {
	for name, number := range map[string]int{"a-12": 12, "a-3-0": 0, "7": 7, "a-x": -1, "a": -1, "": -1, "a-": -1} {
		found, ok := preempt.NumberOf(name)
		assert.Equal(t, number >= 0, ok, name)
		assert.Equal(t, max(0, number), found, name)
	}
}
