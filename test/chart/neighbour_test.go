package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// found are the objects of a cluster that templates may look at.
type found []runtime.Object

// GetClientFor implements engine.ClientProvider.
func (f found) GetClientFor(version, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	group, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, false, err
	}
	resource, _ := apimeta.UnsafeGuessKindToResource(group.WithKind(kind))
	lists := map[schema.GroupVersionResource]string{resource: kind + "List"}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, f...).Resource(resource), kind == "RoleBinding", nil
}

// binding is the ClusterRoleBinding of an installation; one without a release is of the plain
// manifests.
func binding(name, release string, subject values) runtime.Object {
	labels := values{"app.kubernetes.io/name": plainName}
	if release != "" {
		labels["app.kubernetes.io/instance"] = release
	}
	return &unstructured.Unstructured{Object: values{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": values{"name": name, "labels": labels}, "subjects": []any{subject},
	}}
}

// roleBinding is the RoleBinding of a release of one namespace, that of its subject.
func roleBinding(name, release string, subject values) runtime.Object {
	b := binding(name, release, subject).(*unstructured.Unstructured)
	b.SetKind("RoleBinding")
	b.SetNamespace(subject["namespace"].(string))
	return b
}

// crdOf is the CRD of a release; without one it is of kubectl apply.
func crdOf(release, namespace string) runtime.Object {
	metadata := values{"name": "variantautoscalings.llmd.ai"}
	if release != "" {
		metadata["annotations"] = values{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace}
	}
	return &unstructured.Unstructured{Object: values{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}}
}

// TestWhatOtherInstallationsHave: with --take-ownership Helm would take it from them.
func TestWhatOtherInstallationsHave(t *testing.T) {
	const observe = "wva-" + plainName + "-observe"
	account := func(namespace string) values {
		return values{"kind": "ServiceAccount", "name": "a", "namespace": namespace}
	}
	for name, c := range map[string]struct {
		there  []runtime.Object
		values values
		// says is empty where nothing is in the way.
		says string
	}{
		"nothing":                  {there: []runtime.Object{crdOf("", "")}},
		"this release":             {there: []runtime.Object{crdOf("wva", "ours"), binding(observe, "wva", account("ours"))}},
		"the same name elsewhere":  {there: []runtime.Object{binding(observe, "wva", account("theirs"))}, says: "is that of the release wva in namespace theirs, which would lose its rights: give this release another name"},
		"another name, same words": {there: []runtime.Object{binding(observe, "blue", account("ours"))}, says: "is that of the release blue in namespace ours"},
		"plain manifests, here":    {there: []runtime.Object{binding(observe, "", account("ours"))}},
		"plain manifests":          {there: []runtime.Object{binding(observe, "", account("theirs"))}, says: "is that of the plain manifests in namespace theirs"},
		"a user":                   {there: []runtime.Object{binding(observe, "wva", values{"kind": "User", "name": "a"})}, says: "is that of the release wva in namespace "},
		"with Roles alone":         {there: []runtime.Object{binding(observe, "wva", account("theirs"))}, values: nested("wva.namespaceScoped", true)},
		"another scheduler": {
			there:  []runtime.Object{binding("variant-scheduler", "blue", account("theirs"))},
			values: nested("scheduler.enabled", true), says: "ClusterRoleBinding variant-scheduler is that of the release blue in namespace theirs, which would lose its rights: set scheduler.name",
		},
		"another scheduler, and none here": {there: []runtime.Object{binding("variant-scheduler", "blue", account("theirs"))}},
		"a kind that is kept": {
			there: []runtime.Object{crdOf("blue", "theirs"), binding("blue-"+plainName+"-observe", "blue", account("theirs"))},
			says:  "crd.install: the release blue in namespace theirs keeps the kind VariantAutoscaling: set crd.install=false",
		},
		"a kind that a release of one namespace keeps": {
			there:  []runtime.Object{crdOf("blue", "theirs"), roleBinding("blue-"+plainName+"-observe", "blue", account("theirs"))},
			values: nested("wva.namespaceScoped", true), says: "crd.install: the release blue in namespace theirs keeps the kind VariantAutoscaling: set crd.install=false",
		},
		"a kind that a release of other names keeps": {
			there: []runtime.Object{crdOf("blue", "theirs"), binding("green-observe", "blue", account("theirs"))},
			says:  "crd.install: the release blue in namespace theirs keeps the kind VariantAutoscaling: set crd.install=false",
		},
		"a kind that a release of one namespace and other names keeps": {
			there: []runtime.Object{crdOf("blue", "theirs"), roleBinding("green-observe", "blue", account("theirs"))},
			says:  "crd.install: the release blue in namespace theirs keeps the kind VariantAutoscaling: set crd.install=false",
		},
		"a kind that was left behind, beside others of its release": {
			there: []runtime.Object{crdOf("blue", "theirs"), &unstructured.Unstructured{Object: values{
				"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
				"metadata": values{"name": "blue-observe", "labels": values{"app.kubernetes.io/instance": "blue", "app.kubernetes.io/name": "something-else"}},
				"subjects": []any{account("theirs")},
			}}},
		},
		"a kind that was left behind, and its release is elsewhere": {
			there: []runtime.Object{crdOf("blue", "theirs"), binding("green-observe", "blue", account("others"))},
		},
		"a kind that is kept, and not wanted": {
			there:  []runtime.Object{crdOf("blue", "theirs"), binding("blue-"+plainName+"-observe", "blue", account("theirs"))},
			values: nested("crd.install", false),
		},
		"an object whose kind is not there": {
			there:  []runtime.Object{&unstructured.Unstructured{Object: values{"apiVersion": "v1", "kind": "Namespace", "metadata": values{"name": "default"}}}},
			values: nested("va.enabled", true), says: "va.enabled: this cluster does not know the kind VariantAutoscaling yet",
		},
		"webhooks of a release of one namespace": {
			there: []runtime.Object{&unstructured.Unstructured{Object: values{
				"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
				"metadata": values{"name": "wva-" + plainName + "-variants"},
				"webhooks": []any{values{"clientConfig": values{"service": values{"namespace": "theirs"}}}},
			}}},
			values: values{"wva": values{"namespaceScoped": true}, "webhooks": values{"validateVariants": values{"enabled": true}}},
			says:   "ValidatingWebhookConfiguration wva-" + plainName + "-variants asks the manager in namespace theirs, which would no longer be asked: give this release another name, or set fullnameOverride",
		},
		"webhooks of this release": {
			there: []runtime.Object{&unstructured.Unstructured{Object: values{
				"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
				"metadata": values{"name": "wva-" + plainName + "-pods"},
				"webhooks": []any{values{"clientConfig": values{"service": values{"namespace": "ours"}}}},
			}}},
			values: values{"wva": values{"namespaceScoped": true}, "webhooks": values{"placePods": values{"enabled": true}}},
		},
		"the right to read Prometheus, of a release of one namespace": {
			there:  []runtime.Object{binding("wva-"+plainName+"-prometheus-reader-view", "wva", account("theirs"))},
			values: nested("wva", values{"namespaceScoped": true, "prometheus": values{"readerClusterRole": "view"}}),
			says:   "-prometheus-reader-view is that of the release wva in namespace theirs",
		},
		"a kind that was left behind": {there: []runtime.Object{crdOf("blue", "theirs")}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := release{name: "wva", namespace: "ours", values: c.values, cluster: []string{}, objects: c.there}.files(t)
			if c.says == "" {
				assert.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
		})
	}
}
