package prometheus

import (
	"math"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestTheShareWithinATarget(t *testing.T) {
	t.Parallel()
	all := math.Inf(1)
	for name, c := range map[string]struct {
		rates  map[float64]float64
		target float64
		want   float64
		known  bool
	}{
		"half of a bucket":                     {map[float64]float64{0.1: 2, 0.2: 6, all: 8}, 0.15, 0.5, true},
		"at the end of a bucket":               {map[float64]float64{0.1: 2, all: 8}, 0.1, 0.25, true},
		"in the first bucket":                  {map[float64]float64{0.1: 2, all: 8}, 0.05, 0.125, true},
		"above all ends: what is more is late": {map[float64]float64{0.1: 2, all: 8}, 5, 0.25, true},
		"no ends at all":                       {map[float64]float64{all: 8}, 5, 0, false},
		"no requests":                          {map[float64]float64{0.1: 0, all: 0}, 0.1, 0, false},
		"no last bucket":                       {map[float64]float64{0.1: 3}, 0.1, 0, false},
		"buckets scraped apart":                {map[float64]float64{0.1: 9, all: 8}, 0.1, 1, true},
	} {
		got, known := shareWithin(c.rates, c.target)
		assert.Equal(t, c.known, known, name)
		assert.InDelta(t, c.want, got, 1e-12, name)
	}
}

func TestABucketThatEndsNowhereIsNone(t *testing.T) {
	t.Parallel()
	var written model.Vector
	for _, end := range []model.LabelValue{"0.5", "0.50", "NaN", "", "half", "+Inf"} {
		written = append(written, &model.Sample{Metric: model.Metric{"model_name": "llama", labelHistogram: "0", model.BucketLabel: end}})
	}
	ends := EndsOf(written)
	of := counting{model: decision.ModelKey{ID: "llama"}}
	assert.Equal(t, map[float64][]string{0.5: {"0.5", "0.50"}, math.Inf(1): {"+Inf"}}, ends.of(of))
	assert.Equal(t, []float64{0.5}, ends.beside(of, 0.2))
}
