package v1alpha1

import (
	"errors"
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// Profile is the latency model that the spec gives; false means that it gives none.
// A model of which a parameter is missing cannot predict anything: the error names
// every field that is missing or wrong.
func (s *VariantAutoscalingSpec) Profile() (serving.FourParameter, bool, error) {
	given := s.VariantProfile
	if given == nil || (given.PerfParms == nil && given.MaxBatchSize == nil) {
		return serving.FourParameter{}, false, nil
	}
	var decode DecodeParms
	var prefill PrefillParms
	if given.PerfParms != nil && given.PerfParms.DecodeParms != nil {
		decode = *given.PerfParms.DecodeParms
	}
	if given.PerfParms != nil && given.PerfParms.PrefillParms != nil {
		prefill = *given.PerfParms.PrefillParms
	}
	var profile serving.FourParameter
	var errs []error
	for _, parameter := range []struct {
		field string
		text  ParameterMilliseconds
		to    *capacity.Milliseconds
	}{
		{"decodeParms.alpha", decode.Alpha, &profile.Alpha},
		{"decodeParms.beta", decode.Beta, &profile.Beta},
		{"prefillParms.gamma", prefill.Gamma, &profile.Gamma},
		{"prefillParms.delta", prefill.Delta, &profile.Delta},
	} {
		value, err := parameter.text.read()
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.variantProfile.perfParms.%s %w", parameter.field, err))
		}
		*parameter.to = value
	}
	if len(errs) == 0 && profile.Alpha == 0 {
		errs = append(errs, errors.New("spec.variantProfile.perfParms.decodeParms.alpha is 0: no engine answers in no time, measure it or leave the profile out"))
	}
	if err := errors.Join(errs...); err != nil {
		return serving.FourParameter{}, false, err
	}
	if given.MaxBatchSize != nil {
		profile.MaxBatchSize = int(*given.MaxBatchSize)
	}
	return profile, true, nil
}

func (p ParameterMilliseconds) read() (capacity.Milliseconds, error) {
	if p == "" {
		return 0, errors.New("is missing: give all four of alpha, beta, gamma and delta, or no profile")
	}
	value, err := decimal(string(p))
	return capacity.Milliseconds(value), err
}
