package replay

import (
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

// driver lets one HPA drive a variant of each model by one trigger.
type driver struct {
	Driven
	// trigger is what they scale by, and targets what one replica of each model is to have.
	trigger     *Trigger
	targets     []float64
	tolerance   float64
	window      time.Duration
	autoscalers []*horizontal.Autoscaler
}

// newDriver makes the HPAs. The published maximum is that of a variant without a bound.
func newDriver(s *Scenario, spec Spec, choice []int, wake time.Duration, published int) (driver, error) {
	d := driver{tolerance: spec.Float("tolerance", horizontal.Tolerance), window: spec.Span("window", s.Collection.Window)}
	var err error
	if d.Driven, err = NewDriven(s, spec, choice, published); err != nil {
		return d, err
	}
	if d.trigger, d.targets, err = d.ScalesBy(); err != nil {
		return d, err
	}
	_, window := spec.Value("window")
	_, split := spec.Value("split")
	if window && d.trigger.Gauge != nil && !split {
		return d, fmt.Errorf("policy %q: window has no effect on %s, which is that of the last scrape; expected it with rps or intok", spec, d.trigger.Name)
	}
	for m, v := range d.Choice {
		h := newHorizontal(&s.Models[m].Variants[v], wake)
		h.Min, h.Max = max(horizontal.Min, d.Least[m]), d.Most[m]
		h.Behavior = behaviorOf(spec)
		d.autoscalers = append(d.autoscalers, h)
	}
	return d, nil
}

// behaviorOf is spec.behavior of the HPA: nil where the spec has nothing that stands in it.
func behaviorOf(spec Spec) *horizontal.Behavior {
	for _, key := range []string{"up", "down", "tolerance"} {
		if _, given := spec.Value(key); given {
			b := horizontal.Defaults()
			b.Up.Window, b.Down.Window = spec.Span("up", b.Up.Window), spec.Span("down", b.Down.Window)
			return &b
		}
	}
	return nil
}

// Next implements Policy.
func (d *driver) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + horizontal.Period
}

// looks implements Looker.
func (d *driver) Looks() (every, back time.Duration) { return 0, d.window }

// drive is one round of every HPA.
func (d *driver) drive(view *View, propose func(m int, model *ModelView, variant *VariantView) (int, bool)) Answer {
	return d.Answer(view, func(m int, model *ModelView, variant *VariantView) int {
		return d.autoscalers[m].Reconcile(view.Now, variant.Replicas, func() (int, bool) { return propose(m, model, variant) })
	})
}

// external is what the rule for metrics of type External makes of the trigger.
func (d *driver) external(now time.Duration, m int, model *ModelView, variant *VariantView) (int, bool) {
	value, ok := d.value(now, m, model)
	if !ok {
		return 0, false
	}
	value *= d.Share(m, model, now, d.window)
	return horizontal.SharedReplicas(horizontal.ToMilli(value), len(variant.Pods), targetOf(d.targets[m]), d.tolerance), true
}

// value is what the query of a model says: the sum of its trigger, and where the model may
// sleep and the trigger counts requests, those that the gateway holds back.
func (d *driver) value(now time.Duration, m int, model *ModelView) (float64, bool) {
	value, known := d.trigger.sum(model, now, d.window)
	if d.Least[m] == 0 && d.trigger.Gauge != nil && d.trigger.Name != triggerKV && len(model.Gateway) > 0 {
		value += float64(model.Gateway[len(model.Gateway)-1].Queue)
	}
	return value, known
}

// parameters are those of the HPA itself.
func (d *driver) parameters() []Parameter {
	up, down := "to the double or to 4 per "+horizontal.Period.String()+", the larger", "window "+horizontal.Window.String()
	if b := d.autoscalers[0].Behavior; b != nil {
		up, down = Describe(b.Up), Describe(b.Down)
	}
	return append(d.Driven.Parameters(),
		Parameter{"syncPeriod", horizontal.Period.String()},
		Parameter{"tolerance", number(d.tolerance)},
		Parameter{"scaleUp", up},
		Parameter{"scaleDown", down},
	)
}

// targetText is the target, of every model unless all have the same.
func (d *driver) targetText() string { return d.PerModel(d.targets) }
