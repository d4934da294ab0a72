package manager_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// One installation with what a cautious user switches on: one namespace, leader
// election, metrics behind TLS and permissions.
func TestOneNamespaceWithLeaderElectionAndSecureMetrics(t *testing.T) {
	servers := serveModels(t)
	watched, other := space(t), space(t)
	servers.ask(watched, 0.9*serves)
	upgraded(t)
	metrics := startCautious(t, watched)

	d, v := deployment(watched, "server", 1), variant(watched, "llama-h100", "server", "cautious")
	outside := variant(other, "llama-h100", "server", "cautious")
	create(t, deployment(other, "server", 6), outside, d, v)
	hasReplicas(t, patience, d, v, 2)
	assert.Empty(t, read(t, outside).Status.Conditions, "another namespace is not its business")
	shows(t, patience, v, v1alpha1.ConditionCapacityKnown, v1alpha1.ReasonCapacityExact)
	conditiontest.Eventually(t, patience, "the devices that pods of other namespaces hold", func() (string, bool) {
		slots := read(t, v).Status.Placement.Slots
		return fmt.Sprint(ptr.Deref(slots, -1)), slots != nil && *slots <= 32-6-2
	})

	lease := read(t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "72dd1cf1.llm-d.ai-cautious"}})
	assert.NotEmpty(t, lease.Spec.HolderIdentity)

	assert.Equal(t, http.StatusUnauthorized, statusOf(t, metrics, ""))
	assert.Equal(t, http.StatusForbidden, statusOf(t, metrics, token(t, other, "stranger", "")))
	assert.Equal(t, http.StatusOK, statusOf(t, metrics, token(t, other, "reader", "workload-variant-autoscaler-metrics-reader")))
}

// upgraded has it look as if an earlier version had led here by the one lease that it had,
// and as if this machine were a pod of the Deployment that followed.
func upgraded(t *testing.T) {
	t.Helper()
	made(t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "72dd1cf1.llm-d.ai"}})
	host, err := os.Hostname()
	require.NoError(t, err)
	labels := map[string]string{"app": "upgraded"}
	spec := podSpec()
	spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "upgraded"},
		// One that is paused makes nothing itself.
		Spec: appsv1.DeploymentSpec{Paused: true, Replicas: ptr.To[int32](1), Selector: selector, Template: template},
	}
	made(t, d)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: host, Labels: labels}, Spec: spec}
	made(t, pod)
	made(t, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: home, Name: "upgraded", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1), Selector: selector, Template: template},
	})
	conditiontest.Eventually(t, patience, "a pod with an owner", func() (string, bool) {
		owner := metav1.GetControllerOf(read(t, pod))
		return owner.String(), owner != nil
	})
}

// startCautious starts a manager that ends with the test, and returns the address of
// its metrics.
func startCautious(t *testing.T, namespace string) string {
	t.Helper()
	kubeconfig, err := cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	metrics, err := cluster.FreeAddress()
	require.NoError(t, err)
	health, err := cluster.FreeAddress()
	require.NoError(t, err)
	process := managerProcess("cautious", kubeconfig, metrics, health)
	process.Args = append(process.Args, "--metrics-secure=true", "--watch-namespace="+namespace,
		"--leader-elect", "--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=500ms")
	require.NoError(t, cluster.StartProcess(t.Context(), process))
	t.Cleanup(func() { require.NoError(t, cluster.Terminate(process.Name)) })
	return "https://" + metrics + "/metrics"
}

// token is one of a new service account that has the ClusterRole, if any.
func token(t *testing.T, namespace, name, role string) string {
	t.Helper()
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	create(t, serviceAccount)
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		}
		create(t, binding)
		t.Cleanup(func() { require.NoError(t, api.Delete(context.Background(), binding)) })
	}
	request := &authenticationv1.TokenRequest{}
	require.NoError(t, api.SubResource("token").Create(t.Context(), serviceAccount, request))
	return request.Status.Token
}

func statusOf(t *testing.T, url, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is self-signed until the user gives one.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// The cluster of these tests has no LlamaStackDistribution: the manager runs without, and
// says so.
func TestAClusterWithoutTheKindOfLlamaStackServers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(cluster.Logs(), "manager.log"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"LlamaStackDistribution objects are not handled" why="the cluster has no such kind, which manifests/llamastack installs"`)
}
