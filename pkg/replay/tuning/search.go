package tuning

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/replay/front"
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

// Search looks for the front of a family on one trial. Along its axis a policy has ever
// fewer replicas, so that it costs less and attains less: what is known to be too dear on
// one place is so on all before it, and too poor on all after it. Between those ends it
// looks at every stride-th place first, then between neighbours that differ enough to
// matter, and at the attainments that are asked about place by place. The first line is
// searched alone, and shows the others where to begin.
type Search struct {
	places int
	lines  int
	start  int
	// focus are the attainments about which somebody asks.
	focus []float64
	known []map[int]Outcome
	open  int
	waves int
}

// How the axis is walked.
const (
	// firstStride is the distance of the first places, and of those beyond the ends.
	firstStride = 8
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
	s := &Search{places: places, lines: lines, start: min(max(start, 0), places-1), focus: focus, known: make([]map[int]Outcome, lines)}
	for i := range s.known {
		s.known[i] = map[int]Outcome{}
	}
	return s
}

// Next are the settings to try now, all of which may run at the same time. Without any
// the search is over.
func (s *Search) Next() []Place {
	for s.open < s.lines && s.waves < mostWaves {
		s.waves++
		last := s.open
		if s.open > 0 {
			last = s.lines - 1
		}
		var wave []Place
		for line := s.open; line <= last; line++ {
			for _, at := range s.wanted(line) {
				wave = append(wave, Place{line, at})
			}
		}
		if len(wave) > 0 {
			return wave
		}
		s.open = last + 1
	}
	return nil
}

// Tell notes what came of a setting.
func (s *Search) Tell(p Place, o Outcome) { s.known[p.Line][p.At] = o }

// wanted are the places of a line to try now, in order.
func (s *Search) wanted(line int) []int {
	known := s.known[line]
	if len(known) == 0 {
		return s.begin(line)
	}
	tried := make([]int, 0, len(known))
	for at := range known {
		tried = append(tried, at)
	}
	slices.Sort(tried)
	want := map[int]bool{}
	add := func(at int) {
		at = min(max(at, 0), s.places-1)
		if _, done := known[at]; !done {
			want[at] = true
		}
	}
	first, last := tried[0], tried[len(tried)-1]
	if o := known[first]; o.TooPoor || o.Alive() && o.Attainment < front.Enough && (len(tried) < 2 || gains(known[tried[1]], o)) {
		add(first - firstStride)
	}
	if o := known[last]; !o.TooPoor {
		add(last + firstStride)
	}
	for i := 1; i < len(tried); i++ {
		if a, b := tried[i-1], tried[i]; b-a > 1 && s.matters(known[a], known[b], b-a) {
			add((a + b) / 2)
		}
	}
	out := make([]int, 0, len(want))
	for at := range want {
		out = append(out, at)
	}
	slices.Sort(out)
	return out
}

// gains reports whether what a dearer place attains more is worth to look at even dearer
// ones.
func gains(a, dearer Outcome) bool {
	return !a.Alive() || dearer.Cost <= a.Cost*(1+coarse) || dearer.Attainment > a.Attainment+gain
}

// begin are the first places of a line: around the start, and later around what the first
// line found to be of use.
func (s *Search) begin(line int) []int {
	var begin []int
	if line > 0 {
		for at, o := range s.known[0] {
			if o.Alive() && at%2 == 0 {
				begin = append(begin, at)
			}
		}
	}
	if len(begin) == 0 {
		for _, at := range []int{s.start - firstStride, s.start, s.start + firstStride} {
			begin = append(begin, min(max(at, 0), s.places-1))
		}
	}
	slices.Sort(begin)
	return slices.Compact(begin)
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
