package manager_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// roles is the prefix of the manager's roles, and of its account.
const roles = "workload-variant-autoscaler-"

// lesser makes a service account that may do what the manager may, but for the
// resources of the core group on which it lacks a verb: "nodes" and "list".
func lesser(t *testing.T, name string, lacks map[string]string) {
	t.Helper()
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: name}
	made(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}})
	made(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roles + "home"},
		Subjects:   []rbacv1.Subject{subject},
	})
	for _, role := range []string{"observe", "scale", "report", "victims"} {
		full := read(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roles + role}})
		less := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role}}
		for _, rule := range full.Rules {
			for _, resource := range rule.Resources {
				one := *rule.DeepCopy()
				one.Resources = []string{resource}
				one.Verbs = slices.DeleteFunc(one.Verbs, func(verb string) bool { return rule.APIGroups[0] == "" && lacks[resource] == verb })
				if len(one.Verbs) > 0 {
					less.Rules = append(less.Rules, one)
				}
			}
		}
		made(t, less)
		made(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: less.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: less.Name},
			Subjects:   []rbacv1.Subject{subject},
		})
	}
}

// made creates an object that goes with the test.
func made(t *testing.T, object client.Object) {
	t.Helper()
	create(t, object)
	t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(api.Delete(context.Background(), object))) })
}

// startAs starts a brisk manager with an instance and an account of its own, which ends
// with the test.
func startAs(t *testing.T, instance, account string, flags ...string) {
	t.Helper()
	kubeconfig, err := cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	metrics, err := cluster.FreeAddress()
	require.NoError(t, err)
	health, err := cluster.FreeAddress()
	require.NoError(t, err)
	metricsOf[instance] = "http://" + metrics + "/metrics"
	process := managerProcess(instance, kubeconfig, metrics, health)
	process.Args = append(slices.Concat(process.Args, hurry), flags...)
	require.NoError(t, cluster.StartProcess(t.Context(), process))
	t.Cleanup(func() { require.NoError(t, cluster.Terminate(process.Name)) })
}
