package report

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestADemosPageHoldsItsRun(t *testing.T) {
	html := written(t, "demo.html", func(w io.Writer) error { return DemoHTML(w, observed()) })
	text := wellFormed(t, html)
	for _, part := range []string{"meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct", "llama-8b-h100", "llama-70b-a100", "8xA100", "66.67%", "v1.36.3"} {
		assert.Contains(t, text, part)
	}
	course := demoPage(observed()).Data.Runs[0].Course
	require.Len(t, course.Models, 2)
	first := course.Models[0]
	assert.Equal(t, 2.0, first.Step)
	require.Len(t, first.Load, 120)
	assert.Equal(t, 0.5, *first.Load[5], "one request in two seconds")
	assert.Equal(t, 0.0, *first.Met[6], "a failed request has not met it")
	assert.Nil(t, first.TTFTs[6], "and has no latency")
	assert.Equal(t, 41.2, *first.TTFTs[5])
	assert.Equal(t, 25.0, *first.ITLs[20])
	assert.Equal(t, []float64{6.88, 13.76, 13.76, 6.88}, []float64{first.CostRate[9], first.CostRate[10], first.CostRate[99], first.CostRate[100]})
	assert.Nil(t, first.BoundRate, "nobody said what the bound is")
	assert.Equal(t, []pageLife{
		{Variant: 0, Node: 0, Created: 0, Placed: 0, Serving: 0, Leaving: -1, Gone: -1, Name: "a"},
		{Variant: 0, Node: 1, Created: 20, Placed: 21, Serving: 36, Leaving: 200, Gone: -1, Name: "b"},
	}, course.Lives, "from 0 to the end, without those that were gone by then")
	assert.Equal(t, []float64{0, 20, 36, 200}, course.Variants[0].T)
	require.Len(t, course.Decisions, 2)
	assert.Equal(t, pageDecision{T: 20, From: 1, To: 4, Reason: "Saturated", Message: "KV use 0.83 of 0.80 <&>"}, course.Decisions[0])
}

func TestADemosPageComparesWithTheBound(t *testing.T) {
	o := observed()
	o.Models[0].Bound = []capacity.Cost{10, 20}
	course := demoPage(o).Data.Runs[0].Course
	bound := course.Models[0].BoundRate
	require.Len(t, bound, 120)
	assert.Equal(t, []float64{10, 10, 20, 20}, []float64{bound[0], bound[29], bound[30], bound[119]}, "and keeps what it had after the traffic")
	assert.Nil(t, course.Models[1].BoundRate)
}

func TestTheStepOfADemoFollowsItsLength(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, 4 * time.Minute: 2 * time.Second, 301 * time.Second: 5 * time.Second, time.Hour: 30 * time.Second, 24 * time.Hour: 10 * time.Minute,
	} {
		assert.Equal(t, want, demoStep(length), length)
	}
	assert.NotPanics(t, func() { demoPage(Observation{}) })
}
