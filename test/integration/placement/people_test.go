package placement_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// wva runs bin/kubectl-wva capacity as kubectl would.
func wva(t *testing.T, cluster *localcluster.Cluster, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	command := exec.Command(filepath.Join(programs, "kubectl-wva"), append([]string{"capacity"}, args...)...) //nolint:gosec // our own program
	command.Env = []string{"KUBECONFIG=" + cluster.Kubeconfig()}
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	return out.String(), errs.String(), err
}

// The command shows what the autoscaler counts and the scheduler placed.
func peopleSee(t *testing.T, w *world) {
	namespace := w.space(t)
	small, large := deployment(namespace, "small", "a30", 1, 3), deployment(namespace, "large", "a30", 8, 0)
	w.cordon(t, true, "a30-1")
	w.create(t, small)
	w.readyOn(t, namespace, "small", 3)
	w.cordon(t, true, "a30-0")
	w.cordon(t, false, "a30-1")
	w.patch(t, small, `{"spec":{"replicas":5}}`)
	w.readyOn(t, namespace, "small", 5)
	w.cordon(t, false, "a30-0")
	vSmall, vLarge := variant(small, limited, "10"), variant(large, limited, "40")
	for _, v := range []*v1alpha1.VariantAutoscaling{vSmall, vLarge} {
		v.Spec.Actuation = v1alpha1.ActuationOff
	}
	w.create(t, large, vSmall, vLarge)

	text, _, err := wva(t, w.cluster, "--output=json", "--namespace="+namespace)
	require.NoError(t, err)
	var shown report.Capacity
	require.NoError(t, json.Unmarshal([]byte(text), &shown))
	require.Len(t, shown.Variants, 2)
	conditiontest.Eventually(t, patience, "the same slots as the manager counts", func() (string, bool) {
		return describe(vSmall), w.slots(t, vSmall) == int32(*shown.Variants[1].Slots) && w.slots(t, vLarge) == int32(*shown.Variants[0].Slots)
	})
	assert.Equal(t, 11, *shown.Variants[1].Slots)
	assert.Equal(t, 5, *shown.Variants[1].Placed)
	assert.Contains(t, shown.Variants[0].Explanation, "2 A30 nodes have fewer than 8 free (largest hole 6)")
	require.Len(t, shown.Relocations, 1)
	assert.Equal(t, "a30-1", shown.Relocations[0].Node)
	assert.Len(t, shown.Relocations[0].Moves, 2)

	text, _, err = wva(t, w.cluster, "--namespace="+namespace)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^a30-0 +A30-80GB +5/8 +\[BBB\.{5}\]$`, text)
	assert.Regexp(t, `(?m)^a30-1 +A30-80GB +6/8 +\[BB\.{6}\]$`, text)
	assert.NotContains(t, text, "\x1b", "no colours where no terminal is")
	assert.Contains(t, text, "room for one more replica of "+namespace+"/large")

	w.peopleMayLittle(t, namespace)
}

// Whoever may read little sees that, and what to do about the rest.
func (w *world) peopleMayLittle(t *testing.T, namespace string) {
	t.Helper()
	_, complaint, err := wva(t, w.cluster, "--as=nobody")
	require.Error(t, err)
	assert.Contains(t, complaint, "listing nodes")
	assert.Contains(t, complaint, "kubectl auth can-i list nodes --all-namespaces")

	name := metav1.ObjectMeta{Name: "looks-at-nodes"}
	w.create(t,
		&rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "looker"}},
		})
	conditiontest.Eventually(t, patience, "what is left to see", func() (string, bool) {
		text, complaint, err := wva(t, w.cluster, "-A", "--as=looker")
		return complaint, err == nil &&
			assert.Regexp(t, `(?m)^a30-0 and 1 like it +A30-80GB +-/8 +\[\?{8}\]`, text) &&
			assert.Contains(t, text, "note: the pods of all namespaces may not be read") &&
			assert.Contains(t, text, "note: the VariantAutoscaling objects of all namespaces may not be read")
	})

	text, _, err := wva(t, w.cluster, "--namespace=default")
	require.NoError(t, err)
	assert.Contains(t, text, "note: there are no VariantAutoscaling objects in namespace default")
	for _, mistake := range [][]string{{"--output=pdf"}, {"--accelerator-names=x"}, {"--accelerator-names=default/x"}, {"nodes"}, {"--kubeconfig=/nowhere"}, {"--server=https://127.0.0.1:1"}} {
		_, complaint, err := wva(t, w.cluster, mistake...)
		require.Error(t, err, mistake)
		assert.Contains(t, complaint, "error: ", mistake)
	}
	names := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "names"}, Data: map[string]string{product("a30"): "OURS"}}
	w.create(t, names)
	text, _, err = wva(t, w.cluster, "-A", fmt.Sprintf("--accelerator-names=%s/names", namespace))
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^a30-0 +OURS`, text)
}

// A cluster on which nothing of ours is installed still has nodes to show.
func TestPeopleSeeNodesWithoutTheCRD(t *testing.T) {
	t.Parallel()
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{
		Nodes: []*corev1.Node{localcluster.EightH100.Node("h100-0", "a"), localcluster.CPUOnly.Node("cpu", "a")},
	})
	require.NoError(t, err)
	t.Cleanup(cluster.Stop)
	text, _, err := wva(t, cluster, "-A")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^h100-0 +H100-80GB-HBM3 +8/8`, text)
	assert.Contains(t, text, "1 node without devices")
	assert.Contains(t, text, "note: this cluster does not know VariantAutoscaling objects")
}
