package rival

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// The constants of the SLO recipe.
const (
	sloQuantile = 0.9
	sloRates    = time.Minute
	sloMost     = 2
	sloSmooth   = 45 * time.Second
	sloUp       = 0.55
	sloDown     = 0.40
	// sloScrape is how often its guide has the router scraped.
	sloScrape = 5 * time.Second
	// sloTTFT and sloTPOT are what the rules ship, in milliseconds.
	sloTTFT, sloTPOT capacity.Milliseconds = 3000, 100
)

// The sources of its histograms.
const fromRouter, fromServer = "router", "vllm"

// The buckets of the router's histograms (github.com/llm-d/llm-d-router, the plugin
// predicted-latency-producer), and of vLLM's (vllm/v1/metrics/loggers.py at 005a810):
// vllm:time_to_first_token_seconds, and vllm:request_time_per_output_token_seconds, which has
// those of vllm:time_per_output_token_seconds. All in seconds.
var sloBuckets = map[string]simulation.Buckets{
	fromRouter: {
		FirstToken: []float64{
			0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
			120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
		},
		PerToken: []float64{
			0.0005, 0.00205, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8,
			1, 1.5, 2, 3, 4.5, 6, 12, 18, 24, 30, 36, 48, 60, 90, 120, 180, 270, 360,
		},
	},
	fromServer: {
		Servers: true,
		FirstToken: []float64{
			0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
		},
		PerToken: []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80},
	},
}

var sloSettings = []replay.Setting{{Key: "histograms", Form: replay.OneOf(fromRouter, fromServer)}}

// sloRecipe scales by latencies over what is promised. Every 15 s recording rules make
//
//	raw = max(P90 TTFT / promised, P90 TPOT / promised)    over a minute; 0 without requests
//	s   = mean of min(raw, 2)                              over 45 s
//
// and with n replicas, of which r are ready, a formula of KEDA (scalingModifiers) makes
//
//	n + ceil(n * (s*c/0.55 - 1))   where s > 0.55, with c = r/n while 0 < r < n, else 1
//	n - floor(n * (1 - s/0.40))    where s < 0.40
//	n                              between them.
//
// KEDA hands that to its HPA with a target of 1, which has a tolerance of a tenth like any HPA:
// from ten replicas on it takes no step of one. The bounds are 3 and 8 replicas.
//
// The promise is the model's, as its guide has every user write; without one it is the shipped
// 3 s and 100 ms. The router notes the latencies of a request when it ends
// (predicted-latency-producer), and vLLM that of the first token when it is there. The guide
// prefers what a model of the router predicts, and falls back to what was measured, which is
// what is modelled here.
type sloRecipe struct {
	recipe
	source     string
	ttft, tpot []float64
	// clamped are the values of the last 45 s for each model, the oldest first.
	clamped [][]clampedAt
}

// clampedAt is a value of the recording rule at an instant.
type clampedAt struct {
	at    time.Duration
	value float64
}

func newSLORecipe(s *replay.Scenario, spec replay.Spec, choice []int) (*sloRecipe, error) {
	r, err := newRecipe(s, spec, choice, shipped{3, 8, horizontal.Behavior{
		Up: rates(30*time.Second,
			decision.RatePolicy{Percent: 100, Period: time.Minute}, decision.RatePolicy{Pods: 4, Period: time.Minute}),
		Down: rates(180*time.Second, decision.RatePolicy{Pods: 1, Period: 120 * time.Second}),
	}})
	p := &sloRecipe{recipe: r, source: spec.Word("histograms", fromRouter), clamped: make([][]clampedAt, len(s.Models))}
	for m := range s.Models {
		p.ttft = append(p.ttft, secondsOr(s.Models[m].SLO.TTFT, sloTTFT))
		p.tpot = append(p.tpot, secondsOr(s.Models[m].SLO.ITL, sloTPOT))
	}
	return p, err
}

// secondsOr is a promise in seconds, or that which ships.
func secondsOr(promised, shipped capacity.Milliseconds) float64 {
	if promised <= 0 {
		promised = shipped
	}
	return float64(promised) / 1000
}

// Looks implements replay.Looker.
func (p *sloRecipe) Looks() (every, back time.Duration) {
	return min(sloScrape, p.Scenario.Collection.Scrape), sloRates
}

// Latencies implements replay.LatencyReader.
func (p *sloRecipe) Latencies() simulation.Buckets { return sloBuckets[p.source] }

// Decide implements replay.Policy.
func (p *sloRecipe) Decide(view *replay.View) replay.Answer {
	return p.drive(view, func(m int, model *replay.ModelView, variant *replay.VariantView) (int, bool) {
		s := p.smooth(m, view.Now, p.raw(m, view.Now, model.Gateway))
		wanted := sloReplicas(s, len(variant.Pods), variant.Ready())
		return horizontal.SharedReplicas(horizontal.ToMilli(wanted), len(variant.Pods), horizontal.ToMilli(1), horizontal.Tolerance), true
	})
}

// raw is the larger latency over its promise.
func (p *sloRecipe) raw(m int, now time.Duration, scrapes []replay.GatewayScrape) float64 {
	first := len(scrapes)
	for first > 0 && scrapes[first-1].At > now-sloRates {
		first--
	}
	w := scrapes[first:]
	if len(w) < 2 {
		return 0
	}
	last, before := w[len(w)-1].Latencies, w[0].Latencies
	ttft, _ := last.FirstToken.Since(before.FirstToken).Quantile(sloQuantile)
	tpot, _ := last.PerToken.Since(before.PerToken).Quantile(sloQuantile)
	return max(ttft/p.ttft[m], tpot/p.tpot[m])
}

// smooth is the mean of the clamped values of the window.
func (p *sloRecipe) smooth(m int, now time.Duration, raw float64) float64 {
	all := slices.DeleteFunc(p.clamped[m], func(c clampedAt) bool { return c.at <= now-sloSmooth })
	p.clamped[m] = append(all, clampedAt{now, min(raw, sloMost)})
	sum := 0.0
	for _, c := range p.clamped[m] {
		sum += c.value
	}
	return sum / float64(len(p.clamped[m]))
}

// sloReplicas is the formula.
func sloReplicas(s float64, replicas, ready int) float64 {
	n, r := float64(replicas), float64(ready)
	switch {
	case s > sloUp:
		credit := 1.0
		if r > 0 && r < n {
			credit = r / n
		}
		return n + math.Ceil(n*(s*credit/sloUp-1))
	case s < sloDown:
		return n - math.Floor(n*(1-s/sloDown))
	}
	return n
}

// Parameters implements replay.Policy.
func (p *sloRecipe) Parameters() []replay.Parameter {
	return append([]replay.Parameter{
		{Name: "ttft", Value: p.PerModel(p.ttft) + " s"},
		{Name: "tpot", Value: p.PerModel(p.tpot) + " s"},
		{Name: "quantile", Value: number(sloQuantile)},
		{Name: "histograms", Value: p.source},
		{Name: "clamp", Value: number(sloMost)},
		{Name: "smoothing", Value: sloSmooth.String()},
		{Name: "thresholds", Value: number(sloUp) + " and " + number(sloDown)},
	}, p.parameters()...)
}
