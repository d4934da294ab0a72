package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
)

func TestBackOff(t *testing.T) {
	w := newWorld(30)
	w.cluster = &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(4, "L40S", 8)...)}
	policy := policyFor(true, "a-h100", "b-l40s")
	// A rule that the model does not know keeps the second replica off every node.
	failing := func(s *Snapshot) {
		v := &s.Models[0].Variants[0]
		v.Current = 2
		v.Starting = []Starting{{Name: "failing", Since: s.Time.Add(-45 * time.Second), Unschedulable: true}}
	}
	s := w.snapshot()
	failing(&s)
	plan, memory := Decide(s, policy, Memory{}, RoundFull)
	key := Key{Namespace: "ns", Name: "a-h100"}
	assert.Equal(t, fleet.LeastPause, memory.Variants[key].Backoff.Pause)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "given back")
	assert.Positive(t, *plan.Models[0].Variants[1].Desired, "the next variant takes its part")

	w.now = w.now.Add(30 * time.Second)
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "left alone, although the model says that it fits")

	w.now = w.now.Add(time.Minute)
	w.cluster = &placement.Cluster{Nodes: nodes(2, "H100", 8)}
	plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.Greater(t, *plan.Models[0].Variants[0].Desired, 1, "tried again")

	s = w.snapshot()
	failing(&s)
	_, memory = Decide(s, policy, memory, RoundFull)
	assert.Equal(t, 2*fleet.LeastPause, memory.Variants[key].Backoff.Pause, "the next pause is twice as long")

	w.now = w.now.Add(time.Hour)
	_, memory = Decide(w.snapshot(), policy, memory, RoundFull)
	assert.Empty(t, memory.Variants[key].Backoff, "it has been well for long")
}

func TestInAClusterThatGrowsTheNextVariantTakesOver(t *testing.T) {
	w := newWorld(30)
	w.cluster = &placement.Cluster{Nodes: nodes(4, "L40S", 8)}
	s := w.snapshot()
	v := &s.Models[0].Variants[0]
	v.Current = 2
	v.Starting = []Starting{{Name: "failing", Since: s.Time.Add(-fleet.NodePatience - time.Second), Unschedulable: true}}
	v.Startup = 0
	policy := policyFor(false, "a-h100", "b-l40s")
	plan, memory := Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 2, *plan.Models[0].Variants[0].Desired, "not given back before another one has a node")
	others := *plan.Models[0].Variants[1].Desired
	require.Positive(t, others)
	assert.NotEmpty(t, memory.Variants[Key{Namespace: "ns", Name: "a-h100"}].Backoff)

	s.Models[0].Variants[1].Current = others
	for i := range others {
		s.Models[0].Variants[1].Starting = append(s.Models[0].Variants[1].Starting, Starting{Name: fmt.Sprint(i), Since: s.Time, Placed: true, Node: "L40S-0"})
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
						v.Starting = append(v.Starting, Starting{Name: fmt.Sprint("p", len(v.Starting)), Since: s.Time, Unschedulable: true})
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

// In limited mode, a variant that is left alone says so while no other takes its load, and
// when it is tried again.
func TestAVariantThatIsLeftAloneSaysUntilWhen(t *testing.T) {
	w := newWorld(74)
	w.variants = w.variants[:1]
	w.cluster = machines(1)
	s := w.snapshot()
	memory := Memory{Variants: map[Key]*VariantMemory{{Namespace: "ns", Name: "a-h100"}: {Backoff: Backoff{Until: s.Time.Add(time.Minute), Pause: time.Minute, Ready: 1}}}}
	plan, _ := Decide(s, policyFor(true, "a-h100"), memory, RoundFull)
	v := plan.Models[0].Variants[0]
	assert.Equal(t, ReasonBackingOff, v.Reason, textOf(v.Message))
	assert.Contains(t, textOf(v.Message), "backing off after failed starts; next try in 1m0s")
	assert.Equal(t, 1, *v.Desired)
}

// Where the nodes had no room, nothing failed to start.
func TestAVariantThatIsLeftAloneSaysWhy(t *testing.T) {
	for full, want := range map[bool]string{
		true:  "backing off: replicas found no node; next try in 1m0s",
		false: "backing off after failed starts; next try in 1m0s",
	} {
		v := variantOf(func(it *limit.Variant) { it.In, it.Fleet = &Variant{}, fleet.Fleet{Paused: time.Minute} })
		v.Next.Backoff.Full = full
		assert.Equal(t, want, textOf(v.PausedDetail()))
	}
}

// A pause that began in a rolling update ends with it: what comes then is made of another
// template. Any other pause goes on.
func TestAPauseEndsWithItsRollingUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		began, rolling, paused bool
	}{
		"the update goes on":              {began: true, rolling: true, paused: true},
		"it is over":                      {began: true},
		"the pause began without one":     {paused: true},
		"one began after the pause began": {rolling: true, paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 1, Current: 1, Rolling: c.rolling})
			v.Old.Backoff = Backoff{Until: epoch.Add(time.Minute), Pause: time.Minute, Ready: 1, Rolling: c.began}
			assert.Equal(t, c.paused, within(r, v).BackoffOf(&fleet.Fleet{}) != Backoff{})
		})
	}
	r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Ready: 1, Current: 1, Rolling: true})
	assert.True(t, within(r, v).BackoffOf(&fleet.Fleet{Unplaceable: true}).Rolling)
}

// A pause that began without room ends when there is some, unless replicas wait in vain all the
// same; one that began although there was room, as far as is known, goes on.
func TestAPauseEndsWhenThereIsRoom(t *testing.T) {
	for name, c := range map[string]struct {
		began, full, unknown, vain bool
		ends                       bool
	}{
		"there is none yet":           {began: true, full: true},
		"there is some now":           {began: true, ends: true},
		"there was some all the time": {},
		"nobody knows any more":       {began: true, unknown: true},
		"one waits beside it":         {began: true, vain: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, v := roomFor(c.full, c.unknown)
			was := Backoff{Until: epoch.Add(time.Minute), Pause: time.Minute, Full: c.began}
			v.Old.Backoff = was
			if c.ends {
				was = Backoff{}
			}
			assert.Equal(t, was, within(r, v).BackoffOf(&fleet.Fleet{Unplaceable: c.vain}))
		})
	}
}

// A pause is as long as it is from when the replicas are given back that came to nothing.
func TestAPauseCountsFromTheLastOfThem(t *testing.T) {
	for vain, until := range map[bool]time.Duration{true: 2 * time.Minute, false: 10 * time.Second} {
		t.Run(fmt.Sprint(vain), func(t *testing.T) {
			r, v := roomFor(false, false)
			v.Old.Backoff = Backoff{Until: epoch.Add(10 * time.Second), Pause: 2 * time.Minute, Ready: 3}
			next := within(r, v).BackoffOf(&fleet.Fleet{Unplaceable: vain})
			assert.Equal(t, Backoff{Until: epoch.Add(until), Pause: 2 * time.Minute, Ready: 3}, next)
		})
	}
}

// A pause begins without room where none fits, and that is why replicas come to nothing: not where
// they hold the room themselves, and the scheduler refuses them.
func TestAPauseBeginsWithoutRoom(t *testing.T) {
	for name, c := range map[string]struct {
		full, unknown, refused bool
		vain                   fleet.State
		without                bool
	}{
		"none fits":       {full: true, vain: fleet.StateUnschedulable, without: true},
		"none has a pod":  {full: true, vain: fleet.StateNoPod, without: true},
		"one would fit":   {vain: fleet.StateUnschedulable},
		"nobody knows":    {full: true, unknown: true, vain: fleet.StateUnschedulable},
		"they only crash": {full: true, vain: fleet.StateCrashLooping},
		"their own room":  {full: true, refused: true, vain: fleet.StateUnschedulable},
	} {
		t.Run(name, func(t *testing.T) {
			r, v := roomFor(c.full, c.unknown)
			if c.refused {
				v.Next.Refused = epoch
			}
			f := fleet.Fleet{Unplaceable: true}
			f.Count[c.vain] = 1
			assert.Equal(t, Backoff{Until: epoch.Add(fleet.LeastPause), Pause: fleet.LeastPause, Full: c.without}, within(r, v).BackoffOf(&f))
		})
	}
}

// roomFor is a round with one node, which is full or whose room nobody knows, and a variant.
func roomFor(full, unknown bool) (*limit.Round, *limit.Variant) {
	policy, memory, cluster := DefaultPolicy(), Memory{}, machines(1)
	if full {
		cluster.Nodes[0].Free.Devices = 0
	}
	if unknown {
		cluster = nil
	}
	r := newRound(&Snapshot{Time: epoch, Cluster: cluster}, &policy, &memory, RoundFull)
	if !unknown {
		r.Trial = placement.NewTrial(r.Snapshot.Cluster)
	}
	v := within(r, variantOf(func(it *limit.Variant) { it.In = &Variant{Name: "v", Request: request("H100", 1)} }))
	v.Crowded = r.Full(v)
	return r, v
}
