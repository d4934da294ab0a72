package config

import (
	"errors"
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// VariantPolicy is what a spec allows the decision to do with its variant. The error
// names every wrong field; the policy is then not usable.
func VariantPolicy(s *v1alpha1.VariantAutoscalingSpec) (decision.VariantPolicy, error) {
	policy := decision.DefaultVariantPolicy()
	var errs []error
	if s.MinReplicas != nil {
		policy.Min = int(*s.MinReplicas)
	}
	if s.MaxReplicas != nil {
		policy.Max = int(*s.MaxReplicas)
	}
	if policy.Max >= 0 && policy.Min > policy.Max {
		errs = append(errs, fmt.Errorf("spec.minReplicas (%d) is above spec.maxReplicas (%d): lower it or raise maxReplicas", policy.Min, policy.Max))
	}
	if s.Behavior != nil {
		errs = append(errs,
			applyRules(&policy.Up, s.Behavior.ScaleUp, "spec.behavior.scaleUp"),
			applyRules(&policy.Down, s.Behavior.ScaleDown, "spec.behavior.scaleDown"))
	}
	switch s.Actuation {
	case "", v1alpha1.ActuationScale:
		policy.Actuation = decision.ActuationScale
	case v1alpha1.ActuationMetric:
		policy.Actuation = decision.ActuationMetric
	case v1alpha1.ActuationOff:
		policy.Actuation = decision.ActuationOff
	default:
		errs = append(errs, fmt.Errorf("spec.actuation is %q: write Scale, Metric or Off", s.Actuation))
	}
	switch s.OnUnknownCapacity {
	case "":
	case v1alpha1.UnknownCapacityAllow:
		policy.OnUnknown = decision.OnUnknownAllow
	case v1alpha1.UnknownCapacityHold:
		policy.OnUnknown = decision.OnUnknownHold
	default:
		errs = append(errs, fmt.Errorf("spec.onUnknownCapacity is %q: write Allow or Hold, or leave it out", s.OnUnknownCapacity))
	}
	return policy, errors.Join(errs...)
}

// applyRules puts what the rules give in the place of the defaults.
func applyRules(to *decision.Behavior, r *v1alpha1.ScalingRules, field string) error {
	if r == nil {
		return nil
	}
	if r.StabilizationWindowSeconds != nil {
		to.Window, to.Adaptive = seconds(*r.StabilizationWindowSeconds), false
	}
	if r.Tolerance != nil {
		tolerance := r.Tolerance.AsApproximateFloat64()
		if tolerance < 0 || tolerance >= 1 {
			return fmt.Errorf("%s.tolerance is %s: write a fraction of at least 0 and below 1", field, r.Tolerance)
		}
		to.Tolerance = tolerance
	}
	if r.SelectPolicy != nil {
		selected, ok := selections[*r.SelectPolicy]
		if !ok {
			return fmt.Errorf("%s.selectPolicy is %q: write Max, Min or Disabled", field, *r.SelectPolicy)
		}
		to.Select = selected
	}
	for i, p := range r.Policies {
		policy := decision.RatePolicy{Period: seconds(p.PeriodSeconds)}
		switch p.Type {
		case v1alpha1.PodsPolicy:
			policy.Pods = int(p.Value)
		case v1alpha1.PercentPolicy:
			policy.Percent = int(p.Value)
		default:
			return fmt.Errorf("%s.policies[%d].type is %q: write Pods or Percent", field, i, p.Type)
		}
		to.Policies = append(to.Policies, policy)
	}
	return nil
}

var selections = map[v1alpha1.SelectPolicy]decision.Select{
	v1alpha1.SelectMax:      decision.SelectMax,
	v1alpha1.SelectMin:      decision.SelectMin,
	v1alpha1.SelectDisabled: decision.SelectDisabled,
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
