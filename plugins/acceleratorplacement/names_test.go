package acceleratorplacement

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fcache "k8s.io/client-go/tools/cache/testing"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

func TestNamesOfOnesOwnAreFollowed(t *testing.T) {
	rs := deployed("v")
	waiting := gpuPod("waiting", 1, rs)
	w := newWorld(t, []runtime.Object{rs, waiting}, variant("v", "H100", 1))
	source := fcache.NewFakeControllerSource()
	informer, err := w.newNames(context.Background(), source, &config.ConfigMapReference{Namespace: "system", Name: "names"})
	require.NoError(t, err)
	informer.start(t.Context(), time.Minute)

	foo := node("foo", "NVIDIA-Foo", 8, 0)
	feasible := func() int {
		found, _ := w.schedule(t, gpuPod("p", 1, rs), foo)
		return len(found)
	}
	listing := gpuPod("listing", 1, nil)
	listing.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: "L4, NVIDIA-Foo"}
	names := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: name}, Data: data}
	}
	assert.Zero(t, feasible())
	w.turnDown(t, waiting)

	source.Add(names("others", map[string]string{"NVIDIA-Foo": "A100"}))
	source.Add(names("names", map[string]string{"NVIDIA-Foo": "H100"}))
	require.Eventually(t, func() bool { return feasible() == 1 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return w.handle.wasActivated("llm/waiting") }, time.Minute, time.Millisecond, "it may fit now")
	found, _ := w.schedule(t, listing, foo)
	assert.Equal(t, []string{"foo"}, found, "a list may have the same names")

	before := w.names.Generation()
	source.Modify(names("names", map[string]string{"NVIDIA-Foo": "?"}))
	source.Modify(names("names", map[string]string{"NVIDIA-Foo": "H100", "NVIDIA-Bar": "L4"}))
	require.Eventually(t, func() bool { return w.names.Generation() != before }, time.Minute, time.Millisecond)
	assert.Equal(t, 1, feasible(), "names that cannot be read leave those that were there")

	source.Delete(names("names", nil))
	require.Eventually(t, func() bool { return feasible() == 0 }, time.Minute, time.Millisecond)
}

func TestTheFirstPodAlreadyGoesByNamesOfOnesOwn(t *testing.T) {
	rs := deployed("v")
	reference := &config.ConfigMapReference{Namespace: "system", Name: "names"}
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "names"}, Data: map[string]string{"NVIDIA-Foo": "H100"}}
	start := func(err *apierrors.StatusError) (*world, *failing, *namesSource) {
		w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 1))
		source := &failing{FakeControllerSource: fcache.NewFakeControllerSource()}
		source.FakeControllerSource.Add(own)
		source.err.Store(err)
		names, failed := w.newNames(context.Background(), source, reference)
		require.NoError(t, failed)
		names.start(t.Context(), time.Minute)
		return w, source, names
	}
	feasible := func(w *world) int {
		found, _ := w.schedule(t, gpuPod("p", 1, rs), node("foo", "NVIDIA-Foo", 8, 0))
		return len(found)
	}
	w, source, names := start(nil)
	assert.Equal(t, 1, feasible(w))

	source.err.Store(errNotAllowed)
	require.Eventually(t, func() bool {
		source.ResetWatch()
		return names.source.now() == kept
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, 1, feasible(w), "names that were read stay")

	w, _, _ = start(errNotAllowed)
	assert.Zero(t, feasible(w), "nothing is waited for that may not be read")
}
