package acceleratorplacement

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fcache "k8s.io/client-go/tools/cache/testing"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
)

func TestNamesOfOnesOwnAreFollowed(t *testing.T) {
	rs := deployed("v")
	waiting := gpuPod("waiting", 1, rs)
	w := newWorld(t, []runtime.Object{rs, waiting}, variant("v", "H100", 1))
	source := fcache.NewFakeControllerSource()
	informer, err := w.newNames(context.Background(), source, &config.ConfigMapReference{Namespace: "system", Name: "names"})
	require.NoError(t, err)
	go informer.RunWithContext(t.Context())

	foo := node("foo", "NVIDIA-Foo", 8, 0)
	feasible := func() int {
		found, _ := w.schedule(t, gpuPod("p", 1, rs), foo)
		return len(found)
	}
	names := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: name}, Data: data}
	}
	assert.Zero(t, feasible())
	w.turnDown(t, waiting)

	source.Add(names("others", map[string]string{"NVIDIA-Foo": "A100"}))
	source.Add(names("names", map[string]string{"NVIDIA-Foo": "H100"}))
	require.Eventually(t, func() bool { return feasible() == 1 }, time.Minute, time.Millisecond)
	assert.True(t, w.handle.wasActivated("llm/waiting"), "it may fit now")

	before := w.names.Generation()
	source.Modify(names("names", map[string]string{"NVIDIA-Foo": "?"}))
	source.Modify(names("names", map[string]string{"NVIDIA-Foo": "H100", "NVIDIA-Bar": "L4"}))
	require.Eventually(t, func() bool { return w.names.Generation() != before }, time.Minute, time.Millisecond)
	assert.Equal(t, 1, feasible(), "names that cannot be read leave those that were there")

	source.Delete(names("names", nil))
	require.Eventually(t, func() bool { return feasible() == 0 }, time.Minute, time.Millisecond)
}
