package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// delayed begins later within the manager's rounds.
type delayed struct {
	workload.Stream
	by time.Duration
}

func (d delayed) Next() (workload.Request, error) {
	r, err := d.Stream.Next()
	r.Arrival += d.by
	return r, err
}

// What a newcomer sees in the first three minutes must not depend on when the traffic
// begins within the manager's round of 15 seconds. The floors are what was measured in virtual
// time, less three points. A quiet half minute before, which a real start has, changes nothing.
func TestTheDemoKeepsItsPromiseInEveryPhase(t *testing.T) {
	floors := map[string][]float64{"capacity-only": {0.70, 0.60}, "hybrid": {0.86, 0.90}}
	all, err := Replays(nil)
	require.NoError(t, err)
	require.Len(t, all, 2)
	for i, o := range all {
		source := o.Source
		o.Policies, o.Record, o.Workers = []string{"capacity-only", "hybrid"}, false, 2
		for phase := range 2 * 15 {
			begin := time.Duration(phase) * time.Second
			if phase >= 15 {
				begin += 30 * time.Second
			}
			o.Source = func() (workload.Stream, error) {
				stream, err := source()
				return delayed{stream, begin}, err
			}
			results, _, err := replay.Run(o)
			require.NoError(t, err)
			for _, r := range results {
				assert.GreaterOrEqual(t, r.Attainment, floors[r.Policy][i], "%s, %s, after %s", o.Scenario.Models[0].ID, r.Policy, begin)
				assert.LessOrEqual(t, r.CostOverBound, 1.4, "%s, %s, after %s", o.Scenario.Models[0].ID, r.Policy, begin)
			}
		}
	}
}
