package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
)

// settled is the plan of a variant that the decision looked at: 2 replicas, and 3
// are wanted.
func settled(change ...func(*decision.VariantPlan)) *decision.VariantPlan {
	p := &decision.VariantPlan{
		Key: decision.Key{Namespace: "n", Name: "v"}, Accelerator: "H100", Current: 2, Ready: 2, Desired: ptr.To(3),
		Slots:  &decision.Slots{Count: 4},
		Steps:  []decision.Step{{Stage: decision.StageRequirement, Before: 2, After: 3, Reason: decision.ReasonSaturated, Detail: decision.Words("80 % full")}},
		Reason: decision.ReasonSaturated, Message: decision.Words("80 % full"),
		Facts: []decision.Fact{{Reason: decision.ReasonMetricsFound, Detail: decision.Words("2 of 2")}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// unsettled is the plan of a variant that took no part, for this reason.
func unsettled(reason decision.Reason, facts ...decision.Reason) *decision.VariantPlan {
	p := &decision.VariantPlan{Key: decision.Key{Namespace: "n", Name: "v"}, Reason: reason, Message: decision.Words("why")}
	for _, f := range facts {
		p.Facts = append(p.Facts, decision.Fact{Reason: f, Detail: decision.Words("which " + string(f))})
	}
	return p
}

func facts(reasons ...decision.Reason) func(*decision.VariantPlan) {
	return func(p *decision.VariantPlan) {
		p.Facts = nil
		for _, reason := range reasons {
			p.Facts = append(p.Facts, decision.Fact{Reason: reason, Detail: decision.Words("which " + string(reason))})
		}
	}
}

func because(reason decision.Reason) func(*decision.VariantPlan) {
	return func(p *decision.VariantPlan) { p.Reason = reason }
}

// seventh is a variant whose object is at generation 7.
var seventh = &variant{object: &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Generation: 7}}, Variant: status.Variant{Generation: 7}}

func TestEventsTellOfChangesOnly(t *testing.T) {
	cases := []struct {
		name          string
		before, after *decision.VariantPlan
		want          []string
	}{
		{"all is well from the start", nil, settled(), nil},
		{"nothing changed", settled(facts(decision.ReasonMetricsMissing)), settled(facts(decision.ReasonMetricsMissing)), nil},
		{"bad from the start", nil, unsettled(decision.ReasonTargetMissing, decision.ReasonTargetMissing), []string{"Warning TargetNotFound which TargetMissing"}},
		{"no room", settled(), settled(facts(decision.ReasonMetricsFound, decision.ReasonNoSlots)), []string{"Warning NoSlots which NoSlots"}},
		{"stabilised is normal life", settled(), settled(because(decision.ReasonStabilized)), nil},
		{"good again", settled(facts(decision.ReasonMetricsMissing)), settled(), []string{"Normal MetricsFound 2 of 2"}},
		{"from bad to worse", settled(facts(decision.ReasonMetricsStale)), settled(facts(decision.ReasonMetricsMissing)), []string{"Warning MetricsMissing which MetricsMissing"}},
		{"somebody else writes", settled(), unsettled(decision.ReasonReplicasOverwritten, decision.ReasonReplicasOverwritten), []string{"Warning ReplicasOverwritten which ReplicasOverwritten"}},
		{"the class became unclear", settled(), settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonServiceClassUnclear)), []string{"Warning ServiceClassUnclear which ServiceClassUnclear"}},
		{"pods are replaced, which is normal life", settled(), settled(because(decision.ReasonRollingUpdate)), nil},
		{"the target came", unsettled(decision.ReasonTargetMissing, decision.ReasonTargetMissing), settled(), []string{"Normal TargetFound the scale target exists and may be scaled"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var before []metav1.Condition
			if c.before != nil {
				before = status.Conditions(nil, c.before, &seventh.Variant)
			}
			recorder := events.NewFakeRecorder(10)
			conditionEvents(recorder, &v1alpha1.VariantAutoscaling{}, before, status.Conditions(before, c.after, &seventh.Variant))
			assert.Equal(t, c.want, drained(recorder))
		})
	}
}

func drained(recorder *events.FakeRecorder) []string {
	var all []string
	for len(recorder.Events) > 0 {
		all = append(all, <-recorder.Events)
	}
	return all
}

func TestScaleEvents(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	for _, desired := range []int{3, 1, 0} {
		scaleEvent(recorder, &v1alpha1.VariantAutoscaling{}, settled(func(p *decision.VariantPlan) { p.Desired = ptr.To(desired) }))
	}
	assert.Equal(t, []string{
		"Normal ScaledUp replicas from 2 to 3: 80 % full",
		"Normal ScaledDown replicas from 2 to 1: 80 % full",
		"Normal ScaledToZero replicas from 2 to 0: 80 % full",
	}, drained(recorder))
}

// An event tells the beginning of a long account. An error is told to its end, where its
// cause stands.
func TestEventsAreShort(t *testing.T) {
	long := "8xH100: 0 more fit (largest hole 4); " + strings.Repeat("no room in zone a; ", 20) + "the end"
	for reason, short := range map[decision.Reason]bool{decision.ReasonNoSlots: true, v1alpha1.ReasonPrometheusError: false} {
		recorder := events.NewFakeRecorder(10)
		bad := settled(facts(decision.ReasonMetricsFound, reason))
		bad.Facts[1].Detail = decision.Words(long)
		conditionEvents(recorder, &v1alpha1.VariantAutoscaling{}, nil, status.Conditions(nil, bad, &seventh.Variant))
		told := strings.Join(drained(recorder), "\n")
		require.Contains(t, told, string(reason)+" 8xH100: 0 more fit (largest hole 4)")
		assert.Equal(t, short, !strings.Contains(told, "the end"), told)
	}
	recorder := events.NewFakeRecorder(10)
	scaleEvent(recorder, &v1alpha1.VariantAutoscaling{}, settled(func(p *decision.VariantPlan) { p.Desired, p.Message = ptr.To(3), decision.Words(long) }))
	assert.LessOrEqual(t, len(strings.TrimPrefix(drained(recorder)[0], "Normal ScaledUp ")), 120)
}

// silent are pods that did not answer, and why.
type silent map[string]string

func (s silent) Error() string {
	return fmt.Sprint(len(s), " pods did not answer, the first is other/pod-7")
}

func (s silent) Of(pod types.NamespacedName) error {
	if why, ok := s[pod.String()]; ok {
		return errors.New(why)
	}
	return nil
}

// leftOutError are namespaces that were not read, and why.
type leftOutError map[string]string

func (l leftOutError) Error() string { return fmt.Sprint(len(l), " namespaces are left out") }

func (l leftOutError) OfNamespace(name string) error {
	if why, ok := l[name]; ok {
		return errors.New(why)
	}
	return nil
}

// ofPods is a variant with pods.
func ofPods(names ...string) *variant {
	v := &variant{}
	for _, name := range names {
		v.pods = append(v.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}})
	}
	return v
}

func TestAnnotate(t *testing.T) {
	missing := decision.Fact{Reason: v1alpha1.ReasonTargetNotScalable, Detail: decision.Words("no such kind")}
	cases := []struct {
		name    string
		plan    *decision.VariantPlan
		variant *variant
		failed  error
		// pods is set where the metrics come from the pods themselves.
		pods    bool
		want    []decision.Fact
		message string
	}{
		{"a state of the target in words", unsettled(decision.ReasonTargetMissing, decision.ReasonTargetMissing),
			&variant{target: target{state: decision.TargetMissing, fact: missing}}, errors.New("no metrics"), false, []decision.Fact{missing}, "no such kind"},
		{"what is unknown of the shape", unsettled(decision.ReasonShapeUnknown, decision.ReasonShapeUnknown),
			&variant{notes: []decision.Fact{{Reason: decision.ReasonShapeUnknown, Detail: decision.Words("set it")}}}, nil, false,
			[]decision.Fact{{Reason: decision.ReasonShapeUnknown, Detail: decision.Words("set it")}}, "set it"},
		{"a wrong field", unsettled(""), &variant{notes: []decision.Fact{{Reason: v1alpha1.ReasonInvalidConfiguration, Detail: decision.Words("field")}}}, nil, false,
			[]decision.Fact{{Reason: v1alpha1.ReasonInvalidConfiguration, Detail: decision.Words("field")}}, "field"},
		{"Prometheus fails and nothing is known", settled(facts(decision.ReasonMetricsMissing)), &variant{}, errors.Join(errors.New("first"), errors.New("second"), errors.New("third")), false,
			[]decision.Fact{{Reason: decision.ReasonMetricsMissing, Detail: decision.Words("which MetricsMissing")}, {Reason: v1alpha1.ReasonPrometheusError, Detail: decision.Words("first (and 2 more)")}}, "80 % full"},
		{"Prometheus fails and the data are fresh enough", settled(), &variant{}, errors.New("first"), false,
			[]decision.Fact{{Reason: decision.ReasonMetricsFound, Detail: decision.Words("2 of 2")}}, "80 % full"},
		{"Prometheus fails and the data are old", settled(facts(decision.ReasonMetricsStale)), &variant{}, errors.New("first"), false,
			[]decision.Fact{{Reason: decision.ReasonMetricsStale, Detail: decision.Words("which MetricsStale")}, {Reason: v1alpha1.ReasonPrometheusError, Detail: decision.Words("first")}}, "80 % full"},
		{"Prometheus fails in part and some is known", settled(facts(decision.ReasonMetricsPartial)), &variant{}, errors.New("first"), false,
			[]decision.Fact{{Reason: decision.ReasonMetricsPartial, Detail: decision.Words("which MetricsPartial; not all metrics could be read: first")}}, "80 % full"},
		{"Prometheus fails and nothing serves", settled(facts()), &variant{}, errors.New("first"), false, nil, "80 % full"},
		{"Prometheus fails and the model sleeps", settled(facts(), func(p *decision.VariantPlan) { p.Current = 0 }), &variant{}, errors.New("first"), false,
			[]decision.Fact{{Reason: v1alpha1.ReasonPrometheusError, Detail: decision.Words("first")}}, "80 % full"},
		{"another namespace is left out and nothing is known", settled(facts(decision.ReasonMetricsMissing)), &variant{}, leftOutError{"other": "too much"}, false,
			[]decision.Fact{{Reason: decision.ReasonMetricsMissing, Detail: decision.Words("which MetricsMissing")}}, "80 % full"},
		{"the own namespace is left out", settled(facts(decision.ReasonMetricsMissing)), &variant{}, errors.Join(leftOutError{"n": "too much", "other": "much more"}), false,
			[]decision.Fact{{Reason: decision.ReasonMetricsMissing, Detail: decision.Words("which MetricsMissing")}, {Reason: v1alpha1.ReasonPrometheusError, Detail: decision.Words("too much")}}, "80 % full"},
		{"another namespace is left out and the rest fails", settled(facts(decision.ReasonMetricsPartial)), &variant{}, errors.Join(leftOutError{"other": "too much"}, errors.New("first")), false,
			[]decision.Fact{{Reason: decision.ReasonMetricsPartial, Detail: decision.Words("which MetricsPartial; not all metrics could be read: first")}}, "80 % full"},
		{"the decision failed, too", unsettled(v1alpha1.ReasonOptimizationFailed, v1alpha1.ReasonOptimizationFailed), &variant{}, errors.New("first"), false,
			[]decision.Fact{{Reason: v1alpha1.ReasonOptimizationFailed, Detail: decision.Words("which OptimizationFailed")}}, "why"},
		{"a pod of somebody is silent and nothing serves", settled(facts()), &variant{}, silent{"other/pod-7": "busy"}, true, nil, "80 % full"},
		{"a pod of somebody is silent and nothing is known", settled(facts(decision.ReasonMetricsMissing)), ofPods("a"), silent{"other/pod-7": "busy"}, true,
			[]decision.Fact{{Reason: decision.ReasonMetricsMissing, Detail: decision.Words("which MetricsMissing")}}, "80 % full"},
		{"the only pod is silent", settled(facts(decision.ReasonMetricsMissing)), ofPods("a"), errors.Join(silent{"n/a": "refused", "other/a": "busy"}, errors.New("gateway")), true,
			[]decision.Fact{{Reason: decision.ReasonMetricsMissing, Detail: decision.Words("which MetricsMissing; 1 of 1 pods did not answer: a: refused")}}, "80 % full"},
		{"two of three pods are silent", settled(facts(decision.ReasonMetricsPartial)), ofPods("c", "b", "a"), silent{"n/a": "refused", "n/c": "late"}, true,
			[]decision.Fact{{Reason: decision.ReasonMetricsPartial, Detail: decision.Words("which MetricsPartial; 2 of 3 pods did not answer: a: refused; nor did c")}}, "80 % full"},
		{"many pods are silent", settled(facts(decision.ReasonMetricsStale)), ofPods("f", "e", "d", "c", "b", "a"), silent{"n/a": "refused", "n/b": "late", "n/c": "late", "n/d": "late", "n/e": "late", "n/f": "late"}, true,
			[]decision.Fact{{Reason: decision.ReasonMetricsStale, Detail: decision.Words("which MetricsStale; 6 of 6 pods did not answer: a: refused; nor did b, c and 3 more")}}, "80 % full"},
		{"a gateway is silent beside a pod of somebody", settled(facts(decision.ReasonMetricsPartial)), ofPods("a"), errors.Join(silent{"other/pod-7": "busy"}, errors.New("gateway")), true,
			[]decision.Fact{{Reason: decision.ReasonMetricsPartial, Detail: decision.Words("which MetricsPartial; not all metrics could be read: gateway")}}, "80 % full"},
		{"a warning", settled(), &variant{warnings: []decision.Fact{{Reason: v1alpha1.ReasonAcceleratorNotSelected, Detail: decision.Words("no H100 nodes")}}}, nil, false,
			[]decision.Fact{{Reason: decision.ReasonMetricsFound, Detail: decision.Words("2 of 2")}, {Reason: v1alpha1.ReasonAcceleratorNotSelected, Detail: decision.Words("no H100 nodes")}}, "80 % full"},
		{"switched off", unsettled(""), &variant{}, nil, false, nil, "the plan is only shown: spec.actuation is Off"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.plan.Message = decision.Words(map[bool]string{true: sentence.Of(c.plan.Message), false: ""}[c.plan.Reason != ""])
			plan := decision.Plan{Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{*c.plan}}}}
			annotate(&plan, &observation{variants: map[decision.Key]*variant{c.plan.Key: c.variant}, metricsErr: c.failed, dark: c.failed != nil, asksPods: c.pods})
			got := plan.Models[0].Variants[0]
			assert.Equal(t, c.want, inWords(got.Facts))
			assert.Equal(t, c.message, sentence.Of(got.Message))
			assert.NotEmpty(t, got.Reason)
		})
	}
}

// inWords are facts in the words in which they are told.
func inWords(facts []decision.Fact) (told []decision.Fact) {
	for _, f := range facts {
		told = append(told, decision.Fact{Reason: f.Reason, Detail: decision.Words(sentence.Of(f.Detail))})
	}
	return told
}

func TestWhetherThePromiseDecided(t *testing.T) {
	a, b := decision.Key{Namespace: "n", Name: "a"}, decision.Key{Namespace: "n", Name: "b"}
	const promise = "the SLO of service class Premium is the first token within 500 ms and each further one within 24 ms"
	succeeded := []decision.Fact{{Reason: v1alpha1.ReasonOptimizationSucceeded, Detail: decision.Words("decided by the latency model and saturation: " + promise)}}
	cases := []struct {
		name   string
		reason decision.Reason
		sized  bool
		want   []decision.Fact
	}{
		{"nothing was sized", decision.ReasonSaturated, false, nil},
		{"it did", decision.ReasonSLO, true, succeeded},
		{"the load needs what there is", decision.ReasonSteady, true, succeeded},
		{"saturation asked for more", decision.ReasonSaturated, true,
			[]decision.Fact{{Reason: v1alpha1.ReasonSaturationSafetyOverride, Detail: decision.Words("saturation asked for more than the latency model: " + promise)}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := &decision.ModelPlan{Sized: c.sized, Promise: decision.Promise{Class: "Premium", SLO: capacity.SLO{TTFT: 500, ITL: 24}}}
			for _, key := range []decision.Key{a, b} {
				m.Variants = append(m.Variants, *settled(facts(), func(p *decision.VariantPlan) { p.Key, p.Steps[0].Reason = key, c.reason }))
			}
			tellPromise(m)
			for _, v := range m.Variants {
				assert.Equal(t, c.want, v.Facts)
			}
		})
	}
	only := decision.Promise{Class: "Freemium", SLO: capacity.SLO{ITL: 40}}
	assert.Equal(t, "the SLO of service class Freemium is each further one within 40 ms", sloText(&only))
}

func TestAMissingPermissionIsNamedOnEveryPath(t *testing.T) {
	const lacks = `the permission to list and watch nodes in API group "" is missing`
	for name, plan := range map[string]*decision.VariantPlan{
		"nobody looked at the variant": unsettled(decision.ReasonShapeUnknown, decision.ReasonShapeUnknown),
		"the decision held it":         settled(func(p *decision.VariantPlan) { p.Slots = nil }, facts(decision.ReasonCapacityUnknown)),
		"switched off":                 unsettled(decision.ReasonSteady),
	} {
		t.Run(name, func(t *testing.T) {
			v := &variant{object: seventh.object, target: target{scale: &autoscalingv1.Scale{}}}
			plan := decision.Plan{Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{*plan}}}}
			annotate(&plan, &observation{variants: map[decision.Key]*variant{plan.Models[0].Variants[0].Key: v}, unreadable: lacks})
			known := apimeta.FindStatusCondition(status.Conditions(nil, &plan.Models[0].Variants[0], &v.Variant), v1alpha1.ConditionCapacityKnown)
			require.NotNil(t, known)
			assert.Equal(t, metav1.ConditionFalse, known.Status)
			assert.Equal(t, "CapacityUnknown", known.Reason)
			assert.Contains(t, known.Message, lacks)
		})
	}
}

func TestSelectorsThatAreFollowed(t *testing.T) {
	cases := []struct{ selector, demanded string }{
		{"app=server", "app=server"},
		{"tier!=web,app in (server)", "app=server"},
		{"app in (one,two)", ""},
		{"app", ""},
		{"", ""},
		{"===", ""},
	}
	for _, c := range cases {
		t.Run(c.selector, func(t *testing.T) {
			target := &target{}
			target.bySelector(c.selector)
			if c.demanded == "" {
				assert.Nil(t, target.selector)
				assert.Contains(t, target.selectorProblem, fmt.Sprintf("%q", c.selector))
				return
			}
			assert.Empty(t, target.selectorProblem)
			assert.Equal(t, c.demanded, demanded(target.selector))
		})
	}
}
