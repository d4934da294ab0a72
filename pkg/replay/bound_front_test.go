package replay

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay/front"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// mound is a few minutes of traffic that rises and falls.
func mound(t *testing.T, s *Scenario) *Trial {
	t.Helper()
	trial, err := NewTrial(TrialOptions{Scenario: s, Seed: 3, Startups: []time.Duration{45 * time.Second}, Source: short(t,
		workload.Point{Rate: 3}, workload.Point{At: 90 * time.Second, Rate: 25}, workload.Point{At: 150 * time.Second, Rate: 4}, workload.Point{At: 4 * time.Minute, Rate: 9})})
	require.NoError(t, err)
	return trial
}

// schedules calls each with every schedule of up to most replicas of each variant, with
// what it costs and what it attains; generous counts the share above the one that is kept.
func schedules(trial *Trial, most int, generous bool, each func(front.Point)) {
	s, load := trial.scenario, trial.load[0]
	variants := len(s.Models[0].Variants)
	serves := make([][][]float64, len(boundShares))
	for k, share := range boundShares {
		if share == 0 {
			continue
		}
		rates := s.sharing(share).rates(trial.load)[0]
		serves[k] = make([][]float64, len(load))
		for at := range load {
			for v := range variants {
				serves[k][at] = append(serves[k][at], float64(rates[at][v]))
			}
		}
	}
	all := 0.0
	for _, m := range load {
		all += float64(m.Rate) * max(m.Length, leastSpan).Seconds()
	}
	missed := func(at int, x []int) float64 {
		kept := 0
		for k := 1; k < len(boundShares); k++ {
			rate := 0.0
			for v, n := range x {
				rate += float64(n) * serves[k][at][v]
			}
			if enough(rate, float64(load[at].Rate)) {
				kept = k
			}
		}
		share := boundShares[kept]
		if generous && kept == len(boundShares)-1 {
			share = 1
		} else if generous {
			share = boundShares[kept+1]
		}
		return (1 - share) * float64(load[at].Rate) * max(load[at].Length, leastSpan).Seconds()
	}
	var from func(at int, before []int, cost, lost float64)
	from = func(at int, before []int, cost, lost float64) {
		if at == len(load) {
			each(front.Point{Attainment: 1 - lost/all, Cost: cost})
			return
		}
		x := make([]int, variants)
		for code := 1; code < int(math.Pow(float64(most+1), float64(variants))); code++ {
			paid := 0.0
			for v, rest := 0, code; v < variants; v, rest = v+1, rest/(most+1) {
				x[v] = rest % (most + 1)
				price := float64(s.Models[0].Variants[v].Cost)
				paid += price * float64(x[v]) * load[at].Length.Hours()
				if at > 0 {
					paid += price * float64(max(0, x[v]-before[v])) * (45 * time.Second).Hours()
				}
			}
			from(at+1, append([]int(nil), x...), cost+paid, lost+missed(at, x))
		}
	}
	from(0, nil, 0, 0)
}

// With one variant the front is exact: its points are schedules, and none is below it.
func TestTheBoundsFrontOfOneVariant(t *testing.T) {
	s := small()
	s.Models[0].Variants = s.Models[0].Variants[:1]
	trial := mound(t, s)
	bound := trial.BoundFront(45 * time.Second)
	require.Greater(t, len(bound), 3)
	found := make([]bool, len(bound))
	schedules(trial, 6, true, func(p front.Point) {
		cost, place := bound.CostAt(p.Attainment)
		if place == front.Within && p.Cost < cost*(1-closeEnough/4) {
			assert.Fail(t, "a schedule is below the bound", "%v costs less than %v", p, cost)
		}
		for i := range bound {
			found[i] = found[i] || math.Abs(bound[i].Cost-p.Cost) < 1e-6 && math.Abs(bound[i].Attainment-p.Attainment) < 1e-6
		}
	})
	for i := range found {
		assert.True(t, found[i] || bound[i].Attainment > 1-1e-9, "%v is no schedule", bound[i])
	}
}

// With several it is a bound.
func TestTheBoundsFrontOfTwoVariants(t *testing.T) {
	s := small()
	s.Models[0].Variants[1].Profile.Base = 6
	trial := mound(t, s)
	bound := trial.BoundFront(45 * time.Second)
	schedules(trial, 2, false, func(p front.Point) {
		cost, place := bound.CostAt(p.Attainment)
		if place != front.Above && p.Cost < cost*(1-closeEnough/4) && place == front.Within {
			assert.Fail(t, "a schedule is below the bound", "%v costs less than %v", p, cost)
		}
	})
}

// Keeping the promise in every minute costs no less than attaining as much in all.
func TestTheBoundsFrontIsNotAboveTheBound(t *testing.T) {
	trial := tried(t)
	bound := trial.BoundFront(time.Minute)
	cost, place := bound.CostAt(trial.scenario.Policy.Share)
	require.Equal(t, front.Within, place)
	assert.LessOrEqual(t, cost, trial.Bound(time.Minute).Cost+1e-9)
	assert.Greater(t, cost, 0.5*trial.Bound(time.Minute).Cost)
	cheap, _ := bound.CostAt(0.8)
	assert.Less(t, cheap, cost, "who may miss more pays less")
}

func TestTheBoundsFrontLeavesOutWhatIsForLearning(t *testing.T) {
	s := small()
	s.Learning = 2 * time.Minute
	trial, err := NewTrial(TrialOptions{Scenario: s, Source: hill(t), Startups: []time.Duration{time.Minute}, Seed: 3})
	require.NoError(t, err)
	part, whole := trial.BoundFront(time.Minute), tried(t).BoundFront(time.Minute)
	assert.Less(t, part[len(part)-1].Cost, whole[len(whole)-1].Cost)
	cost, _ := part.CostAt(0.99)
	assert.LessOrEqual(t, cost, trial.Bound(time.Minute).Cost+1e-9)
}
