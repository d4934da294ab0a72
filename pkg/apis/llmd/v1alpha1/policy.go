package v1alpha1

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// The kind of a scale target that names none.
const (
	DefaultTargetAPIVersion = "apps/v1"
	DefaultTargetKind       = "Deployment"
)

// DefaultCost is the price of a replica of which nothing is known, per hour.
const DefaultCost capacity.Cost = 10

// GroupVersionKind is the kind of the target, with the defaults of what the
// reference leaves out. The error names the field.
func (r ScaleTargetReference) GroupVersionKind() (schema.GroupVersionKind, error) {
	apiVersion, kind := r.APIVersion, r.Kind
	if apiVersion == "" {
		apiVersion = DefaultTargetAPIVersion
	}
	if kind == "" {
		kind = DefaultTargetKind
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("spec.scaleTargetRef.apiVersion is %q: write a group and a version, such as apps/v1", apiVersion)
	}
	return version.WithKind(kind), nil
}

// ResolvedVariantID is the variant ID of the spec, or the one that follows from the
// accelerator and its count as they were resolved. It is empty while those are
// unknown.
func (s *VariantAutoscalingSpec) ResolvedVariantID(accelerator capacity.Accelerator, count int) string {
	if s.VariantID != "" {
		return s.VariantID
	}
	if accelerator == "" || count < 1 {
		return ""
	}
	return fmt.Sprintf("%s-%s-%d", s.ModelID, accelerator, count)
}

// Cost is the price of one replica per hour that the spec gives; false means that
// it gives none. The error names the field.
func (s *VariantAutoscalingSpec) Cost() (capacity.Cost, bool, error) {
	if s.VariantCost == "" {
		return 0, false, nil
	}
	cost, err := decimal(s.VariantCost)
	if err != nil {
		return 0, false, fmt.Errorf("spec.variantCost %w", err)
	}
	return capacity.Cost(cost), true, nil
}

// Policy is what the spec allows the decision to do with the variant. The error
// names every wrong field; the policy is then not usable.
func (s *VariantAutoscalingSpec) Policy() (decision.VariantPolicy, error) {
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
			s.Behavior.ScaleUp.apply(&policy.Up, "spec.behavior.scaleUp"),
			s.Behavior.ScaleDown.apply(&policy.Down, "spec.behavior.scaleDown"))
	}
	switch s.Actuation {
	case "", ActuationScale:
		policy.Actuation = decision.ActuationScale
	case ActuationMetric:
		policy.Actuation = decision.ActuationMetric
	case ActuationOff:
		policy.Actuation = decision.ActuationOff
	default:
		errs = append(errs, fmt.Errorf("spec.actuation is %q: write Scale, Metric or Off", s.Actuation))
	}
	return policy, errors.Join(errs...)
}

// apply puts what the rules give in the place of the defaults.
func (r *ScalingRules) apply(to *decision.Behavior, field string) error {
	if r == nil {
		return nil
	}
	if r.StabilizationWindowSeconds != nil {
		to.Window = seconds(*r.StabilizationWindowSeconds)
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
		case PodsPolicy:
			policy.Pods = int(p.Value)
		case PercentPolicy:
			policy.Percent = int(p.Value)
		default:
			return fmt.Errorf("%s.policies[%d].type is %q: write Pods or Percent", field, i, p.Type)
		}
		to.Policies = append(to.Policies, policy)
	}
	return nil
}

var selections = map[SelectPolicy]decision.Select{
	SelectMax:      decision.SelectMax,
	SelectMin:      decision.SelectMin,
	SelectDisabled: decision.SelectDisabled,
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// decimal reads a number that a user wrote in quotes.
func decimal(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value < 0 || math.IsInf(value, 0) || math.IsNaN(value) {
		return 0, fmt.Errorf("is %q: write a number of at least 0", text)
	}
	return value, nil
}
