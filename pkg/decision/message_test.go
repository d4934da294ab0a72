package decision

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// Where nothing is asked for, no number of it is told.
func TestWhyTheLastReplicasStay(t *testing.T) {
	for name, c := range map[string]struct {
		least         capacity.Rate
		replicas, min int
		want          string
	}{
		"load":         {2.5, 3, 0, "no scale-down: it would have to leave 2.50 req/s of capacity"},
		"little load":  {rate.OneMore, 3, 0, "no scale-down: it would have to leave 0.001 req/s of capacity"},
		"no replica":   {0, 0, 0, "no replica to remove"},
		"the minimum":  {0, 2, 2, "no scale-down: minReplicas is 2"},
		"the last one": {0, 1, 0, "no scale-down: the model keeps a replica that can serve"},
	} {
		v := variantOf(func(it *limit.Variant) {
			it.In, it.Target, it.Policy = &Variant{}, c.replicas, VariantPolicy{Min: c.min, Max: -1}
		})
		m := modelOf(func(it *limit.Model) { it.Need = need.Need{Least: c.least} })
		assert.Equal(t, c.want, textOf(allocate.StaysFor(m, v)), name)
	}
}
