package tuning

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/performance/front"
)

// service is a made-up service: what each setting of a policy keeps and costs there.
type service struct {
	// knee is the place from which on it keeps half of its requests.
	knee float64
	// width is over how many places it goes from all to none.
	width float64
	// wobble is what chance adds.
	wobble float64
	seed   uint64
	// poor and dear are where runs are given up.
	poor, dear float64
	tries      int
}

func (s *service) point(p Place) front.Point {
	random := rand.New(rand.NewPCG(s.seed, uint64(1000*p.Line+p.At)))
	shift := 0.3 * float64(p.Line)
	kept := 1 / (1 + math.Exp((float64(p.At)-s.knee+shift)/s.width))
	return front.Point{
		Attainment: min(1, kept+s.wobble*(random.Float64()-0.5)),
		Cost:       math.Exp(-0.045*(float64(p.At)-s.knee)) * (1 - 0.02*float64(p.Line)) * (1 + s.wobble*random.Float64()),
	}
}

func (s *service) outcome(p Place) Outcome {
	s.tries++
	o := Outcome{Point: s.point(p)}
	switch {
	case o.Attainment < s.poor:
		return Outcome{TooPoor: true}
	case o.Cost > s.dear:
		return Outcome{TooDear: true}
	}
	return o
}

// searched is what a search finds.
func searched(s *service, places, lines, start int, focus ...float64) []front.Point {
	search := NewSearch(places, lines, start, focus)
	search.Lines(lines, focus)
	var found []front.Point
	for wave := search.Next(); len(wave) > 0; wave = search.Next() {
		for _, p := range wave {
			o := s.outcome(p)
			search.Tell(p, o)
			if o.Alive() {
				found = append(found, o.Point)
			}
		}
	}
	return found
}

// The slow reference tries every place.
func everything(s *service, places, lines int) []front.Point {
	var all []front.Point
	for line := range lines {
		for at := range places {
			if o := s.outcome(Place{line, at}); o.Alive() {
				all = append(all, o.Point)
			}
		}
	}
	return all
}

func TestFewTriesFindAlmostTheWholeFront(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	tries, grid := 0, 0
	for seed := range uint64(100) {
		s := service{
			knee: 20 + 200*random.Float64(), width: 1 + 2*random.Float64(), wobble: 0.002, seed: seed,
			poor: 0.6, dear: 4,
		}
		start := int(s.knee) - 40 + random.IntN(50)
		focus := []float64{0.99, 0.7}
		found := front.Of(searched(&s, 240, 3, start, focus...))
		tries += s.tries
		s.tries = 0
		whole := front.Of(everything(&s, 240, 3))
		grid += s.tries
		for _, a := range focus {
			want, _ := whole.CostAt(a)
			got, place := found.CostAt(a)
			require.Equal(t, front.Within, place, "%+v", s)
			assert.InEpsilon(t, want, got, 0.01, "at %v of %+v", a, s)
		}
		want, _ := whole.CostAt(0.9)
		got, _ := found.CostAt(0.9)
		assert.InEpsilon(t, want, got, 0.03, "where nobody asks it may be coarser: %+v", s)
	}
	assert.Less(t, tries, grid/8, "of %d settings", grid)
}

func TestTheSameAnswersGiveTheSameQuestions(t *testing.T) {
	s := service{knee: 100, width: 2, poor: 0.6, dear: 4}
	first := searched(&s, 240, 3, 80, 0.95)
	assert.Equal(t, first, searched(&s, 240, 3, 80, 0.95))
}

func TestNothingIsAskedTwice(t *testing.T) {
	s := service{knee: 100, width: 2, poor: 0.6, dear: 4}
	search := NewSearch(240, 3, 10, []float64{0.95})
	search.Lines(3, []float64{0.95})
	asked := map[Place]bool{}
	for wave := search.Next(); len(wave) > 0; wave = search.Next() {
		for _, p := range wave {
			require.False(t, asked[p], "%v", p)
			asked[p] = true
			search.Tell(p, s.outcome(p))
		}
	}
	assert.NotEmpty(t, asked)
}

func TestSearchesThatFindNothingEnd(t *testing.T) {
	for name, answer := range map[string]func(Place) Outcome{
		"everything is too poor":              func(Place) Outcome { return Outcome{TooPoor: true} },
		"everything is too dear":              func(Place) Outcome { return Outcome{TooDear: true} },
		"too dear, then too poor":             func(p Place) Outcome { return Outcome{TooDear: p.At < 37, TooPoor: p.At >= 37} },
		"too poor with many, dear with few":   func(p Place) Outcome { return Outcome{TooDear: p.At > 37, TooPoor: p.At <= 37} },
		"all the same":                        func(Place) Outcome { return Outcome{Point: front.Point{Attainment: 0.9, Cost: 1}} },
		"answers that make no sense":          func(p Place) Outcome { return Outcome{TooDear: p.At%3 == 0, TooPoor: p.At%3 == 1} },
		"everything keeps everything for one": func(Place) Outcome { return Outcome{Point: front.Point{Attainment: 1, Cost: 1}} },
	} {
		t.Run(name, func(t *testing.T) {
			search, asked := NewSearch(100, 2, 50, []float64{0.95}), 0
			search.Lines(2, []float64{0.95})
			for wave := search.Next(); len(wave) > 0; wave = search.Next() {
				for _, p := range wave {
					asked++
					require.True(t, p.At >= 0 && p.At < 100, "%v", p)
					search.Tell(p, answer(p))
				}
			}
			assert.LessOrEqual(t, asked, 200)
			assert.NotZero(t, asked)
		})
	}
}

func TestOnePlaceAlone(t *testing.T) {
	search := NewSearch(1, 1, 7, nil)
	require.Equal(t, []Place{{0, 0}}, search.Next())
	search.Tell(Place{}, Outcome{Point: front.Point{Attainment: 0.9, Cost: 1}})
	assert.Empty(t, search.Next())
}

func TestOtherLinesComeWhenTheyAreAskedFor(t *testing.T) {
	s := service{knee: 100, width: 2, poor: 0.6, dear: 4}
	search := NewSearch(240, 3, 90, []float64{0.95})
	lines := map[int]int{}
	all := func() {
		for wave := search.Next(); len(wave) > 0; wave = search.Next() {
			for _, p := range wave {
				lines[p.Line]++
				search.Tell(p, s.outcome(p))
			}
		}
	}
	all()
	require.Len(t, lines, 1)
	first := lines[0]
	search.Lines(2, []float64{0.95})
	all()
	assert.Len(t, lines, 2, "no more than are asked for")
	search.Lines(99, []float64{0.95})
	all()
	assert.Len(t, lines, 3)
	assert.Equal(t, first, lines[0], "the first line was done")
	assert.Less(t, lines[1], first, "the others are only looked at near the attainment")
}

// What is best without a floor differs from one attainment to another.
func TestFloorsAreThoseOfTheBestLine(t *testing.T) {
	for name, tc := range map[string]struct {
		// discounts are what each line costs less where much is asked for, and where little is.
		much, little [3]float64
		// tried are the lines with a floor that are looked at, three plain ones and three with
		// each of two floors.
		tried []int
	}{
		"the first one is best":           {tried: []int{3, 6}},
		"the last one is best":            {much: [3]float64{2: 0.2}, little: [3]float64{2: 0.2}, tried: []int{5, 8}},
		"one for much and one for little": {much: [3]float64{1: 0.2}, little: [3]float64{2: 0.2}, tried: []int{4, 5, 7, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			search, tried := NewSearch(240, 9, 90, []float64{0.99, 0.7}), map[int]bool{}
			all := func() {
				for wave := search.Next(); len(wave) > 0; wave = search.Next() {
					for _, p := range wave {
						tried[p.Line] = true
						o := Outcome{Point: front.Point{Attainment: 1 / (1 + math.Exp(float64(p.At-100)/2)), Cost: math.Exp(-0.045 * float64(p.At-100))}}
						switch {
						case p.Line > 2:
						case o.Attainment > 0.9:
							o.Cost *= 1 - tc.much[p.Line]
						default:
							o.Cost *= 1 - tc.little[p.Line]
						}
						search.Tell(p, o)
					}
				}
			}
			all()
			search.Lines(3, []float64{0.99, 0.7})
			all()
			assert.Len(t, tried, 3)
			search.Floors(3, []float64{0.99, 0.7})
			all()
			assert.Len(t, tried, 3+len(tc.tried))
			for _, line := range tc.tried {
				assert.True(t, tried[line], "line %d", line)
			}
		})
	}
}

// A fleet that a floor holds is the same whatever the target is.
func TestWhatChangesNothingIsLookedAtOnce(t *testing.T) {
	for name, begin := range map[string]func(places, lines, start int, focus []float64) *Search{"from end to end": NewSearch, "near": Near} {
		t.Run(name, func(t *testing.T) {
			search, tried := begin(240, 1, 20, []float64{0.9}), 0
			for wave := search.Next(); len(wave) > 0; wave = search.Next() {
				for _, p := range wave {
					tried++
					search.Tell(p, Outcome{Point: front.Point{Attainment: 0.95, Cost: math.Exp(-0.045 * float64(min(p.At, 25)))}})
				}
			}
			assert.LessOrEqual(t, tried, 9)
			last, known := search.known[0][239]
			assert.True(t, known, "the end of the axis says whether there is more")
			assert.InDelta(t, 0.95, last.Attainment, 1e-9)
		})
	}
}

// When all replicas are there that fit, a lower target changes nothing any more.
func TestWhatAttainsNoMoreIsNotMadeDearer(t *testing.T) {
	for name, begin := range map[string]func(places, lines, start int, focus []float64) *Search{"from end to end": NewSearch, "near": Near} {
		t.Run(name, func(t *testing.T) {
			search, tried := begin(240, 1, 150, []float64{0.95}), 0
			for wave := search.Next(); len(wave) > 0; wave = search.Next() {
				for _, p := range wave {
					tried++
					// Most of them fit, and the rest is chance.
					o := Outcome{Point: front.Point{Attainment: 0.9 - 0.004*float64(max(0, p.At-140)), Cost: 10 - 0.1*float64(max(0, p.At-140)) - 0.01*float64(p.At%3)}}
					o.TooPoor = o.Attainment < 0.7
					search.Tell(p, o)
				}
			}
			assert.LessOrEqual(t, tried, 30)
		})
	}
}

// Beyond a stretch where nothing changes there may be a fall.
func TestWhatComesAfterAStretchIsFound(t *testing.T) {
	search := Near(240, 1, 20, []float64{0.895})
	cheapest := math.Inf(1)
	for wave := search.Next(); len(wave) > 0; wave = search.Next() {
		for _, p := range wave {
			o := Outcome{Point: front.Point{Attainment: 0.95, Cost: 1}}
			if p.At >= 100 {
				o.Point = front.Point{Attainment: 0.95 - 0.01*float64(p.At-99), Cost: math.Exp(-0.045 * float64(p.At-99))}
			}
			if o.Attainment >= 0.895 {
				cheapest = min(cheapest, o.Cost)
			}
			search.Tell(p, o)
		}
	}
	assert.InDelta(t, math.Exp(-0.045*5), cheapest, 1e-9)
}

// The cheapest of a line with a floor is the fleet that the floor holds: where that suffices, or
// costs more than what is known already, nothing else of the line is of use.
func TestFleetsThatFloorsHold(t *testing.T) {
	for name, tc := range map[string]struct {
		kept, cost float64
		least      int
		most       int
	}{
		"suffices":           {kept: 0.96, cost: 0.5, least: 1, most: 1},
		"is too dear":        {kept: 0.8, cost: 10, least: 1, most: 1},
		"takes some more":    {kept: 0.8, cost: 0.5, least: 5, most: 15},
		"keeps next to none": {kept: 0, cost: 0.01, least: 5, most: 15},
	} {
		t.Run(name, func(t *testing.T) {
			search, tried := Near(240, 2, 90, []float64{0.95}), 0
			s := service{knee: 100, width: 2, poor: 0.2, dear: 20}
			all := func() {
				for wave := search.Next(); len(wave) > 0; wave = search.Next() {
					for _, p := range wave {
						o := s.outcome(Place{At: p.At})
						if p.Line == 1 {
							tried++
							point := s.point(Place{At: p.At})
							o = Outcome{Point: front.Point{Attainment: max(point.Attainment, tc.kept), Cost: max(point.Cost, tc.cost)}}
							o.TooPoor = o.Attainment < s.poor
						}
						search.Tell(p, o)
					}
				}
			}
			all()
			search.Floors(1, []float64{0.95})
			all()
			assert.GreaterOrEqual(t, tried, tc.least)
			assert.LessOrEqual(t, tried, tc.most)
		})
	}
}
