package manager_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// builtAs builds the manager with a version of its own.
func builtAs(t *testing.T, version string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manager")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "-ldflags", "-X k8s.io/component-base/version.gitVersion="+version, "./cmd/manager")
	build.Dir = root
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

// podOf waits for the only pod of a revision of a Deployment that runs.
func podOf(t *testing.T, d client.Object, revision string) string {
	t.Helper()
	var found []string
	conditiontest.Eventually(t, patience, "the pod of revision "+revision, func() (string, bool) {
		var pods corev1.PodList
		require.NoError(t, api.List(t.Context(), &pods, client.InNamespace(d.GetNamespace()), client.MatchingLabels{"app": d.GetName(), "revision": revision}))
		found = nil
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				found = append(found, pods.Items[i].Name)
			}
		}
		return fmt.Sprint(found), len(found) == 1
	})
	return found[0]
}

// The manager's own Deployment is updated to another version, under a load that rises all the
// while: the pod of the new revision starts, waits while the old one leads, and goes on at once
// where that one ends. The audit log has the writes of the one and then those of the other, each
// above the one before, and nobody took the other's writes for those of a stranger.
func TestARollingUpgradeHandsTheLeadOver(t *testing.T) {
	const instance = "rolling"
	servers := serveModels(t)
	namespace, office := space(t), space(t)
	atHome(t, office)
	managers := deployment(office, "rolling-manager", 1)
	managers.Spec.Template.Labels = map[string]string{"app": managers.Name, "revision": "old"}
	managers.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	// A revision counts as available when the test says so.
	managers.Spec.MinReadySeconds = 300
	create(t, managers)
	begin := func(revision, path string) {
		t.Helper()
		// The lease lasts for longer than the test waits: it must be given back.
		startProgram(t, path, instance, "upgrade-"+revision, "--pod-namespace="+office, "--pod-name="+podOf(t, managers, revision),
			"--leader-elect", "--leader-election-lease-duration=5m", "--leader-election-renew-deadline=4m", "--leader-election-retry-period=500ms")
	}
	begin("old", builtAs(t, "v0.0.1-before"))
	servers.ask(namespace, 0.9*serves)
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", instance)
	v.Spec.Behavior = nil // its window of five minutes: nothing may go here
	create(t, d, v)
	hasAtLeast(t, d, v, 2)

	managers = read(t, managers)
	managers.Spec.Template.Labels["revision"] = "new"
	require.NoError(t, api.Update(t.Context(), managers))
	begin("new", filepath.Join(programs, "manager"))
	ended := false
	t.Cleanup(func() {
		if !ended {
			assert.NoError(t, cluster.Terminate("upgrade-old"))
		}
		assert.NoError(t, cluster.Terminate("upgrade-new"))
	})
	rises := func() {
		t.Helper()
		before := *read(t, d).Spec.Replicas
		servers.settle(t, namespace, int(before))
		servers.ask(namespace, float64(before+1)*serves)
		hasAtLeast(t, d, v, before+1)
	}
	rises()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: office, Name: "72dd1cf1.llm-d.ai-" + instance}}
	require.Contains(t, *read(t, lease).Spec.HolderIdentity, podOf(t, managers, "old"))

	// The old pod goes, and its program is told to end as a kubelet tells it.
	require.NoError(t, api.Patch(t.Context(), managers, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minReadySeconds":0}}`))))
	conditiontest.Eventually(t, patience, "the end of the old pod", func() (string, bool) {
		var pods corev1.PodList
		require.NoError(t, api.List(t.Context(), &pods, client.InNamespace(office), client.MatchingLabels{"app": managers.Name, "revision": "old"}))
		return fmt.Sprint(len(pods.Items)), len(pods.Items) == 0
	})
	require.NoError(t, cluster.Terminate("upgrade-old"))
	ended = true
	rises()
	conditiontest.Eventually(t, patience, "rounds of the new revision", func() (string, bool) {
		rounds := scrapeManager(t, "upgrade-new")[`wva_round_duration_seconds{controller_instance="`+instance+`",result="success",round="Full"}`]
		return fmt.Sprint(rounds), rounds >= 3
	})
	require.Contains(t, *read(t, lease).Spec.HolderIdentity, podOf(t, managers, "new"))

	last, by := int32(1), []string{}
	for _, w := range writesTo(t, d) {
		if len(by) == 0 || by[len(by)-1] != w.Credential {
			by = append(by, w.Credential)
		}
		assert.Greater(t, w.Replicas, last, "no write takes replicas away, and none repeats another: %+v", w)
		last = w.Replicas
	}
	assert.Equal(t, []string{credentialOf["upgrade-old"], credentialOf["upgrade-new"]}, by, "one after the other")
	shows(t, patience, v, v1alpha1.ConditionConflict, v1alpha1.ReasonNoConflict)
	for _, reason := range []string{"ReplicasChanged", "ReplicasOverwritten"} {
		assert.NotContains(t, told(t, v), reason, "what the other revision wrote is ours")
	}
	for name, version := range map[string]string{"upgrade-old": "v0.0.1-before", "upgrade-new": ""} {
		text, err := os.ReadFile(filepath.Join(cluster.Logs(), name+".log"))
		require.NoError(t, err)
		assert.Contains(t, string(text), `"Starting" version="`+version)
		if version == "" {
			assert.NotContains(t, string(text), "v0.0.1-before", "it is another program")
		}
	}
}
