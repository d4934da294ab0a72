package serving

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// A profile that takes twice as long for everything is found to be so at any load, and the
// paced one serves what the servers do.
func TestAProfileIsPacedByWhatWasSeen(t *testing.T) {
	fourParameters := FourParameter{Alpha: 20, Beta: 0.4, Gamma: 5, Delta: 0.02, MaxBatchSize: 64}.Profile()
	for name, truth := range map[string]Profile{"overlapped": overlapped, "measured": llama8B, "four parameters": fourParameters} {
		for _, wrong := range []float64{0.4, 1, 2.5} {
			given := truth.Paced(wrong)
			l := watch(truth, []float64{3, 4, 5}, 0)
			pace := l.Pace(given)
			assert.InEpsilon(t, 1/wrong, pace, 0.01, "%s, %v", name, wrong)
			assert.InEpsilon(t, float64(truth.Steady(40, conv).Rate), float64(given.Paced(pace).Steady(40, conv).Rate), 0.02, "%s, %v", name, wrong)
			assert.InEpsilon(t, float64(truth.Steady(40, conv).TTFT), float64(given.Paced(pace).Steady(40, conv).TTFT), 0.02, "%s, %v", name, wrong)
		}
	}
}

func TestAPaceIsAMedianAndBounded(t *testing.T) {
	l := watch(overlapped, []float64{9, 3, 5, 20, 30, 4}, 0)
	for i, o := range l.Seen {
		switch o.Point.Batch {
		case 3, 4, 5:
			l.Seen[i].Point.ITL /= 3
		case 20:
			l.Seen[i].Point.ITL *= 100
		}
	}
	assert.InEpsilon(t, 1, l.Pace(overlapped), 0.01, "the half with the larger batches, of which one says otherwise")
	l = watch(overlapped, []float64{3, 5, 9}, 0)
	assert.InDelta(t, 1, Learned{}.Pace(overlapped), 0, "nothing was seen")
	assert.InDelta(t, 1, l.Pace(Profile{}), 0, "nothing is known")
	assert.InEpsilon(t, 20.1, l.Pace(overlapped.Paced(0.001)), 0.01)
	assert.InEpsilon(t, 1/20.1, l.Pace(overlapped.Paced(1000)), 0.01)
	assert.Equal(t, capacity.Tokens(1000), Profile{KVTokens: 1000}.Paced(2).KVTokens)
	assert.Equal(t, Profile{PerResidentToken: 2, PerResidentBeside: 6}, Profile{PerResidentToken: 1, PerResidentBeside: 3}.Paced(2))
}
