package front

import (
	"cmp"
	"slices"
)

// Point is what was kept, as a share from 0 to 1, and what it cost.
type Point struct {
	Attainment, Cost float64
}

// Front are points of which none dominates another: each further one attains more and
// costs more.
type Front []Point

// Of is the front of some points.
func Of(points []Point) Front {
	var front Front
	for _, i := range Indices(points) {
		front = append(front, points[i])
	}
	return front
}

// Indices are the places of the points that are on the front, in the order of the front.
// Of equal points it is the first one.
func Indices(points []Point) []int {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(points[a].Cost, points[b].Cost), cmp.Compare(points[b].Attainment, points[a].Attainment))
	})
	var on []int
	for _, i := range order {
		if len(on) == 0 || points[i].Attainment > points[on[len(on)-1]].Attainment {
			on = append(on, i)
		}
	}
	return on
}

// Place says where on a front a question fell.
type Place string

// Where a question can fall. Outside of the front the answer is a bound and no value.
const (
	// Within: between two points of the front, or on one.
	Within Place = "within"
	// Above: no point attains as much. What the front would cost there is not known; it is
	// at least what its best point costs.
	Above Place = "above"
	// Below: every point attains more. What the front would cost there is not known; it is
	// at most what its cheapest point costs.
	Below Place = "below"
	// Nowhere: the front has no points.
	Nowhere Place = "nowhere"
)

// CostAt is what the front costs at an attainment, on straight lines between its points.
// Above and below the front it is the cost of the point at that end.
func (f Front) CostAt(attainment float64) (cost float64, place Place) {
	if len(f) == 0 {
		return 0, Nowhere
	}
	next := slices.IndexFunc(f, func(p Point) bool { return p.Attainment >= attainment })
	switch {
	case next < 0:
		return f[len(f)-1].Cost, Above
	case f[next].Attainment == attainment:
		return f[next].Cost, Within
	case next == 0:
		return f[0].Cost, Below
	}
	a, b := f[next-1], f[next]
	return a.Cost + (b.Cost-a.Cost)*(attainment-a.Attainment)/(b.Attainment-a.Attainment), Within
}

// AttainmentAt is what the front attains at a cost, on straight lines between its points.
// With more money than its best point costs it attains what that one does, and says
// Above; with less than its cheapest one costs nothing is known, and it says Below and
// what that one attains.
func (f Front) AttainmentAt(cost float64) (attainment float64, place Place) {
	if len(f) == 0 {
		return 0, Nowhere
	}
	next := slices.IndexFunc(f, func(p Point) bool { return p.Cost >= cost })
	switch {
	case next < 0:
		return f[len(f)-1].Attainment, Above
	case f[next].Cost == cost:
		return f[next].Attainment, Within
	case next == 0:
		return f[0].Attainment, Below
	}
	a, b := f[next-1], f[next]
	return a.Attainment + (b.Attainment-a.Attainment)*(cost-a.Cost)/(b.Cost-a.Cost), Within
}
