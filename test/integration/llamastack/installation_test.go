package llamastack_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

func definition() *apiextensions.CustomResourceDefinition {
	return &apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "llamastackdistributions.llamastack.io"}}
}

func webhookConfiguration() *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "workload-variant-autoscaler-webhooks"}}
}

func certificate() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(home, "workload-variant-autoscaler-webhook-cert")}
}

func TestTheKindAsItIsInstalled(t *testing.T) {
	crd := read(t, definition())
	assert.True(t, slices.ContainsFunc(crd.Status.Conditions, func(c apiextensions.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensions.Established && c.Status == apiextensions.ConditionTrue
	}))
	columns := map[string][]string{}
	for _, version := range crd.Spec.Versions {
		assert.True(t, version.Served, version.Name)
		assert.Equal(t, version.Name == "v1alpha2", version.Storage, version.Name)
		for _, column := range version.AdditionalPrinterColumns {
			columns[version.Name] = append(columns[version.Name], column.Name)
		}
	}
	assert.Equal(t, map[string][]string{
		"v1alpha1": {"Phase", "Operator Version", "Server Version", "Available", "Age"},
		"v1alpha2": {"Phase", "Distribution", "Config", "Providers", "Available", "Age"},
	}, columns)
	require.Equal(t, apiextensions.WebhookConverter, crd.Spec.Conversion.Strategy)
	assert.Equal(t, "/convert", *crd.Spec.Conversion.Webhook.ClientConfig.Service.Path)
	authority := read(t, certificate()).Data["ca.crt"]
	assert.Equal(t, authority, crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	assert.Equal(t, authority, read(t, webhookConfiguration()).Webhooks[0].ClientConfig.CABundle)

	// Whoever asks for no version, as kubectl does, gets the first.
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	require.NoError(t, err)
	groups, err := client.ServerGroups()
	require.NoError(t, err)
	for _, group := range groups.Groups {
		if group.Name == "llamastack.io" {
			assert.Equal(t, "llamastack.io/v1alpha2", group.PreferredVersion.GroupVersion)
		}
	}
	resources, err := client.ServerResourcesForGroupVersion("llamastack.io/v1alpha2")
	require.NoError(t, err)
	assert.Equal(t, []string{"llsd"}, resources.APIResources[0].ShortNames)
}

// A certificate that is lost is made anew, and its authority is told wherever the API
// server looks for it: both versions are converted and checked as before.
func TestACertificateIsMadeAnew(t *testing.T) {
	before := read(t, certificate()).Data["ca.crt"]
	edit(t, certificate(), func(s *corev1.Secret) { s.Data = nil })
	secret := certificate()
	comes(t, secret, "another certificate", func(s *corev1.Secret) bool {
		return len(s.Data["tls.crt"]) > 0 && len(s.Data["tls.key"]) > 0 && len(s.Data["ca.crt"]) > 0 && string(s.Data["ca.crt"]) != string(before)
	})
	comes(t, definition(), "its authority", func(d *apiextensions.CustomResourceDefinition) bool {
		return string(d.Spec.Conversion.Webhook.ClientConfig.CABundle) == string(secret.Data["ca.crt"])
	})
	comes(t, webhookConfiguration(), "its authority", func(c *admissionv1.ValidatingWebhookConfiguration) bool {
		return string(c.Webhooks[0].ClientConfig.CABundle) == string(secret.Data["ca.crt"])
	})
	namespace := space(t)
	object := view(t, namespace, "demo", "server: {distribution: {name: starter}}")
	conditiontest.Eventually(t, patience, "an object of v1alpha1 is converted and checked again", func() (string, bool) {
		err := api.Create(t.Context(), object)
		return fmt.Sprint(err), err == nil
	})
	refused := hub(t, namespace, "other", "distribution: {name: other}")
	assert.ErrorContains(t, api.Create(t.Context(), refused), `unknown distribution "other"`)
	reaches(t, &v1alpha2.LlamaStackDistribution{ObjectMeta: named(namespace, "demo")}, v1alpha2.PhaseReady)
}

// A manager whose gate is off, or which has not the rights that are installed with the
// kind, runs without handling the kind, and says why.
func TestAManagerWithoutTheFeature(t *testing.T) {
	namespace := space(t)
	for name, c := range map[string]struct{ account, argument, why string }{
		"gate-off":  {account, "--feature-gates=LlamaStackOperator=false", "the feature gate LlamaStackOperator is off"},
		"no-rights": {withoutRights(t), "-v=2", "the manager may not write their status, which manifests/llamastack/rbac.yaml grants"},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig, err := cluster.KubeconfigFor(t.Context(), home, c.account)
			require.NoError(t, err)
			health, err := cluster.FreeAddress()
			require.NoError(t, err)
			require.NoError(t, cluster.StartProcess(t.Context(), managerProcess(name, kubeconfig, health, "", c.argument, "--watch-namespace="+namespace)))
			t.Cleanup(func() { require.NoError(t, cluster.Terminate(name)) })
			text, err := os.ReadFile(filepath.Join(cluster.Logs(), name+".log"))
			require.NoError(t, err)
			assert.Contains(t, string(text), `"LlamaStackDistribution objects are not handled" why="`+c.why+`"`)
		})
	}
}

// withoutRights is a service account with all rights of the manager but those that come
// with the kind.
func withoutRights(t *testing.T) string {
	t.Helper()
	const name = "without-llamastack"
	mine := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return s.Name == account })
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: name}}
	made := []client.Object{&corev1.ServiceAccount{ObjectMeta: named(home, name)}}
	var bindings rbacv1.ClusterRoleBindingList
	require.NoError(t, api.List(t.Context(), &bindings))
	for _, b := range bindings.Items {
		if mine(b.Subjects) && !strings.Contains(b.Name, "llamastack") {
			made = append(made, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "test-" + b.Name}, RoleRef: b.RoleRef, Subjects: subjects})
		}
	}
	var inHome rbacv1.RoleBindingList
	require.NoError(t, api.List(t.Context(), &inHome, client.InNamespace(home)))
	for _, b := range inHome.Items {
		if mine(b.Subjects) && !strings.Contains(b.Name, "llamastack") {
			made = append(made, &rbacv1.RoleBinding{ObjectMeta: named(home, "test-"+b.Name), RoleRef: b.RoleRef, Subjects: subjects})
		}
	}
	require.Greater(t, len(made), 3)
	create(t, made...)
	t.Cleanup(func() {
		for _, object := range made {
			require.NoError(t, api.Delete(context.Background(), object))
		}
	})
	return name
}

// Objects that an earlier installation stored as v1alpha1 are found by a manager that
// starts, run, and written as v1alpha2.
func TestAnObjectThatWasStoredAsV1alpha1(t *testing.T) {
	namespace := space(t)
	webhooks := read(t, webhookConfiguration())
	require.NoError(t, cluster.Kill("manager"))
	stored := func(version string) {
		edit(t, definition(), func(d *apiextensions.CustomResourceDefinition) {
			for i := range d.Spec.Versions {
				d.Spec.Versions[i].Storage = d.Spec.Versions[i].Name == version
			}
		})
	}
	// As it was before v1alpha2: nobody converts and nobody checks.
	require.NoError(t, api.Delete(t.Context(), webhookConfiguration()))
	stored("v1alpha1")
	old := view(t, namespace, "demo", "replicas: 2\nserver: {distribution: {name: starter}, containerSpec: {name: srv, port: 9000}}\nnetwork: {exposeRoute: true}")
	conditiontest.Eventually(t, patience, "the old object", func() (string, bool) {
		err := api.Create(t.Context(), old)
		return fmt.Sprint(err), err == nil || apierrors.IsAlreadyExists(err)
	})
	stored("v1alpha2")
	webhooks.ResourceVersion, webhooks.UID = "", ""
	require.NoError(t, api.Create(t.Context(), webhooks))
	require.NoError(t, cluster.Restart(t.Context(), "manager"))

	object := &v1alpha2.LlamaStackDistribution{ObjectMeta: named(namespace, "demo")}
	reaches(t, object, v1alpha2.PhaseReady)
	assert.EqualValues(t, 2, object.Status.AvailableReplicas)
	assert.Equal(t, `"srv"`, object.Annotations["v1alpha1.llamastack.io/containerName"])
	assert.Equal(t, "srv", read(t, deploymentOf(object)).Spec.Template.Spec.Containers[0].Name)
	assert.Equal(t, []string{"v1alpha1", "v1alpha2"}, slices.Sorted(slices.Values(read(t, definition()).Status.StoredVersions)))
}
