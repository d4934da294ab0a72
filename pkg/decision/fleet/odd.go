package fleet

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

const (
	// hollow is the share of the usual answer below which that of one replica alone is none.
	hollow = 0.25
	// LeastJudged is how many requests a replica must have completed within the metrics window
	// to be compared with others.
	LeastJudged = 9
)

// Odd are the replicas of a variant that are unlike the others.
type Odd struct {
	// Of are by index of Variant.Replicas; nil where none is.
	Of []*contract.Odd
	// lost is what each of those that are sure, and do not hang, serves less than another one,
	// as a share of that, the most first. Seen is how many there are, sure or not.
	lost []float64
	Seen int
	// empty is how many give no answers, and are sure.
	empty int
	// held is set where one may go in the place of another one, and is not to: it gives no answers,
	// or is not sure yet. First is set where those go first.
	held, First bool
	// idle are those that do nothing while others work, by index; nil where none is.
	idle []bool
}

// Idles reports whether the replica of that index does nothing while others work. A router may have nothing
// for it; or it refuses at once what it gets and counts none of that, so that its part of the load is not
// seen until it is gone.
func (o *Odd) Idles(i int) bool { return o.idle != nil && o.idle[i] && !o.At(i) }

// At reports whether the replica of that index is unlike the others.
func (o *Odd) At(i int) bool { return o.Of != nil && o.Of[i] != nil }

// without is what so many replicas lack in comparison with as many that are all alike, in
// replicas: those that lack most go first where we choose.
func (v *Variant) without(n int) float64 {
	lost := v.Odd.lost
	if gone := v.In.Ready - n; v.Odd.First && gone > 0 {
		lost = lost[min(gone, len(lost)):]
	}
	sum := 0.0
	for _, l := range lost {
		sum += l
	}
	return min(sum, float64(max(0, n)))
}

// Effective is what so many replicas of the variant count for.
func (v *Variant) Effective(n int) capacity.Rate {
	n = max(0, n)
	return capacity.Rate(float64(n) - v.without(n))
}

// BesideOdd is how many of up to n replicas a scale-down leaves for the sake of those that are unlike
// the others: no other one goes beside them.
func (v *Variant) BesideOdd(n int) int {
	idle := 0
	for i := range v.Odd.idle {
		if v.Odd.Idles(i) {
			idle++
		}
	}
	switch {
	case v.Odd.Seen+idle == 0:
		return 0
	case v.Odd.First:
		return v.In.Current - v.Odd.Seen - idle
	case v.Odd.held:
		return n
	}
	return 0
}

// Empty is how many of the model's replicas give no answers.
func (m *Model) Empty() int {
	return signal.Count(m.Variants, func(v *Variant) int { return v.Odd.empty })
}

// JudgeOdd finds the replicas of the variant that are unlike the others. One stays so until it
// was seen to be like them, or is gone. During a rolling update they differ by what they are.
func (v *Variant) JudgeOdd(m *Model) Odd {
	gone := v.deadOf()
	found := Odd{First: v.ChoosesVictims(), lost: slices.Repeat([]float64{1}, len(gone))}
	if v.In.Rolling {
		return found
	}
	paces, usual := v.paces(m)
	empties := v.empties(m)
	var differ []any
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		now := contract.Odd{Name: p.Name, Since: v.Round.Snapshot.Time, Load: m.usual()}
		before, was := oddNamed(v.Old, p.Name)
		limit := signal.WrongPace
		if was {
			now, limit = before, signal.SameServer
		}
		switch pace := paces[i] / usual; {
		case empties != nil && empties[i]:
			now.Pace = 0
		case pace > limit:
			now.Pace = pace
		case !was || !math.IsNaN(pace) || before.Pace == 0 && empties != nil:
			continue
		}
		if found.Of == nil {
			found.Of = make([]*contract.Odd, len(v.In.Replicas))
		}
		found.Of[i] = &now
		found.Seen++
		v.Next.Odd = append(v.Next.Odd, now)
		sure := v.Round.Snapshot.Time.Sub(now.Since) >= v.Round.Policy.Window
		if found.held = found.held || !sure || now.Pace == 0; !sure {
			continue
		}
		if differ = append(differ, now.Does()); now.Pace == 0 {
			found.empty++
		}
		if !gone[p.Name] && !v.hangs(m, p) {
			found.lost = append(found.lost, 1-now.Share())
		}
	}
	found.idle = v.idleBeside()
	slices.SortFunc(found.lost, func(a, b float64) int { return cmp.Compare(b, a) })
	if len(differ) > 0 {
		v.Fact(contract.ReasonReplicaDiffers, contract.SaysDiffer.With(contract.SaysListed.With(differ...)))
	}
	return found
}

// idleBeside are the replicas of which nothing is seen although others complete requests.
func (v *Variant) idleBeside() (idle []bool) {
	works := false
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		works = works || v.Round.Fresh(p.Served) && p.Served.Value*v.Round.Window(p).Seconds() >= LeastJudged
		if v.Round.Fledgling(p) || !v.Round.Fresh(p.Served, p.Running, p.Waiting) || p.Served.Value+p.Running.Value+p.Waiting.Value > 0 {
			continue
		}
		if idle == nil {
			idle = make([]bool, len(v.In.Replicas))
		}
		idle[i] = true
	}
	if !works {
		return nil
	}
	return idle
}

// usual is what arrived for the model until now; 0 where nobody knows.
func (m *Model) usual() capacity.Rate {
	f := &m.Old.Forecast
	if !f.Known() {
		return 0
	}
	mean, _ := f.Moments()
	return capacity.Rate(mean / f.Worth(m.Old.Tokens.Shape))
}

// AskedAgain takes out of the counts what was asked again of replicas that give no answers: whoever gets
// none asks once more, and they answer at once. As much of theirs is new as one of the others gets, or as
// is left of what arrived before.
func (m *Model) AskedAgain() {
	var others, most, before float64
	for _, v := range m.Variants {
		for i := range v.In.Replicas {
			if served := m.Round.Value(v.In.Replicas[i].Served); v.saysNothing(i) {
				before = max(before, float64(v.Odd.Of[i].Load))
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
	for _, v := range m.Variants {
		found := *v.In
		found.Replicas = slices.Clone(found.Replicas)
		for i := range found.Replicas {
			if p := &found.Replicas[i]; v.saysNothing(i) {
				steady += cut(&p.Served, atMost)
				recent += cut(&p.Recent, atMost)
			}
		}
		v.In = &found
	}
	found := *m.In
	cut(&found.Arrival, found.Arrival.Value-steady)
	cut(&found.Recent, found.Recent.Value-recent)
	m.In = &found
}

// cut leaves no more than so much of a sample, and returns what it takes.
func cut(s *contract.Sample, most float64) float64 {
	most = max(0, most)
	if !(s.Value > most) {
		return 0
	}
	taken := s.Value - most
	s.Value = most
	return taken
}

// saysNothing reports whether the replica of that index gives no answers.
func (v *Variant) saysNothing(i int) bool { return v.Odd.At(i) && v.Odd.Of[i].Pace == 0 }

// oddNamed is what is remembered of a replica that was unlike the others.
func oddNamed(m *contract.VariantMemory, name string) (contract.Odd, bool) {
	if i := slices.IndexFunc(m.Odd, func(o contract.Odd) bool { return o.Name == name }); i >= 0 {
		return m.Odd[i], true
	}
	return contract.Odd{}, false
}

// paces are how many times as long as expected each replica takes for its requests, by index;
// NaN where too little is seen of one. Beside them is the usual pace: the median, in which what
// was expected is one more voice, and of two the faster: one that is slow has a reason of its
// own, one that is fast shows what can be done. A single voice is none.
func (v *Variant) paces(m *Model) (paces []float64, usual float64) {
	expected := v.expected()
	paces = make([]float64, len(v.In.Replicas))
	voices := make([]float64, 0, len(paces)+1)
	for i := range v.In.Replicas {
		paces[i] = math.NaN()
		p := &v.In.Replicas[i]
		if !v.Round.Fresh(p.Running, p.Served) || p.Served.Value*v.Round.Window(p).Seconds() < LeastJudged || !v.Round.Settled(p) {
			continue
		}
		shape := v.Round.ShapeOf(p, m.Old.Tokens.Shape)
		time := p.Running.Value / p.Served.Value
		if v.Round.Age(p.InService) == signal.AgeFresh {
			time = p.InService.Value
		}
		if paces[i] = time / expected(p.Running.Value, shape); paces[i] > 0 {
			voices = append(voices, paces[i])
		}
	}
	if len(voices) <= 1 {
		return paces, math.NaN()
	}
	if v.Old.Curve.Known() || v.In.Profile.Known() {
		voices = append(voices, 1)
	}
	return paces, LowerMedian(voices)
}

// LowerMedian is the median, of an even number the lesser one.
func LowerMedian(of []float64) float64 {
	slices.Sort(of)
	for len(of)-1 > 1 {
		of = of[1 : len(of)-1]
	}
	return of[0]
}

// expected is how long a request is expected to be in service, in seconds, with n in service: as
// the latency model says, else as was seen; else in proportion to its answer.
func (v *Variant) expected() func(n float64, shape capacity.TokenShape) float64 {
	profile, curve := signal.LearnedModel(&v.Old.Latency, v.In.Profile), v.Old.Curve
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
func (v *Variant) empties(m *Model) []bool {
	usual, ready := float64(m.Old.Tokens.Shape.Output), 0
	if usual <= 0 {
		return nil
	}
	empty, others, some := make([]bool, len(v.In.Replicas)), 0, 0
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		ready++
		if !v.Round.Fresh(p.Served, p.Output) || p.Served.Value*v.Round.Window(p).Seconds() < LeastJudged {
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
