package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func kept(share float64, at time.Time) decision.Kept { return decision.Exactly(sample(share, at)) }

// keeper tells what share kept the promise, and hangs where it is told to.
type keeper struct {
	shares map[decision.ModelKey]decision.Kept
	err    error
	hangs  bool
	asked  []map[decision.ModelKey]capacity.SLO
}

func (k *keeper) Met(ctx context.Context, _ time.Time, _ time.Duration, promises map[decision.ModelKey]capacity.SLO) (map[decision.ModelKey]decision.Kept, error) {
	k.asked = append(k.asked, promises)
	if k.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return k.shares, k.err
}

func TestWhatKeptThePromiseIsAskedForWhereSomethingIsPromised(t *testing.T) {
	a, b := decision.ModelKey{Namespace: "x", ID: "a"}, decision.ModelKey{Namespace: "x", ID: "b"}
	k := &keeper{shares: map[decision.ModelKey]decision.Kept{a: kept(0.5, noon), b: kept(0.6, noon)}}
	of := attainment{met: k.Met, arrived: make(chan found[decision.Kept], 1)}
	policy := &decision.Policy{Hybrid: true, Promises: map[decision.ModelKey]decision.Promise{
		a: {SLO: capacity.SLO{TTFT: 500}}, b: {SLO: capacity.SLO{ITL: 20}}, {Namespace: "x", ID: "free"}: {Class: "Free"},
	}}
	read := func() bool {
		of.begin(t.Context(), noon, time.Minute)
		if !of.reading {
			return false
		}
		of.take(t.Context(), <-of.arrived)
		return true
	}
	require.False(t, read(), "nobody was observed yet")
	of.follow(policy)
	require.True(t, read())
	assert.Equal(t, map[decision.ModelKey]capacity.SLO{a: {TTFT: 500}, b: {ITL: 20}}, k.asked[0])
	assert.Equal(t, k.shares, of.known)

	k.shares, k.err = map[decision.ModelKey]decision.Kept{b: kept(0.7, noon.Add(time.Minute))}, errors.New("query timed out")
	require.True(t, read())
	assert.Equal(t, map[decision.ModelKey]decision.Kept{a: kept(0.5, noon), b: kept(0.7, noon.Add(time.Minute))}, of.known, "what was known ages")

	of.begin(t.Context(), noon, time.Minute)
	of.begin(t.Context(), noon, time.Minute)
	of.take(t.Context(), <-of.arrived)
	assert.Len(t, k.asked, 3, "never twice at a time")

	policy.Hybrid = false
	of.follow(policy)
	require.False(t, read())
	assert.Nil(t, of.known, "promises count in hybrid mode alone")
}

func TestNobodyNeedsToKnowWhatKeptThePromise(t *testing.T) {
	of := attainment{}
	of.follow(&decision.Policy{Hybrid: true, Promises: map[decision.ModelKey]decision.Promise{{ID: "m"}: {SLO: capacity.SLO{TTFT: 1}}}})
	of.begin(t.Context(), noon, time.Minute)
	assert.False(t, of.reading)
}

// The bench's model has no promise by itself: the loop is given one of before its first round.
func TestWhatKeptThePromiseArrivesInTheSnapshotAndNoRoundWaits(t *testing.T) {
	m := decision.ModelKey{Namespace: "n", ID: "m"}
	promised := map[decision.ModelKey]capacity.SLO{m: {TTFT: 500}}
	for name, c := range map[string]struct {
		keeper keeper
		want   decision.Kept
		logged int
	}{
		"told":   {keeper: keeper{shares: map[decision.ModelKey]decision.Kept{m: kept(0.9, noon)}}, want: kept(0.9, noon)},
		"failed": {keeper: keeper{err: errors.New("query timed out")}, logged: 1},
		"hangs":  {keeper: keeper{hangs: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1)
				b.attainment = attainment{met: c.keeper.Met, arrived: make(chan found[decision.Kept], 1)}
				b.attainment.promises = promised
				var got []decision.Kept
				b.decide = func(s decision.Snapshot, p decision.Policy, memory decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
					got = append(got, s.Models[0].Met)
					return b.wakes(s, p, memory, kind)
				}
				assert.Equal(t, []string{"0 Full", "10 Fast", "20 Fast"}, b.run(t, 25*time.Second))
				assert.Equal(t, c.want, got[len(got)-1])
				assert.Len(t, b.logged("that met the SLO could not be read"), c.logged)
				assert.Len(t, c.keeper.asked, 1, "once in a full round")
			})
		})
	}
}

func TestAModelGetsItsOwnShare(t *testing.T) {
	models := map[decision.ModelKey]*decision.Model{}
	for _, key := range []decision.ModelKey{{Namespace: "a", ID: "own"}, {Namespace: "a", ID: "bare"}, {Namespace: "a", ID: "twice"}, {Namespace: "b", ID: "twice"}} {
		models[key] = &decision.Model{Namespace: key.Namespace, ID: key.ID}
	}
	sorted, _ := join(models, hear(slices.Collect(maps.Values(models)), nil), nil, nil, map[decision.ModelKey]decision.Kept{
		{Namespace: "a", ID: "own"}: kept(0.1, noon), {ID: "bare"}: kept(0.2, noon), {ID: "twice"}: kept(0.3, noon),
	})
	got := map[string]decision.Kept{}
	for _, m := range sorted {
		got[m.Namespace+"/"+m.ID] = m.Met
	}
	assert.Equal(t, map[string]decision.Kept{"a/own": kept(0.1, noon), "a/bare": kept(0.2, noon), "a/twice": kept(0.3, noon), "b/twice": kept(0.3, noon)}, got)
}
