package rival

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

// A recipe is a rule with the settings that its project ships. These are the four that llm-d
// recommends (github.com/llm-d/llm-d, guides/workload-autoscaling): a ScaledObject of KEDA
// each, whose queries read the metrics of llm-d's router, and the HPA that KEDA makes of it.
//
//	llmd-queue       keda-epp/optimized-baseline/overlays/k8s/queue at 057abb4
//	llmd-saturation  keda-epp/optimized-baseline/overlays/k8s/saturation at 321a7e8
//	llmd-tokens      keda-epp-token-aware/optimized-baseline at 04c0115
//	llmd-slo         slo-aware at 1860df2
//
// KEDA keeps no metrics back by default, so its HPA asks for them every 15 s. Polling and
// cooldown rule the steps from and to no replica, which no recipe takes: the least is one
// replica or more.
//
// The bounds are part of a recipe. A user with more load raises the maximum, as the guides say,
// and bounds=lifted does that: up to the variant's own bound, else to what empty nodes hold.
//
// What is not modelled: the time in which Prometheus evaluates, one scrape of age in
// kube-state-metrics, and the recipes' own way of routing.

// The values of the setting bounds.
const boundsShipped, boundsLifted = "shipped", "lifted"

// recipeSettings are those of all recipes.
var recipeSettings = slices.Concat([]replay.Setting{
	{Key: "bounds", Form: replay.OneOf(boundsShipped, boundsLifted)},
}, slices.DeleteFunc(replay.DrivenSettings(false), func(s replay.Setting) bool { return s.Key == "split" }))

// shipped is what the ScaledObject of a recipe says beside its triggers.
type shipped struct {
	least, most int
	behavior    horizontal.Behavior
}

// recipe drives one variant of each model by a ScaledObject.
type recipe struct {
	replay.Driven
	of          shipped
	autoscalers []*horizontal.Autoscaler
}

func newRecipe(s *replay.Scenario, spec replay.Spec, choice []int, of shipped) (recipe, error) {
	r := recipe{of: of}
	var err error
	if r.Driven, err = replay.NewDriven(s, spec, choice, 0); err != nil {
		return r, err
	}
	if !s.Collection.Gateway {
		return r, fmt.Errorf("policy %q: it scales by what the gateway counts; expected a scenario with a gateway", spec)
	}
	_, leastGiven := spec.Value("min")
	kept := spec.Word("bounds", boundsShipped) == boundsShipped
	for m, v := range r.Choice {
		if kept && !r.MostGiven {
			r.Most[m] = max(s.Models[m].Variants[v].Policy.Min, min(r.Most[m], of.most))
		}
		if !leastGiven {
			r.Least[m] = min(r.Most[m], max(r.Least[m], of.least))
		}
		r.Most[m] = max(r.Most[m], r.Least[m])
		h := s.HPA(&s.Models[m].Variants[v], 0)
		h.Min, h.Max, h.Behavior = r.Least[m], r.Most[m], &of.behavior
		r.autoscalers = append(r.autoscalers, h)
	}
	return r, nil
}

// Next implements replay.Policy.
func (r *recipe) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + horizontal.Period
}

// drive is one round of every HPA.
func (r *recipe) drive(view *replay.View, propose func(m int, model *replay.ModelView, variant *replay.VariantView) (int, bool)) replay.Answer {
	return r.Answer(view, func(m int, model *replay.ModelView, variant *replay.VariantView) int {
		return r.autoscalers[m].Reconcile(view.Now, variant.Replicas, func() (int, bool) { return propose(m, model, variant) })
	})
}

// parameters are those of the ScaledObject beside its triggers.
func (r *recipe) parameters() []replay.Parameter {
	bounds := r.Bounds("minReplicaCount", "maxReplicaCount")
	bounds[0].Value += fmt.Sprintf(" (shipped: %d)", r.of.least)
	bounds[1].Value += fmt.Sprintf(" (shipped: %d)", r.of.most)
	return slices.Concat(bounds, r.Driven.Parameters(), []replay.Parameter{
		{Name: "syncPeriod", Value: horizontal.Period.String()},
		{Name: "tolerance", Value: number(horizontal.Tolerance)},
		{Name: "scaleUp", Value: replay.Describe(r.of.behavior.Up)},
		{Name: "scaleDown", Value: replay.Describe(r.of.behavior.Down)},
	})
}

// signal is one trigger of metric type AverageValue: the HPA asks for ceil(value/target)
// replicas, and for no change within its tolerance.
type signal struct {
	query  string
	target float64
	value  func(model *replay.ModelView) float64
}

// signals is a recipe whose HPA takes the most replicas that any of its triggers asks for.
type signals struct {
	recipe
	all []signal
}

// Decide implements replay.Policy.
func (s *signals) Decide(view *replay.View) replay.Answer {
	return s.drive(view, func(_ int, model *replay.ModelView, variant *replay.VariantView) (int, bool) {
		most := 0
		for _, one := range s.all {
			most = max(most, horizontal.SharedReplicas(horizontal.ToMilli(one.value(model)), len(variant.Pods), horizontal.ToMilli(one.target), horizontal.Tolerance))
		}
		return most, true
	})
}

// Parameters implements replay.Policy.
func (s *signals) Parameters() []replay.Parameter {
	queries, targets := make([]string, len(s.all)), make([]string, len(s.all))
	for i, one := range s.all {
		queries[i], targets[i] = one.query, number(one.target)
	}
	return append([]replay.Parameter{
		{Name: "queries", Value: strings.Join(queries, "; ")},
		{Name: "thresholds", Value: strings.Join(targets, "; ")},
	}, s.parameters()...)
}

// rates is the behaviour of one direction.
func rates(window time.Duration, policies ...decision.RatePolicy) decision.Behavior {
	return decision.Behavior{Window: window, Select: decision.SelectMax, Policies: policies}
}
