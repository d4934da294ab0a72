package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

const (
	// hollow is the share of the usual answer below which that of one replica alone is none.
	hollow = 0.25
	// leastJudged is how many requests a replica must have completed within the metrics window
	// to be compared with others.
	leastJudged = 9
)

// Odd is a replica that does something else with its requests than the others of its variant:
// its node throttles it, a neighbour takes its part, or it answers at once and says nothing.
// What it shows is its own. Nothing is learned from it of what a replica serves, or of how long
// the requests are. It counts for what it does, and goes first.
type Odd struct {
	Name string
	// Pace is how many times as long as the others it takes for the same; 0 where its answers
	// are none.
	Pace float64
	// Since is when it was first seen so. For a metrics window it may be chance.
	Since time.Time
	// Load is what arrived for the model before that, in requests per second; 0 where nobody knows.
	Load capacity.Rate
}

// share is what it serves, as a share of what one of the others does.
func (o *Odd) share() float64 {
	if o.Pace == 0 {
		return 0
	}
	return 1 / o.Pace
}

// String says what it does.
func (o *Odd) String() string {
	if o.Pace == 0 {
		return o.Name + " answers at once with nearly nothing"
	}
	return fmt.Sprintf("%s takes about %.0f times as long as the others", o.Name, o.Pace)
}

// odd are the replicas of a variant that are unlike the others.
type odd struct {
	// of are by index of Variant.Replicas; nil where none is.
	of []*Odd
	// lost is what each of those that are sure, and do not hang, serves less than another one,
	// as a share of that, the most first. Seen is how many there are, sure or not.
	lost []float64
	seen int
	// empty is how many give no answers, and are sure.
	empty int
	// held is set where one may go in the place of another one, and is not to: it gives no answers,
	// or is not sure yet. First is set where those go first.
	held, first bool
	// idle are those that do nothing while others work, by index; nil where none is.
	idle []bool
}

// idles reports whether the replica of that index does nothing while others work. A router may have nothing
// for it; or it refuses at once what it gets and counts none of that, so that its part of the load is not
// seen until it is gone.
func (o *odd) idles(i int) bool { return o.idle != nil && o.idle[i] && !o.at(i) }

// at reports whether the replica of that index is unlike the others.
func (o *odd) at(i int) bool { return o.of != nil && o.of[i] != nil }

// without is what so many replicas lack in comparison with as many that are all alike, in
// replicas: those that lack most go first where we choose.
func (v *variant) without(n int) float64 {
	lost := v.odd.lost
	if gone := v.in.Ready - n; v.odd.first && gone > 0 {
		lost = lost[min(gone, len(lost)):]
	}
	sum := 0.0
	for _, l := range lost {
		sum += l
	}
	return min(sum, float64(max(0, n)))
}

// effective is what so many replicas of the variant count for.
func (v *variant) effective(n int) capacity.Rate {
	n = max(0, n)
	return capacity.Rate(float64(n) - v.without(n))
}

// besideOdd is how many of up to n replicas a scale-down leaves for the sake of those that are unlike
// the others: no other one goes beside them.
func (v *variant) besideOdd(n int) int {
	idle := 0
	for i := range v.odd.idle {
		if v.odd.idles(i) {
			idle++
		}
	}
	switch {
	case v.odd.seen+idle == 0:
		return 0
	case v.odd.first:
		return v.in.Current - v.odd.seen - idle
	case v.odd.held:
		return n
	}
	return 0
}

// empty is how many of the model's replicas give no answers.
func (m *model) empty() int { return m.count(func(v *variant) int { return v.odd.empty }) }

// judgeOdd finds the replicas of the variant that are unlike the others. One stays so until it
// was seen to be like them, or is gone. During a rolling update they differ by what they are.
func (r *round) judgeOdd(m *model, v *variant) odd {
	gone := r.deadOf(v)
	found := odd{first: r.picks(v), lost: slices.Repeat([]float64{1}, len(gone))}
	if v.in.Rolling {
		return found
	}
	paces, usual := r.paces(m, v)
	empties := r.empties(m, v)
	var names []string
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		now := Odd{Name: p.Name, Since: r.snapshot.Time, Load: m.usual()}
		before, was := v.old.odd(p.Name)
		limit := wrongPace
		if was {
			now, limit = before, sameServer
		}
		switch pace := paces[i] / usual; {
		case empties != nil && empties[i]:
			now.Pace = 0
		case pace > limit:
			now.Pace = pace
		case !was || !math.IsNaN(pace) || before.Pace == 0 && empties != nil:
			continue
		}
		if found.of == nil {
			found.of = make([]*Odd, len(v.in.Replicas))
		}
		found.of[i] = &now
		found.seen++
		v.next.Odd = append(v.next.Odd, now)
		sure := r.snapshot.Time.Sub(now.Since) >= r.policy.Window
		if found.held = found.held || !sure || now.Pace == 0; !sure {
			continue
		}
		if names = append(names, now.String()); now.Pace == 0 {
			found.empty++
		}
		if !gone[p.Name] && !r.hangs(m, v, p) {
			found.lost = append(found.lost, 1-now.share())
		}
	}
	found.idle = r.idleBeside(v)
	slices.SortFunc(found.lost, func(a, b float64) int { return cmp.Compare(b, a) })
	if len(names) > 0 {
		v.fact(ReasonReplicaDiffers, "%s; counted for what it does, removed first", strings.Join(names, ", "))
	}
	return found
}

// idleBeside are the replicas of which nothing is seen although others complete requests.
func (r *round) idleBeside(v *variant) (idle []bool) {
	works := false
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		works = works || r.fresh(p.Served) && p.Served.Value*r.window(p).Seconds() >= leastJudged
		if r.fledgling(p) || !r.fresh(p.Served, p.Running, p.Waiting) || p.Served.Value+p.Running.Value+p.Waiting.Value > 0 {
			continue
		}
		if idle == nil {
			idle = make([]bool, len(v.in.Replicas))
		}
		idle[i] = true
	}
	if !works {
		return nil
	}
	return idle
}

// usual is what arrived for the model until now; 0 where nobody knows.
func (m *model) usual() capacity.Rate {
	f := &m.old.Forecast
	if !f.Known() {
		return 0
	}
	mean, _ := f.Moments()
	return capacity.Rate(mean / f.Worth(m.old.Tokens.Shape))
}

// askedAgain takes out of the counts what was asked again of replicas that give no answers: whoever gets
// none asks once more, and they answer at once. As much of theirs is new as one of the others gets, or as
// is left of what arrived before.
func (r *round) askedAgain(m *model) {
	var others, most, before float64
	for _, v := range m.variants {
		for i := range v.in.Replicas {
			if served := r.value(v.in.Replicas[i].Served); v.saysNothing(i) {
				before = max(before, float64(v.odd.of[i].Load))
			} else {
				others, most = others+served, max(most, served)
			}
		}
	}
	if before == 0 {
		return
	}
	atMost := max(most, before-others)
	var steady, recent float64
	for _, v := range m.variants {
		found := *v.in
		found.Replicas = slices.Clone(found.Replicas)
		for i := range found.Replicas {
			if p := &found.Replicas[i]; v.saysNothing(i) {
				steady += p.Served.cut(atMost)
				recent += p.Recent.cut(atMost)
			}
		}
		v.in = &found
	}
	found := *m.in
	found.Arrival.cut(found.Arrival.Value - steady)
	found.Recent.cut(found.Recent.Value - recent)
	m.in = &found
}

// cut leaves no more than so much of a sample, and returns what it takes.
func (s *Sample) cut(most float64) float64 {
	most = max(0, most)
	if !(s.Value > most) {
		return 0
	}
	taken := s.Value - most
	s.Value = most
	return taken
}

// saysNothing reports whether the replica of that index gives no answers.
func (v *variant) saysNothing(i int) bool { return v.odd.at(i) && v.odd.of[i].Pace == 0 }

// odd is what is remembered of a replica that was unlike the others.
func (m *VariantMemory) odd(name string) (Odd, bool) {
	if i := slices.IndexFunc(m.Odd, func(o Odd) bool { return o.Name == name }); i >= 0 {
		return m.Odd[i], true
	}
	return Odd{}, false
}

// paces are how many times as long as expected each replica takes for its requests, by index;
// NaN where too little is seen of one. Beside them is the usual pace: the median, in which what
// was expected is one more voice, and of two the faster: one that is slow has a reason of its
// own, one that is fast shows what can be done. A single voice is none.
func (r *round) paces(m *model, v *variant) (paces []float64, usual float64) {
	expected := v.expected()
	paces = make([]float64, len(v.in.Replicas))
	voices := make([]float64, 0, len(paces)+1)
	for i := range v.in.Replicas {
		paces[i] = math.NaN()
		p := &v.in.Replicas[i]
		if !r.fresh(p.Running, p.Served) || p.Served.Value*r.window(p).Seconds() < leastJudged || !r.settled(p) {
			continue
		}
		shape := r.shapeOf(p, m.old.Tokens.Shape)
		time := p.Running.Value / p.Served.Value
		if r.age(p.InService) == ageFresh {
			time = p.InService.Value
		}
		if paces[i] = time / expected(p.Running.Value, shape); paces[i] > 0 {
			voices = append(voices, paces[i])
		}
	}
	if len(voices) <= 1 {
		return paces, math.NaN()
	}
	if v.old.Curve.Known() || v.in.Profile.Known() {
		voices = append(voices, 1)
	}
	return paces, lowerMedian(voices)
}

// lowerMedian is the median, of an even number the lesser one.
func lowerMedian(of []float64) float64 {
	slices.Sort(of)
	for len(of)-1 > 1 {
		of = of[1 : len(of)-1]
	}
	return of[0]
}

// expected is how long a request is expected to be in service, in seconds, with n in service: as
// the latency model says, else as was seen; else in proportion to its answer.
func (v *variant) expected() func(n float64, shape capacity.TokenShape) float64 {
	profile, curve := v.old.Latency.model(v.in.Profile), v.old.Curve
	return func(n float64, shape capacity.TokenShape) float64 {
		rate := profile.Steady(n, shape).Rate
		if rate <= 0 {
			rate = curve.Rate(n, shape, serving.Profile{})
		}
		if rate > 0 {
			return n / float64(rate)
		}
		return max(1, float64(shape.Output))
	}
}

// empties are the replicas whose answers are none, by index: much shorter than the model's were
// until now, which no other replica shows that completes anything. Nil means that nothing tells.
func (r *round) empties(m *model, v *variant) []bool {
	usual, ready := float64(m.old.Tokens.Shape.Output), 0
	if usual <= 0 {
		return nil
	}
	empty, others, some := make([]bool, len(v.in.Replicas)), 0, 0
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		ready++
		if !r.fresh(p.Served, p.Output) || p.Served.Value*r.window(p).Seconds() < leastJudged {
			continue
		}
		if empty[i] = p.Output.Value < hollow*usual; empty[i] {
			some++
		} else {
			others++
		}
	}
	if some > 0 && (some > max(1, others) || ready <= some) {
		return nil
	}
	return empty
}
