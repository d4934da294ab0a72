package decision

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
)

// slowOrdered is a world whose cheap variant makes one replica after the other, six minutes
// each, beside a dearer one; at 300 s twice as much is asked for as the replicas serve.
func slowOrdered() (f *fluid, cheap, dear *vessel) {
	cheap, dear = vesselOf("cheap", 2), vesselOf("dear", 0)
	cheap.startup, cheap.seen = 6*time.Minute, 6*time.Minute
	dear.cost = 9
	m := &flow{id: "m", arrivals: step(300*time.Second, 4, 16), variants: []*vessel{cheap, dear}}
	policy := DefaultPolicy()
	policy.Limited = true
	f = newFluid(machines(8), policy, m)
	cheap.ordered = true
	return f, cheap, dear
}

// A StatefulSet brings its pods one at a time: what waits its turn is starting, is not
// given back, and is not bought again elsewhere.
func TestReplicasThatWaitTheirTurnAreStarting(t *testing.T) {
	f, cheap, dear := slowOrdered()
	f.run(300 * time.Second)
	for f.elapsed() < 40*time.Minute {
		before := cheap.replicas
		f.step()
		require.GreaterOrEqual(t, cheap.replicas, before, "%v", f.writes)
		require.Zero(t, dear.replicas, "%v", f.writes)
		require.Empty(t, f.memory.Variants[Key{Namespace: "ns", Name: "cheap"}].Backoff, "%v", f.writes)
	}
	assert.Equal(t, 2+5, cheap.count(serves), "one every six minutes")
	assert.GreaterOrEqual(t, cheap.replicas, int(math.Ceil(16/allowed(plain))))
}

// Where the one whose turn it is does not come up, those behind it do not come either: the
// other variant takes their place.
func TestNobodysTurnComesBehindOneThatFails(t *testing.T) {
	f, cheap, dear := slowOrdered()
	f.run(300 * time.Second)
	cheap.crashing = true
	f.run(30 * time.Minute)
	assert.Equal(t, 2, cheap.count(serves))
	assert.GreaterOrEqual(t, 2+dear.count(serves), int(math.Ceil(16/allowed(plain))), "%v", f.writes)
}

// When a turn has come and no pod is made, the replicas are absent as those of any target.
func TestATurnThatComesToNothing(t *testing.T) {
	settling := 3 * time.Minute
	for name, c := range map[string]struct {
		settling, since time.Duration
		// came is how long ago the last one came up; 0 is before all that.
		came   time.Duration
		absent int
	}{
		"a moment ago":              {since: fleet.PodPatience, absent: 0},
		"long ago":                  {since: fleet.PodPatience + time.Second, absent: 2},
		"before the others settled": {settling: settling, since: settling + fleet.PodPatience, absent: 0},
		"after the others settled":  {settling: settling, since: settling + fleet.PodPatience + time.Second, absent: 2},
		"behind one that came late": {since: time.Hour, came: fleet.PodPatience, absent: 0},
		"long after one came late":  {since: time.Hour, came: fleet.PodPatience + time.Second, absent: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 3, Ready: 1, Startup: time.Minute, Ordered: true, Settling: c.settling})
			if c.came > 0 {
				v.In.Replicas = []Replica{{Since: epoch.Add(-c.came)}}
			}
			v.Old = &VariantMemory{NoPod: epoch.Add(-c.since), History: []HistoryEntry{{Replicas: 3}}}
			v.Next.NoPod = within(r, v).NoPodSince()
			f := within(r, v).FleetOf(v.In.Startup)
			assert.Equal(t, c.absent, f.Count[fleet.StateNoPod])
		})
	}
}

// The deadline of those that wait begins anew as long as the one whose turn it is may come
// up, and only where a turn is what they wait for.
func TestTheDeadlineOfThoseThatWaitTheirTurn(t *testing.T) {
	late := epoch.Add(-time.Hour)
	for name, c := range map[string]struct {
		ordered bool
		first   Starting
		awaited bool
	}{
		"the first starts":        {true, Starting{Since: epoch.Add(-2 * time.Minute), Placed: true}, true},
		"the first is overdue":    {true, Starting{Since: epoch.Add(-4 * time.Minute), Placed: true}, false},
		"the first finds no node": {true, Starting{Since: epoch.Add(-4 * time.Minute), Unschedulable: true}, false},
		"the first keeps failing": {true, Starting{Since: epoch.Add(-2 * time.Minute), Placed: true, Failing: true}, false},
		"all are made at once":    {false, Starting{Since: epoch.Add(-2 * time.Minute), Placed: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 5, Ready: 1, Starting: []Starting{c.first}, Startup: time.Minute, Ordered: c.ordered})
			v.Old = &VariantMemory{NoPod: late, History: []HistoryEntry{{Replicas: 5}}}
			v.Next.NoPod = within(r, v).NoPodSince()
			f := within(r, v).FleetOf(v.In.Startup)
			if c.awaited {
				assert.Equal(t, 4, f.Count[fleet.StatePending], "it, and the three behind it")
				assert.Equal(t, 5, f.Supply)
			} else {
				assert.Equal(t, 3, f.Count[fleet.StateNoPod])
			}
			assert.Zero(t, f.Count[fleet.StateLeaving])
		})
	}
}
