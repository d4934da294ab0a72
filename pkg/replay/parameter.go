package replay

import (
	"fmt"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Parameters implements Policy.
func (o *ours) Parameters() []Parameter {
	p, c := &o.policy, o.scenario.Collection
	out := []Parameter{
		{"interval", p.Interval.String()},
		{"fastInterval", decision.FastInterval.String()},
		{"scrapeInterval", c.Scrape.String()},
		{"metricsWindow", p.Window.String()},
		{"gateway", fmt.Sprint(c.Gateway)},
		{"hybrid", fmt.Sprint(p.Hybrid)},
		{"limited", fmt.Sprint(p.Limited)},
		{"promisedShare", fmt.Sprint(p.Share)},
		{"history", fmt.Sprint(p.History)},
		{"growthLimit", growthOf(p.Growth)},
		{"horizon", p.Horizon.String()},
		{"drain", p.Drain.String()},
		{"startupDeadline", p.StartupDeadline.String()},
		{"scaleToZero", o.scenario.perModel(func(key decision.ModelKey) string {
			if idle := p.IdleOf(key); idle.Enabled {
				return "after " + idle.Retention.String()
			}
			return "never"
		})},
	}
	if p.Hybrid {
		out = append(out, Parameter{"risk", fmt.Sprint(p.Risk)})
	}
	for _, t := range []struct {
		name string
		of   func(decision.Saturation) float64
	}{
		{"kvCacheThreshold", func(s decision.Saturation) float64 { return s.KVCacheThreshold }},
		{"queueLengthThreshold", func(s decision.Saturation) float64 { return s.QueueLengthThreshold }},
		{"kvSpareTrigger", func(s decision.Saturation) float64 { return s.KVSpareTrigger }},
		{"queueSpareTrigger", func(s decision.Saturation) float64 { return s.QueueSpareTrigger }},
	} {
		out = append(out, Parameter{t.name, o.scenario.perModel(func(key decision.ModelKey) string {
			return fmt.Sprint(t.of(p.SaturationOf(key)))
		})})
	}
	return append(out,
		Parameter{"replicas", o.scenario.perVariant((*Variant).bounds)},
		Parameter{"scaleUp", o.scenario.perVariant(func(v *Variant) string { return Describe(v.Policy.Up) })},
		Parameter{"scaleDown", o.scenario.perVariant(func(v *Variant) string { return Describe(v.Policy.Down) })},
		Parameter{"profile", o.scenario.perVariant((*Variant).knowledge)},
	)
}

// growthOf renders how much a variant may grow beyond what serves.
func growthOf(g decision.Growth) string {
	if g == (decision.Growth{}) {
		return "none"
	}
	return fmt.Sprintf("%d replicas or %d%%, whichever is more", g.Pods, g.Percent)
}

// bounds are "2 to 8", or "2 or more" without an upper one.
func (v *Variant) bounds() string { return rangeOf(v.Policy.Min, v.Policy.Max) }

// rangeOf renders bounds of which a negative upper one is none.
func rangeOf(least, most int) string {
	if most < 0 {
		return fmt.Sprintf("%d or more", least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// knowledge says whether the autoscaler knew at the start how fast the variant is.
func (v *Variant) knowledge() string {
	if v.Given == (serving.Profile{}) {
		return "learned"
	}
	return "given"
}

// perVariant renders a setting: once where it is the same for all variants, else after
// the name of each.
func (s *Scenario) perVariant(of func(*Variant) string) string {
	var names, values []string
	for m := range s.Models {
		for i := range s.Models[m].Variants {
			v := &s.Models[m].Variants[i]
			names, values = append(names, v.Name), append(values, of(v))
		}
	}
	return OneOrEach(names, values)
}

// perModel is perVariant for models.
func (s *Scenario) perModel(of func(decision.ModelKey) string) string {
	var names, values []string
	for m := range s.Models {
		key := decision.ModelKey{Namespace: s.Models[m].Namespace, ID: s.Models[m].ID}
		names, values = append(names, key.ID), append(values, of(key))
	}
	return OneOrEach(names, values)
}

// OneOrEach renders values: once where all are the same, else after the name of each.
func OneOrEach(names, values []string) string {
	if len(slices.Compact(slices.Clone(values))) == 1 {
		return values[0]
	}
	each := make([]string, len(values))
	for i := range values {
		each[i] = names[i] + ": " + values[i]
	}
	return strings.Join(each, "; ")
}

// Describe renders a behaviour: "window 5m0s, 100% per 15s".
func Describe(b decision.Behavior) string {
	if b.Select == decision.SelectDisabled {
		return "disabled"
	}
	window := "window "
	if b.Adaptive {
		window = "window up to "
	}
	parts := []string{window + b.Window.String()}
	for _, p := range b.Policies {
		if p.Percent > 0 {
			parts = append(parts, fmt.Sprintf("%d%% per %s", p.Percent, p.Period))
		} else {
			parts = append(parts, fmt.Sprintf("%d pods per %s", p.Pods, p.Period))
		}
	}
	switch {
	case len(b.Policies) > 1 && b.Select == decision.SelectMin:
		parts = append(parts, "the smaller change")
	case len(b.Policies) > 1:
		parts = append(parts, "the larger change")
	}
	if b.Tolerance > 0 {
		parts = append(parts, fmt.Sprintf("tolerance %v", b.Tolerance))
	}
	return strings.Join(parts, ", ")
}
