package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// A price that nobody gave is worth a word where it decides something: between variants of one model
// that differ.
func TestWhoHasNoPrice(t *testing.T) {
	type side struct {
		model       string
		accelerator capacity.Accelerator
		devices     int
		priced      bool
	}
	for name, c := range map[string]struct {
		sides []side
		want  []bool
		says  string
	}{
		"one variant":                {[]side{{"m", "L40S", 1, false}}, []bool{false}, ""},
		"two that take the same":     {[]side{{"m", "L40S", 1, false}, {"m", "L40S", 1, false}}, []bool{false, false}, ""},
		"two that differ by type":    {[]side{{"m", "L40S", 1, false}, {"m", "H100", 1, false}}, []bool{true, true}, "no price for 1xL40S"},
		"two that differ by number":  {[]side{{"m", "H100", 8, false}, {"m", "H100", 1, false}}, []bool{true, true}, "no price for 8xH100"},
		"one of them has a price":    {[]side{{"m", "L40S", 2, false}, {"m", "L40S", 2, true}}, []bool{true, false}, "cannot be compared with the prices"},
		"both have one":              {[]side{{"m", "L40S", 1, true}, {"m", "H100", 1, true}}, []bool{false, false}, ""},
		"of different models":        {[]side{{"m", "L40S", 1, false}, {"n", "H100", 1, true}}, []bool{false, false}, ""},
		"nobody knows what it takes": {[]side{{"m", "", 0, false}, {"m", "H100", 1, true}}, []bool{true, false}, "no price for a replica"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*variant
			for _, s := range c.sides {
				v := promised("chat", "v", s.model, "")
				v.Accelerator, v.devices, v.priced = s.accelerator, s.devices, s.priced
				all = append(all, v)
			}
			warnOfPrices(all)
			var got []bool
			said := ""
			for _, v := range all {
				got = append(got, len(v.warnings) > 0)
				for _, w := range v.warnings {
					assert.Equal(t, decision.Reason(v1alpha1.ReasonPriceUnknown), w.Reason)
					if said == "" {
						said = sentence.Of(w.Detail)
					}
				}
			}
			assert.Equal(t, c.want, got)
			assert.Contains(t, said, c.says)
		})
	}
}
