package rival

import (
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// What the two published saturation policies have in common.
const (
	// saturationPeriod is the time between two cycles.
	saturationPeriod = 30 * time.Second
	// saturationWindow is the window of the maxima of KV use and queue length.
	saturationWindow = time.Minute
)

// The settings of both, by their published names, and those of the HPA that fulfils their
// wishes; and the settings that only one of them has.
var (
	saturationSettings = []replay.Setting{
		{Key: "kvCacheThreshold", Form: replay.NumberOf(0, 1, "the used share of the KV cache at which a replica is saturated, above 0 and up to 1, such as 0.8")},
		{Key: "queueLengthThreshold", Form: replay.NumberOf(0, mostTarget, "the waiting requests at which a replica is saturated, above 0, such as 5")},
		{Key: "down", Form: replay.SpanOf(0, longestWindow, "the HPA's stabilisation window of scaling down in whole seconds, up to 3600s, such as 240s")},
		{Key: "up", Form: replay.SpanOf(0, longestWindow, "the HPA's stabilisation window of scaling up in whole seconds, up to 3600s, such as 240s")},
	}
	saturationV1Settings = []replay.Setting{
		{Key: "kvSpareTrigger", Form: replay.NumberOf(0, 1, "the mean spare share of the KV cache below which replicas are added, above 0 and up to 1, such as 0.1")},
		{Key: "queueSpareTrigger", Form: replay.NumberOf(0, mostTarget, "the mean spare queue length below which replicas are added, above 0, such as 3")},
	}
	saturationV2Settings = []replay.Setting{
		{Key: "scaleUpThreshold", Form: replay.NumberOf(0, 1, "the share of the supply above which replicas are added, above 0 and up to 1, such as 0.85")},
		{Key: "scaleDownBoundary", Form: replay.NumberOf(0, 1, "the share of the supply below which replicas go, above 0 and up to 1, such as 0.7")},
	}
)

// thresholdsOf are the published thresholds with those of a spec over them.
func thresholdsOf(spec replay.Spec) decision.Saturation {
	t := decision.DefaultSaturation()
	t.KVCacheThreshold = spec.Float("kvCacheThreshold", t.KVCacheThreshold)
	t.QueueLengthThreshold = spec.Float("queueLengthThreshold", t.QueueLengthThreshold)
	t.KVSpareTrigger = spec.Float("kvSpareTrigger", t.KVSpareTrigger)
	t.QueueSpareTrigger = spec.Float("queueSpareTrigger", t.QueueSpareTrigger)
	return t
}

// saturationBehavior is that of the published chart's HPA, in both directions.
func saturationBehavior() decision.Behavior {
	return decision.Behavior{
		Window: 240 * time.Second, Select: decision.SelectMax,
		Policies: []decision.RatePolicy{{Pods: 10, Period: 150 * time.Second}},
	}
}

// saturationRule is what one of the policies wishes for.
type saturationRule interface {
	// wish changes the wishes of the last cycle, by model and variant, to those of this one.
	wish(view *replay.View, wanted [][]int)
	// parameters are those of the rule.
	parameters() []replay.Parameter
}

// saturation lets a rule wish for replicas in every cycle, and an HPA for each variant
// fulfil the wishes, as published: the rule's controller shows its wish as a metric of
// type External with a target AverageValue of 1. It writes itself only where a variant
// without replicas is to have the first one.
//
// The HPA is that of the published chart, which is what an installation gets: it waits for
// 240 s in either direction. The sample beside the chart waits for nothing and lets 10 pods
// go or come per 15 s. Neither is better throughout. On the conversation trace of
// bench-autoscaling, with start-ups of 30, 60, 120 and 300 s, so many per cent of the
// requests keep the SLO:
//
//	       chart                    sample
//	v1     24.8, 18.3, 41.1, 70.0   31.9, 24.8, 24.2, 32.5
//	v2     50.4, 54.5, 51.3, 36.9   64.4, 62.6, 38.4, 48.6
//
// What would only hurt is left out: the time in which the metric is scraped; the tolerance,
// which would drop single steps from eleven replicas on, and so stop for good a rule that
// waits until they are done; and the chart's bounds of 1 and 10, instead of which the
// scenario's count.
type saturation struct {
	scenario    *replay.Scenario
	thresholds  decision.Saturation
	up, down    decision.Behavior
	rule        saturationRule
	wishes      [][]int
	next        time.Duration
	autoscalers [][]*horizontal.Autoscaler
}

func newSaturation(s *replay.Scenario, spec replay.Spec, rule saturationRule) *saturation {
	p := &saturation{scenario: s, rule: rule, thresholds: thresholdsOf(spec), up: saturationBehavior(), down: saturationBehavior()}
	p.up.Window, p.down.Window = spec.Span("up", p.up.Window), spec.Span("down", p.down.Window)
	for m := range s.Models {
		var all []*horizontal.Autoscaler
		for i := range s.Models[m].Variants {
			h := s.HPA(&s.Models[m].Variants[i], 0)
			h.Min, h.Behavior = s.Models[m].Variants[i].Policy.Min, &horizontal.Behavior{Up: p.up, Down: p.down}
			all = append(all, h)
		}
		p.autoscalers = append(p.autoscalers, all)
	}
	return p
}

// newV1 and newV2 are the two policies.
func newV1(s *replay.Scenario, spec replay.Spec, _ []int) (*saturation, error) {
	return newSaturation(s, spec, newSaturationV1(s, spec)), nil
}

func newV2(s *replay.Scenario, spec replay.Spec, _ []int) (*saturation, error) {
	return newSaturation(s, spec, newSaturationV2(s, spec)), nil
}

// Next implements replay.Policy.
func (p *saturation) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + horizontal.Period
}

// Decide implements replay.Policy.
func (p *saturation) Decide(view *replay.View) replay.Answer {
	replicas := view.Asked()
	if p.wishes == nil {
		p.wishes = view.Asked()
	}
	if view.Now >= p.next {
		p.next = view.Now + saturationPeriod
		p.rule.wish(view, p.wishes)
	}
	for m := range replicas {
		for i, current := range replicas[m] {
			wish := p.scenario.Models[m].Variants[i].Bounded(p.wishes[m][i])
			p.wishes[m][i] = wish
			if current == 0 && wish > 0 {
				replicas[m][i] = 1
				continue
			}
			pods := len(view.Models[m].Variants[i].Pods)
			replicas[m][i] = p.autoscalers[m][i].Reconcile(view.Now, current, func() (int, bool) {
				return horizontal.SharedReplicas(horizontal.ToMilli(float64(wish)), pods, horizontal.ToMilli(1), 0), true
			})
		}
	}
	return replay.Answer{Replicas: replicas}
}

// Parameters implements replay.Policy.
func (p *saturation) Parameters() []replay.Parameter {
	t := p.thresholds
	return append(append([]replay.Parameter{
		{Name: "interval", Value: saturationPeriod.String()},
		{Name: "window", Value: saturationWindow.String()},
		{Name: "kvCacheThreshold", Value: fmt.Sprint(t.KVCacheThreshold)},
		{Name: "queueLengthThreshold", Value: fmt.Sprint(t.QueueLengthThreshold)},
	}, p.rule.parameters()...),
		replay.Parameter{Name: "actuation", Value: "HPA of the chart"},
		replay.Parameter{Name: "replicas", Value: p.bounds() + " (the chart's bounds of 1 to 10 are lifted)"},
		replay.Parameter{Name: "syncPeriod", Value: horizontal.Period.String()},
		replay.Parameter{Name: "tolerance", Value: "0"},
		replay.Parameter{Name: "scaleUp", Value: replay.Describe(p.up)},
		replay.Parameter{Name: "scaleDown", Value: replay.Describe(p.down)},
	)
}

// bounds are those of the HPA of each variant.
func (p *saturation) bounds() string {
	var names, values []string
	for m := range p.autoscalers {
		for i, h := range p.autoscalers[m] {
			names, values = append(names, p.scenario.Models[m].Variants[i].Name), append(values, fmt.Sprintf("%d to %d", h.Min, h.Max))
		}
	}
	return replay.OneOrEach(names, values)
}

// currentOf is how many replicas a target has, or asks for where it has none yet, and how
// many of them are not ready.
func currentOf(v *replay.VariantView) (current, pending int) {
	current = len(v.Pods)
	if current == 0 {
		current = v.Replicas
	}
	return current, max(0, current-v.Ready())
}

// saturationSample is the largest KV use, 0 to 1, and the longest queue of one replica
// within the window.
type saturationSample struct{ kv, queue float64 }

// maxima are those of a replica; false when it was not scraped within the window.
func maxima(pod replay.Pod, now time.Duration) (saturationSample, bool) {
	var out saturationSample
	w := replay.WindowOf(pod.Scrapes, now, saturationWindow)
	for _, s := range w {
		out.kv = max(out.kv, s.KVUse())
		out.queue = max(out.queue, float64(s.Waiting))
	}
	return out, len(w) > 0 && pod.Stage == simulation.Serving
}

// keepOne gives a model that would have no replica one on its cheapest variant, the first
// by name of equals: what the published enforcer does while scale to zero is off.
func keepOne(variants []replay.Variant, wanted []int) {
	least := 0
	for i := range variants {
		if wanted[i] > 0 {
			return
		}
		v, l := &variants[i], &variants[least]
		if v.Cost < l.Cost || v.Cost == l.Cost && v.Name < l.Name {
			least = i
		}
	}
	wanted[least] = 1
}
