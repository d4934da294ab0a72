package llamastack_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

type deploymentType = appsv1.Deployment

// quiet is how long nothing may be written.
const quiet = 3 * time.Second

func nothingChanges(t *testing.T, namespace, before string) {
	t.Helper()
	conditiontest.Throughout(t, quiet, "nothing is written", func() (string, bool) {
		now := versions(t, namespace)
		return fmt.Sprintf("before:\n%s\nnow:\n%s", before, now), now == before
	})
}

// configurations are the generated configurations in a namespace.
func configurations(t *testing.T, namespace string) []string {
	t.Helper()
	var list corev1.ConfigMapList
	require.NoError(t, api.List(t.Context(), &list, client.InNamespace(namespace), client.HasLabels{"llamastack.io/config-for"}))
	var names []string
	for _, one := range list.Items {
		names = append(names, one.Name)
	}
	return names
}

func settled(t *testing.T, what string, look func() (string, bool)) {
	t.Helper()
	conditiontest.Eventually(t, patience, what, look)
}

func comesTo(t *testing.T, namespace string, count int) {
	t.Helper()
	conditiontest.Eventually(t, patience, fmt.Sprint(count, " configurations"), func() (string, bool) {
		names := configurations(t, namespace)
		return strings.Join(names, " "), len(names) == count
	})
}
