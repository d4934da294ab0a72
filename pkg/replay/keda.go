package replay

import (
	"fmt"
	"time"
)

// kedaPolling is the documented default of a ScaledObject's pollingInterval.
const kedaPolling = 30 * time.Second

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
// be busy, and KEDA would take it away. maxReplicaCount is not its default of 100, which
// would bind nowhere but in the largest traces, and there for no good reason.
type keda struct {
	driver
}

func newKEDA(s *Scenario, choice []int) *keda {
	return &keda{newDriver(s, choice, kedaPolling)}
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
	return append([]Parameter{
		{"query", "sum(vllm:num_requests_waiting)"},
		{"metricType", "AverageValue"},
		{"threshold", fmt.Sprint(queueTarget)},
		{"pollingInterval", kedaPolling.String() + ", for the first replica only"},
		{"useCachedMetrics", "false"},
	}, k.parameters()...)
}
