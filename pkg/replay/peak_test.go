package replay

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func TestPeakIsTheSmallestFleetThatKeepsTheSLO(t *testing.T) {
	for _, rate := range []float64{1, 15, 40, 65} {
		for _, share := range []float64{0.9, 0.99} {
			s := small()
			s.Policy.Share = share
			source := short(t, workload.Point{Rate: rate / 4}, workload.Point{At: time.Minute, Rate: rate}, workload.Point{At: 3 * time.Minute, Rate: rate / 4})
			p := played(t, s, source, "peak", time.Minute)
			least := performed{}
			for n := 1; n <= 8; n++ {
				least = p.withStatic(p.alike(n))
				require.NoError(t, least.err)
				if least.result.Attainment >= share {
					break
				}
			}
			require.GreaterOrEqual(t, least.result.Attainment, share, "eight are enough")
			found := p.perform()
			require.NoError(t, found.err)
			assert.Equal(t, least, found, "rate %v, share %v", rate, share)
			assert.Zero(t, found.result.ScaleEvents)
		}
	}
}

func TestPeakOfTwoModelsHasNoReplicaThatIsNotNeeded(t *testing.T) {
	s := small()
	s.Models[0].Share = 5
	other := s.Models[0]
	other.ID, other.Share = "other", 1
	other.Variants = []Variant{smallVariant("other-cheap", "H100", 2), smallVariant("other-dear", "H200", 3)}
	s.Models = append(s.Models, other)
	p := played(t, s, short(t, workload.Point{Rate: 20}, workload.Point{At: time.Minute, Rate: 70}, workload.Point{At: 3 * time.Minute, Rate: 20}), "peak", time.Minute)
	found := p.perform()
	require.NoError(t, found.err)
	require.GreaterOrEqual(t, found.result.Attainment, s.Policy.Share)
	var replicas []int
	for _, text := range strings.Split(found.result.Parameters[1].Value, ", ") {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		replicas = append(replicas, n)
	}
	require.Len(t, replicas, 2)
	assert.Greater(t, replicas[0], replicas[1], "five times the load")
	assert.Equal(t, found, p.withStatic(replicas))
	for m := range replicas {
		fewer := slices.Clone(replicas)
		if fewer[m]--; fewer[m] > 0 {
			assert.Less(t, p.withStatic(fewer).result.Attainment, s.Policy.Share, "%v", fewer)
		}
	}
}

func TestPeakWithoutEnoughRoomIsAllThatFits(t *testing.T) {
	s := small()
	s.Cluster.Nodes[0].Free.Devices = 3
	p := played(t, s, short(t, workload.Point{Rate: 150}, workload.Point{At: 2 * time.Minute, Rate: 150}), "peak", time.Minute)
	found := p.perform()
	require.NoError(t, found.err)
	assert.Less(t, found.result.Attainment, s.Policy.Share)
	assert.Equal(t, []Parameter{
		{"variant", "cheap"}, {"replicas", "3"}, {"otherVariants", "their minimum"}, {"promisedShare", "0.99"},
	}, found.result.Parameters)
	assert.Zero(t, found.result.UnplaceableReplicas)
}

func TestPeakReportsWhatWentWrong(t *testing.T) {
	p := played(t, small(), sourceOf(io.EOF, arrival(1, 10, 10), arrival(2, 0, 10)), "peak", time.Minute)
	require.ErrorContains(t, p.perform().err, "policy peak with a start-up of 1m0s: request at 2s")
}

func TestSearchTellsSteadyProgress(t *testing.T) {
	var parts []float64
	tell := func(part float64) bool { parts = append(parts, part); return part < 0.8 }
	for before := range 3 {
		for _, part := range []float64{0, 0.5, 1} {
			assert.Equal(t, before < 2 || part < 0.4, halfOfTheRest(tell, before)(part))
		}
	}
	assert.Equal(t, []float64{0, 0.25, 0.5, 0.5, 0.625, 0.75, 0.75, 0.8125, 0.875}, parts)
	assert.Nil(t, halfOfTheRest(nil, 3))
}

func TestClairvoyantStartsWhatAMinuteNeedsBeforeIt(t *testing.T) {
	bound := &Bound{Replicas: [][][]int{{{1, 0}}, {{1, 2}}, {{3, 0}}, {{1, 0}}}}
	tests := map[string]struct {
		startup time.Duration
		want    map[int][]int
	}{
		"no start-up": {0, map[int][]int{0: {1, 0}, 59: {1, 0}, 60: {1, 2}, 119: {1, 2}, 120: {3, 0}, 180: {1, 0}, 239: {1, 0}, 999: {1, 0}}},
		"half a minute": {30 * time.Second, map[int][]int{
			0: {1, 0}, 29: {1, 0}, 30: {1, 2}, 89: {1, 2}, 90: {3, 2}, 119: {3, 2}, 120: {3, 0}, 150: {3, 0}, 180: {1, 0},
		}},
		"more than a minute": {90 * time.Second, map[int][]int{0: {1, 2}, 29: {1, 2}, 30: {3, 2}, 60: {3, 2}, 120: {3, 0}, 180: {1, 0}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &clairvoyant{bound: bound, startup: test.startup}
			for now, want := range test.want {
				got := c.Decide(&View{Now: seconds(now), Models: make([]ModelView, 1)})
				assert.Equal(t, [][]int{want}, got.Replicas, now)
			}
		})
	}
	assert.Equal(t, [][][]int{{{1, 0}}, {{1, 2}}, {{3, 0}}, {{1, 0}}}, bound.Replicas, "the bound stays as it is")
}

func TestClairvoyantHasWhatEachMinuteNeeds(t *testing.T) {
	for _, startup := range []time.Duration{0, 20 * time.Second, 100 * time.Second} {
		s := small()
		s.Variation = 0
		p := played(t, s, hill(t), "bound", startup)
		performed := p.perform()
		require.NoError(t, performed.err)
		r := performed.result
		assert.InDelta(t, p.bound.Cost, r.Cost, 1e-6)
		assert.InDelta(t, 1, r.CostOverBound, 0)
		assert.InDelta(t, p.bound.ReplicaHours, r.ReplicaHours, 1e-6)
		assert.Zero(t, r.UnplaceableReplicas)
		// What is asked for at the beginning of a second serves from there on.
		assert.Zero(t, r.UnderProvisionedSeconds, startup)
	}
}
