package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// said is what one replica said at a second: requests that ended, their prompt tokens, and
// those that run and wait.
func said(second int, ended, tokens uint64, running, waiting int) Scrape {
	return Scrape{At: seconds(second), Metrics: simulation.Metrics{Finished: ended, Input: tokens, Running: running, Waiting: waiting}}
}

func TestFlows(t *testing.T) {
	gateway := func(second int, sent uint64, queue int) GatewayScrape {
		return GatewayScrape{At: seconds(second), Gateway: simulation.Gateway{Dispatched: sent, Queue: queue}}
	}
	pods := []VariantView{
		{Pods: []Pod{{Scrapes: []Scrape{said(0, 0, 0, 9, 0), said(15, 0, 0, 2, 0), said(60, 90, 9000, 5, 2)}}}},
		{Pods: []Pod{{Scrapes: []Scrape{said(30, 10, 50, 0, 0), said(60, 40, 6050, 0, 0)}}, {}}},
	}
	for _, c := range []struct {
		name       string
		model      ModelView
		rps, intok float64
		known      bool
	}{
		{"nothing is known", ModelView{}, 0, 0, false},
		{"one scrape of the gateway says no rate", ModelView{Gateway: []GatewayScrape{gateway(60, 90, 0)}, Variants: pods}, 0, 0, false},
		// 100 requests in 50 s; 12,000 tokens more of 120 requests that ended.
		{"the gateway counts what it sends on and holds back", ModelView{
			Gateway: []GatewayScrape{gateway(0, 5, 0), gateway(10, 10, 2), gateway(60, 100, 12)}, Variants: pods,
		}, 2, 250, true},
		{"a queue that went is no negative load", ModelView{Gateway: []GatewayScrape{gateway(10, 0, 2), gateway(60, 0, 0)}}, 0, 0, true},
		// 90 ended and five more are there after 45 s; 30 ended in 30 s.
		{"without a gateway the replicas count", ModelView{Variants: pods}, 95./45 + 1, (95./45 + 1) * 125, true},
	} {
		rps, known := c.model.Arrivals(seconds(61), seconds(55))
		assert.Equal(t, c.known, known, c.name)
		assert.InDelta(t, c.rps, rps, 1e-9, c.name)
		intok, known := inputTokens(&c.model, seconds(61), seconds(55))
		assert.Equal(t, c.known, known, c.name)
		assert.InDelta(t, c.intok, intok, 1e-9, c.name)
	}
	_, known := inputTokens(&ModelView{Gateway: []GatewayScrape{gateway(10, 0, 2), gateway(60, 9, 0)}}, seconds(61), seconds(55))
	assert.False(t, known, "the length of prompts is not known before the first one has ended")
}

func TestSumsOfGauges(t *testing.T) {
	model := ModelView{Variants: []VariantView{
		{Pods: []Pod{{Scrapes: []Scrape{said(0, 0, 0, 9, 9), said(15, 0, 0, 2, 1)}}, {}}},
		{Pods: []Pod{{Scrapes: []Scrape{said(15, 0, 0, 4, 0)}}}},
	}}
	for name, want := range map[string]float64{triggerInflight: 7, triggerQueue: 1, triggerKV: 0} {
		got, known := familyOf(policyHPA).triggerNamed(name).sum(&model, seconds(20), time.Minute)
		assert.True(t, known, name)
		assert.InDelta(t, want, got, 1e-9, name)
	}
}

// A ramp from three replicas' load to twelve replicas', as slow as a day's.
func ramp(t *testing.T) Source {
	return short(t, workload.Point{Rate: 30}, workload.Point{At: 30 * time.Minute, Rate: 120}, workload.Point{At: 40 * time.Minute, Rate: 120})
}

// Well tuned, each rival keeps up with a ramp, and costs little more than what is needed.
func TestTunedRivalsFollowARamp(t *testing.T) {
	s := small()
	s.Cluster.Nodes = nodes("h100", "H100", 8, 8)
	s.Models[0].Variants = s.Models[0].Variants[:1]
	policies := []string{
		"hpa:rps=9,down=120s", "hpa:intok=1800,down=120s", "hpa:inflight=7,down=120s", "keda:rps=9", "keda:inflight=7",
	}
	results, _, err := Run(Options{Scenario: s, Source: ramp(t), Policies: policies, Startups: []time.Duration{30 * time.Second}, Seed: 1})
	require.NoError(t, err)
	for i, r := range results {
		assert.Equal(t, policies[i], r.Policy)
		assert.Greater(t, r.Attainment, 0.98, r.Policy)
		assert.Less(t, r.CostOverBound, 2.2, r.Policy)
	}
	// Too high a target is too few replicas, too low a one too many.
	results, _, err = Run(Options{Scenario: s, Source: ramp(t), Policies: []string{"hpa:rps=30", "hpa:rps=3"}, Startups: []time.Duration{30 * time.Second}, Seed: 1})
	require.NoError(t, err)
	assert.Less(t, results[0].Attainment, 0.9)
	assert.Greater(t, results[1].CostOverBound, 2.)
}
