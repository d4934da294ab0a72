package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
)

// annotate puts what the loop found out, and the decision cannot know in words, into
// the plan, so that every view shows the same: which object is in the way, which
// permission is missing, which field is wrong, why there are no metrics.
func annotate(plan *decision.Plan, seen *observation) {
	for i := range plan.Models {
		tellPromise(&plan.Models[i])
	}
	plan.Each(func(p *decision.VariantPlan) {
		v := seen.variants[p.Key]
		if p.Accelerator == "" {
			p.Accelerator = v.Accelerator
		}
		if v.target.unread {
			*p = v.held()
			return
		}
		if v.target.state != decision.TargetFound {
			overrideFact(p, reasonOf[v.target.state], v.target.fact)
		}
		for _, note := range v.notes {
			overrideFact(p, note.Reason, note)
		}
		p.Facts = append(p.Facts, v.warnings...)
		if seen.unreadable != "" && v.target.scale != nil {
			f, ok := p.Fact(decision.ReasonCapacityUnknown)
			if !ok {
				f = decision.Fact{Reason: decision.ReasonCapacityUnknown, Detail: decision.Words("how many more replicas fit is not known")}
			}
			f.Detail = decision.Because(f.Detail, decision.Words(seen.unreadable))
			overrideFact(p, f.Reason, f)
		}
		if seen.metricsErr != nil && v.target.state == decision.TargetFound {
			blame(p, seen)
		}
		if p.Reason == "" {
			p.Reason, p.Message = decision.ReasonSteady, decision.Words("the plan is only shown: spec.actuation is Off")
		}
	})
}

// tellPromise says whether a model was decided by its promised latency, for which its
// replicas were sized.
func tellPromise(m *decision.ModelPlan) {
	if !m.Sized {
		return
	}
	f := decision.Fact{Reason: v1alpha1.ReasonOptimizationSucceeded, Detail: decision.Words("decided by the latency model and saturation: " + sloText(&m.Promise))}
	if slices.ContainsFunc(m.Variants, saturated) {
		f = decision.Fact{Reason: v1alpha1.ReasonSaturationSafetyOverride, Detail: decision.Words("saturation asked for more than the latency model: " + sloText(&m.Promise))}
	}
	for i := range m.Variants {
		m.Variants[i].Facts = append(m.Variants[i].Facts, f)
	}
}

// saturated reports whether saturation is what asked for replicas.
func saturated(p decision.VariantPlan) bool {
	return slices.ContainsFunc(p.Steps, func(s decision.Step) bool {
		return s.Stage == decision.StageRequirement && s.Reason == decision.ReasonSaturated
	})
}

// sloText says what the SLO is.
func sloText(p *decision.Promise) string {
	var parts []string
	if p.SLO.TTFT > 0 {
		parts = append(parts, fmt.Sprintf("the first token within %g ms", p.SLO.TTFT))
	}
	if p.SLO.ITL > 0 {
		parts = append(parts, fmt.Sprintf("each further one within %g ms", p.SLO.ITL))
	}
	return fmt.Sprintf("the SLO of service class %s is %s", p.Class, strings.Join(parts, " and "))
}

// reasonOf is the decision's own reason for a state of the target.
var reasonOf = map[decision.TargetState]decision.Reason{
	decision.TargetMissing:   decision.ReasonTargetMissing,
	decision.TargetForbidden: decision.ReasonTargetForbidden,
	decision.TargetConflict:  decision.ReasonConflict,
	decision.TargetShared:    decision.ReasonConflict,
}

// overrideFact puts a more telling fact in the place of the decision's own, and into the
// message if that is what the message says.
func overrideFact(p *decision.VariantPlan, general decision.Reason, telling decision.Fact) {
	p.Facts = append(slices.DeleteFunc(p.Facts, func(f decision.Fact) bool { return f.Reason == general }), telling)
	if p.Reason == general || p.Reason == "" {
		p.Message = telling.Detail
		if p.Reason == "" {
			p.Reason = telling.Reason
		}
	}
}

// blame tells why a model's serving replicas are in the dark, or nobody sees requests for one
// that sleeps. One reading is of the whole cluster: elsewhere its error is about others.
func blame(p *decision.VariantPlan, seen *observation) {
	err := seenFrom(p.Key.Namespace, seen.metricsErr)
	if err == nil {
		return
	}
	why := seen.variants[p.Key].silence(err)
	if !seen.asksPods {
		why = status.First(err)
		if p.Has(decision.ReasonMetricsMissing, decision.ReasonMetricsStale) || seen.dark && p.Current == 0 && len(p.Steps) > 0 {
			p.Facts = append(p.Facts, decision.Fact{Reason: v1alpha1.ReasonPrometheusError, Detail: decision.Words(why)})
			return
		}
		why = "not all metrics could be read: " + why
	}
	for i := range p.Facts {
		switch f := &p.Facts[i]; f.Reason {
		case decision.ReasonMetricsMissing, decision.ReasonMetricsStale, decision.ReasonMetricsPartial:
			f.Detail = decision.Clauses(f.Detail, decision.Words(why))
		}
	}
}

// mostSilent is how many pods that did not answer are named.
const mostSilent = 3

// silence is which of its own pods did not answer, and why the first of them did not; else what else
// went wrong. Pods of others are not named: they may be of a namespace that a reader may not know.
func (v *variant) silence(err error) string {
	var failed PodErrors
	var names []string
	if errors.As(err, &failed) {
		for _, pod := range only(v.pods, counts) {
			if failed.Of(client.ObjectKeyFromObject(pod)) != nil {
				names = append(names, pod.Name)
			}
		}
	}
	if len(names) == 0 {
		err = without(err, func(e error) (bool, error) {
			_, ok := e.(PodErrors) //nolint:errorlint // what it joins is looked at too
			return ok, nil
		})
		if err == nil {
			return ""
		}
		return "not all metrics could be read: " + status.First(err)
	}
	slices.Sort(names)
	first := types.NamespacedName{Namespace: v.pods[0].Namespace, Name: names[0]}
	why := fmt.Sprintf("%d of %d pods did not answer: %s: %v", len(names), len(only(v.pods, counts)), names[0], failed.Of(first))
	switch others := names[1:]; {
	case len(names) > mostSilent:
		why += fmt.Sprintf("; nor did %s and %d more", strings.Join(others[:mostSilent-1], ", "), len(names)-mostSilent)
	case len(others) > 0:
		why += "; nor did " + strings.Join(others, ", ")
	}
	return why
}

// seenFrom is an error without what it says of other namespaces.
func seenFrom(namespace string, err error) error {
	return without(err, func(e error) (bool, error) {
		failed, ok := e.(NamespaceErrors) //nolint:errorlint // what it joins is looked at too
		if !ok {
			return false, nil
		}
		return true, failed.OfNamespace(namespace)
	})
}

// without is an error with others in the place of some that it joins; nil for none.
func without(err error, other func(error) (bool, error)) error {
	if ok, instead := other(err); ok {
		return instead
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		rest = append(rest, without(e, other))
	}
	return errors.Join(rest...)
}
