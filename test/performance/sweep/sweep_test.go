package sweep

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/tuning"
)

// hill is a case of twenty minutes of traffic that rises and falls, where replicas start
// at once.
func hill(t *testing.T, name string, peak float64, seeds int) Case {
	t.Helper()
	s, err := scenario.Parse(scenario.BuiltIn(), scenario.Options{})
	require.NoError(t, err)
	c := Case{Name: name}
	c.Trials, err = Each(2, seeds, func(i int) (*replay.Trial, error) {
		return replay.NewTrial(replay.TrialOptions{
			Scenario: s, Seed: uint64(i), Startups: []time.Duration{c.Startup},
			Source: func() (workload.Stream, error) {
				return workload.NewSynthetic(workload.Synthetic{
					Rate: []workload.Point{
						{Rate: 2}, {At: 6 * time.Minute, Rate: 2}, {At: 9 * time.Minute, Rate: peak}, {At: 12 * time.Minute, Rate: 2}, {At: 20 * time.Minute, Rate: 2},
					},
					Seed:  uint64(i),
					Input: workload.Lengths{Mean: 1000, Variation: 0.5, Max: 4000}, Output: workload.Lengths{Mean: 100, Variation: 0.5, Max: 400},
				})
			},
		})
	})
	require.NoError(t, err)
	return c
}

func family(t *testing.T, name string) tuning.Family {
	t.Helper()
	f, err := tuning.Named(name)
	require.NoError(t, err)
	return f
}

// of is the case with policies to judge and rivals.
func of(c Case, ours []string, rivals ...tuning.Family) []Case {
	c.Ours, c.Rivals = ours, rivals
	return []Case{c}
}

func swept(t *testing.T, workers int, cases []Case) []Report {
	t.Helper()
	reports, err := New(Options{Cases: cases, Workers: workers}).Run()
	require.NoError(t, err)
	return reports
}

// A fixed fleet that is one of those that it is held against is exactly on their front.
func TestOnTheFront(t *testing.T) {
	r := swept(t, 2, of(hill(t, "hill", 30, 2), []string{"static:3"}, family(t, "static")))[0]
	v := &r.Verdicts[0]
	assert.Equal(t, front.Within, v.Place)
	assert.InDelta(t, 1, v.Ratio, 1e-9)
	assert.InDelta(t, 0, v.Noise, 1e-9)
	assert.Equal(t, front.Holds, v.AtMost(1))
	assert.Len(t, r.Ours[0].Results, 2, "every seed")
	last := front.Point{}
	for _, e := range Front(Of(r.Rivals, "static")) {
		assert.Contains(t, e.Policy, "static:")
		p := e.Mean()
		assert.Greater(t, p.Attainment, last.Attainment)
		assert.Greater(t, p.Cost, last.Cost)
		last = p
	}
}

// An HPA that does not shrink is dominated by one that goes with the load,
// and that one dominates all fleets.
func TestDominatedAndDominating(t *testing.T) {
	c := hill(t, "hill", 60, 3)
	r := swept(t, 2, of(c, []string{"hpa:rps=4.64,down=1800s"}, family(t, "hpa:rps")))[0]
	assert.Greater(t, r.Verdicts[0].Ratio, 1.5)
	assert.Equal(t, front.Fails, r.Verdicts[0].AtMost(1))

	r = swept(t, 2, of(c, []string{"hpa:rps=3,down=60s"}, family(t, "static")))[0]
	assert.Less(t, r.Verdicts[0].Ratio, 0.8)
	assert.Equal(t, front.Holds, r.Verdicts[0].AtMost(0.85))
}

// What is tuned aside is found, and judges nobody.
func TestAside(t *testing.T) {
	cases := of(hill(t, "hill", 30, 2), []string{"static:12"}, family(t, "static"))
	cases[0].Aside = []tuning.Family{family(t, "hybrid")}
	r := swept(t, 2, cases)[0]
	assert.Equal(t, front.Within, r.Verdicts[0].Place)
	require.NotEmpty(t, r.Aside)
	for _, e := range r.Aside {
		assert.Regexp(t, `^hybrid:risk=0\.\d+(,(down=(60|120)|up=60)s)?$`, e.Policy)
		assert.Len(t, e.Results, 1, "the first seed alone")
	}
	for _, e := range r.Rivals {
		assert.Equal(t, "static", e.Family)
	}
	alone := swept(t, 2, of(cases[0], []string{"static:12"}, family(t, "static")))[0]
	assert.Equal(t, alone.Verdicts, r.Verdicts)
}

// A variant that costs more and serves as much is tried, and is never better.
func TestRivalsDriveTheVariantThatIsBest(t *testing.T) {
	c := hill(t, "hill", 30, 1)
	require.NotEmpty(t, tuning.Placings(c.Trials[0])[1:])
	tried := map[string]bool{}
	_, err := New(Options{Cases: of(c, []string{"hybrid"}, family(t, "hpa:rps")), Workers: 1, Keep: func(one Kept) {
		_, setting, _ := strings.Cut(one.Policy, "variant=")
		tried[setting] = true
	}}).Run()
	require.NoError(t, err)
	for _, where := range tuning.Placings(c.Trials[0]) {
		assert.True(t, tried[strings.TrimPrefix(where.Setting, "variant=")], where.Setting)
	}
}

func TestWorkersChangeNothing(t *testing.T) {
	cases := of(hill(t, "hill", 20, 2), []string{"hybrid"}, family(t, "hpa:rps"), family(t, "static"))
	assert.Equal(t, swept(t, 1, cases), swept(t, 4, cases))
}

func TestNoRunIsMadeTwice(t *testing.T) {
	made := 0
	cases := of(hill(t, "hill", 20, 2), []string{"static:4"}, family(t, "static"))
	s := New(Options{Cases: cases, Workers: 2, Progress: func(done int) { made = done }})
	reports, err := s.Run()
	require.NoError(t, err)
	needed := reports[0].GivenUp + len(reports[0].Ours[0].Results)
	for _, e := range reports[0].Rivals {
		needed += len(e.Results)
	}
	assert.LessOrEqual(t, made, needed, "each setting once with each seed")
	before := made
	_, err = s.Singles(cases[0].Rivals, []int{0}, 0)
	require.NoError(t, err)
	assert.LessOrEqual(t, made-before, 20, "much is known already")
}

// What was made before an interruption is made no more, and changes nothing.
func TestASweepGoesOnWithWhatWasMade(t *testing.T) {
	cases := of(hill(t, "hill", 20, 2), []string{"hybrid"}, family(t, "hpa:rps"))
	var mutex sync.Mutex
	var kept []Kept
	keep := func(one Kept) {
		mutex.Lock()
		defer mutex.Unlock()
		kept = append(kept, one)
	}
	whole, err := New(Options{Cases: cases, Workers: 2, Keep: keep}).Run()
	require.NoError(t, err)
	written, err := json.Marshal(kept)
	require.NoError(t, err)
	var known []Kept
	require.NoError(t, json.Unmarshal(written, &known))
	assert.Equal(t, kept, known, "written and read again a run is the same")
	givenUp := slices.ContainsFunc(known, func(k Kept) bool { return k.GivenUp != "" })
	require.True(t, givenUp, "such runs, too, are not made again")

	again := func(known []Kept) (reports []Report, made int) {
		reports, err := New(Options{Cases: cases, Workers: 2, Known: known, Progress: func(done int) { made = done }}).Run()
		require.NoError(t, err)
		return reports, made
	}
	reports, made := again(known)
	assert.Equal(t, whole, reports)
	assert.Zero(t, made)
	reports, made = again(known[:len(known)/2])
	assert.Equal(t, whole, reports)
	assert.Equal(t, len(known)-len(known)/2, made)

	// Runs of another case say nothing.
	for i := range known {
		known[i].Startup += time.Second
	}
	_, made = again(known)
	assert.Equal(t, len(known), made)
	known[0].Result, known[0].GivenUp = nil, "tired"
	_, err = New(Options{Cases: cases, Workers: 1, Known: known}).Run()
	assert.ErrorContains(t, err, `neither a result nor a reason to be given up that is known: "tired"`)
}

func TestCasesAreBegunInTheirOrder(t *testing.T) {
	var cases []Case
	one := hill(t, "hill", 20, 1)
	for _, name := range []string{"first", "second", "third", "fourth"} {
		one.Name = name
		cases = append(cases, of(one, []string{"static:4"}, family(t, "static"))...)
	}
	var done []int
	_, err := New(Options{Cases: cases, Workers: 1, Done: func(i int, r *Report) {
		done = append(done, i)
		assert.NotEmpty(t, r.Verdicts)
	}}).Run()
	require.NoError(t, err)
	assert.ElementsMatch(t, []int{0, 1, 2, 3}, done)
	assert.Less(t, slices.Index(done, 0), slices.Index(done, 3), "two at a time: the last one begins when two are done")
}

func TestTheBestSingleSetting(t *testing.T) {
	// Two services, of which one needs four times as much: one size of fleet must be too
	// large for the one or too small for the other, and one target fits both.
	ours, rivals := []string{"hpa:rps=3,down=60s"}, []tuning.Family{family(t, "static"), family(t, "hpa:rps")}
	s := New(Options{Cases: slices.Concat(of(hill(t, "small", 10, 2), ours), of(hill(t, "large", 40, 2), ours)), Workers: 2})
	_, err := s.Run()
	require.NoError(t, err)
	singles, err := s.Singles(rivals, []int{0, 1}, 0)
	require.NoError(t, err)
	require.Len(t, singles, 2)
	fleets, targets := singles[0], singles[1]
	assert.Equal(t, "static", fleets.Family)
	assert.Less(t, fleets.Verdict.Ratio, 0.95, "ours is cheaper than one size for both")
	assert.InDelta(t, 1, targets.Verdict.Ratio, 0.1, "ours is one of them")
	for _, one := range singles {
		assert.Contains(t, one.Policy, one.Family[:3])
		assert.LessOrEqual(t, one.Worst, one.Point.Attainment)
		assert.Positive(t, one.Point.Cost)
	}
}

func TestWhatIsKnownOfARun(t *testing.T) {
	poor := ran{done: true, err: replay.ErrTooPoor, limit: replay.Limit{Attainment: 0.9, Cost: 10}}
	dear := ran{done: true, err: replay.ErrTooDear, limit: replay.Limit{Attainment: 0.9, Cost: 10}}
	whole := ran{done: true}
	for name, tc := range map[string]struct {
		limit             replay.Limit
		poor, dear, whole bool
	}{
		"the same limit":             {replay.Limit{Attainment: 0.9, Cost: 10}, true, true, true},
		"content with less":          {replay.Limit{Attainment: 0.8, Cost: 10}, false, true, true},
		"asks for more":              {replay.Limit{Attainment: 0.95, Cost: 10}, true, true, true},
		"pays more":                  {replay.Limit{Attainment: 0.9, Cost: 20}, true, false, true},
		"pays less":                  {replay.Limit{Attainment: 0.9, Cost: 5}, true, true, true},
		"wants it whole in any case": {replay.Limit{}, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.poor, poor.answers(tc.limit))
			assert.Equal(t, tc.dear, dear.answers(tc.limit))
			assert.Equal(t, tc.whole, whole.answers(tc.limit))
		})
	}
	assert.False(t, (&ran{}).answers(replay.Limit{}))
}

func TestASweepStops(t *testing.T) {
	_, err := New(Options{
		Cases: of(hill(t, "hill", 20, 1), []string{"hybrid"}, family(t, "static")), Workers: 2, Stop: func() bool { return true },
	}).Run()
	require.ErrorIs(t, err, replay.ErrStopped)
}

func TestWhatCannotBePlayedIsNamed(t *testing.T) {
	_, err := New(Options{Cases: of(hill(t, "hill", 20, 1), []string{"magic"}), Workers: 1}).Run()
	assert.ErrorContains(t, err, `hill: unknown policy "magic"`)
}

// A setting that was lucky with its one seed hides none that is on the front with all.
func TestLuckOfOneSeedHidesNothing(t *testing.T) {
	entry := func(policy string, runs ...front.Point) Entry {
		e := Entry{Family: "f", Policy: policy}
		for _, p := range runs {
			e.Results = append(e.Results, replay.Result{Attainment: p.Attainment, Cost: p.Cost})
		}
		return e
	}
	at := func(attainment, cost float64) front.Point { return front.Point{Attainment: attainment, Cost: cost} }
	var shown []string
	for _, e := range shownOf([]Entry{
		entry("sure", at(0.98, 10), at(0.98, 11)), entry("lucky", at(0.99, 10)), entry("poor", at(0.9, 12)),
		entry("dear", at(0.999, 20)), entry("cheap", at(0.8, 5)),
	}, 2) {
		shown = append(shown, e.Policy)
	}
	assert.Equal(t, []string{"cheap", "sure", "dear"}, shown)
}

func TestWhatComesNear(t *testing.T) {
	best := front.Front{{Attainment: 0.5, Cost: 10}, {Attainment: 0.9, Cost: 20}, {Attainment: 0.99, Cost: 30}}
	for name, tc := range map[string]struct {
		own  front.Front
		want bool
	}{
		"near there":                       {front.Front{{Attainment: 0.9, Cost: 22}, {Attainment: 0.99, Cost: 31}}, true},
		"near from above":                  {front.Front{{Attainment: 0.995, Cost: 31}}, true},
		"too dear there":                   {front.Front{{Attainment: 0.9, Cost: 30}, {Attainment: 0.99, Cost: 40}}, false},
		"near a little below, and no more": {front.Front{{Attainment: 0.95, Cost: 26}}, true},
		"near a little below, then steep":  {front.Front{{Attainment: 0.95, Cost: 26}, {Attainment: 0.97, Cost: 90}}, true},
		"near far below alone":             {front.Front{{Attainment: 0.9, Cost: 20}, {Attainment: 0.97, Cost: 90}}, false},
		"nothing":                          {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, comesNear(tc.own, best, 0.98, 1.1))
		})
	}
}
