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

// keda drives the chosen variant of each model by the requests that wait at all replicas
// of the model, through the HPA that KEDA makes from a ScaledObject.
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

func newKEDA(s *Scenario, choice []int) *keda {
	return &keda{newDriver(s, choice, kedaPolling, kedaMax)}
}

// Decide implements Policy.
func (k *keda) Decide(view *View) Answer {
	return k.drive(view, func(model *ModelView, variant *VariantView) (int, bool) {
		return sharedReplicas(waiting(model), len(variant.Pods), targetOf(queueTarget), horizontalTolerance), true
	})
}

// waiting is the sum over the replicas of a model. Without any sample it is 0, as KEDA
// has it (ignoreNullValues: true).
func waiting(model *ModelView) milli {
	var sum milli
	for v := range model.Variants {
		for _, pod := range model.Variants[v].Pods {
			if last, ok := pod.Last(); ok {
				sum += toMilli(float64(last.Waiting))
			}
		}
	}
	return sum
}

// Parameters implements Policy.
func (k *keda) Parameters() []Parameter {
	bounds := k.bounds("minReplicaCount", "maxReplicaCount")
	bounds[1].Value += fmt.Sprintf(" (%d by default, unless the variant has a bound or fewer fit)", kedaMax)
	return slices.Concat([]Parameter{
		{"query", "sum(vllm:num_requests_waiting)"},
		{"metricType", "AverageValue"},
		{"threshold", fmt.Sprint(queueTarget)},
		{"pollingInterval", kedaPolling.String() + ", for the first replica only"},
		{"cooldownPeriod", kedaCooldown.String() + ", without effect: it rules the step to no replica"},
		{"useCachedMetrics", "false"},
	}, bounds, k.parameters())
}
