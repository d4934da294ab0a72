package replay

import (
	"fmt"
	"slices"
	"time"
)

// The documented defaults of a ScaledObject.
const (
	kedaPolling  = 30 * time.Second
	kedaCooldown = 300 * time.Second
	kedaMax      = 100
)

// keda drives the chosen variant of each model by a sum over all replicas of the model,
// through the HPA that KEDA makes from a ScaledObject: as published by the requests that
// wait.
//
// Polling and cooldown only rule the steps between no replica and the first one, and the
// last one never goes here, so that cooldownPeriod has no effect. Between
// one and more the HPA asks every 15 s, and KEDA, which caches nothing by default
// (useCachedMetrics: false), asks Prometheus at once, whose answer is as old as the last
// scrapes.
//
// minReplicaCount is 1 and not its default of 0: a model server whose queue is empty may
// be busy, and KEDA would take it away. maxReplicaCount is its default of 100, unless the
// variant has a bound of its own or the nodes hold fewer; on large traces it binds.
type keda struct {
	driver
}

func newKEDA(s *Scenario, spec Spec, choice []int) (*keda, error) {
	d, err := newDriver(s, spec, choice, kedaPolling, kedaMax)
	return &keda{d}, err
}

// Decide implements Policy.
func (k *keda) Decide(view *View) Answer {
	return k.drive(view, func(m int, model *ModelView, variant *VariantView) (int, bool) {
		return k.external(view.Now, m, model, variant)
	})
}

// Parameters implements Policy.
func (k *keda) Parameters() []Parameter {
	bounds := k.bounds("minReplicaCount", "maxReplicaCount")
	if !k.maxGiven {
		bounds[1].Value += fmt.Sprintf(" (%d by default, unless the variant has a bound or fewer fit)", kedaMax)
	}
	return slices.Concat([]Parameter{
		{"query", k.trigger.query},
		{"metricType", "AverageValue"},
		{"threshold", k.targetText()},
		{"pollingInterval", kedaPolling.String() + ", for the first replica only"},
		{"cooldownPeriod", kedaCooldown.String() + ", without effect: it rules the step to no replica"},
		{"useCachedMetrics", "false"},
	}, bounds, k.parameters())
}
