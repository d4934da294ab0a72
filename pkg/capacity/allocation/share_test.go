package allocation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// crowd is a random cluster of models with three or four variants each on eight kinds
// of devices, of which there is as much as a share of what all would buy.
func crowd(random *rand.Rand, variants int, share float64) ([]Model, []float64) {
	var models []Model
	rows := make([]float64, 8)
	for n := 0; n < variants; {
		m := Model{Priority: 1 + random.IntN(3), Need: capacity.Rate(5 + 60*random.Float64())}
		for _, row := range random.Perm(len(rows))[:min(3+random.IntN(2), variants-n)] {
			devices := float64(int(1) << random.IntN(4))
			m.Options = append(m.Options, Option{
				Cost: capacity.Cost(devices * (1 + float64(row))), Serves: capacity.Rate(devices * (0.5 + float64(row)) * (0.7 + 0.6*random.Float64()) / 2),
				Now: max(0, random.IntN(6)-3), Most: -1, Start: capacity.Cost(0.1 * devices), Uses: []Use{{row, devices}},
			})
		}
		n += len(m.Options)
		for j, x := range Cheapest(m.Options, m.Need).Replicas {
			for _, u := range m.Options[j].Uses {
				rows[u.Row] += share * u.Amount * float64(max(0, x-m.Options[j].Now))
			}
		}
		models = append(models, m)
	}
	return models, rows
}

// short is a small cluster in which not all fits.
func short(random *rand.Rand) ([]Model, []float64) {
	rows := []float64{float64(random.IntN(7)), float64(random.IntN(7))}
	models := make([]Model, 1+random.IntN(3))
	for i := range models {
		models[i] = Model{Priority: random.IntN(2), Need: capacity.Rate(1 + random.IntN(12)), Options: make([]Option, 1+random.IntN(2))}
		for j := range models[i].Options {
			devices := 1 + random.IntN(2)
			models[i].Options[j] = Option{
				Cost: capacity.Cost(devices * (1 + random.IntN(5))), Serves: capacity.Rate(devices * (1 + random.IntN(4))), Now: random.IntN(3),
				Most: 5, Start: capacity.Cost(random.IntN(2)), Uses: []Use{{random.IntN(2), float64(devices)}},
			}
			models[i].Options[j].Least = random.IntN(models[i].Options[j].Now + 1)
		}
	}
	return models, rows
}

// used is what the answer takes of the rows.
func used(models []Model, rows []float64, answer []Vector) []float64 {
	sum := make([]float64, len(rows))
	for i, v := range answer {
		for j, n := range v.Replicas {
			for _, u := range models[i].Options[j].Uses {
				sum[u.Row] += u.Amount * float64(max(0, n-models[i].Options[j].Now))
			}
		}
	}
	return sum
}

func within(used, limits []float64) bool {
	for i, u := range used {
		if u > limits[i]+roundoff(limits[i]) {
			return false
		}
	}
	return true
}

// judged is the priced unserved demand of each of two priorities, and the cost, written
// down once more.
func judged(models []Model, answer []Vector) [3]float64 {
	var sum [3]float64
	for i, m := range models {
		rest, served, worth := float64(m.Need), 0.0, math.Inf(1)
		for j, o := range m.Options {
			n := answer[i].Replicas[j]
			rest -= float64(o.Serves) * float64(o.Least)
			served += float64(o.Serves) * float64(n-o.Least)
			worth = math.Min(worth, float64(o.Cost)/float64(o.Serves))
			sum[2] += float64(o.Cost)*float64(n) + float64(o.Start)*float64(max(0, n-o.Now))
		}
		for k := range 10 {
			low, high := rest*float64(k)/10, rest*float64(k+1)/10
			sum[m.Priority] += math.Exp2(float64(9-k)) * worth * math.Max(0, high-math.Max(low, served))
		}
	}
	return sum
}

// everything tries all vectors of all models.
func everything(models []Model, rows []float64, answer []Vector, at, option int, best *[3]float64) {
	if at == len(models) {
		if within(used(models, rows, answer), rows) {
			if sum := judged(models, answer); lessBy(sum, *best) {
				*best = sum
			}
		}
		return
	}
	if option == len(models[at].Options) {
		everything(models, rows, answer, at+1, 0, best)
		return
	}
	for n := models[at].Options[option].Least; n <= models[at].Options[option].Most; n++ {
		answer[at].Replicas[option] = n
		everything(models, rows, answer, at, option+1, best)
	}
}

func lessBy(a, b [3]float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-6*math.Max(1, b[i]) {
			return a[i] < b[i]
		}
	}
	return false
}

func TestShareAgreesWithBruteForceOnSmallClusters(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	const cases = 400
	worse, dearer, scarce := 0, 0, 0
	for range cases {
		models, rows := short(random)
		answer := Share(models, rows)
		require.True(t, within(used(models, rows, answer), rows))
		trial := make([]Vector, len(models))
		for i, m := range models {
			trial[i].Replicas = make([]int, len(m.Options))
		}
		best := [3]float64{1e18, 1e18, 1e18}
		everything(models, rows, trial, 0, 0, &best)
		got := judged(models, answer)
		require.False(t, lessBy(got, best), "the brute force is not complete: %v %v", got, best)
		switch {
		case lessBy(best, [3]float64{got[0], got[1], math.Inf(-1)}):
			worse++
		case got[2] > best[2]*1.001:
			dearer++
		}
		if best[0]+best[1] > 0 {
			scarce++
		}
	}
	t.Logf("%d of %d cases leave more unserved than need be, %d cost more; %d were scarce", worse, cases, dearer, scarce)
	assert.Greater(t, scarce, cases/4)
	assert.Zero(t, worse)
	assert.Zero(t, dearer)
}

func TestShareKeepsLimitsAndBoundsAndIsCheapestWhereNothingIsShort(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(23, seed))
		share := []float64{0.3, 0.8, 3}[seed%3]
		models, rows := crowd(random, 60, share)
		answer := Share(models, rows)
		require.True(t, within(used(models, rows, answer), rows))
		for i, m := range models {
			for j, n := range answer[i].Replicas {
				require.GreaterOrEqual(t, n, m.Options[j].Least)
			}
			if share > 1 {
				require.Equal(t, Cheapest(m.Options, m.Need), answer[i])
			}
		}
	}
}

func TestShareDoesNotDependOnTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(25, 26))
	for range 5 {
		models, rows := crowd(random, 40, 0.6)
		first := Share(models, rows)
		order := random.Perm(len(models))
		shuffled := make([]Model, len(models))
		for i, at := range order {
			shuffled[i] = models[at]
		}
		again := Share(shuffled, rows)
		for i, at := range order {
			require.Equal(t, first[at], again[i])
		}
	}
}

// one is a model with a single variant of one device.
func one(priority int, need capacity.Rate, least int) Model {
	return Model{Priority: priority, Need: need, Options: []Option{{Cost: 1, Serves: 1, Least: least, Most: -1, Uses: []Use{{0, 1}}}}}
}

func TestShareByExample(t *testing.T) {
	weighted := func(m Model, weight float64) Model {
		m.Weight = weight
		return m
	}
	existing := func(m Model, now, most int, cost capacity.Cost) Model {
		m.Options[0].Now, m.Options[0].Most, m.Options[0].Cost = now, most, cost
		return m
	}
	beside := func(m, other Model) Model {
		m.Options = append(m.Options, other.Options...)
		return m
	}
	for name, tc := range map[string]struct {
		models []Model
		row    float64
		want   []int
	}{
		"the more important first":              {[]Model{one(2, 10, 0), one(1, 8, 0)}, 10, []int{2, 8}},
		"equals share":                          {[]Model{one(1, 10, 0), one(1, 10, 0)}, 10, []int{5, 5}},
		"equals share by what they need":        {[]Model{one(1, 20, 0), one(1, 10, 0)}, 15, []int{10, 5}},
		"what one does not need the other gets": {[]Model{one(1, 2, 0), one(1, 20, 0)}, 20, []int{2, 18}},
		"weights":                               {[]Model{weighted(one(1, 30, 0), 2), weighted(one(1, 30, 0), 1)}, 27, []int{18, 9}},
		"minima come before any growth":         {[]Model{one(1, 10, 0), one(9, 10, 3)}, 10, []int{7, 3}},
		"minima that do not fit":                {[]Model{one(1, 10, 3), one(2, 10, 4)}, 5, []int{3, 2}},
		"minima of equals that do not fit":      {[]Model{one(1, 10, 4), one(1, 10, 4)}, 4, []int{2, 2}},
		"what exists and costs next to nothing": {[]Model{existing(one(1, 10, 0), 5, -1, 1e-12), existing(one(1, 20, 0), 0, -1, 1e6)}, 10, []int{5, 10}},
		"no more than the upper bound stays":    {[]Model{beside(existing(one(1, 20, 2), 9, 5, 1), one(1, 20, 0)), one(1, 20, 0)}, 12, []int{5, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, v := range Share(tc.models, []float64{tc.row}) {
				got = append(got, v.Replicas[0])
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// Nobody of the same priority is left with nothing while another one of whose replicas
// it could use the devices is served in full.
func TestNobodyStarves(t *testing.T) {
	random := rand.New(rand.NewPCG(27, 28))
	for range 200 {
		models := make([]Model, 2+random.IntN(5))
		all := 0.0
		for i := range models {
			models[i] = one(1, capacity.Rate(4+random.IntN(12)), 0)
			// Up to eight times the devices for the same worth.
			models[i].Options[0].Cost = capacity.Cost(1 + random.IntN(8))
			all += float64(models[i].Need)
		}
		rows := []float64{math.Floor(all * (0.4 + 0.5*random.Float64()))}
		answer := Share(models, rows)
		for i, v := range answer {
			require.Positive(t, v.Replicas[0], "%d of %+v with %v: %v", i, models, rows, answer)
		}
		require.InDelta(t, rows[0], used(models, rows, answer)[0], 0, "nothing is left over")
	}
}

// roomier is the same question with more of one row.
func roomier(random *rand.Rand, rows []float64) []float64 {
	more := append([]float64(nil), rows...)
	more[random.IntN(len(more))] += float64(1 + random.IntN(3))
	return more
}

func TestMoreRoomNeverServesLess(t *testing.T) {
	random := rand.New(rand.NewPCG(37, 38))
	for range 400 {
		models, rows := short(random)
		before := judged(models, Share(models, rows))
		after := judged(models, Share(models, roomier(random, rows)))
		before[2], after[2] = 0, 0
		require.False(t, lessBy(before, after), "%+v %v", models, rows)
	}
}

func TestMoreNeedOfTheLessImportantTakesNothingFromOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 40))
	for range 400 {
		models, rows := short(random)
		before := judged(models, Share(models, rows))
		for i := range models {
			if models[i].Priority == 1 {
				models[i].Need *= 2
			}
		}
		after := judged(models, Share(models, rows))
		require.InDelta(t, before[0], after[0], 1e-3*(1+before[0]), "%+v %v", models, rows)
	}
}

func TestMoreNeedOfAModelLeavesMoreUnserved(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 42))
	for range 200 {
		models, rows := short(random)
		models = models[:1]
		last := 0.0
		for range 6 {
			now := float64(Share(models, rows)[0].Unserved)
			require.GreaterOrEqual(t, now, last-1e-9, "%+v %v", models, rows)
			models[0].Need++
			last = now
		}
	}
}

// Large clusters may take longer, to some half a second.

// Twins differ by less than a band and a replica, whatever is left.
func TestTwinsShareAlike(t *testing.T) {
	random := rand.New(rand.NewPCG(43, 44))
	for range 200 {
		twin := one(1, capacity.Rate(5+random.IntN(20)), 0)
		models := make([]Model, 2+random.IntN(4))
		for i := range models {
			models[i] = twin
		}
		rows := []float64{float64(random.IntN(int(twin.Need) * len(models)))}
		least, most := math.MaxInt, 0
		for _, v := range Share(models, rows) {
			least, most = min(least, v.Replicas[0]), max(most, v.Replicas[0])
		}
		band := int(math.Ceil(float64(twin.Need)/10)) + 1
		require.LessOrEqual(t, most-least, band, "%d of need %v with %v", len(models), twin.Need, rows)
	}
}

// Two clusters that share no limit are answered as if each were alone.
func TestSeparateClustersDoNotMatterToEachOther(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 46))
	for range 100 {
		first, rows := short(random)
		second, more := short(random)
		both := append([]Model(nil), first...)
		for _, m := range second {
			m.Options = append([]Option(nil), m.Options...)
			for j := range m.Options {
				m.Options[j].Uses = []Use{{m.Options[j].Uses[0].Row + len(rows), m.Options[j].Uses[0].Amount}}
			}
			both = append(both, m)
		}
		want := append(Share(first, rows), Share(second, more)...)
		require.Equal(t, want, Share(both, append(append([]float64(nil), rows...), more...)))
	}
}

// No model has nothing while an equal one would keep most of its share if it gave one
// replica for one.
func TestNobodyStarvesBesideSomebodyWhoCouldSpareAReplica(t *testing.T) {
	served := func(m Model, v Vector) float64 { return 1 - float64(v.Unserved/m.Need) }
	for seed := range uint64(10) {
		models, rows := crowd(rand.New(rand.NewPCG(47, seed)), 60, 0.3+0.05*float64(seed))
		answer := Share(models, rows)
		left := used(models, rows, answer)
		for i, hungry := range models {
			if served(hungry, answer[i]) > 0 {
				continue
			}
			for j, rich := range models {
				if rich.Priority != hungry.Priority || served(rich, answer[j]) < 0.5 {
					continue
				}
				for k, o := range rich.Options {
					freed := o.Uses[0]
					if answer[j].Replicas[k] <= o.Now || served(rich, answer[j])-float64(o.Serves/rich.Need) < 0.4 {
						continue
					}
					for _, want := range hungry.Options {
						room := rows[want.Uses[0].Row] - left[want.Uses[0].Row]
						if want.Uses[0].Row == freed.Row {
							room += freed.Amount
						}
						require.Less(t, room, want.Uses[0].Amount, "%d starves beside %d", i, j)
					}
				}
			}
		}
	}
}

// packed are models with two variants each, and the room that random replicas of them
// take, which is what they need, and one more on each row.
func packed(random *rand.Rand, n int) (models []Model, rows []float64) {
	rows = []float64{1, 1, 1, 1, 1}
	for range n {
		var m Model
		for _, row := range random.Perm(len(rows))[:2] {
			devices, replicas := 1+random.IntN(4), random.IntN(3)
			m.Options = append(m.Options, Option{Cost: capacity.Cost(devices), Serves: capacity.Rate(devices), Most: -1, Uses: []Use{{row, float64(devices)}}})
			m.Need += capacity.Rate(devices * replicas)
			rows[row] += float64(devices * replicas)
		}
		models = append(models, m)
	}
	return models, rows
}

func TestShareServesAllWhereLittleIsToSpare(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 46))
	for range 30 {
		models, rows := packed(random, 30)
		answer := Share(models, rows)
		require.True(t, within(used(models, rows, answer), rows))
		for i, v := range answer {
			require.Zero(t, v.Unserved, "model %d of %+v on %v", i, models, rows)
		}
	}
}

// The last one fits only when the first moves to the row of the second, and that one to
// the third row: of the changes on the way none is better by itself.
func TestModelsMakeRoomForEachOther(t *testing.T) {
	on := func(priority int, rows ...int) Model {
		m := Model{Priority: priority, Need: 1}
		for _, row := range rows {
			m.Options = append(m.Options, Option{Cost: capacity.Cost(1 + row), Serves: 1, Most: -1, Uses: []Use{{row, 1}}})
		}
		return m
	}
	for name, models := range map[string][]Model{
		"equals":                      {on(1, 0, 1), on(1, 1, 2), on(1, 0)},
		"the last one less important": {on(1, 0, 1), on(1, 1, 2), on(2, 0)},
		"the first one most":          {on(1, 0, 1), on(2, 1, 2), on(3, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			answer := Share(models, []float64{1, 1, 1})
			assert.Equal(t, [][]int{{0, 1}, {0, 1}, {1}}, [][]int{answer[0].Replicas, answer[1].Replicas, answer[2].Replicas})
		})
	}
}

func TestTheAnswerIsTheSameEachTime(t *testing.T) {
	models, rows := crowd(rand.New(rand.NewPCG(48, 49)), 40, 0.6)
	first := Share(models, rows)
	assert.Equal(t, first, Share(models, rows))
}

// A limit that one replica takes of twice counts twice.
func TestTwoUsesOfOneRowAddUp(t *testing.T) {
	model := one(1, 10, 0)
	model.Options[0].Uses = []Use{{0, 1}, {0, 2}}
	assert.Equal(t, []int{3}, Share([]Model{model}, []float64{10})[0].Replicas)
}

// Numbers that are no numbers, or absurd ones, break no limit and no bound.
func TestNonsenseBreaksNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(50, 51))
	odd := func() float64 {
		return []float64{math.NaN(), math.Inf(1), -1, 0, 1e300, 1e59, 1e-59, 1e-300, 1, 2, 5, 7}[random.IntN(12)]
	}
	for range 1000 {
		rows := []float64{odd(), odd()}
		models := make([]Model, 1+random.IntN(3))
		for i := range models {
			models[i] = Model{Priority: random.IntN(2), Weight: odd(), Need: capacity.Rate(odd())}
			for range 1 + random.IntN(3) {
				models[i].Options = append(models[i].Options, Option{
					Cost: capacity.Cost(odd()), Serves: capacity.Rate(odd()), Start: capacity.Cost(odd()), Now: random.IntN(3),
					Least: random.IntN(3), Most: random.IntN(8) - 1, Uses: []Use{{random.IntN(3), odd()}, {0, 1}},
				})
			}
		}
		used := make([]float64, len(rows))
		for i, v := range Share(models, rows) {
			for j, n := range v.Replicas {
				o := models[i].Options[j]
				require.GreaterOrEqual(t, n, min(o.Now, o.Least))
				if o.Most >= 0 {
					require.LessOrEqual(t, n, max(o.Most, o.Least))
				}
				for _, u := range o.Uses {
					if more := n - o.Now; more > 0 && u.Row < len(rows) && !negligible(u.Amount) && !unknown(u.Amount) {
						used[u.Row] += u.Amount * float64(more)
					}
				}
			}
		}
		for r, u := range used {
			limit := 0.0
			if rows[r] > 0 {
				limit = rows[r]
			}
			require.LessOrEqual(t, u, limit+roundoff(limit), "%+v %v", models, rows)
		}
	}
}

func TestDrawsAreEvenAndInRange(t *testing.T) {
	var d draws
	counts := make([]int, 7)
	excess := 0.0
	const n = 70_000
	for range n {
		counts[d.below(len(counts))]++
		x := d.excess()
		require.GreaterOrEqual(t, x, 0.0)
		excess += x
	}
	for i, c := range counts {
		assert.InDelta(t, n/len(counts), c, 500, "number %d", i)
	}
	assert.InDelta(t, 1, excess/n, 0.02)
}

func BenchmarkShare(b *testing.B) {
	for _, variants := range []int{200, 5000} {
		for _, share := range []float64{2, 0.6} {
			random := rand.New(rand.NewPCG(1, uint64(variants)))
			models, rows := crowd(random, variants, share)
			b.Run(fmt.Sprintf("%dVariants%.0fPercent", variants, 100*share), func(b *testing.B) {
				for b.Loop() {
					Share(models, rows)
				}
			})
		}
	}
}
