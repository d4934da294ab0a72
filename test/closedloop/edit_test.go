package closedloop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// changing is four with one change under way from minute 2 to 9.
func changing(kind FaultKind, count int, factor float64) *Scenario {
	return four(func(s *Scenario) {
		s.Faults = []Fault{{Kind: kind, From: 2 * time.Minute, To: 9 * time.Minute, Count: count, Factor: factor}}
	})
}

// played is what a round was shown at the times that a test asks for.
func played(t *testing.T, s *Scenario, times ...time.Duration) []decision.Snapshot {
	t.Helper()
	var found []decision.Snapshot
	watching := func(in decision.Snapshot, p decision.Policy, m decision.Memory, r decision.Round) (decision.Plan, decision.Memory) {
		if len(found) < len(times) && in.Time.Sub(epoch) >= times[len(found)] {
			found = append(found, in)
		}
		return always(4)(in, p, m, r)
	}
	w := run(s, watching, "")
	require.Len(t, found, len(times), w.tell())
	return found
}

const before, during, after = time.Minute, 6 * time.Minute, time.Hour

func TestAPriceChangesAndComesBack(t *testing.T) {
	t.Parallel()
	seen := played(t, changing(FaultPrice, 1, 3), before, during, after)
	for i, want := range []float64{10, 30, 10} {
		assert.InDelta(t, want, float64(seen[i].Models[0].Variants[0].Cost), 1e-9)
	}
}

func TestLengthsChangeAndComeBack(t *testing.T) {
	t.Parallel()
	seen := played(t, changing(FaultPrompts, 1, 0.5), before, during, after)
	for i, want := range []float64{1, 0.5, 1} {
		assert.InDelta(t, want*float64(chat.Input), seen[i].Models[0].Variants[0].Replicas[0].Input.Value, 1)
	}
}

// A rolling update replaces some replicas at a time, and all that come are of the other
// version, which takes three times as long; the profile that is stated follows when the count
// is odd.
func TestAnotherVersionIsRolledOutAndBack(t *testing.T) {
	t.Parallel()
	for count := range 2 {
		seen := played(t, changing(FaultVersion, count, 3), before, 2*time.Minute+20*time.Second, 7*time.Minute, after)
		at := func(i int) *decision.Variant { return &seen[i].Models[0].Variants[0] }
		assert.False(t, at(0).Rolling)
		assert.True(t, at(1).Rolling)
		assert.Len(t, at(1).Starting, 1, "one of four at a time")
		assert.False(t, at(2).Rolling, "four start-ups of half a minute are over")
		assert.Greater(t, at(2).Replicas[0].ITL.Value, 2*at(0).Replicas[0].ITL.Value)
		assert.InEpsilon(t, at(0).Replicas[0].ITL.Value, at(3).Replicas[0].ITL.Value, 0.05)
		stated := float64(at(2).Profile.Base / at(0).Profile.Base)
		assert.InDelta(t, []float64{1, 3}[count], stated, 1e-9)
		assert.Equal(t, at(0).Profile, at(3).Profile)
	}
}

func TestAReplicaFlaps(t *testing.T) {
	t.Parallel()
	ready := map[int]bool{}
	watching := func(in decision.Snapshot, p decision.Policy, m decision.Memory, r decision.Round) (decision.Plan, decision.Memory) {
		v := &in.Models[0].Variants[0]
		ready[v.Ready] = true
		if v.Ready == 3 {
			assert.Less(t, in.Time.Sub(v.Starting[0].Since), flapsAbsent+step, "it is not ready since it stopped")
		}
		return always(4)(in, p, m, r)
	}
	w := run(changing(FaultFlap, 1, 0), watching, "")
	assert.Equal(t, map[int]bool{3: true, 4: true}, ready)
	assert.Empty(t, w.story.failures)
	assert.Zero(t, w.models[0].variants[0].doubtful())
}

// Of a model a quarter of which shows nothing, no replica has to go; of one a tenth of which
// does, one more may stay.
func TestWhatShowsNothingMayStay(t *testing.T) {
	t.Parallel()
	silent := func(replicas int, load float64) *Scenario {
		return four(func(s *Scenario) {
			s.Models[0].Variants[0].Replicas, s.Models[0].Load[0].Rate = replicas, load*s.each(0)
			s.Faults = []Fault{{Kind: FaultSilent, From: 2 * time.Minute, To: forGood, Count: 1}}
		})
	}
	assert.Empty(t, run(silent(4, 0.5), always(4), "").story.failures)
	assert.Empty(t, run(silent(10, 6.5), always(12), "").story.failures)
	assert.True(t, run(silent(10, 3.5), always(10), "").failed(CheckSpare))
	assert.Empty(t, run(silent(1, 3.5), always(1), "").story.failures, "nobody sees what is missing")
}

func TestTheOracleSeesThroughChance(t *testing.T) {
	t.Parallel()
	chance := func() *Scenario { return four(func(s *Scenario) { s.Together, s.Seed = 2, 7 }) }
	assert.Empty(t, run(chance(), always(4), "").story.failures)
	assert.Empty(t, run(chance(), decision.Decide, "").story.failures)
	assert.True(t, run(chance(), always(3), "").failed(CheckShort))
	assert.True(t, run(chance(), always(16), "").failed(CheckDear))
	restless := puppet(func(now time.Duration, _ *decision.Variant, _ decision.Round) int {
		return 4 + int(now/(2*time.Minute))%2
	})
	assert.True(t, run(chance(), restless, "").failed(CheckCycle))
}

func TestArrivalsByChance(t *testing.T) {
	t.Parallel()
	for _, mean := range []float64{0.3, 20, 400} {
		for _, together := range []float64{1, 5} {
			w := newWorld(four(func(s *Scenario) { s.Together, s.Seed = together, 3 }), always(4))
			const draws = 4000
			sum, squares := 0.0, 0.0
			for range draws {
				n := w.models[0].chance.arrivals(mean, together)
				sum, squares = sum+n, squares+n*n
			}
			got := sum / draws
			assert.InEpsilon(t, mean, got, 0.1)
			assert.InEpsilon(t, together*mean, squares/draws-got*got, 0.15, "the variance")
		}
	}
}
