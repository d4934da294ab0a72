package replay

import (
	"fmt"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

// The documented defaults of a ScaledObject.
const (
	kedaPolling  = 30 * time.Second
	kedaCooldown = 300 * time.Second
	kedaMax      = 100
)

// kedaSettings are those of a ScaledObject beside the ones of its HPA.
var kedaSettings = []Setting{
	{"polling", SpanOf(time.Second, longestWindow, "pollingInterval in whole seconds, from 1s to 3600s, such as 30s; it rules the steps from and to no replica")},
	{"cooldown", SpanOf(0, longestWindow, "cooldownPeriod in whole seconds, up to 3600s, such as 300s; it rules the step to no replica")},
	{"activation", NumberOf(orZero, mostTarget, "activationThreshold, at least 0: above it a sleeping model wakes, such as 0")},
}

// keda drives the chosen variant of each model by a sum over all replicas of the model,
// through the HPA that KEDA makes from a ScaledObject: as published by the requests that
// wait. The rules are those of keda.sh/docs (scaling deployments, ScaledObject specification)
// and of kedacore/keda, pkg/scaling/executor.
//
// Polling, cooldown and activation only rule the steps between no replica and the first
// one. Between one and more the HPA asks every 15 s, and KEDA, which caches nothing by
// default (useCachedMetrics: false), asks Prometheus at once, whose answer is as old as the
// last scrapes.
//
// minReplicaCount is 1 and not its default of 0: a model server whose queue is empty may
// be busy, and KEDA would take it away. With min=0 it does, and the queries of queue and
// inflight have the gateway's queue beside, without which no model would ever wake.
// maxReplicaCount is its default of 100, unless the variant has a bound of its own or the
// nodes hold fewer; on large traces it binds.
type keda struct {
	driver
	polling, cooldown time.Duration
	activation        float64
	// active is when the trigger of each model was active last; negative before the first
	// time.
	active []time.Duration
}

func newKEDA(s *Scenario, spec Spec, choice []int) (*keda, error) {
	k := &keda{
		polling: spec.Span("polling", kedaPolling), cooldown: spec.Span("cooldown", kedaCooldown),
		activation: spec.Float("activation", 0), active: slices.Repeat([]time.Duration{-1}, len(choice)),
	}
	var err error
	k.driver, err = newDriver(s, spec, choice, k.polling, kedaMax)
	return k, err
}

// Next implements Policy.
func (k *keda) Next(now time.Duration) time.Duration {
	next := k.driver.Next(now)
	if now < 0 || !slices.Contains(k.Least, 0) {
		return next
	}
	return min(next, after(now, k.polling))
}

// Decide implements Policy.
func (k *keda) Decide(view *View) Answer {
	return k.Answer(view, func(m int, model *ModelView, variant *VariantView) int {
		if k.Least[m] == 0 {
			if wanted, ruled := k.activate(view.Now, m, model, variant.Replicas); ruled {
				return wanted
			}
		}
		if view.Now%horizontal.Period != 0 {
			return variant.Replicas
		}
		return k.autoscalers[m].Reconcile(view.Now, variant.Replicas, func() (int, bool) {
			return k.external(view.Now, m, model, variant)
		})
	})
}

// activate is what KEDA itself does at a poll, as its documentation of scaling deployments
// has it: the first replica when the trigger's value is above the activation, and none
// when it was not for longer than the cooldown, or has never been. False means that the HPA
// decides.
func (k *keda) activate(now time.Duration, m int, model *ModelView, current int) (int, bool) {
	if now%k.polling != 0 {
		return 0, current == 0
	}
	value, known := k.value(now, m, model)
	switch active := known && value > k.activation; {
	case active && current == 0:
		k.active[m] = now
		return 1, true
	case active:
		k.active[m] = now
		return 0, false
	case !known:
		return current, current == 0
	}
	over := k.active[m] < 0 || now > k.active[m]+k.cooldown
	return 0, current == 0 || over
}

// Parameters implements Policy.
func (k *keda) Parameters() []Parameter {
	bounds := k.Bounds("minReplicaCount", "maxReplicaCount")
	if !k.MostGiven {
		bounds[1].Value += fmt.Sprintf(" (%d by default, unless the variant has a bound or fewer fit)", kedaMax)
	}
	polling, cooldown := k.polling.String(), k.cooldown.String()
	if slices.Contains(k.Least, 0) {
		bounds = append(bounds, Parameter{"activationThreshold", number(k.activation)})
	} else {
		polling += ", for the first replica only"
		cooldown += ", without effect: it rules the step to no replica"
	}
	if k.trigger.Flow != nil {
		bounds = append(bounds, Parameter{"window", k.window.String()})
	}
	return slices.Concat([]Parameter{
		{"query", k.trigger.Query},
		{"metricType", "AverageValue"},
		{"threshold", k.targetText()},
		{"pollingInterval", polling},
		{"cooldownPeriod", cooldown},
		{"useCachedMetrics", "false"},
	}, bounds, k.parameters())
}
