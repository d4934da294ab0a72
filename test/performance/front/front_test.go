package front

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFrontHasNoDominatedPoint(t *testing.T) {
	for name, tc := range map[string]struct {
		points []Point
		want   Front
	}{
		"none":                               {nil, nil},
		"one":                                {[]Point{{0.9, 10}}, Front{{0.9, 10}}},
		"equal ones count once":              {[]Point{{0.9, 10}, {0.9, 10}}, Front{{0.9, 10}}},
		"as good and dearer":                 {[]Point{{0.9, 11}, {0.9, 10}}, Front{{0.9, 10}}},
		"as dear and worse":                  {[]Point{{0.8, 10}, {0.9, 10}}, Front{{0.9, 10}}},
		"worse and dearer in the middle":     {[]Point{{0.9, 10}, {0.89, 12}, {0.95, 15}}, Front{{0.9, 10}, {0.95, 15}}},
		"above the line between two, but on": {[]Point{{0.9, 10}, {0.91, 19}, {1, 20}}, Front{{0.9, 10}, {0.91, 19}, {1, 20}}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, Of(tc.points)) })
	}
}

// The slow definition: a point is on the front unless another one dominates it.
func TestTheFrontIsWhatNothingDominates(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		points := make([]Point, 1+random.IntN(12))
		for i := range points {
			points[i] = Point{float64(random.IntN(6)) / 5, float64(random.IntN(6))}
		}
		front := Of(points)
		for _, p := range points {
			dominated := false
			for _, q := range points {
				better := q.Attainment >= p.Attainment && q.Cost <= p.Cost && q != p
				dominated = dominated || better
			}
			assert.Equal(t, !dominated, contains(front, p), "%v in %v", p, points)
		}
		for i := 1; i < len(front); i++ {
			require.Greater(t, front[i].Attainment, front[i-1].Attainment)
			require.Greater(t, front[i].Cost, front[i-1].Cost)
		}
	}
}

func contains(front Front, p Point) bool {
	for _, q := range front {
		if p == q {
			return true
		}
	}
	return false
}

func TestTheCostAtAnAttainment(t *testing.T) {
	front := Front{{0.5, 10}, {0.75, 20}, {1, 60}}
	for name, tc := range map[string]struct {
		attainment, cost float64
		place            Place
	}{
		"on a point":                      {0.75, 20, Within},
		"on the cheapest":                 {0.5, 10, Within},
		"on the best":                     {1, 60, Within},
		"half-way":                        {0.625, 15, Within},
		"a quarter of the way":            {0.8125, 30, Within},
		"all points attain more":          {0.4, 10, Below},
		"no point attains as much":        {1.01, 60, Above},
		"nobody promises to lose all, 0 ": {0, 10, Below},
	} {
		t.Run(name, func(t *testing.T) {
			cost, place := front.CostAt(tc.attainment)
			assert.InDelta(t, tc.cost, cost, 1e-12)
			assert.Equal(t, tc.place, place)
		})
	}
	_, place := Front(nil).CostAt(0.5)
	assert.Equal(t, Nowhere, place)
}

func TestTheAttainmentAtACost(t *testing.T) {
	front := Front{{0.5, 10}, {0.75, 20}, {1, 60}}
	for name, tc := range map[string]struct {
		cost, attainment float64
		place            Place
	}{
		"on a point":              {20, 0.75, Within},
		"half-way":                {15, 0.625, Within},
		"more than the best":      {70, 1, Above},
		"less than the cheapest":  {9, 0.5, Below},
		"exactly on the cheapest": {10, 0.5, Within},
	} {
		t.Run(name, func(t *testing.T) {
			attainment, place := front.AttainmentAt(tc.cost)
			assert.InDelta(t, tc.attainment, attainment, 1e-12)
			assert.Equal(t, tc.place, place)
		})
	}
	_, place := Front(nil).AttainmentAt(5)
	assert.Equal(t, Nowhere, place)
}

// Both questions are each other's inverse within the front.
func TestCostAndAttainmentAreInverse(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var points []Point
		for range 2 + random.IntN(6) {
			points = append(points, Point{random.Float64(), 1 + random.Float64()})
		}
		front := Of(points)
		low, high := front[0].Attainment, front[len(front)-1].Attainment
		asked := low + (high-low)*random.Float64()
		cost, place := front.CostAt(asked)
		require.Equal(t, Within, place)
		back, place := front.AttainmentAt(cost)
		require.Equal(t, Within, place)
		assert.InDelta(t, asked, back, 1e-9)
	}
}
