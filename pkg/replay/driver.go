package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// driver lets one HPA drive the chosen variant of each model. The other variants keep
// what they have for a while, and then their minimum.
type driver struct {
	scenario *Scenario
	spec     Spec
	// trigger is what they scale by, and targets what one replica of each model is to have.
	trigger     *trigger
	targets     []float64
	tolerance   float64
	window      time.Duration
	choice      []int
	autoscalers []*horizontal
	// maxGiven is set where the spec has the most replicas.
	maxGiven bool
}

// newDriver makes the HPAs. The choice is the variant that each drives where the spec names
// none, and the published maximum that of a variant without a bound.
func newDriver(s *Scenario, spec Spec, choice []int, wake time.Duration, published int) (driver, error) {
	_, name, _ := strings.Cut(spec.Family, ":")
	d := driver{
		scenario: s, spec: spec, tolerance: spec.float("tolerance", horizontalTolerance),
		window: spec.span("window", s.Collection.Window),
	}
	d.trigger = familyOf(policyHPA).triggerNamed(name)
	_, d.maxGiven = spec.Value("max")
	var err error
	if d.choice, err = s.variantsOf(spec, choice); err != nil {
		return d, err
	}
	if d.targets, err = forEach(s, spec, name, d.trigger.published); err != nil {
		return d, err
	}
	least, err := forEach(s, spec, "min", 0)
	if err != nil {
		return d, err
	}
	most, err := forEach(s, spec, "max", 0)
	if err != nil {
		return d, err
	}
	for m, v := range d.choice {
		variant := &s.Models[m].Variants[v]
		h := newHorizontal(variant, wake).within(s, variant, published)
		h.down.Window, h.up.Window = spec.span("down", h.down.Window), spec.span("up", h.up.Window)
		if err := h.bounded(variant, int(least[m]), int(most[m])); err != nil {
			return d, fmt.Errorf("policy %q: %w", spec, err)
		}
		d.autoscalers = append(d.autoscalers, h)
	}
	return d, nil
}

// bounded takes over the bounds that are given; 0 means none.
func (h *horizontal) bounded(v *Variant, least, most int) error {
	if least > 0 {
		h.min, h.max = least, max(h.max, least)
	}
	if most > 0 {
		h.max = most
	}
	switch {
	case most > 0 && h.min > most:
		return fmt.Errorf("max is %d for variant %s; expected at least its minimum of %d", most, v.Name, h.min)
	case least > 0 && least < v.Policy.Min:
		return fmt.Errorf("min is %d for variant %s; expected at least its own minReplicas of %d", least, v.Name, v.Policy.Min)
	case v.Policy.Max >= 0 && max(least, most) > v.Policy.Max:
		return fmt.Errorf("%d replicas are allowed of variant %s; expected at most its own maxReplicas of %d", max(least, most), v.Name, v.Policy.Max)
	}
	return nil
}

// Next implements Policy.
func (d *driver) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + horizontalPeriod
}

// drive is one round of every HPA.
func (d *driver) drive(view *View, propose func(m int, model *ModelView, variant *VariantView) (int, bool)) Answer {
	replicas := askedReplicas(view)
	for m, v := range d.choice {
		model := &view.Models[m]
		variant := &model.Variants[v]
		replicas[m][v] = d.autoscalers[m].reconcile(view.Now, variant.Replicas, func() (int, bool) { return propose(m, model, variant) })
		// Nobody drives the other variants. What they begin with goes after the window in
		// which nothing is removed, or it would cost all day.
		for other := range replicas[m] {
			if other != v && view.Now >= defaultDown().Window {
				replicas[m][other] = view.Scenario.Models[m].Variants[other].Policy.Min
			}
		}
	}
	return Answer{Replicas: replicas}
}

// external is what the rule for metrics of type External makes of the trigger.
func (d *driver) external(now time.Duration, m int, model *ModelView, variant *VariantView) (int, bool) {
	value, ok := d.trigger.sum(model, now, d.window)
	if !ok {
		return 0, false
	}
	return sharedReplicas(toMilli(value), len(variant.Pods), targetOf(d.targets[m]), d.tolerance), true
}

// parameters are those of the HPA itself.
func (d *driver) parameters() []Parameter {
	return []Parameter{
		{"variant", chosen(d.scenario, d.choice)},
		{"otherVariants", "to their minimum after " + defaultDown().Window.String()},
		{"syncPeriod", horizontalPeriod.String()},
		{"tolerance", number(d.tolerance)},
		{"scaleUp", describe(d.autoscalers[0].up)},
		{"scaleDown", describe(d.autoscalers[0].down)},
	}
}

// targetText is the target, of every model unless all have the same.
func (d *driver) targetText() string {
	var names, values []string
	for m := range d.targets {
		names, values = append(names, d.scenario.Models[m].ID), append(values, number(d.targets[m]))
	}
	return oneOrEach(names, values)
}

// bounds are the least and the most replicas, of every HPA unless all have the same, under
// the names by which people set them.
func (d *driver) bounds(least, most string) []Parameter {
	var names, lows, highs []string
	for m, h := range d.autoscalers {
		names = append(names, d.scenario.Models[m].Variants[d.choice[m]].Name)
		lows, highs = append(lows, strconv.Itoa(h.min)), append(highs, strconv.Itoa(h.max))
	}
	return []Parameter{{least, oneOrEach(names, lows)}, {most, oneOrEach(names, highs)}}
}

// float is the value of a setting with one number; ParseSpec has checked it.
func (s Spec) float(key string, otherwise float64) float64 {
	if text, ok := s.Value(key); ok {
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			return value
		}
	}
	return otherwise
}

// span is the value of a setting with one time; ParseSpec has checked it.
func (s Spec) span(key string, otherwise time.Duration) time.Duration {
	if text, ok := s.Value(key); ok {
		if value, err := time.ParseDuration(text); err == nil {
			return value
		}
	}
	return otherwise
}

// forEach are the numbers of a setting, one for each model.
func forEach(s *Scenario, spec Spec, key string, otherwise float64) ([]float64, error) {
	out := slices.Repeat([]float64{otherwise}, len(s.Models))
	text, ok := spec.Value(key)
	if !ok {
		return out, nil
	}
	parts := strings.Split(text, between)
	if len(parts) != 1 && len(parts) != len(out) {
		return nil, fmt.Errorf("policy %q: %s has %d values, and the scenario %d models; expected one value, or one for each model", spec, key, len(parts), len(out))
	}
	for m := range out {
		value, err := strconv.ParseFloat(parts[min(m, len(parts)-1)], 64)
		if err != nil {
			return nil, fmt.Errorf("policy %q: %s: %w", spec, key, err)
		}
		out[m] = value
	}
	return out, nil
}

// variantsOf is the variant of each model that the spec names, else that of the choice.
func (s *Scenario) variantsOf(spec Spec, choice []int) ([]int, error) {
	out := slices.Clone(choice)
	text, ok := spec.Value("variant")
	if !ok {
		return out, nil
	}
	named := map[int]string{}
	for name := range strings.SplitSeq(text, between) {
		index, err := s.variantNamed(name)
		if err != nil {
			return nil, fmt.Errorf("policy %q: %w", spec, err)
		}
		if before, twice := named[index.Model]; twice {
			return nil, fmt.Errorf("policy %q: variants %s and %s both serve model %s; expected one variant of a model", spec, before, name, s.Models[index.Model].ID)
		}
		named[index.Model], out[index.Model] = name, index.Variant
	}
	return out, nil
}
