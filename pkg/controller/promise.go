package controller

import (
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// promise puts into the policy what was promised to each model's clients, whether it may
// scale to zero, and its thresholds where its namespace has some of its own. Variants of a
// model whose service class cannot be told get a warning; saturation alone decides for them.
func (seen *observation) promise(settings *config.Dynamic, variants []*variant, own map[string]config.Local) {
	references := map[decision.ModelKey][]config.ClassReference{}
	for _, v := range variants {
		of := references[v.model()]
		if named := v.object.Spec.SLOClassRef; named != nil {
			of = append(of, config.ClassReference{Variant: v.key.Name, Class: named.Name, Key: named.Key})
		}
		references[v.model()] = of
	}
	seen.policy.Promises = make(map[decision.ModelKey]decision.Promise, len(references))
	seen.policy.IdleByModel = make(map[decision.ModelKey]decision.Idle, len(references))
	if len(own) > 0 {
		seen.policy.SaturationByModel = map[decision.ModelKey]decision.Saturation{}
	}
	for model, named := range references {
		here := settings.In(own[model.Namespace])
		seen.policy.Promises[model], seen.policy.IdleByModel[model] = settings.Promise(model.ID, named), here.IdleOf(model)
		if len(own) > 0 {
			seen.policy.SaturationByModel[model] = here.SaturationOf(model)
		}
	}
	for _, v := range variants {
		v.Class = seen.policy.Promises[v.model()].Class
		if problem := seen.policy.Promises[v.model()].Problem; problem != "" {
			v.warnings = append(v.warnings, decision.Fact{Reason: v1alpha1.ReasonServiceClassUnclear, Detail: problem})
		}
	}
}

func (v *variant) model() decision.ModelKey {
	return decision.ModelKey{Namespace: v.key.Namespace, ID: v.object.Spec.ModelID}
}
