package report

import (
	"math"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// point is one model in one step of time, before it is thinned out. A NaN is unknown.
type point struct {
	load, met, ttft, itl, cost, bound float64
}

// thinned merges neighbours until there are at most limit points. Peaks stay: a merged
// point has the highest load and latency and the lowest attainment of those in it, and
// the mean of the costs, since costs are compared by their areas. factor is how many
// were merged into each.
func thinned(points []point, limit int) (merged []point, factor int) {
	factor = max(1, (len(points)+limit-1)/limit)
	if factor == 1 {
		return points, 1
	}
	for group := range slices.Chunk(points, factor) {
		m := group[0]
		for _, p := range group[1:] {
			m.load = known(math.Max, m.load, p.load)
			m.met = known(math.Min, m.met, p.met)
			m.ttft = known(math.Max, m.ttft, p.ttft)
			m.itl = known(math.Max, m.itl, p.itl)
			m.cost += p.cost
			m.bound += p.bound
		}
		m.cost /= float64(len(group))
		m.bound /= float64(len(group))
		merged = append(merged, m)
	}
	return merged, factor
}

// known chooses among two values of which either may be unknown.
func known(choose func(a, b float64) float64, a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return choose(a, b)
}

// course fills the series of a model from its points.
func (m *pageModel) course(points []point, step time.Duration) {
	m.Step = seconds(step)
	m.Load, m.Met, m.TTFTs, m.ITLs, m.CostRate = []*float64{}, []*float64{}, []*float64{}, []*float64{}, []float64{}
	bounded := false
	for _, p := range points {
		bounded = bounded || p.bound > 0
		m.Load = append(m.Load, orNull(p.load, 4))
		m.Met = append(m.Met, orNull(p.met, 5))
		m.TTFTs = append(m.TTFTs, orNull(p.ttft, 4))
		m.ITLs = append(m.ITLs, orNull(p.itl, 4))
		m.CostRate = append(m.CostRate, digits(p.cost, 5))
		m.BoundRate = append(m.BoundRate, digits(p.bound, 5))
	}
	if !bounded {
		m.BoundRate = nil
	}
}

// digits keeps as many significant digits: more would only make the page larger.
func digits(value float64, n int) float64 {
	if value == 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0
	}
	places := n - 1 - int(math.Floor(math.Log10(math.Abs(value))))
	if places < 0 {
		scale := math.Pow10(-places)
		return math.Round(value/scale) * scale
	}
	return rounded(value, min(places, 9))
}

func orNull(value float64, n int) *float64 {
	if math.IsNaN(value) {
		return nil
	}
	return new(digits(value, n))
}

// add notes the replicas from t on, if they differ from those before.
func (v *pageVariant) add(t float64, wanted, ready int) {
	n := len(v.T)
	if n > 0 && v.Wanted[n-1] == wanted && v.Ready[n-1] == ready {
		return
	}
	if n > 0 && v.T[n-1] == t {
		v.Wanted[n-1], v.Ready[n-1] = wanted, ready
		return
	}
	v.T, v.Wanted, v.Ready = append(v.T, t), append(v.Wanted, wanted), append(v.Ready, ready)
}

// move is one step in the life of a replica; variants are counted over all models.
type move struct {
	at            time.Duration
	variant, node int
	replica       string
	stage         simulation.Stage
}

// lives turns moves, which are in the order of time, into one life per replica, in the
// order in which they began. Names lose the variant's, which they usually begin with.
func lives(moves []move, variants []pageVariant) []pageLife {
	index := map[string]int{}
	all := []pageLife{}
	for _, m := range moves {
		i, met := index[m.replica]
		if !met {
			i = len(all)
			index[m.replica] = i
			name := strings.TrimPrefix(m.replica, variants[m.variant].Name)
			all = append(all, pageLife{
				Variant: m.variant, Node: -1, Name: strings.TrimLeft(name, "-"),
				Created: -1, Placed: -1, Serving: -1, Leaving: -1, Gone: -1,
			})
		}
		all[i].take(m)
	}
	return all
}

func (l *pageLife) take(m move) {
	// A tenth of a second cannot be seen on the page.
	t := rounded(max(0, m.at.Seconds()), 1)
	switch m.stage {
	case simulation.Created:
		l.Created = t
	case simulation.Placed:
		// Again where its node was away for a while.
		if l.Placed < 0 {
			l.Placed = t
		}
		l.Serving, l.Leaving = -1, -1
	case simulation.Serving:
		l.Serving = t
	case simulation.Leaving, simulation.NotReady:
		l.Leaving = t
	case simulation.Gone:
		l.Gone = t
	}
	if m.node >= 0 {
		l.Node = m.node
	}
	// What was there at the start has no step in which it was asked for or placed.
	if l.Created < 0 {
		l.Created = t
	}
	if l.Node >= 0 && l.Placed < 0 && m.stage != simulation.Gone {
		l.Placed = t
	}
}

// Duration writes a length of time as people say it: 3m, not 3m0s.
func Duration(d time.Duration) string {
	text := d.Round(time.Millisecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
