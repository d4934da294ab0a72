package controller

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestMarks(t *testing.T) {
	const cost, mark = corev1.PodDeletionCost, v1alpha1.AnnotationVictim
	cases := []struct {
		name          string
		now           map[string]string
		with, without map[string]any
	}{
		{"an untouched pod", nil,
			map[string]any{cost: victimCost, mark: ""}, nil},
		{"a cost of the user's", map[string]string{cost: "100"},
			map[string]any{cost: victimCost, mark: "100"}, nil},
		{"marked by us", map[string]string{cost: victimCost, mark: ""},
			nil, map[string]any{cost: nil, mark: nil}},
		{"marked by us over a cost of the user's", map[string]string{cost: victimCost, mark: "100"},
			nil, map[string]any{cost: "100", mark: nil}},
		{"marked by us, and the user changed the cost since", map[string]string{cost: "7", mark: "100"},
			map[string]any{cost: victimCost, mark: "7"}, map[string]any{mark: nil}},
		{"marked by us, and the user removed the cost since", map[string]string{mark: "100"},
			map[string]any{cost: victimCost, mark: ""}, map[string]any{mark: nil}},
		{"the least cost, by the user", map[string]string{cost: victimCost},
			map[string]any{cost: victimCost, mark: victimCost}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.with, withMark(c.now))
			assert.Equal(t, c.without, withoutMark(c.now))
		})
	}
	parsed, err := strconv.ParseInt(victimCost, 10, 32)
	require.NoError(t, err, "Kubernetes reads it as 32 bits")
	assert.Negative(t, parsed)
}

// podsInAPI is a marker in front of an API server that holds the pods, which the test
// may have changed since they were read.
func podsInAPI(t *testing.T, hooks interceptor.Funcs, pods ...*corev1.Pod) (*marker, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	builder := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(hooks)
	for _, pod := range pods {
		builder = builder.WithObjects(pod.DeepCopy())
	}
	api := builder.Build()
	for _, pod := range pods {
		require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	}
	return &marker{writer: api, live: api}, api
}

func replica(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), Annotations: annotations}}
}

func annotationsOf(t *testing.T, api client.Client, name string) map[string]string {
	t.Helper()
	var pod corev1.Pod
	require.NoError(t, api.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: name}, &pod))
	return pod.Annotations
}

// seenAgain brings pods up to date, as a cache that has caught up does.
func seenAgain(t *testing.T, api client.Client, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	}
}

func TestPodsAreMarkedAndClearedAgain(t *testing.T) {
	plain, priced := replica("plain", map[string]string{"other": "stays"}), replica("priced", map[string]string{corev1.PodDeletionCost: "100"})
	m, api := podsInAPI(t, interceptor.Funcs{}, plain, priced)
	pods := []*corev1.Pod{plain, priced}
	require.NoError(t, m.write(t.Context(), pods, withMark))
	assert.Equal(t, map[string]string{"other": "stays", corev1.PodDeletionCost: victimCost, v1alpha1.AnnotationVictim: ""}, annotationsOf(t, api, "plain"))
	assert.Equal(t, map[string]string{corev1.PodDeletionCost: victimCost, v1alpha1.AnnotationVictim: "100"}, annotationsOf(t, api, "priced"))

	require.NoError(t, m.write(t.Context(), pods, withoutMark), "the cache has not seen the marks")
	assert.Contains(t, annotationsOf(t, api, "plain"), v1alpha1.AnnotationVictim)
	seenAgain(t, api, pods...)
	for _, pod := range pods {
		pod.Annotations = stripPodAnnotations(pod.Annotations)
	}
	require.NoError(t, m.write(t.Context(), pods, withoutMark))
	assert.Equal(t, map[string]string{"other": "stays"}, annotationsOf(t, api, "plain"))
	assert.Equal(t, map[string]string{corev1.PodDeletionCost: "100"}, annotationsOf(t, api, "priced"))
}

func TestAMarkRestsOnWhatThePodIsNow(t *testing.T) {
	cases := []struct {
		name      string
		meanwhile func(t *testing.T, api client.Client, pod *corev1.Pod)
		want      string
	}{
		{"its status moved", func(t *testing.T, api client.Client, pod *corev1.Pod) {
			t.Helper()
			pod.Status.Message = "moved"
			require.NoError(t, api.Update(t.Context(), pod))
		}, ""},
		{"the user gave it a cost", func(t *testing.T, api client.Client, pod *corev1.Pod) {
			t.Helper()
			pod.Annotations = map[string]string{corev1.PodDeletionCost: "5"}
			require.NoError(t, api.Update(t.Context(), pod))
		}, "5"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pod := replica("p", nil)
			m, api := podsInAPI(t, interceptor.Funcs{}, pod)
			c.meanwhile(t, api, pod.DeepCopy())
			require.NoError(t, m.write(t.Context(), []*corev1.Pod{pod}, withMark))
			assert.Equal(t, map[string]string{corev1.PodDeletionCost: victimCost, v1alpha1.AnnotationVictim: c.want}, annotationsOf(t, api, "p"))
		})
	}
}

func TestPodsThatAreGoneNeedNoMark(t *testing.T) {
	marks := map[string]string{corev1.PodDeletionCost: victimCost, v1alpha1.AnnotationVictim: ""}
	gone, again := replica("gone", marks), replica("again", marks)
	m, api := podsInAPI(t, interceptor.Funcs{}, gone, again)
	require.NoError(t, api.Delete(t.Context(), gone.DeepCopy()))
	require.NoError(t, api.Delete(t.Context(), again.DeepCopy()))
	other := replica("again", marks)
	other.UID = "another"
	require.NoError(t, api.Create(t.Context(), other))
	require.NoError(t, m.write(t.Context(), []*corev1.Pod{gone, again}, withoutMark))
	gone.Annotations = nil
	require.NoError(t, m.write(t.Context(), []*corev1.Pod{gone}, withMark))
	assert.Equal(t, marks, annotationsOf(t, api, "again"), "it is another one")
}

func TestAMarkThatFailsNamesThePod(t *testing.T) {
	pod := replica("p", nil)
	refuse := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("no"))
	m, _ := podsInAPI(t, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refuse
		},
	}, pod)
	err := m.write(t.Context(), []*corev1.Pod{pod}, withMark)
	require.ErrorIs(t, err, refuse)
	assert.ErrorContains(t, err, "pod n/p")
}

func TestMarksThatAreCalledOff(t *testing.T) {
	marked := func(name string) *corev1.Pod {
		return replica(name, map[string]string{corev1.PodDeletionCost: victimCost, v1alpha1.AnnotationVictim: ""})
	}
	leaving := marked("leaving")
	leaving.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	cases := []struct {
		name     string
		pods     []*corev1.Pod
		replicas int
		victims  []string
		lost     bool
		want     []string
	}{
		{"no pod is marked", []*corev1.Pod{replica("a", nil)}, 0, nil, false, nil},
		{"they are still to go", []*corev1.Pod{marked("a"), marked("b"), replica("c", nil)}, 1, nil, false, nil},
		{"what goes already needs nothing", []*corev1.Pod{leaving, replica("c", nil)}, 1, nil, false, nil},
		{"the scale was raised again", []*corev1.Pod{marked("a"), marked("b"), replica("c", nil)}, 3, nil, false, []string{"a", "b"}},
		{"in part", []*corev1.Pod{marked("a"), marked("b"), replica("c", nil)}, 2, nil, false, []string{"b"}},
		{"those of this round stay", []*corev1.Pod{marked("a"), marked("b"), replica("c", nil)}, 2, []string{"b"}, false, []string{"a"}},
		{"one under way is not chosen anew", []*corev1.Pod{marked("a"), marked("b"), replica("c", nil), replica("d", nil)}, 1, []string{"a", "b", "c"}, false, nil},
		{"none is marked in the place of two", []*corev1.Pod{marked("a"), marked("b"), replica("c", nil), replica("d", nil)}, 2, []string{"b", "c"}, false, []string{"a"}},
		{"the choice is not ours any more", []*corev1.Pod{marked("a"), replica("c", nil)}, 1, nil, true, []string{"a"}},
		{"more is asked for than there is", []*corev1.Pod{marked("a")}, 5, nil, false, []string{"a"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, pod := range calledOff(&variant{pods: c.pods, picks: !c.lost}, c.replicas, c.victims) {
				got = append(got, pod.Name)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// shrinking is a round in which the variant of a fleet is to lose the pod "a" of two.
func shrinking(t *testing.T, hooks interceptor.Funcs) (*decision.Plan, *observation, *reporter, *marker, client.Client, *events.FakeRecorder) {
	t.Helper()
	a, b := replica("a", nil), replica("b", nil)
	m, api := podsInAPI(t, hooks, a, b)
	plan, seen, r, recorder := fleet(t, 1)
	plan.Each(func(p *decision.VariantPlan) {
		p.Desired, p.Victims = ptr.To(1), []string{"a"}
		v := seen.variants[p.Key]
		v.picks, v.pods = true, []*corev1.Pod{a, b}
	})
	return plan, seen, r, m, api, recorder
}

func TestVictimsAreMarkedBeforeTheScaleIsLowered(t *testing.T) {
	plan, seen, r, m, api, _ := shrinking(t, interceptor.Funcs{})
	var before map[string]string
	s := &scales{fail: func(string) error {
		before = annotationsOf(t, api, "a")
		return nil
	}}
	a := &actor{scaler: s, marker: m, access: Access{Victims: true}, overlay: r.overlay}
	require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil))
	assert.Contains(t, before, v1alpha1.AnnotationVictim, "when the scale was written")
	assert.Empty(t, annotationsOf(t, api, "b"))
}

func TestAScaleThatIsNotLoweredBringsBackWhatWasThere(t *testing.T) {
	plan, seen, r, m, api, _ := shrinking(t, interceptor.Funcs{})
	failed := errors.New("no answer")
	a := &actor{scaler: &scales{fail: func(string) error { return failed }}, marker: m, access: Access{Victims: true}, overlay: r.overlay}
	require.ErrorIs(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil), failed)

	// The next round sees a mark on a pod that need not go, whether it writes or not.
	seenAgain(t, api, seen.variants[plan.Models[0].Variants[0].Key].pods...)
	plan.Each(func(p *decision.VariantPlan) { p.Desired, p.Victims = ptr.To(2), nil })
	require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil))
	assert.Empty(t, annotationsOf(t, api, "a"))
}

func TestAScaleThatIsNotLoweredLeavesTheScaleDownBeforeItAlone(t *testing.T) {
	plan, seen, r, m, api, _ := shrinking(t, interceptor.Funcs{})
	leaving := replica("0", map[string]string{corev1.PodDeletionCost: victimCost, v1alpha1.AnnotationVictim: "7"})
	require.NoError(t, api.Create(t.Context(), leaving))
	plan.Each(func(p *decision.VariantPlan) {
		p.Victims = []string{"0", "a"}
		v := seen.variants[p.Key]
		v.pods = append([]*corev1.Pod{leaving}, v.pods...)
	})
	failed := errors.New("no answer")
	a := &actor{scaler: &scales{fail: func(string) error { return failed }}, marker: m, access: Access{Victims: true}, overlay: r.overlay}
	require.ErrorIs(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil), failed)
	seenAgain(t, api, seen.variants[plan.Models[0].Variants[0].Key].pods...)
	plan.Each(func(p *decision.VariantPlan) { p.Desired, p.Victims = ptr.To(2), nil })
	require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil))
	assert.Empty(t, annotationsOf(t, api, "a"), "marked in the round that failed")
	assert.Equal(t, map[string]string{corev1.PodDeletionCost: victimCost, v1alpha1.AnnotationVictim: "7"}, annotationsOf(t, api, "0"),
		"three pods are there and two are asked for")
}

func TestAMarkThatFailsDelaysNothing(t *testing.T) {
	refuse := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
	plan, seen, r, m, _, recorder := shrinking(t, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refuse
		},
	})
	s := &scales{fail: func(string) error { return nil }}
	a := &actor{scaler: s, marker: m, access: Access{Victims: true}, overlay: r.overlay}
	require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil))
	assert.EqualValues(t, 1, s.writes.Load())
	told := drained(recorder)
	require.Len(t, told, 2)
	assert.Contains(t, told[0], "Normal ScaledDown replicas from 2 to 1")
	assert.Contains(t, told[1], "Warning VictimsNotMarked pod-deletion-cost not set; Kubernetes picks pods: writing controller.kubernetes.io/pod-deletion-cost of pod n/a")
}
