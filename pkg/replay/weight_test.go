package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// The router sends requests by weight: of two replicas, one of three times the weight gets
// far more requests, if not three times as many where only few are in flight.
func TestTheRouterGoesByTheWeights(t *testing.T) {
	finished := func(weight float64) (heavy, light float64) {
		s := small()
		s.Models[0].Variants[0].Weight = weight
		p := played(t, s, short(t, workload.Point{Rate: 12}, workload.Point{At: 10 * time.Minute, Rate: 12}), "static:1", time.Minute)
		performed := p.with(&scripted{every: second, answer: func(_ int, view *View) Answer {
			for v, to := range []*float64{&heavy, &light} {
				if last, ok := view.Models[0].Variants[v].Pods[0].Last(); ok {
					*to = float64(last.Finished)
				}
			}
			return Answer{Replicas: [][]int{{1, 1}}}
		}}, [][]int{{1, 1}})
		require.NoError(t, performed.err)
		return heavy, light
	}
	heavy, light := finished(0)
	assert.InEpsilon(t, 1, heavy/light, 0.1)
	heavy, light = finished(3)
	assert.Greater(t, heavy/light, 1.7)
	assert.Less(t, heavy/light, 4.0)
}
