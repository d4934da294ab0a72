package tuning

import (
	"maps"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/test/performance/front"
)

// Place is a setting: the target At its place on the family's axis, with the other settings
// of a line.
type Place struct{ Line, At int }

// Outcome is what came of a setting. A run that was given up has no point.
type Outcome struct {
	front.Point
	// TooPoor and TooDear say why it was given up.
	TooPoor, TooDear bool
}

// Alive reports whether the run was not given up.
func (o Outcome) Alive() bool { return !o.TooPoor && !o.TooDear }

// keeps reports whether it attains so much, as far as is known.
func (o Outcome) keeps(f float64) bool { return o.TooDear || !o.TooPoor && o.Attainment >= f }

// Search looks for the front of a family on one trial. Along its axis a policy has ever
// fewer replicas, so that it costs less and attains less: what is known to be too dear on
// one place is so on all before it, and too poor on all after it. The first line is looked
// at from one end to the other: every stride-th place, then between neighbours that differ
// enough to matter, and at the attainments that are asked about place by place. The other
// lines begin where the first one had those attainments, and are looked at there alone. Where
// further places change nothing the end of the axis comes next.
type Search struct {
	places int
	start  int
	// focus are the attainments about which somebody asks.
	focus []float64
	// near is set where the first line, too, is only looked at around them.
	near  bool
	known []map[int]Outcome
	// asked are the attainments that each line is looked at for; none of a line that is not
	// to be looked at.
	asked [][]float64
	// from is the line by which each one begins, and floored says whether it has a floor.
	from    []int
	floored []bool
	waves   int
}

// How the axis is walked.
const (
	// firstStride is the distance of the first places, and of those beyond the ends.
	firstStride = 8
	// nearStride is the distance beyond the ends where only an attainment is looked for.
	nearStride = 4
	// coarse is the relative difference in cost between neighbours that is never looked
	// into, and level the difference in attainment.
	coarse, level = 0.05, 0.001
	// gain is the attainment that a dearer place has to bring for even dearer ones to be
	// looked at.
	gain = 0.0002
	// borderStride is how closely the place is found at which a policy becomes too poor or
	// too dear.
	borderStride = 2
	// mostWaves ends a search whose answers make no sense.
	mostWaves = 40
)

// NewSearch begins at a place of an axis with so many places, on so many lines.
func NewSearch(places, lines, start int, focus []float64) *Search {
	if len(focus) == 0 {
		focus = []float64{front.Enough}
	}
	s := &Search{
		places: places, start: min(max(start, 0), places-1), focus: focus,
		known: make([]map[int]Outcome, lines), asked: make([][]float64, lines), from: make([]int, lines), floored: make([]bool, lines),
	}
	for i := range s.known {
		s.known[i] = map[int]Outcome{}
	}
	s.ask(0, focus...)
	return s
}

// Near is a search that looks only at the attainments that are asked about.
func Near(places, lines, start int, focus []float64) *Search {
	s := NewSearch(places, lines, start, focus)
	s.near = true
	return s
}

// Lines lets Next go on with so many of the lines in all, when the first one is done: at some
// of the attainments that are asked about.
func (s *Search) Lines(n int, focus []float64) {
	for line := 1; line < min(n, len(s.asked)); line++ {
		s.ask(line, focus...)
	}
}

// Floors lets Next go on with the lines that have a floor: at each of some attainments with
// those of the plain line that is best there. plain is how many lines have none; as many follow
// with each floor, in the same order.
func (s *Search) Floors(plain int, focus []float64) {
	for _, f := range focus {
		best := s.best(plain, min(f, front.Enough))
		for line := best + plain; line < len(s.asked); line += plain {
			s.ask(line, f)
			s.from[line], s.floored[line] = best, true
		}
	}
}

// ask has a line looked at for some attainments.
func (s *Search) ask(line int, focus ...float64) {
	for _, f := range focus {
		if !slices.Contains(s.asked[line], f) {
			s.asked[line] = append(s.asked[line], f)
		}
	}
}

// best is the cheapest of the first lines at an attainment, else the one that attains most.
func (s *Search) best(lines int, f float64) int {
	best, most, least := 0, 0.0, math.Inf(1)
	for line := range lines {
		own := s.front(line)
		switch cost, place := own.CostAt(f); {
		case place == front.Nowhere:
		case place == front.Above && math.IsInf(least, 1) && own[len(own)-1].Attainment > most:
			best, most = line, own[len(own)-1].Attainment
		case place != front.Above && cost < least:
			best, least = line, cost
		}
	}
	return best
}

// Next are the settings to try now, all of which may run at the same time. Without any there
// is nothing more to try.
func (s *Search) Next() []Place {
	if s.waves >= mostWaves {
		return nil
	}
	s.waves++
	wave := s.wave(0, 1)
	if len(wave) == 0 {
		wave = s.wave(1, len(s.asked))
	}
	return wave
}

// wave are the places to try of some lines.
func (s *Search) wave(from, to int) (wave []Place) {
	for line := from; line < to; line++ {
		if len(s.asked[line]) == 0 {
			continue
		}
		for _, at := range s.wanted(line) {
			wave = append(wave, Place{line, at})
		}
	}
	return wave
}

// Tell notes what came of a setting.
func (s *Search) Tell(p Place, o Outcome) { s.known[p.Line][p.At] = o }

// wanted are the places of a line to try now, in order.
func (s *Search) wanted(line int) []int {
	known := s.known[line]
	want := map[int]bool{}
	add := func(at int) {
		at = min(max(at, 0), s.places-1)
		if _, done := known[at]; !done {
			want[at] = true
		}
	}
	tried, asked := slices.Sorted(maps.Keys(known)), s.asked[line]
	if s.floored[line] {
		if len(tried) == 0 {
			return []int{s.places - 1}
		}
		asked, tried = s.beside(line), tried[:len(tried)-1]
	}
	switch {
	case len(tried) == 0:
		s.begin(line, asked, add)
	case line > 0 || s.near:
		for _, f := range asked {
			s.close(known, tried, min(f, front.Enough), add)
		}
	default:
		s.spread(known, tried, add)
	}
	return slices.Sorted(maps.Keys(want))
}

// beside are the attainments of a line with a floor for which more than the fleet of the floor
// may be worth its cost. Nothing of the line is cheaper than that fleet, which is the end of it.
func (s *Search) beside(line int) (asked []float64) {
	fleet, without := s.known[line][s.places-1], s.front(s.from[line])
	for _, f := range s.asked[line] {
		cost, place := without.CostAt(min(f, front.Enough))
		dearer := fleet.Alive() && (place == front.Within || place == front.Below) && fleet.Cost >= cost
		if !dearer && !fleet.keeps(min(f, front.Enough)) {
			asked = append(asked, f)
		}
	}
	return asked
}

// front is that of what a line found.
func (s *Search) front(line int) front.Front {
	var points []front.Point
	for _, at := range slices.Sorted(maps.Keys(s.known[line])) {
		if o := s.known[line][at]; o.Alive() {
			points = append(points, o.Point)
		}
	}
	return front.Of(points)
}

// spread looks at a line from end to end.
func (s *Search) spread(known map[int]Outcome, tried []int, add func(int)) {
	first, last := tried[0], tried[len(tried)-1]
	if o := known[first]; o.TooPoor || o.Alive() && o.Attainment < front.Enough && (len(tried) < 2 || gains(known[tried[1]], o)) && rises(known, tried) {
		add(first - firstStride)
	}
	if o := known[last]; !o.TooPoor {
		add(s.beyond(known, tried, firstStride))
	}
	for i := 1; i < len(tried); i++ {
		if a, b := tried[i-1], tried[i]; b-a > 1 && s.matters(known[a], known[b], b-a) {
			add((a + b) / 2)
		}
	}
}

// close looks for two neighbours on either side of an attainment.
func (s *Search) close(known map[int]Outcome, tried []int, f float64, add func(int)) {
	fewer := slices.IndexFunc(tried, func(at int) bool { return !known[at].keeps(f) })
	switch {
	case fewer < 0:
		add(s.beyond(known, tried, nearStride))
	case fewer == 0:
		if rises(known, tried) {
			add(tried[0] - nearStride)
		}
	default:
		if a, b := tried[fewer-1], tried[fewer]; b-a > 1 && (!known[a].TooDear || !known[b].TooPoor || b-a > borderStride) {
			add((a + b) / 2)
		}
	}
}

// beyond is the next place after the last one: so many further, or where the last two ended
// alike the end of the axis, and half-way to it when that is known.
func (s *Search) beyond(known map[int]Outcome, tried []int, stride int) int {
	n := len(tried)
	if last := known[tried[n-1]]; n > 1 && last.Alive() && last == known[tried[n-2]] {
		if _, done := known[s.places-1]; done {
			return (tried[n-1] + s.places - 1) / 2
		}
		return s.places - 1
	}
	return tried[n-1] + stride
}

// gains reports whether what a dearer place attains more is worth to look at even dearer
// ones.
func gains(a, dearer Outcome) bool {
	return !a.Alive() || dearer.Cost <= a.Cost*(1+coarse) || dearer.Attainment > a.Attainment+gain
}

// rises reports whether the dearest of the places that were tried attain more and more, so that
// even dearer ones may attain enough. Two steps without a gain say that all replicas are there
// that fit, or that more of them do not help.
func rises(known map[int]Outcome, tried []int) bool {
	if len(tried) < 3 || tried[2]-tried[0] < 2*nearStride {
		return true
	}
	dear, cheap := known[tried[0]], known[tried[2]]
	return !dear.Alive() || !cheap.Alive() || dear.Attainment > cheap.Attainment+gain
}

// begin are the first places of a line: around the start, and later where the line that it
// begins by has what is asked about.
func (s *Search) begin(line int, asked []float64, add func(int)) {
	first := s.known[s.from[line]]
	tried := slices.Sorted(maps.Keys(first))
	some := false
	for _, f := range asked {
		at := slices.IndexFunc(tried, func(at int) bool { o := first[at]; return o.Alive() && o.Attainment < min(f, front.Enough) })
		if line > 0 && at > 0 && first[tried[at-1]].Alive() {
			add(tried[at-1])
			some = true
		}
	}
	switch {
	case some || len(asked) == 0:
	case s.near || line > 0:
		add(s.start)
	default:
		for _, at := range []int{s.start - firstStride, s.start, s.start + firstStride} {
			add(at)
		}
	}
}

// matters reports whether to look between two neighbours.
func (s *Search) matters(a, b Outcome, gap int) bool {
	switch {
	case !a.Alive() && !b.Alive():
		return a.TooDear && b.TooPoor
	case !a.Alive() || !b.Alive():
		return gap > borderStride || b.TooPoor && a.Attainment > slices.Min(s.focus)
	}
	low, high := min(a.Attainment, b.Attainment), max(a.Attainment, b.Attainment)
	for _, f := range s.focus {
		f = min(f, front.Enough)
		if low <= f && f <= high {
			return true
		}
	}
	cheap, dear := min(a.Cost, b.Cost), max(a.Cost, b.Cost)
	return dear > cheap*(1+coarse) && high-low > level && gap > borderStride
}
