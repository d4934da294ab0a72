package replay

import (
	"fmt"
	"time"
)

// driver lets one HPA drive a variant of each model by one trigger.
type driver struct {
	driven
	// trigger is what they scale by, and targets what one replica of each model is to have.
	trigger     *trigger
	targets     []float64
	tolerance   float64
	window      time.Duration
	autoscalers []*horizontal
}

// newDriver makes the HPAs. The published maximum is that of a variant without a bound.
func newDriver(s *Scenario, spec Spec, choice []int, wake time.Duration, published int) (driver, error) {
	d := driver{tolerance: spec.float("tolerance", horizontalTolerance), window: spec.span("window", s.Collection.Window)}
	var err error
	if d.driven, err = newDriven(s, spec, choice, published); err != nil {
		return d, err
	}
	if d.trigger, d.targets, err = d.scalesBy(); err != nil {
		return d, err
	}
	_, window := spec.Value("window")
	_, split := spec.Value("split")
	if window && d.trigger.gauge != nil && !split {
		return d, fmt.Errorf("policy %q: window has no effect on %s, which is that of the last scrape; expected it with rps or intok", spec, d.trigger.name)
	}
	for m, v := range d.choice {
		h := newHorizontal(&s.Models[m].Variants[v], wake)
		h.min, h.max = max(horizontalMin, d.least[m]), d.most[m]
		h.down.Window, h.up.Window = spec.span("down", h.down.Window), spec.span("up", h.up.Window)
		d.autoscalers = append(d.autoscalers, h)
	}
	return d, nil
}

// Next implements Policy.
func (d *driver) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + horizontalPeriod
}

// looks implements looker.
func (d *driver) looks() (every, back time.Duration) { return 0, d.window }

// drive is one round of every HPA.
func (d *driver) drive(view *View, propose func(m int, model *ModelView, variant *VariantView) (int, bool)) Answer {
	return d.answer(view, func(m int, model *ModelView, variant *VariantView) int {
		return d.autoscalers[m].reconcile(view.Now, variant.Replicas, func() (int, bool) { return propose(m, model, variant) })
	})
}

// external is what the rule for metrics of type External makes of the trigger.
func (d *driver) external(now time.Duration, m int, model *ModelView, variant *VariantView) (int, bool) {
	value, ok := d.value(now, m, model)
	if !ok {
		return 0, false
	}
	value *= d.share(m, model, now, d.window)
	return sharedReplicas(toMilli(value), len(variant.Pods), targetOf(d.targets[m]), d.tolerance), true
}

// value is what the query of a model says: the sum of its trigger, and where the model may
// sleep and the trigger counts requests, those that the gateway holds back.
func (d *driver) value(now time.Duration, m int, model *ModelView) (float64, bool) {
	value, known := d.trigger.sum(model, now, d.window)
	if d.least[m] == 0 && d.trigger.gauge != nil && d.trigger.name != triggerKV && len(model.Gateway) > 0 {
		value += float64(model.Gateway[len(model.Gateway)-1].Queue)
	}
	return value, known
}

// parameters are those of the HPA itself.
func (d *driver) parameters() []Parameter {
	return append(d.driven.parameters(),
		Parameter{"syncPeriod", horizontalPeriod.String()},
		Parameter{"tolerance", number(d.tolerance)},
		Parameter{"scaleUp", describe(d.autoscalers[0].up)},
		Parameter{"scaleDown", describe(d.autoscalers[0].down)},
	)
}

// targetText is the target, of every model unless all have the same.
func (d *driver) targetText() string { return d.perModel(d.targets) }
