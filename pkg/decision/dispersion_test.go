package decision

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// poisson is a draw by counting arrivals one by one.
func poisson(random *rand.Rand, mean float64) float64 {
	n := 0
	for at := random.ExpFloat64(); at < mean; at += random.ExpFloat64() {
		n++
	}
	return float64(n)
}

// counts are observations, scrapeEvery apart, of arrivals that come so many at a time.
func counts(random *rand.Rand, from time.Time, n int, rate, copies float64) []Observation {
	list := make([]Observation, n)
	for i := range list {
		at := from.Add(time.Duration(i+1) * scrapeEvery)
		seen := copies * poisson(random, rate/copies*scrapeEvery.Seconds()) / scrapeEvery.Seconds()
		list[i] = Observation{Time: at, Sampled: at, Newest: capacity.Rate(seen), Span: scrapeEvery}
	}
	return list
}

// learn takes the observations in and returns what was known after each.
func (d Dispersion) learn(list []Observation) []Dispersion {
	all := make([]Dispersion, 0, len(list))
	for i := 1; i < len(list); i++ {
		d = d.observe(list[i].Time, list[i-1], list[i])
		all = append(all, d)
	}
	return all
}

// scatter is the memory with what is known of how the arrivals of the model m scatter.
func (m Memory) scatter(d Dispersion) Memory {
	key := ModelKey{"ns", "m"}
	m.Models = maps.Clone(m.Models)
	if m.Models == nil {
		m.Models = map[ModelKey]ModelMemory{}
	}
	of := m.Models[key]
	of.Dispersion = d
	m.Models[key] = of
	return m
}

// What is learned is the number of requests that come at a time, in the mean over a day,
// and roughly so at nearly every moment after the first half-life.
func TestDispersionFindsHowManyComeAtATime(t *testing.T) {
	for _, copies := range []float64{1, 5, 20} {
		for _, rate := range []float64{4, 20, 100} {
			t.Run(fmt.Sprintf("%v at a time, %v requests/s", copies, rate), func(t *testing.T) {
				all := Dispersion{}.learn(counts(rand.New(rand.NewPCG(uint64(copies), uint64(rate))), epoch, 4*60*24, rate, copies))
				all = all[dispersionHalfLife/scrapeEvery:]
				sum, far := 0.0, 0
				for _, d := range all {
					sum += d.Index
					if d.Index < copies/2 || d.Index > copies*2 {
						far++
					}
				}
				assert.InEpsilon(t, copies, sum/float64(len(all)), 0.1)
				assert.Less(t, float64(far)/float64(len(all)), 0.02)
				for _, d := range all {
					require.GreaterOrEqual(t, d.index(), 1.0)
				}
			})
		}
	}
	assert.InDelta(t, 1, Dispersion{}.index(), 0, "nothing is known")
}

// A step of the load is one large difference, which is cut; a burst is many.
func TestAStepIsHardlyABurst(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	list := append(counts(random, epoch, 80, 5, 1), counts(random, epoch.Add(80*scrapeEvery), 80, 100, 1)...)
	all := Dispersion{}.learn(list)
	before, after := all[78], all[79]
	require.Greater(t, float64(list[80].Newest), 5*float64(list[79].Newest))
	assert.Greater(t, after.Index, before.Index, "it is seen")
	assert.Less(t, after.Index, before.Index+0.25)
	assert.InDelta(t, 1, all[len(all)-1].Index, 0.5, "and forgotten")
}

func TestDispersionForgets(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	bursty := Dispersion{}.learn(counts(random, epoch, 160, 20, 20))
	d := bursty[len(bursty)-1]
	require.Greater(t, d.Index, 10.0)
	require.Greater(t, d.Weight, 30.0)
	last := d.Time

	calm := d.learn(counts(random, last, 4*60, 20, 1))
	assert.Less(t, calm[len(calm)-1].Index, 2.0, "an hour of independent arrivals")

	// What was forgotten makes room for the assumption, and not for a single look.
	late := last.Add(24 * time.Hour)
	again := d.observe(late, Observation{Newest: 20, Span: scrapeEvery}, Observation{Newest: 20, Span: scrapeEvery})
	assert.InDelta(t, 2.0/3, again.Index, 0.01, "a day later")
	assert.InDelta(t, dispersionPrior+1, again.Weight, 1e-9)
}

// Two rates that count the same requests differ by too little, and say nothing.
func TestDispersionWantsSeparateSamples(t *testing.T) {
	known := Dispersion{Time: epoch.Add(-time.Minute), Index: 3, Weight: 20}
	point := func(sampled time.Duration, rate capacity.Rate, span time.Duration) Observation {
		return Observation{Time: epoch.Add(sampled), Sampled: epoch.Add(sampled), Newest: rate, Span: span}
	}
	before := point(-15*time.Second, 5, 15*time.Second)
	for name, c := range map[string]struct {
		points []Observation
		taken  bool
	}{
		"side by side":               {[]Observation{before, point(0, 9, 15*time.Second)}, true},
		"with a pause between them":  {[]Observation{point(-40*time.Second, 5, 15*time.Second), point(0, 9, 15*time.Second)}, true},
		"they overlap":               {[]Observation{before, point(0, 9, 16*time.Second)}, false},
		"one alone":                  {[]Observation{point(0, 9, 15*time.Second)}, false},
		"none":                       {nil, false},
		"the newest is of before":    {[]Observation{point(-30*time.Second, 5, 15*time.Second), before}, false},
		"the newest has no scrapes":  {[]Observation{before, point(0, 9, 0)}, false},
		"the one before it has none": {[]Observation{point(-15*time.Second, 5, 0), point(0, 9, 15*time.Second)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := known.watch(epoch, c.points)
			assert.Equal(t, !c.taken, got == known)
			if c.taken {
				// (9-5)^2 over (5+9)/15 is a large observation.
				assert.Greater(t, got.Index, known.Index)
				assert.Equal(t, epoch, got.Time)
			}
		})
	}
	assert.Empty(t, Dispersion{}.watch(epoch, nil), "nothing was known and nothing is seen")
}

func TestNoiseGrowsWithTheRootOfTheDispersion(t *testing.T) {
	for _, rate := range []capacity.Rate{0, 0.5, 7, 300} {
		c := counted{rate: rate, span: 20 * time.Second}
		assert.Positive(t, float64(c.noise(1)))
		for _, index := range []float64{2, 5, 20} {
			assert.InEpsilon(t, math.Sqrt(index)*float64(c.noise(1)), float64(c.noise(index)), 1e-9)
		}
	}
	assert.InDelta(t, 0.5, float64(counted{rate: 5, span: 20 * time.Second}.noise(1)), 1e-9)
	assert.Zero(t, counted{rate: 5}.noise(20))
}

// The same rise is a trend of independent arrivals and chance in bursts.
func TestBurstsAreNoTrend(t *testing.T) {
	var rise []Observation
	for i, rate := range []capacity.Rate{10, 12, 14, 16, 18} {
		at := epoch.Add(time.Duration(i) * scrapeEvery)
		rise = append(rise, Observation{Time: at, Rate: rate, Span: scrapeEvery})
	}
	assert.InDelta(t, 2.0/15*30, trend(rise, scrapeEvery, 30*time.Second, 1), 1e-6)
	assert.Zero(t, trend(rise, scrapeEvery, 30*time.Second, 20))
}

func TestBurstsAreNoJump(t *testing.T) {
	for name, c := range map[string]struct {
		index  float64
		newest float64
		want   capacity.Rate
	}{
		"independent arrivals, half as much again": {1, 30, 30},
		"the same in bursts":                       {20, 30, 20},
		"more than bursts explain":                 {20, 45, 45},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
			m.in.Arrival = Sample{20, epoch, true}
			m.in.Recent, m.in.RecentSpan = Sample{c.newest, epoch, true}, scrapeEvery
			got, known := r.arrival(m, &demand{dispersion: c.index})
			require.True(t, known)
			assert.InDelta(t, float64(c.want), float64(got.rate), 1e-9)
		})
	}
}

// A steady load in bursts, round after round: who learns how it scatters expects hardly
// ever more than there is, and who does not, often.
func TestWhoKnowsBurstsExpectsNoMore(t *testing.T) {
	const rate, copies = 20, 20
	alarms := func(knows bool) int {
		random := rand.New(rand.NewPCG(3, 9))
		list := counts(random, epoch, 4*60*8, rate, copies)
		w, memory, alarms := newWorld(rate), Memory{}, 0
		w.setReplicas(0, 6)
		for i := 3; i < len(list); i++ {
			w.now = list[i].Time.Add(3 * time.Second)
			w.arrival = 0
			for _, o := range list[i-3 : i+1] {
				w.arrival += float64(o.Newest) / 4
			}
			s := w.snapshot()
			s.Models[0].Recent, s.Models[0].RecentSpan = w.sample(float64(list[i].Newest)), scrapeEvery
			var plan Plan
			plan, memory = Decide(s, DefaultPolicy(), memory, RoundFast)
			if d := plan.Models[0].Demand; float64(d.Forecast) > 1.25*w.arrival {
				alarms++
			}
			if !knows {
				memory = memory.scatter(Dispersion{})
			}
		}
		return alarms
	}
	with, without := alarms(true), alarms(false)
	assert.Less(t, with, without/5, "with %d, without %d of %d rounds", with, without, 4*60*8)
}

// A load that comes in bursts needs more replicas for the same promise, and keeps them.
func TestBurstsNeedMoreReplicas(t *testing.T) {
	settle := func(index float64, begin int) (replicas int, each capacity.Rate) {
		w := newWorld(150)
		w.variants = w.variants[:1]
		w.setReplicas(0, begin)
		w.now = w.now.Add(time.Hour)
		memory, policy := Memory{}, hybrid(demoPolicy(), capacity.SLO{TTFT: 1000, ITL: 20})
		var plan Plan
		for range 40 {
			memory = memory.scatter(Dispersion{Time: w.now, Index: index, Weight: 50})
			plan, memory = Decide(w.snapshot(), policy, memory, RoundFull)
			w.apply(plan)
			w.now = w.now.Add(15 * time.Second)
		}
		require.True(t, plan.Models[0].Sized)
		return w.variants[0].replicas, plan.Models[0].Variants[0].ServesEach
	}
	for _, begin := range []int{5, 30} {
		calm, each := settle(1, begin)
		bursty, less := settle(20, begin)
		assert.Greater(t, bursty, calm+1, "from %d", begin)
		assert.Less(t, float64(less), 0.85*float64(each), "from %d", begin)
		assert.GreaterOrEqual(t, float64(bursty)*float64(less), 150.0, "from %d", begin)
	}
}

// A question that was answered for other bursts is asked anew, and else stands.
func TestSizesFollowTheBursts(t *testing.T) {
	w := newWorld(60)
	policy := hybrid(demoPolicy(), capacity.SLO{TTFT: 1000, ITL: 20})
	found := func(memory Memory, index float64) Memory {
		w.now = w.now.Add(15 * time.Second)
		memory = memory.scatter(Dispersion{Time: w.now, Index: index, Weight: 50})
		_, memory = Decide(w.snapshot(), policy, memory, RoundFast)
		return memory
	}
	key := Key{"ns", "a-h100"}
	first := found(found(Memory{}, 10), 10)
	again := found(first, 10.1)
	assert.Equal(t, first.Variants[key].Sizing.Found, again.Variants[key].Sizing.Found)
	bursty := found(again, 30)
	assert.Equal(t, w.now, bursty.Variants[key].Sizing.Found)
	assert.Less(t, float64(bursty.Variants[key].Sizing.Rate), float64(first.Variants[key].Sizing.Rate))
}
