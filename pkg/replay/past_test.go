package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Who knows yesterday has replicas when the load rises as it did then, also where they take
// five minutes to start.
func TestYesterdayIsWorthSomething(t *testing.T) {
	day := 24 * time.Hour
	var rates []workload.Point
	for d := time.Duration(0); d <= day; d += day {
		rates = append(rates, workload.Point{At: d, Rate: 1}, workload.Point{At: d + time.Hour, Rate: 1}, workload.Point{At: d + time.Hour + 5*time.Minute, Rate: 12},
			workload.Point{At: d + 2*time.Hour, Rate: 12}, workload.Point{At: d + 2*time.Hour + 15*time.Minute, Rate: 0}, workload.Point{At: d + day - time.Hour, Rate: 0})
	}
	source := chat(t, 7, append(rates[:len(rates)-2], workload.Point{At: day + 2*time.Hour + 30*time.Minute, Rate: 1})...)
	missed := func(history bool) float64 {
		s := roomy()
		s.Learning, s.Policy.History = day, history
		results, _, err := Run(Options{Scenario: s, Source: source, Policies: []string{policyHybrid}, Startups: []time.Duration{5 * time.Minute}, Seed: 1})
		require.NoError(t, err)
		return 1 - float64(results[0].Attainment)
	}
	without, with := missed(false), missed(true)
	assert.Greater(t, without, 0.01)
	assert.Less(t, with, without/3)
}

func TestThePastIsWhatWasScraped(t *testing.T) {
	var p past
	model := ModelView{Variants: []VariantView{{Pods: []Pod{{Replica: simulation.Replica{Name: "a"}}}}}}
	pod := &model.Variants[0].Pods[0]
	step := forecast.HistoryStep
	assert.Empty(t, p.around(0))
	for now := time.Duration(0); now <= 25*time.Hour; now += step / 5 {
		if now == 30*time.Minute {
			// Another replica follows.
			pod.Name, pod.Scrapes = "b", nil
		}
		finished := uint64(0)
		if len(pod.Scrapes) > 0 {
			finished = pod.Scrapes[0].Finished
		}
		pod.Scrapes = []Scrape{{At: now, Metrics: simulation.Metrics{Finished: finished + 60}}}
		p.add(&model)
	}
	all := p.around(24*time.Hour + 20*time.Minute)
	require.Len(t, all, 1, "nobody knows of a week ago")
	h := all[0]
	assert.Equal(t, 24*time.Hour, h.Ago)
	assert.Equal(t, at(20*time.Minute-forecast.HistoryBehind), h.From)
	require.Len(t, h.Rates, int((forecast.HistoryBehind+forecast.HistoryAhead)/step))
	for _, rate := range h.Rates {
		assert.InDelta(t, 1, rate, 1e-9)
	}
	assert.Empty(t, p.around(23*time.Hour))
}
