package decision

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

func TestRatesOfMessagesTellLittleFromNothing(t *testing.T) {
	for rate, want := range map[capacity.Rate]string{0: "0", 0.00314: "0.0031", 0.0999: "0.1", 0.1: "0.10", 1.234: "1.23", 1234.5: "1234.50"} {
		assert.Equal(t, want, signal.PerSecond(rate))
	}
}

func TestAClauseIsJoinedWhereItFits(t *testing.T) {
	clause := strings.Repeat("x", signal.MostMessage-len("a; "))
	assert.Equal(t, "a; "+clause, signal.Joined("a", clause))
	assert.Equal(t, "a", signal.Joined("a", clause+"x"))
}

// Where nothing is asked for, no number of it is told.
func TestWhyTheLastReplicasStay(t *testing.T) {
	for name, c := range map[string]struct {
		least         capacity.Rate
		replicas, min int
		want          string
	}{
		"load":         {2.5, 3, 0, "no scale-down: 2.50 req/s of capacity are required"},
		"little load":  {rate.OneMore, 3, 0, "no scale-down: 0.001 req/s of capacity are required"},
		"no replica":   {0, 0, 0, "no replica to remove"},
		"the minimum":  {0, 2, 2, "no scale-down: minReplicas is 2"},
		"the last one": {0, 1, 0, "no scale-down: the model keeps a replica that can serve"},
	} {
		v := variantOf(func(it *limit.Variant) {
			it.In, it.Target, it.Policy = &Variant{}, c.replicas, VariantPolicy{Min: c.min, Max: -1}
		})
		m := modelOf(func(it *limit.Model) { it.Need = need.Need{Least: c.least} })
		assert.Equal(t, c.want, allocate.StaysFor(m, v), name)
	}
}
