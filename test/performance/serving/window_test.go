package serving

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

func TestAWindowIsShortNearSaturationOnly(t *testing.T) {
	conv := capacity.TokenShape{Input: 1155, Output: 211}
	overlapped := serving.Profile{
		Form: serving.Overlapped, Base: 6.9, PerRequest: 0.0184, PerResidentToken: 4.7e-5, PerPrefillToken: 0.0232,
		PerPrompt: 0.44, First: serving.FirstToken{Fixed: 1, Iterations: 1.3, Cold: 12, ColdBelow: 0.7}, BatchLimit: 256, KVTokens: 447936,
	}
	steady, at := overlapped.Under(2, conv)
	n, _ := within(overlapped, 2, conv, time.Hour)
	assert.InEpsilon(t, steady, n, 0.05)
	most := overlapped.Steady(256, conv).Rate
	full, _ := overlapped.Under(most*0.999, conv)
	n, near := within(overlapped, most*0.999, conv, 20*time.Second)
	assert.Less(t, n, full, "it had no time to fill up")
	assert.Greater(t, near.ITL, at.ITL)
	_, zero := within(overlapped, 0, conv, time.Minute)
	assert.Zero(t, zero)
}
