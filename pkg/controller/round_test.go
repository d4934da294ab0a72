package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/metrics"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// scales is a Scaler whose answers a test chooses.
type scales struct {
	Scaler
	writes atomic.Int64
	fail   func(name string) error
}

func (s *scales) Write(_ context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference, read *autoscalingv1.Scale, replicas int32) (*autoscalingv1.Scale, error) {
	s.writes.Add(1)
	if err := s.fail(ref.Name); err != nil {
		return nil, err
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name, UID: read.UID, ResourceVersion: "2"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}, nil
}

// fleet is a round over so many variants that all are to go from 2 to 3 replicas,
// in front of an API server that holds their objects.
func fleet(t *testing.T, size int) (*decision.Plan, *observation, *reporter, *events.FakeRecorder) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.VariantAutoscaling{}).Build()
	plan := &decision.Plan{Time: noon, Round: decision.RoundFull, Models: []decision.ModelPlan{{}}}
	seen := &observation{variants: map[decision.Key]*variant{}, policy: decision.DefaultPolicy()}
	for i := range size {
		name := fmt.Sprint("v", i)
		object := &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
		require.NoError(t, api.Create(t.Context(), object))
		p := settled(func(p *decision.VariantPlan) { p.Key.Name = name })
		plan.Models[0].Variants = append(plan.Models[0].Variants, *p)
		seen.variants[p.Key] = &variant{object: object, key: p.Key, target: target{
			ref:   autoscalingv1.CrossVersionObjectReference{Kind: "Deployment", Name: name},
			scale: &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{UID: types.UID("d" + name), ResourceVersion: "1"}, Spec: autoscalingv1.ScaleSpec{Replicas: 2}},
		}}
	}
	recorder := events.NewFakeRecorder(10 * size)
	return plan, seen, &reporter{
		statuses: newStatuses(api), recorder: recorder, overlay: newOverlay(), metrics: metrics.New("", false),
		failures: map[decision.Key]string{}, net: safetyNet{},
	}, recorder
}

func TestARoundOverManyVariants(t *testing.T) {
	plan, seen, r, recorder := fleet(t, 100)
	s := &scales{fail: func(string) error { return nil }}
	a := &actor{scaler: s, overlay: r.overlay}
	outcomes := a.act(t.Context(), plan, seen)
	require.NoError(t, r.report(t.Context(), plan, seen, outcomes, nil))
	assert.EqualValues(t, 100, s.writes.Load())
	assert.Len(t, drained(recorder), 100, "one ScaledUp each")
	assert.Len(t, r.overlay.scales, 100)

	// The next round follows at once: the cache has seen nothing of it yet.
	plan.Each(func(p *decision.VariantPlan) { p.Current = 3 })
	require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil))
	assert.EqualValues(t, 100, s.writes.Load(), "nothing is written twice")
	assert.Empty(t, drained(recorder))
}

func TestAChangeBySomebodyElseIsToldOf(t *testing.T) {
	plan, seen, r, recorder := fleet(t, 1)
	plan.Each(func(p *decision.VariantPlan) {
		p.Current = *p.Desired
		p.Facts = append(p.Facts, decision.Fact{Reason: decision.ReasonReplicasChanged, Detail: decision.Words("from 1 to 3")})
	})
	require.NoError(t, r.report(t.Context(), plan, seen, nil, nil))
	assert.Contains(t, drained(recorder), "Normal ReplicasChanged from 1 to 3")
}

func TestWritesThatFail(t *testing.T) {
	group := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cases := []struct {
		name      string
		err       error
		condition string
		reason    string
		event     string
	}{
		{"forbidden", apierrors.NewForbidden(group, "v0", errors.New("no")), v1alpha1.ConditionTargetResolved, "TargetForbidden", "TargetForbidden"},
		{"gone", apierrors.NewNotFound(group, "v0"), v1alpha1.ConditionReady, "DeploymentNotFound", "TargetNotFound"},
		{"changed by somebody else", apierrors.NewConflict(group, "v0", errors.New("somebody")), v1alpha1.ConditionOptimizationReady, "OptimizationFailed", "ScalingFailed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			plan, seen, r, recorder := fleet(t, 1)
			a := &actor{scaler: &scales{fail: func(string) error { return c.err }}, overlay: r.overlay}
			require.ErrorIs(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil), c.err)
			object := r.overlay.variants["v0"]
			require.NotNil(t, object)
			found := ""
			for _, condition := range object.Status.Conditions {
				if condition.Type == c.condition {
					found = condition.Reason
				}
			}
			assert.Equal(t, c.reason, found)
			told := drained(recorder)
			require.Len(t, told, 1)
			assert.Contains(t, told[0], "Warning "+c.event)

			// The same failure again is not told again.
			again := decision.Plan{Time: noon, Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{*settled(func(p *decision.VariantPlan) { p.Key.Name = "v0" })}}}}
			require.ErrorIs(t, r.report(t.Context(), &again, seen, a.act(t.Context(), &again, seen), nil), c.err)
			assert.Empty(t, drained(recorder))
		})
	}
}

// hangs is a Scaler that does not answer for one target.
type hangs struct {
	scales
	name  string
	tried atomic.Int64
}

func (h *hangs) Write(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference, read *autoscalingv1.Scale, replicas int32) (*autoscalingv1.Scale, error) {
	if ref.Name == h.name {
		h.tried.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.scales.Write(ctx, namespace, ref, read, replicas)
}

// An admission webhook of one team that hangs costs the others one timeout, and not one in
// each round.
func TestAWriteThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, seen, r, recorder := fleet(t, 2)
		s := &hangs{scales: scales{fail: func(string) error { return nil }}, name: "v0"}
		a := &actor{scaler: s, overlay: r.overlay, late: map[types.UID]lateWrite{}}
		round := func() (took time.Duration) {
			plan.Models[0].Variants[0] = *settled(func(p *decision.VariantPlan) { p.Key.Name = "v0" })
			began := time.Now()
			outcomes := a.act(t.Context(), plan, seen)
			took = time.Since(began)
			_ = r.report(t.Context(), plan, seen, outcomes, nil)
			return took
		}
		assert.Equal(t, writeTimeout, round())
		told := drained(recorder)
		assert.Contains(t, strings.Join(told, "\n"), "Warning ScalingFailed no answer within 5s from the API server or an admission webhook of its scale; tried again after 30s")
		assert.EqualValues(t, 3, r.overlay.scales["dv1"].Spec.Replicas, "the other one is written")
		plan.Models[0].Variants[1].Current = 3

		plan.Time = noon.Add(20 * time.Second)
		assert.Zero(t, round(), "it is left alone")
		assert.Empty(t, drained(recorder), "and that is not told again")
		plan.Time = noon.Add(writeTimeout + writePause)
		assert.Equal(t, writeTimeout, round())
		assert.EqualValues(t, 2, s.tried.Load())

		s.name, plan.Time = "", plan.Time.Add(writeTimeout+writePause)
		assert.Zero(t, round())
		assert.EqualValues(t, 3, r.overlay.scales["dv0"].Spec.Replicas)
		assert.Empty(t, a.late)
	})
}

func TestWhatIsNotWritten(t *testing.T) {
	cases := []struct {
		name   string
		change func(p *decision.VariantPlan, v *variant, policy *decision.VariantPolicy)
		want   bool
	}{
		{"a change in mode Scale is", func(*decision.VariantPlan, *variant, *decision.VariantPolicy) {}, true},
		{"what is so already", func(p *decision.VariantPlan, _ *variant, _ *decision.VariantPolicy) { p.Desired = ptr.To(p.Current) }, false},
		{"a plan without an answer", func(p *decision.VariantPlan, _ *variant, _ *decision.VariantPolicy) { p.Desired = nil }, false},
		{"mode Metric", func(_ *decision.VariantPlan, _ *variant, policy *decision.VariantPolicy) {
			policy.Actuation = decision.ActuationMetric
		}, false},
		{"mode Off", func(_ *decision.VariantPlan, _ *variant, policy *decision.VariantPolicy) {
			policy.Actuation = decision.ActuationOff
		}, false},
		{"a target in conflict", func(_ *decision.VariantPlan, v *variant, _ *decision.VariantPolicy) {
			v.target.state = decision.TargetConflict
		}, false},
		{"a target that is not there", func(_ *decision.VariantPlan, v *variant, _ *decision.VariantPolicy) { v.target.scale = nil }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, policy := settled(), decision.DefaultVariantPolicy()
			v := &variant{target: target{scale: &autoscalingv1.Scale{}}}
			c.change(p, v, &policy)
			assert.Equal(t, c.want, changes(p, v, policy))
		})
	}
}

// One that comes again is told of again, and who is gone leaves nothing behind.
func TestAnObjectThatCannotBeReadIsToldOfOnce(t *testing.T) {
	plan, seen, r, recorder := fleet(t, 1)
	plan.Models, seen.variants = nil, map[decision.Key]*variant{}
	bad := []*v1alpha1.VariantAutoscaling{{ObjectMeta: metav1.ObjectMeta{Namespace: "llm", Name: "bad", Annotations: map[string]string{v1alpha1.AnnotationUndecodable: "no number"}}}}
	for _, there := range []bool{true, true, false, true} {
		seen.undecoded = nil
		if there {
			seen.undecoded = bad
		}
		err := r.report(t.Context(), plan, seen, nil, nil)
		if there {
			require.ErrorContains(t, err, "VariantAutoscaling llm/bad cannot be read: no number")
		} else {
			require.NoError(t, err)
			assert.Empty(t, r.failures)
		}
	}
	assert.Len(t, drained(recorder), 2)
}
