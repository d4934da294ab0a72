package agreement

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"llmd.ai/workload-variant-autoscaler/pkg/controller"
)

// keep are what the manager's cache keeps of nodes and pods: the autoscaler never
// sees more.
type keep struct{ node, pod cache.TransformFunc }

func keptByTheManager(t testing.TB) keep {
	t.Helper()
	var k keep
	for object, by := range controller.CacheOptions("", "", controller.Access{Capacity: true}).ByObject {
		switch object.(type) {
		case *corev1.Node:
			k.node = by.Transform
		case *corev1.Pod:
			k.pod = by.Transform
		}
	}
	require.NotNil(t, k.node)
	require.NotNil(t, k.pod)
	return k
}

func kept[T any](t testing.TB, by cache.TransformFunc, object T) T {
	t.Helper()
	left, err := by(object)
	require.NoError(t, err)
	slim, ok := left.(T)
	require.True(t, ok)
	return slim
}
