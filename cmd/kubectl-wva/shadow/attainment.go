package shadow

import (
	"context"
	"fmt"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// readMet reads what share of the model's requests met the SLO, into samples that are a step apart
// from a time on. The objective is the share that the decisions size for; 0 where the model has no
// SLO.
func readMet(ctx context.Context, server *prometheus.Server, object *v1alpha1.VariantAutoscaling, samples []Sample, from, to time.Time, step time.Duration) (objective float64, err error) {
	const least, most, arrive = 1, 2, 4
	there := make([]int, len(samples))
	for _, m := range []struct {
		metric, selector string
		set              func(i int, value float64)
	}{
		{"wva_slo_objective_ratio", "", func(_ int, value float64) { objective = value }},
		{"wva_slo_met_ratio", `bound="lower",`, func(i int, value float64) { samples[i].Met.Least = value; there[i] |= least }},
		{"wva_slo_met_ratio", `bound="upper",`, func(i int, value float64) { samples[i].Met.Most = value; there[i] |= most }},
		{"wva_model_requests_per_second", "", func(i int, value float64) { samples[i].Requests = value; there[i] |= arrive }},
	} {
		matrix, err := server.Range(ctx, "max("+prometheus.OfModel(m.metric, m.selector, object.Namespace, object.Spec.ModelID)+")", from, to, step)
		if err != nil {
			return 0, err
		}
		each(matrix, func(at time.Time, value float64) {
			if i := int(math.Round(float64(at.Sub(from)) / float64(step))); i >= 0 && i < len(samples) {
				m.set(i, value)
			}
		})
		if objective == 0 {
			return 0, nil
		}
	}
	for i := range samples {
		samples[i].MetKnown = there[i] == least|most|arrive
	}
	return objective, nil
}

// percent writes a share for people: one number where both ends look the same.
func (s *Share) percent() string {
	if s == nil {
		return "unknown"
	}
	least, most := fmt.Sprintf("%.1f", 100*s.Least), fmt.Sprintf("%.1f", 100*s.Most)
	if least == most {
		return least + " %"
	}
	return least + " to " + most + " %"
}

// falls reports whether less of the requests meet the SLO than before, as far as one decimal of a
// per cent shows it.
func (s *Share) falls(before *Share) bool {
	const shown = 1e-3
	return before.Least-s.Least >= shown || before.Most-s.Most >= shown
}

// verdict says what a saving is worth: what it does to the latency, as far as that is known.
func (r *Result) verdict() string {
	there, object := r.There.Attainment, r.Object.Attainment
	saves := r.Object.ReplicaHours < r.There.ReplicaHours
	switch {
	case r.Objective == 0 && saves:
		return "The model has no SLO, so nothing says whether the latency would have stayed as it was. `kubectl wva adopt` gives it one."
	case r.Objective == 0:
		return ""
	case there == nil && saves:
		return "What share of the requests met the SLO is not known for that time, so nothing says whether the saving keeps the SLO."
	case there == nil:
		return ""
	case object.falls(there) && saves:
		return fmt.Sprintf("The saving has a price: by the estimate %s of the requests meet the SLO, and %s did with the replicas that were there; the aim is %.4g %%.",
			object.percent(), there.percent(), 100*r.Objective)
	case object.falls(there):
		return fmt.Sprintf("By the estimate fewer requests meet the SLO: %s, and %s did with the replicas that were there; the aim is %.4g %%.",
			object.percent(), there.percent(), 100*r.Objective)
	}
	return ""
}
