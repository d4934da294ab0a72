package scenario_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
)

func TestSleepWithoutAGatewayIsNoted(t *testing.T) {
	for name, c := range map[string]struct {
		added string
		noted bool
	}{
		"nothing about sleep":       {"", false},
		"all, without a gateway":    {"configuration: {WVA_SCALE_TO_ZERO: true}\n", true},
		"one, without a gateway":    {"scaleToZero: {x: {model_id: llama, enable_scale_to_zero: true}}\n", true},
		"another one":               {"scaleToZero: {x: {model_id: other, enable_scale_to_zero: true}}\n", false},
		"a gateway that is not one": {"configuration: {WVA_SCALE_TO_ZERO: true}\ncollection: {gateway: false}\n", true},
		"with a gateway":            {"configuration: {WVA_SCALE_TO_ZERO: true}\ncollection: {gateway: true}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Parse(with(t, small, "prices:", c.added+"prices:"), scenario.Options{})
			require.NoError(t, err)
			notes := scenario.Notes(s)
			assert.Equal(t, c.noted, len(notes) == 1, "%v", notes)
			if c.noted {
				assert.Contains(t, notes[0], "model llama may sleep")
				assert.Contains(t, notes[0], "collection.gateway: true")
			}
			s.Models[0].Variants[0].Policy.Min = 1
			assert.Empty(t, scenario.Notes(s), "with a minimum it does not sleep")
		})
	}
}
