package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

func TestRunsBeginWithWhatTheScenarioSays(t *testing.T) {
	for _, name := range everyPolicy {
		s := small()
		s.Models[0].Variants[1].Initial = 3
		p := played(t, s, hill(t), name, 20*time.Second)
		least := p.dearest(1)[0]
		require.NotEqual(t, 3, least[1])
		want := []int{least[0], 3}
		performed := p.perform()
		require.NoError(t, performed.err)
		serving := []int{0, 0}
		for _, move := range performed.recording.Moves {
			// A replica that a policy asks for takes its start-up time.
			if move.At == 0 && move.Stage == simulation.Serving {
				serving[move.Variant.Variant]++
			}
		}
		if name == policyPeak {
			assert.Zero(t, serving[1], "the fleet is there from the start, and nothing else")
			continue
		}
		assert.Equal(t, want, serving, name)
	}
}
