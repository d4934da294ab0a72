package decision

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
)

// bothModes are clusters that do not grow, and ones that do.
var bothModes = map[string]bool{"limited": true, "unlimited": false}

// surgeOf is a world of six replicas at 10 requests/s that become 40 at the given time.
func surgeOf(limited bool, at time.Duration) (*fluid, *flow, *vessel) {
	web := vesselOf("web", 6)
	m := &flow{id: "m", arrivals: step(at, 10, 40), variants: []*vessel{web}}
	policy := DefaultPolicy()
	policy.Limited = limited
	return newFluid(machines(8), policy, m), m, web
}

// reaches lets the world go on until the variant is asked for so many replicas, and
// returns when that was.
func (f *fluid) reaches(t *testing.T, v *vessel, replicas int, until time.Duration) time.Duration {
	t.Helper()
	for v.replicas < replicas {
		f.step()
		require.Less(t, f.elapsed(), until, "%v", f.writes)
	}
	return f.elapsed()
}

// A pod among ready ones loses its readiness for good, and says nothing: it is no
// supply, another one stands in for it, it is given back, and the next surge is met.
func TestAHungPodIsGivenBack(t *testing.T) {
	const at = 20 * time.Minute
	for name, limited := range bothModes {
		t.Run(name, func(t *testing.T) {
			web := vesselOf("web", 3)
			m := &flow{id: "m", arrivals: step(at, 5.1, 30), variants: []*vessel{web}}
			policy := DefaultPolicy()
			policy.Limited = limited
			f := newFluid(machines(8), policy, m)
			f.run(4 * time.Minute)
			bad := web.pods[0]
			bad.hung = true
			f.lose(bad)
			f.run(at)
			assert.False(t, slices.Contains(web.pods, bad), "%v", f.writes)
			assert.Equal(t, 3, web.count(serves), "two would be too few: %v", f.writes)
			assert.Equal(t, 3, web.replicas, "%v", f.writes)
			f.reaches(t, web, 12, at+time.Minute)
			f.run(at + 30*time.Minute)
			assert.Equal(t, web.replicas, web.count(serves))
			assert.Less(t, m.queue, 1.0)
		})
	}
}

// One pod of six crashes as a surge begins: the others' variant grows as if it were
// well, and is not left alone.
func TestACrashOfOnePodDelaysNoSurge(t *testing.T) {
	const at = 10 * time.Minute
	for name, limited := range bothModes {
		t.Run(name, func(t *testing.T) {
			f, m, web := surgeOf(limited, at)
			f.run(at - 30*time.Second)
			bad := web.pods[0]
			bad.failing = true
			f.lose(bad)
			f.reaches(t, web, 24, at+40*time.Second)
			for f.elapsed() < at+30*time.Minute {
				f.step()
				require.Empty(t, f.memory.Variants[Key{Namespace: "ns", Name: web.name}].Backoff, "%v", f.writes)
			}
			assert.False(t, slices.Contains(web.pods, bad), "%v", f.writes)
			assert.Equal(t, int(math.Ceil(need.LowerHeadroom*40/allowed(plain))), web.replicas, "%v", f.writes)
			assert.Less(t, m.queue, 1.0)
		})
	}
}

// A pod that restarted once in its life loses its readiness for one round as a surge
// begins.
func TestAMomentWithoutReadinessDelaysNoSurge(t *testing.T) {
	const at = 10 * time.Minute
	met := map[bool]time.Duration{}
	for _, blinks := range []bool{false, true} {
		f, _, web := surgeOf(true, at)
		f.run(at + 5*time.Second)
		if blinks {
			pod := web.pods[0]
			pod.failing = true
			f.lose(pod)
			f.round(RoundEvent)
			assert.Empty(t, f.memory.Variants[Key{Namespace: "ns", Name: web.name}].Backoff)
			pod.failing, pod.ready = false, true
		}
		met[blinks] = f.reaches(t, web, 24, at+time.Minute)
	}
	assert.Equal(t, met[false], met[true])
}

// What replicas that do not come up are taken for: supply yet, lost for want of a node,
// failed by themselves; and whether that is the variant's fault.
func TestWhatDoesNotComeUp(t *testing.T) {
	type found struct {
		supply, lost, failed           int
		unplaceable, unhealthy, paused bool
	}
	failing := func(ago time.Duration) Starting {
		return Starting{Since: epoch.Add(-ago), Placed: true, Held: true, Failing: true}
	}
	starting := func(ago time.Duration) Starting {
		return Starting{Since: epoch.Add(-ago), Placed: true, Held: true}
	}
	refused := func(ago time.Duration) Starting { return Starting{Since: epoch.Add(-ago), Unschedulable: true} }
	unjudged := func(ago time.Duration) Starting { return Starting{Since: epoch.Add(-ago)} }
	lost := found{supply: 5, lost: 1, unplaceable: true, unhealthy: true, paused: true}
	for name, c := range map[string]struct {
		ready    int
		starting []Starting
		startup  time.Duration
		want     found
	}{
		"one starts":                            {5, []Starting{starting(time.Minute)}, time.Minute, found{supply: 6}},
		"one restarted a moment ago":            {5, []Starting{failing(time.Second)}, time.Minute, found{supply: 6}},
		"one keeps failing":                     {5, []Starting{failing(2 * time.Minute)}, time.Minute, found{supply: 5, failed: 1}},
		"one of two restarted a moment ago":     {1, []Starting{failing(time.Second)}, time.Minute, found{supply: 2, unhealthy: true}},
		"one of two keeps failing":              {1, []Starting{failing(2 * time.Minute)}, time.Minute, found{supply: 1, failed: 1, unplaceable: true, unhealthy: true, paused: true}},
		"one of two keeps failing, one starts":  {1, []Starting{failing(2 * time.Minute), starting(time.Minute)}, time.Minute, found{supply: 2, failed: 1}},
		"none serves, one of two keeps failing": {0, []Starting{failing(2 * time.Minute), starting(time.Minute)}, time.Minute, found{supply: 1, failed: 1}},
		"one hangs":                             {5, []Starting{starting(4 * time.Minute)}, time.Minute, found{supply: 5, failed: 1}},
		"one is late, and none ever started":    {5, []Starting{starting(11 * time.Minute)}, 0, found{supply: 5}},
		"one waits for a node":                  {5, []Starting{refused(time.Minute)}, time.Minute, found{supply: 6}},
		"one waits longer than a node takes":    {5, []Starting{refused(4 * time.Minute)}, time.Minute, lost},
		"no scheduler looked at one yet":        {5, []Starting{unjudged(9 * time.Minute)}, time.Minute, found{supply: 6}},
		"none ever will":                        {5, []Starting{unjudged(11 * time.Minute)}, time.Minute, lost},
		"none yet, and a start takes long":      {5, []Starting{unjudged(11 * time.Minute)}, 5 * time.Minute, found{supply: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: c.ready + len(c.starting), Ready: c.ready, Starting: c.starting, Startup: c.startup})
			v.Fleet = within(r, v).FleetOf(v.In.Startup)
			f := &v.Fleet
			assert.Equal(t, c.want, found{f.Supply, f.Unplaced(), v.Hopeless(), f.Unplaceable, f.Unhealthy, f.Paused > 0})
		})
	}
}

// A replica that waits for a node and is late is missing once, and not twice.
func TestALateReplicaWithoutANodeIsMissingOnce(t *testing.T) {
	w := newWorld(20)
	w.variants = w.variants[:1]
	s := w.snapshot()
	v := &s.Models[0].Variants[0]
	v.Current, v.Startup = 10, time.Minute
	for range 4 {
		v.Starting = append(v.Starting, Starting{Name: "late", Since: w.now.Add(-time.Hour)})
	}
	for range 5 {
		v.Starting = append(v.Starting, Starting{Name: "new", Since: w.now.Add(-10 * time.Second), Placed: true, Node: "H100-0"})
	}
	for name, memory := range map[string]Memory{
		"at first":         {},
		"while left alone": {Variants: map[Key]*VariantMemory{{Namespace: "ns", Name: "a-h100"}: {Backoff: Backoff{Until: w.now.Add(time.Minute), Pause: time.Minute, Ready: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, _ := Decide(s, demoPolicy(), memory, RoundFast)
			var supplied []string
			for _, step := range plan.Models[0].Variants[0].Steps {
				if step.Stage == StageSupply {
					supplied = append(supplied, textOf(step.Detail))
				}
			}
			require.Len(t, supplied, 1)
			assert.Contains(t, supplied[0], "; 6 replicas count as supply")
		})
	}
}

// A model whose only variant is left alone is woken all the same: nothing else fits.
func TestALoneVariantThatIsLeftAloneIsWoken(t *testing.T) {
	for name, limited := range bothModes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			w.variants = w.variants[:1]
			w.setReplicas(0, 0)
			w.cluster = machines(1)
			s := w.snapshot()
			s.Models[0].Queue.Value = 3
			policy := policyFor(limited, "a-h100")
			policy.Idle.Enabled = true
			memory := Memory{Variants: map[Key]*VariantMemory{{Namespace: "ns", Name: "a-h100"}: {Backoff: Backoff{Until: w.now.Add(fleet.MostPause), Pause: fleet.MostPause}}}}
			plan, _ := Decide(s, policy, memory, RoundEvent)
			v := plan.Models[0].Variants[0]
			assert.Equal(t, 1, *v.Desired)
			assert.Equal(t, ReasonWake, v.Reason, textOf(v.Message))
		})
	}
}

// A node fails with half of the replicas. Others take their place as soon as the cluster
// knows; where only the pods are not ready, they are waited for as long as they may start.
func TestReplicasOnANodeThatFailedAreReplacedAtOnce(t *testing.T) {
	const at = 20 * time.Minute
	for name, limited := range bothModes {
		for why, c := range map[string]struct {
			out    string
			within time.Duration
			want   int
		}{
			"node":   {placement.NodeNotReady, 90 * time.Second, 12},
			"cordon": {"cordoned", 4 * time.Minute, 8},
		} {
			t.Run(name+", "+why, func(t *testing.T) {
				web := vesselOf("web", 8)
				m := &flow{id: "m", arrivals: constant(16), variants: []*vessel{web}}
				policy := DefaultPolicy()
				policy.Limited = limited
				cluster := &placement.Cluster{Nodes: nodes(4, "H100", 4)}
				f := newFluid(cluster, policy, m)
				f.run(at)
				require.Equal(t, 8, web.count(serves), "%v", f.writes)
				failed := web.pods[0].node
				cluster.Nodes[failed].Out = c.out
				for _, p := range web.pods {
					if p.node == failed {
						p.hung = true
						f.lose(p)
					}
				}
				require.Equal(t, 4, web.count(serves))
				f.run(at + c.within)
				assert.Equal(t, c.want, web.replicas, "%v", f.writes)
				f.run(at + 20*time.Minute)
				assert.Equal(t, 8, web.count(serves), "%v", f.writes)
				assert.Equal(t, 8, web.replicas, "what is on the node is given back: %v", f.writes)
				assert.LessOrEqual(t, len(f.writes), 4, "%v", f.writes)
			})
		}
	}
}

// A node fails with the only replica of a model, which nobody knows to be asked for anything
// then: another one takes its place at once, however long the node is away.
func TestTheOnlyReplicaOnANodeThatFailedIsReplaced(t *testing.T) {
	const at = 20 * time.Minute
	for name, limited := range bothModes {
		t.Run(name, func(t *testing.T) {
			web := vesselOf("web", 1)
			policy := DefaultPolicy()
			policy.Limited = limited
			cluster := machines(2)
			f := newFluid(cluster, policy, &flow{id: "m", arrivals: constant(1), direct: true, variants: []*vessel{web}})
			f.run(at)
			cluster.Nodes[web.pods[0].node].Out = placement.NodeNotReady
			web.pods[0].hung = true
			f.lose(web.pods[0])
			f.run(at + 30*time.Second)
			assert.Equal(t, 2, web.replicas, "%v", f.writes)
			f.told = func(_ *Snapshot, plan *Plan) {
				assert.NotEqual(t, ReasonBackingOff, plan.Models[0].Variants[0].Reason)
			}
			f.run(at + 2*time.Hour)
			assert.Equal(t, 1, web.count(serves), "%v", f.writes)
			assert.Equal(t, 1, web.replicas, "%v", f.writes)
			assert.Len(t, f.writes, 2, "%v", f.writes)
		})
	}
}

// A rolling update's new pod that keeps failing is one more than the target asks for. The one
// that starts beside it is not, and is not given back with it.
func TestOneThatStartsIsNotGivenBackForOneThatFails(t *testing.T) {
	failing := Starting{Since: epoch.Add(-5 * time.Minute), Placed: true, Failing: true}
	starting := Starting{Since: epoch.Add(-time.Minute), Placed: true}
	for name, c := range map[string]struct {
		starting                 []Starting
		pending, leaving, supply int
	}{
		"the new pod fails":           {[]Starting{failing, failing, starting}, 1, 0, 3},
		"two fail and two start":      {[]Starting{failing, starting, starting, failing}, 2, 0, 4},
		"one more starts than is due": {[]Starting{failing, starting, starting, starting}, 2, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 4, Ready: 2, Starting: c.starting, Startup: time.Minute})
			v.Fleet = within(r, v).FleetOf(v.In.Startup)
			assert.Equal(t, []int{c.pending, c.leaving, c.supply}, []int{v.Fleet.Count[fleet.StatePending], v.Fleet.Count[fleet.StateLeaving], v.Fleet.Supply})
			r.Limits(within(r, m), 0, nil)
			assert.Equal(t, 4, v.Target, "while one starts none is given back")
		})
	}
}

// Replicas whose node took minutes to come are not late for that when it comes.
func TestAStartCountsFromItsNode(t *testing.T) {
	const at = 10 * time.Minute
	web := vesselOf("web", 2)
	web.startup, web.seen = 90*time.Second, 90*time.Second
	m := &flow{id: "m", arrivals: step(at, 3, 15), variants: []*vessel{web}}
	f := newFluid(machines(8), DefaultPolicy(), m)
	f.run(at)
	web.refused = true
	f.run(at + 4*time.Minute)
	asked := web.replicas
	require.GreaterOrEqual(t, asked, 6, "%v", f.writes)
	web.refused = false
	f.run(at + 6*time.Minute)
	assert.Equal(t, web.replicas, web.count(serves), "%v", f.writes)
	for _, w := range f.writes {
		assert.Greater(t, w.to, w.from, "%v", f.writes)
	}
}

// Start-ups become many times as long, as on nodes that have yet to load the image. What
// starts is waited for where nothing else could serve, and not asked for again and again; but
// not for ever.
func TestStartsThatBecomeSlow(t *testing.T) {
	const at = 10 * time.Minute
	for name, limited := range bothModes {
		for startup, most := range map[time.Duration]float64{2 * time.Minute: 1, 4 * time.Minute: 1.2, 8 * time.Minute: 1.7} {
			t.Run(fmt.Sprint(name, startup), func(t *testing.T) {
				web := vesselOf("web", 2)
				web.startup, web.seen = 30*time.Second, 30*time.Second
				m := &flow{id: "m", arrivals: step(at, 3, 12), variants: []*vessel{web}}
				policy := DefaultPolicy()
				policy.Limited = limited
				f := newFluid(machines(8), policy, m)
				f.run(at)
				web.startup = startup
				f.run(at + time.Minute)
				asked := web.replicas
				require.GreaterOrEqual(t, asked, 6, "%v", f.writes)
				f.run(at + startup + time.Minute)
				// What waits meanwhile grows, and is to be served, too.
				assert.LessOrEqual(t, float64(highest(f.writes)), most*float64(asked), "%v", f.writes)
				assert.GreaterOrEqual(t, web.count(serves), 6, "%v", f.writes)
				for _, w := range f.writes {
					assert.Greater(t, w.to, w.from, "%v", f.writes)
				}
				f.run(at + startup + 40*time.Minute)
				assert.InDelta(t, 6, web.replicas, 1, "%v", f.writes)
			})
		}
	}
}

// Starts that hang are given up after a while: others may come up.
func TestStartsThatHangAreGivenUp(t *testing.T) {
	const at = 10 * time.Minute
	for name, limited := range bothModes {
		for _, startup := range []time.Duration{30 * time.Second, 14 * time.Minute} {
			t.Run(fmt.Sprint(name, startup), func(t *testing.T) {
				web := vesselOf("web", 6)
				web.startup, web.seen = time.Minute, time.Minute
				m := &flow{id: "m", arrivals: step(at, 12, 30), variants: []*vessel{web}}
				policy := DefaultPolicy()
				policy.Limited = limited
				f := newFluid(machines(8), policy, m)
				f.run(at)
				web.startup = startup
				for f.elapsed() < at+2*time.Hour {
					for _, p := range web.pods {
						p.hung = p.hung || !p.ready && p.created.Before(epoch.Add(at+10*time.Minute)) && startup < time.Minute
					}
					f.step()
				}
				assert.GreaterOrEqual(t, web.count(serves), 12, "%v", f.writes)
				assert.Less(t, m.queue, 1.0)
			})
		}
	}
}

// Where another variant could take over, or as many start as serve, slow starts are given up
// once; the next ones have twice as long.
func TestSlowStartsAreGivenUpOnce(t *testing.T) {
	const at = 10 * time.Minute
	for name, c := range map[string]struct {
		ready, least int
		load         float64
		second       bool
	}{
		"two variants":                 {3, 6, 13, true},
		"one starts beside one serves": {1, 2, 3.2, false},
	} {
		t.Run(name, func(t *testing.T) {
			cheap, dear := vesselOf("cheap", c.ready), vesselOf("dear", 0)
			cheap.startup, cheap.seen, dear.cost, dear.request = 2*time.Minute, 2*time.Minute, 8, request("A100", 1)
			dear.startup, dear.seen = 8*time.Minute, 2*time.Minute
			m := &flow{id: "m", arrivals: step(at, 1.5*float64(c.ready), c.load), variants: []*vessel{cheap}}
			if c.second {
				m.variants = append(m.variants, dear)
			}
			policy := DefaultPolicy()
			policy.Limited = true
			f := newFluid(&placement.Cluster{Nodes: append(nodes(4, "H100", 8), nodes(4, "A100", 8)...)}, policy, m)
			f.run(at)
			cheap.startup = 8 * time.Minute
			f.run(at + 3*time.Hour)
			assert.GreaterOrEqual(t, cheap.count(serves)+dear.count(serves), c.least, "%v", f.writes)
			assert.LessOrEqual(t, len(f.writes), 10, "%v", f.writes)
			assert.Less(t, m.queue, 1.0)
		})
	}
}
