package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/metrics"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
)

// fallingBack is a plan that could not be made: 2 replicas are there.
func fallingBack(replicas int, source decision.FallbackSource) func(*decision.VariantPlan) {
	return func(p *decision.VariantPlan) {
		p.Desired, p.Fallback = ptr.To(p.Current), &decision.Fallback{Replicas: replicas, Source: source, Why: decision.Words("the metrics are old")}
	}
}

func TestTheSafetyNetIsToldOfOncePerBeginning(t *testing.T) {
	b := &bench{}
	ctx, net := b.logging(t), safetyNet{}
	held := settled(fallingBack(5, decision.FallbackPrevious))
	for _, p := range []*decision.VariantPlan{settled(), held, held, settled(), settled(), held, unsettled(decision.ReasonTargetMissing)} {
		net.follow(ctx, p)
	}
	var told []string
	for _, line := range b.logs {
		_, text, _ := strings.Cut(line, `"msg"=`)
		told = append(told, text)
	}
	activated := `"Safety net activated: emitted fallback metrics" "variant"={"name"="v" "namespace"="n"} "currentReplicas"=2 "desiredReplicas"=5 "accelerator"="H100" "fallbackSource"="previous-desired" "reason"="the metrics are old"`
	deactivated := `"Safety net deactivated" "variant"={"name"="v" "namespace"="n"}`
	assert.Equal(t, []string{activated, deactivated, activated, deactivated}, told)
	assert.Empty(t, net)
}

func TestWhoeverFollowsTheMetricSeesTheFallback(t *testing.T) {
	m, served := metrics.New("", false), prometheus.NewRegistry()
	require.NoError(t, m.Register(served))
	m.Show(&decision.Plan{Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{*settled(fallingBack(5, decision.FallbackPrevious))}}}}, &metrics.Round{})
	require.NoError(t, testutil.GatherAndCompare(served, strings.NewReader(`
# HELP wva_desired_ratio Wanted replicas divided by current replicas. Without current replicas, the wanted replicas.
# TYPE wva_desired_ratio gauge
wva_desired_ratio{accelerator_type="H100",namespace="n",variant_name="v"} 2.5
# HELP wva_desired_replicas Replicas that the last decision wants. While nothing can be decided, the number wanted before, or the current number if that is larger.
# TYPE wva_desired_replicas gauge
wva_desired_replicas{accelerator_type="H100",namespace="n",variant_name="v"} 5
`), "wva_desired_replicas", "wva_desired_ratio"))
	shown := status.Render(&v1alpha1.VariantAutoscalingStatus{}, settled(fallingBack(5, decision.FallbackPrevious)), &seventh.Variant, noon, false)
	assert.EqualValues(t, 5, *shown.DesiredOptimizedAlloc.NumReplicas, "the status shows the same")
	assert.EqualValues(t, 2, *shown.CurrentAlloc.NumReplicas)
	assert.False(t, shown.Actuation.Applied)
	assert.False(t, changes(settled(fallingBack(5, decision.FallbackPrevious)), &variant{}, decision.DefaultVariantPolicy()), "and nothing is written")
}

// blind is a reader that fails from some time on.
type blind struct {
	client.Reader
	from time.Time
}

func (r blind) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if !time.Now().Before(r.from) {
		return errors.New("the cache is broken")
	}
	return r.Reader.List(ctx, list, options...)
}

func TestRoundsThatCannotSeeTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		b.observer.reader = blind{b.api, b.began.Add(15 * time.Second)}
		rounds := b.run(t, 45*time.Second)
		assert.Equal(t, []string{"0 Full", "10 Fast"}, rounds)
		assert.Len(t, b.logged("could not be observed; nothing is changed"), 3)
		told := b.logged("Safety net activated")
		require.Len(t, told, 1, "once, and not every round")
		assert.Contains(t, told[0], `"currentReplicas"=2 "desiredReplicas"=2 "accelerator"="" "fallbackSource"="previous-desired"`)
		assert.NotNil(t, b.reporter.metrics.Last(), "the gauges keep the last plan")
	})
}

// panics is a decision that wants 5 of 2 replicas, and panics in some calls.
func (b *bench) panics(when func(call int) bool) decide {
	calls := 0
	return func(s decision.Snapshot, p decision.Policy, m decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
		calls++
		if when(calls) {
			panic("nobody thought of it")
		}
		plan, _ := b.wakes(s, p, m, kind)
		plan.Each(func(v *decision.VariantPlan) { v.Desired, v.Ready = ptr.To(5), v.Current })
		return plan, decision.Memory{Time: noon.Add(time.Duration(calls) * time.Second)}
	}
}

// reasonsOf are the reasons of the conditions in the order of the published ones.
func reasonsOf(conditions []metav1.Condition) string {
	var reasons []string
	for _, kind := range []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionTargetResolved, v1alpha1.ConditionMetricsAvailable, v1alpha1.ConditionOptimizationReady,
		v1alpha1.ConditionCapacityKnown, v1alpha1.ConditionScalingLimited, v1alpha1.ConditionConflict,
	} {
		reason := "-"
		if c := apimeta.FindStatusCondition(conditions, kind); c != nil {
			reason = c.Reason
		}
		reasons = append(reasons, reason)
	}
	return strings.Join(reasons, " | ")
}

func TestADecisionThatPanicsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		b.decide = b.panics(func(call int) bool { return call > 1 && call < 4 })
		b.run(t, 15*time.Second)
		assert.EqualValues(t, 5, b.replicas(t))
		reasons := func() string { return reasonsOf(b.status(t).Conditions) }
		assert.Equal(t, "OptimizationFailed | TargetFound | MetricsFound | OptimizationFailed | - | NotLimited | NoConflict", reasons(),
			"the other conditions stand")
		why := apimeta.FindStatusCondition(b.status(t).Conditions, v1alpha1.ConditionOptimizationReady).Message
		assert.Contains(t, why, "a mistake in the autoscaler: nobody thought of it")
		assert.EqualValues(t, 5, *b.status(t).DesiredOptimizedAlloc.NumReplicas)
		assert.Len(t, b.logged("Safety net activated"), 1)
		errs := b.logged("The decision failed")
		require.Len(t, errs, 1)
		assert.Contains(t, errs[0], "safety_test.go", "it says where")

		b.run(t, 20*time.Second)
		assert.Equal(t, "Ready | TargetFound | MetricsFound | SaturationOnlyMode | - | NotLimited | NoConflict", reasons())
		assert.Len(t, b.logged("Safety net activated"), 1)
		assert.Len(t, b.logged("Safety net deactivated"), 1)
		assert.Equal(t, noon.Add(4*time.Second), b.memory.Time)
	})
}

func TestAMemoryThatMakesDecisionsPanicIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		remembered := 0
		b.decide = func(s decision.Snapshot, p decision.Policy, m decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
			if !m.Time.IsZero() {
				remembered++
				panic("poisoned")
			}
			plan, _ := b.wakes(s, p, m, kind)
			return plan, decision.Memory{Time: noon}
		}
		b.run(t, 45*time.Second)
		assert.Equal(t, []string{"0 Full", "40 Fast"}, b.rounds)
		assert.Equal(t, forgetAfter, remembered)
	})
}

func TestWhatIsShownInsteadOfADecision(t *testing.T) {
	cases := []struct {
		name    string
		before  *decision.VariantPlan
		current int
		state   decision.TargetState
		want    *decision.Fallback
	}{
		{"nothing is known of before", nil, 3, decision.TargetFound, &decision.Fallback{Replicas: 3, Source: decision.FallbackCurrent}},
		{"more was wanted before", settled(func(p *decision.VariantPlan) { p.Desired = ptr.To(5) }), 3, decision.TargetFound, &decision.Fallback{Replicas: 5, Source: decision.FallbackPrevious}},
		{"less was wanted before", settled(func(p *decision.VariantPlan) { p.Desired = ptr.To(2) }), 3, decision.TargetFound, &decision.Fallback{Replicas: 3, Source: decision.FallbackCurrent}},
		{"it was held before", settled(fallingBack(6, decision.FallbackPrevious)), 3, decision.TargetFound, &decision.Fallback{Replicas: 6, Source: decision.FallbackPrevious}},
		{"its target was missing before", unsettled(decision.ReasonTargetMissing), 3, decision.TargetFound, &decision.Fallback{Replicas: 3, Source: decision.FallbackCurrent}},
		{"its target is missing", settled(), 0, decision.TargetMissing, nil},
		{"something else decides", settled(), 4, decision.TargetConflict, &decision.Fallback{Replicas: 4, Source: decision.FallbackCurrent}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := &reporter{metrics: metrics.New("", false)}
			if c.before != nil {
				r.metrics.Show(&decision.Plan{Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{*c.before}}}}, &metrics.Round{})
			}
			seen := &observation{snapshot: decision.Snapshot{Models: []decision.Model{{Namespace: "n", ID: "m", Variants: []decision.Variant{{Name: "v", Target: c.state, Current: c.current}}}}}}
			p := r.stopgap(seen, decision.RoundFull, "why").Models[0].Variants[0]
			if c.want == nil {
				assert.Nil(t, p.Desired)
				assert.Nil(t, p.Fallback)
				return
			}
			c.want.Why = decision.Words("why")
			assert.Equal(t, c.want, p.Fallback)
			assert.Equal(t, c.current, *p.Desired, "nothing is written")
		})
	}
}

// A new leader knows of no plan before: what was wanted is in the status.
func TestANewLeaderTakesWhatWasWantedFromTheStatus(t *testing.T) {
	for name, test := range map[string]struct {
		status  *int32
		desired int32
		source  decision.FallbackSource
	}{
		"more than there is":  {ptr.To[int32](5), 5, decision.FallbackPrevious},
		"less than there is":  {ptr.To[int32](1), 2, decision.FallbackCurrent},
		"a status without it": {nil, 2, decision.FallbackCurrent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 2)
				var va v1alpha1.VariantAutoscaling
				require.NoError(t, b.api.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "v"}, &va))
				va.Status.DesiredOptimizedAlloc = &v1alpha1.DesiredAlloc{NumReplicas: test.status}
				require.NoError(t, b.api.Status().Update(t.Context(), &va))
				b.decide = b.panics(func(int) bool { return true })
				b.run(t, time.Second)
				told := b.logged("Safety net activated")
				require.Len(t, told, 1)
				assert.Contains(t, told[0], fmt.Sprintf(`"desiredReplicas"=%d "accelerator"="" "fallbackSource"=%q`, test.desired, test.source))
			})
		})
	}
}

func TestAnObjectOfAnOlderFormIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, &v1alpha1.VariantAutoscaling{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "old", UID: "old"}, Spec: v1alpha1.VariantAutoscalingSpec{ModelID: "m"},
		})
		b.run(t, time.Second)
		var va v1alpha1.VariantAutoscaling
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "old"}, &va))
		ready := apimeta.FindStatusCondition(va.Status.Conditions, v1alpha1.ConditionReady)
		require.NotNil(t, ready)
		assert.Equal(t, v1alpha1.ReasonInvalidConfiguration, ready.Reason)
		assert.Contains(t, ready.Message, `run "kubectl wva migrate"`)
		assert.EqualValues(t, 2, b.replicas(t))
	})
}

func TestADeletedTargetIsToldFromOneThatNeverWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		b.decide = decision.Decide
		message := func() (string, *v1alpha1.DesiredAlloc) {
			status := b.status(t)
			return apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Message, status.DesiredOptimizedAlloc
		}
		b.round(b.logging(t), decision.RoundFull)
		var d appsv1.Deployment
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "d"}, &d))
		d.Finalizers = []string{metav1.FinalizerDeleteDependents}
		require.NoError(t, b.api.Update(t.Context(), &d))
		require.NoError(t, b.api.Delete(t.Context(), &d))
		b.round(b.logging(t), decision.RoundFull)
		text, desired := message()
		assert.Equal(t, "Target deployment 'd' is being deleted", text, "its pods go, and no others come")
		assert.Equal(t, &v1alpha1.DesiredAlloc{}, desired)
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(&d), &d))
		d.Finalizers = nil
		require.NoError(t, b.api.Update(t.Context(), &d))
		b.round(b.logging(t), decision.RoundFull)
		for range 2 {
			text, desired := message()
			assert.Equal(t, "Target deployment 'd' no longer exists", text)
			assert.Equal(t, &v1alpha1.DesiredAlloc{}, desired)
			b.round(b.logging(t), decision.RoundFull)
		}
		var va v1alpha1.VariantAutoscaling
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "v"}, &va))
		va.Spec.ScaleTargetRef.Name, va.Generation = "other", va.Generation+1
		require.NoError(t, b.api.Update(t.Context(), &va))
		b.round(b.logging(t), decision.RoundFull)
		text, desired = message()
		assert.Equal(t, "Deployment other does not exist in namespace n", text)
		assert.Nil(t, desired)
	})
}
