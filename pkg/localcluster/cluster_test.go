package localcluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// namespace makes a namespace for one test.
func namespace(t *testing.T) string {
	made, err := clientFor(t, cluster.Config()).CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return made.Name
}

func TestAnAPIServerAloneTakesPodsAndKeepsTheDirectoryOfTheUser(t *testing.T) {
	dir := t.TempDir()
	c, err := Start(t.Context(), Options{Dir: dir, Nodes: []*corev1.Node{CPUOnly.Node("one", "zone-1")}})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	client := clientFor(t, c.Config())

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "alone"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
	_, err = client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err, "no service account may be waited for that nobody makes")
	node, err := client.CoreV1().Nodes().Get(t.Context(), "one", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, node.Spec.Taints, "no taint that nobody takes away")
	require.NoError(t, client.CoreV1().Pods("default").Delete(t.Context(), "alone", metav1.DeleteOptions{}))
	_, err = client.CoreV1().Pods("default").Get(t.Context(), "alone", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err))

	c.Stop()
	assert.Empty(t, c.Failed())
	assert.FileExists(t, filepath.Join(dir, "logs", "kube-apiserver.log"))
}

func TestStopRemovesTheDirectoryThatStartMade(t *testing.T) {
	c := supervisor(t)
	require.NoError(t, c.prepare())
	require.DirExists(t, c.dir)
	c.Stop()
	_, err := os.Stat(c.dir)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestAServiceAccountHasItsRightsAndNoMore(t *testing.T) {
	space, admin := namespace(t), clientFor(t, cluster.Config())
	_, err := cluster.KubeconfigFor(t.Context(), space, "reader")
	require.ErrorContains(t, err, "apply the manifest that makes it first")

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	_, err = admin.CoreV1().ServiceAccounts(space).Create(t.Context(), account, metav1.CreateOptions{})
	require.NoError(t, err)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}},
	}}
	_, err = admin.RbacV1().Roles(space).Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: space, Name: "reader"}},
	}
	_, err = admin.RbacV1().RoleBindings(space).Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)

	path, err := cluster.KubeconfigFor(t.Context(), space, "reader")
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	assert.NotEmpty(t, config.BearerToken)
	assert.Empty(t, config.CertData, "the token is all it has")
	reader := clientFor(t, config)
	require.Eventually(t, func() bool {
		_, err = reader.CoreV1().ConfigMaps(space).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, patience, readyInterval, "the authoriser sees the binding soon")
	_, err = reader.CoreV1().Secrets(space).List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "secrets of its namespace: %v", err)
	_, err = reader.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "another namespace: %v", err)
}

func TestNodesLookLikeThoseOfRealClusters(t *testing.T) {
	client := clientFor(t, cluster.Config())
	for name, shape := range nodes {
		node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.True(t, takesPods(node), name)
		gpus := node.Status.Allocatable[GPUResource]
		assert.EqualValues(t, shape.GPUs, gpus.Value(), name)
		assert.Equal(t, shape.Product, node.Labels["nvidia.com/gpu.product"], name)
		taints := map[string]string{}
		for _, taint := range node.Spec.Taints {
			taints[taint.Key] = taint.Value
		}
		if shape.GPUs == 0 {
			assert.Empty(t, taints, name)
		} else {
			assert.Equal(t, map[string]string{GPUTaint: "present", "wva.llmd.ai/scheduler": "variant-scheduler"}, taints, name)
		}
	}
}
