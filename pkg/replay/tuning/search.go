package tuning

import (
	"maps"
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
// one place is so on all before it, and too poor on all after it. The first line is looked
// at from one end to the other: every stride-th place, then between neighbours that differ
// enough to matter, and at the attainments that are asked about place by place. The other
// lines begin where the first one had those attainments, and are looked at there alone.
type Search struct {
	places int
	lines  int
	start  int
	// focus are the attainments about which somebody asks.
	focus []float64
	// near is set where the first line, too, is only looked at around them.
	near  bool
	known []map[int]Outcome
	// open is the first line that is not done, and upTo the first that is not to be looked
	// at.
	open, upTo int
	waves      int
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
	s := &Search{places: places, lines: lines, start: min(max(start, 0), places-1), focus: focus, known: make([]map[int]Outcome, lines), upTo: 1}
	for i := range s.known {
		s.known[i] = map[int]Outcome{}
	}
	return s
}

// Near is a search that looks only at the attainments that are asked about.
func Near(places, lines, start int, focus []float64) *Search {
	s := NewSearch(places, lines, start, focus)
	s.near = true
	return s
}

// Lines lets Next go on with so many of the lines in all, when the first one is done.
func (s *Search) Lines(n int) { s.upTo = min(n, s.lines) }

// Next are the settings of the first line to try now, all of which may run at the same
// time. Without any there is nothing more to try.
func (s *Search) Next() []Place {
	for s.open < s.upTo && s.waves < mostWaves {
		s.waves++
		last := s.open
		if s.open > 0 {
			last = s.upTo - 1
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
	want := map[int]bool{}
	add := func(at int) {
		at = min(max(at, 0), s.places-1)
		if _, done := known[at]; !done {
			want[at] = true
		}
	}
	tried := slices.Sorted(maps.Keys(known))
	switch {
	case len(tried) == 0:
		s.begin(line, add)
	case line > 0 || s.near:
		for _, f := range s.focus {
			s.close(known, tried, min(f, front.Enough), add)
		}
	default:
		s.spread(known, tried, add)
	}
	return slices.Sorted(maps.Keys(want))
}

// spread looks at a line from end to end.
func (s *Search) spread(known map[int]Outcome, tried []int, add func(int)) {
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
}

// close looks for two neighbours on either side of an attainment.
func (s *Search) close(known map[int]Outcome, tried []int, f float64, add func(int)) {
	keeps := func(at int) bool { o := known[at]; return o.TooDear || !o.TooPoor && o.Attainment >= f }
	fewer := slices.IndexFunc(tried, func(at int) bool { return !keeps(at) })
	switch {
	case fewer < 0:
		add(tried[len(tried)-1] + nearStride)
	case fewer == 0:
		add(tried[0] - nearStride)
	default:
		if a, b := tried[fewer-1], tried[fewer]; b-a > 1 && (!known[a].TooDear || !known[b].TooPoor || b-a > borderStride) {
			add((a + b) / 2)
		}
	}
}

// gains reports whether what a dearer place attains more is worth to look at even dearer
// ones.
func gains(a, dearer Outcome) bool {
	return !a.Alive() || dearer.Cost <= a.Cost*(1+coarse) || dearer.Attainment > a.Attainment+gain
}

// begin are the first places of a line: around the start, and later where the first line
// has what is asked about.
func (s *Search) begin(line int, add func(int)) {
	tried := slices.Sorted(maps.Keys(s.known[0]))
	some := false
	for _, f := range s.focus {
		at := slices.IndexFunc(tried, func(at int) bool { o := s.known[0][at]; return o.Alive() && o.Attainment < min(f, front.Enough) })
		if line > 0 && at > 0 && s.known[0][tried[at-1]].Alive() {
			add(tried[at-1])
			some = true
		}
	}
	switch {
	case some:
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
