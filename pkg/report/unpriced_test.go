package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// Where nobody gave a price, no view of a replay has a sum of money: policies are compared by the hours
// of devices that they take.
func TestAReplayWithoutPricesShowsNoMoney(t *testing.T) {
	result := func(policy string, attainment, hours float64) replay.Result {
		return replay.Result{Policy: policy, Requests: 100, Attainment: attainment, Cost: 7777 / hours, GPUHours: hours, Unpriced: true, CostOverBound: 1.5}
	}
	results := []replay.Result{result("hybrid", 0.995, 8), result("peak", 1, 9), result("hpa:inflight=16", 0.992, 10)}
	assert.Equal(t, "hybrid wins: of the 2 policies that meet the SLO for 99% of the requests it takes least, 8.00 GPU hours, 1.50 times the bound. That is 20% less than hpa:inflight=16, the next, with 10.0 GPU hours.", Headline(results, 0.99))

	recording := replay.Recording{Policy: "hybrid", Length: time.Minute, Step: time.Minute, Models: []replay.RecordedModel{{
		ID: "m", Samples: []replay.Sample{{Requests: 100, Met: 99, Cost: 777, Bound: 500}},
		Variants: []replay.RecordedVariant{{Name: "a", Accelerator: "L40S", Devices: 1, Cost: 777, Unpriced: true, Wanted: []int{1}, Ready: []int{1}}},
	}}}
	steps := 1 << 20
	course, _ := courseOf(&recording, 10, &steps)
	page, err := json.Marshal([]any{course, pageRunOf(&ReplayRun{Result: results[0]}), replayTable([]ReplayRun{{Result: results[0]}})})
	require.NoError(t, err)
	recording.Models[0].Samples[0].Bound = 0
	for _, view := range []string{
		strings.Join(ReplayTable(results, Style{Width: 200}), "\n"), string(page),
		strings.Join(ReplayChart(results[:1], []replay.Recording{recording}, Style{Width: 120}, 0), "\n"),
	} {
		assert.NotEmpty(t, view)
		assert.NotContains(t, view, "$")
		assert.NotContains(t, view, "777")
	}
}
