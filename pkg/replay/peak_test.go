package replay

import (
	"fmt"
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
				least = searched(&p, newFleet(s, p.choice, []int{n}))
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
	s.Cluster.Nodes[0].Free.Devices, s.Cluster.Nodes[0].Allocatable.Devices = 16, 16
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
	assert.Equal(t, found, searched(&p, newFleet(s, p.choice, replicas)))
	for m := range replicas {
		fewer := slices.Clone(replicas)
		if fewer[m]--; fewer[m] > 0 {
			assert.Less(t, searched(&p, newFleet(s, p.choice, fewer)).result.Attainment, s.Policy.Share, "%v", fewer)
		}
	}
}

// searched is what peak makes of a fleet.
func searched(p *play, f fleet) performed {
	done := p.with(f, f.replicas)
	share := p.scenario.Policy.Share
	done.result.Parameters = append(f.Parameters(), Parameter{"promisedShare", fmt.Sprint(share)},
		Parameter{"keepsThePromise", fmt.Sprint(done.result.Attainment >= share)})
	return done
}

func TestPeakWithoutEnoughRoomForOneVariantTakesOthers(t *testing.T) {
	steady := func(rate float64) Source {
		return short(t, workload.Point{Rate: rate}, workload.Point{At: 2 * time.Minute, Rate: rate})
	}
	tests := map[string]struct {
		rate        float64
		cheap, dear int
		want        []Parameter
		keeps       bool
	}{
		"the next variant alone": {40, 0, 8, []Parameter{{"variant", "dear"}, {"replicas", "5"}, {"otherVariants", "their minimum"}}, true},
		"a mix":                  {40, 3, 3, []Parameter{{"variant", "mixed"}, {"replicas", "cheap: 3; dear: 2"}}, true},
		"none is enough":         {150, 3, 2, []Parameter{{"variant", "mixed"}, {"replicas", "cheap: 3; dear: 2"}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := small()
			s.Cluster.Nodes[0].Free.Devices, s.Cluster.Nodes[1].Free.Devices = test.cheap, test.dear
			p := played(t, s, steady(test.rate), "peak", time.Minute)
			p.record = true
			found := p.perform()
			require.NoError(t, found.err)
			assert.Equal(t, append(test.want, Parameter{"promisedShare", "0.99"}, Parameter{"keepsThePromise", fmt.Sprint(test.keeps)}), found.result.Parameters)
			assert.Equal(t, test.keeps, found.result.Attainment >= s.Policy.Share)
			assert.Equal(t, !test.keeps, found.result.BreaksPromise())
			assert.Zero(t, found.result.UnplaceableReplicas)
			assert.NotEmpty(t, found.recording.Models, "the course of the answer")
			// Nothing that costs less does as well.
			for cheap := range test.cheap + 1 {
				for dear := range test.dear + 1 {
					if other := p.with(fleet{scenario: s, replicas: [][]int{{cheap, dear}}}, [][]int{{cheap, dear}}).result; other.Cost < found.result.Cost {
						assert.Less(t, other.Attainment, min(s.Policy.Share, found.result.Attainment), "%d and %d", cheap, dear)
					}
				}
			}
		})
	}
}

func TestPeakOfARequestThatNobodyServesInTimeSaysSo(t *testing.T) {
	s := small()
	for v := range s.Models[0].Variants {
		s.Models[0].Variants[v].Profile.Base = 60
	}
	found := played(t, s, hill(t), "peak", time.Minute)
	done := found.perform()
	require.NoError(t, done.err)
	assert.True(t, done.result.BreaksPromise())
	assert.Equal(t, "1", done.result.Parameters[1].Value, "more attains nothing, so one is enough")
}

func TestPeakKeepsTheBoundsOfTheVariants(t *testing.T) {
	s := small()
	s.Models[0].Variants[0].Policy.Max = 1
	s.Models[0].Variants[1].Policy.Min = 1
	p := played(t, s, short(t, workload.Point{Rate: 60}, workload.Point{At: 2 * time.Minute, Rate: 60}), "peak", time.Minute)
	search := fleetSearch{play: p}
	assert.Equal(t, [][]int{{1, 1}}, search.alike([]int{0}).fleet(5).replicas)
	found := p.perform()
	require.NoError(t, found.err)
	require.GreaterOrEqual(t, found.result.Attainment, s.Policy.Share, "of the other variant there may be enough")
	assert.Contains(t, found.result.Parameters[1].Value, "cheap: 1;")
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
