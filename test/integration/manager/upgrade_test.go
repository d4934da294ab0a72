package manager_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// atHome gives the manager's account in another namespace what it has in its own.
func atHome(t *testing.T, namespace string) {
	t.Helper()
	role := read(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: roles + "home"}})
	create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name}, Rules: role.Rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account}},
		})
}

// podOf waits for the only pod of a revision of a Deployment that runs.
func podOf(t *testing.T, namespace, revision string) string {
	t.Helper()
	var found []string
	conditiontest.Eventually(t, patience, "the pod of revision "+revision, func() (string, bool) {
		var pods corev1.PodList
		require.NoError(t, api.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"revision": revision}))
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

// An upgrade from a version with one lease for all instances, under a load that rises: the
// manager of before leads by the lease of its name while the new one starts, which writes
// nothing until the other one is gone.
func TestAnUpgradeRollsOnWithOneLeader(t *testing.T) {
	const instance, earlier = "rolling", "earlier-rolling"
	servers := serveModels(t)
	namespace, office := space(t), space(t)
	atHome(t, office)
	managers := deployment(office, "manager", 1)
	managers.Spec.Template.Labels["revision"] = "old"
	// The next revision does not count as available before the test says so.
	managers.Spec.MinReadySeconds = 300
	create(t, managers)
	begin := func(name, revision, id string) {
		t.Helper()
		startHurried(t, instance, name, "--pod-namespace="+office, "--pod-name="+podOf(t, office, revision), "--leader-elect", "--leader-election-id="+id,
			"--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=500ms")
	}
	// Its lease is the one that the next version knows as that of the version before.
	begin("upgrade-old", "old", strings.TrimSuffix(earlier, "-"+instance))
	lease := func(name string) (string, bool) {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: office, Name: name}}
		err := api.Get(t.Context(), client.ObjectKeyFromObject(l), l)
		require.NoError(t, client.IgnoreNotFound(err))
		return fmt.Sprint(l.Spec.HolderIdentity), !apierrors.IsNotFound(err)
	}
	servers.ask(namespace, 0.9*serves)
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", instance)
	v.Spec.Behavior = nil // its window of five minutes: nothing may go here
	create(t, d, v)
	hasAtLeast(t, d, v, 2)
	_, held := lease(earlier)
	require.True(t, held)

	managers = read(t, managers)
	managers.Spec.Template.Labels["revision"] = "new"
	require.NoError(t, api.Update(t.Context(), managers))
	begin("upgrade-new", "new", earlier)
	t.Cleanup(func() { assert.NoError(t, cluster.Terminate("upgrade-new")) })
	conditiontest.Eventually(t, patience, "the line that it waits", func() (string, bool) {
		text, err := os.ReadFile(filepath.Join(cluster.Logs(), "upgrade-new.log"))
		return fmt.Sprint(err, string(text)), strings.Contains(string(text), "may lead by a lease of an earlier version: it is waited for")
	})
	before := *read(t, d).Spec.Replicas
	servers.settle(t, namespace, int(before))
	servers.ask(namespace, float64(before)*2*serves)
	hasAtLeast(t, d, v, before+1)
	_, held = lease(earlier + "-" + instance)
	assert.False(t, held, "the new one does not lead")

	// The old one ends as a kubelet ends it, and its pod goes.
	require.NoError(t, cluster.Terminate("upgrade-old"))
	require.NoError(t, api.Patch(t.Context(), read(t, managers), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minReadySeconds":0}}`))))
	conditiontest.Eventually(t, patience, "the lease of the new one", func() (string, bool) { return lease(earlier + "-" + instance) })
	before = *read(t, d).Spec.Replicas
	servers.settle(t, namespace, int(before))
	servers.ask(namespace, float64(before)*2*serves)
	hasAtLeast(t, d, v, before+1)

	by := []string{}
	for _, w := range writesTo(t, d) {
		if len(by) == 0 || by[len(by)-1] != w.Credential {
			by = append(by, w.Credential)
		}
	}
	assert.Equal(t, []string{credentialOf["upgrade-old"], credentialOf["upgrade-new"]}, by, "one after the other, and each once")
}
