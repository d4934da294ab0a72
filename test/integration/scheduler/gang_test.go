package scheduler_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/rightstest"
)

// gangs runs the scheduler as manifests/scheduler-gang has it, with the rights of that folder
// beside its own: a pod of a group waits for the others.
func (w *world) gangs(t *testing.T) {
	const gang = manifests + "/scheduler-gang"
	ctx := t.Context()
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/scheduler-plugins").Output()
	require.NoError(t, err)
	require.NoError(t, w.Apply(ctx, filepath.Join(strings.TrimSpace(string(module)), "manifests", "coscheduling", "crd.yaml"), gang+"/rbac.yaml"))
	require.NoError(t, w.Terminate(scheduler))
	// The one before held it.
	require.NoError(t, w.api.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: scheduler}}))
	w.startGang(t, gang+"/config.yaml")

	require.NoError(t, w.api.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": "pair"}, "spec": map[string]any{"minMember": 2},
	}}))
	member := func(name string) *corev1.Pod {
		p := pod(name, podSpec())
		p.Labels["scheduling.x-k8s.io/pod-group"] = "pair"
		return p
	}
	require.NoError(t, w.api.Create(ctx, member("pair-a")))
	assert.Contains(t, w.told(t, "pair-a", "FailedScheduling", "sibling"), "minMember of group: 2")
	require.NoError(t, w.api.Create(ctx, member("pair-b")))
	assert.NotEmpty(t, w.node(t, "pair-a"))
	assert.NotEmpty(t, w.node(t, "pair-b"))
	assert.NoError(t, rightstest.Proof{
		Cluster: w.Cluster, Namespace: home, Account: scheduler, Files: []string{gang + "/rbac.yaml"}, Beside: []string{manifests + "/scheduler/rbac.yaml"},
	}.Check())
}

// startGang starts the scheduler with the configuration of a ConfigMap and the token of its
// service account.
func (w *world) startGang(t *testing.T, path string) {
	t.Helper()
	kubeconfig, err := w.KubeconfigFor(t.Context(), home, scheduler)
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var configMap corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict(text, &configMap))
	config := filepath.Join(t.TempDir(), "config.yaml")
	content := configMap.Data["config.yaml"] + "\nclientConnection:\n  kubeconfig: " + kubeconfig + "\n"
	require.NoError(t, os.WriteFile(config, []byte(content), 0o600))
	address, err := w.FreeAddress()
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	require.NoError(t, w.StartProcess(t.Context(), localcluster.Process{
		Name: "gang-scheduler", Path: filepath.Join(programs, "scheduler"),
		Args: []string{
			"--config=" + config, "--bind-address=" + host, "--secure-port=" + port, "--feature-gates=WatchListClient=false",
			"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		},
	}))
}
