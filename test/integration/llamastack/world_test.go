package llamastack_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

func split(address string) (host, port string, err error) { return net.SplitHostPort(address) }

// space is a namespace of the test's own.
func space(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "llsd-"}}
	require.NoError(t, api.Create(t.Context(), namespace))
	t.Cleanup(func() { require.NoError(t, api.Delete(context.Background(), namespace)) })
	return namespace.Name
}

// hub is an object of v1alpha2 with a spec in YAML.
func hub(t *testing.T, namespace, name, spec string) *v1alpha2.LlamaStackDistribution {
	t.Helper()
	object := &v1alpha2.LlamaStackDistribution{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &object.Spec), spec)
	return object
}

// view is an object of v1alpha1 with a spec in YAML.
func view(t *testing.T, namespace, name, spec string) *v1alpha1.LlamaStackDistribution {
	t.Helper()
	object := &v1alpha1.LlamaStackDistribution{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	object.Spec.Replicas = 1
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &object.Spec), spec)
	return object
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, api.Create(t.Context(), object), "creating %T %s", object, object.GetName())
	}
}

// read has the object as it is now.
func read[T client.Object](t *testing.T, object T) T {
	t.Helper()
	require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// edit changes an object, again if it changed meanwhile.
func edit[T client.Object](t *testing.T, object T, change func(T)) {
	t.Helper()
	conditiontest.Eventually(t, patience, "the edit", func() (string, bool) {
		change(read(t, object))
		err := api.Update(t.Context(), object)
		if err != nil && !apierrors.IsConflict(err) {
			require.NoError(t, err)
		}
		return fmt.Sprint(err), err == nil
	})
}

// comes waits until an object has a state.
func comes[T client.Object](t *testing.T, object T, what string, is func(T) bool) {
	t.Helper()
	conditiontest.Eventually(t, patience, what, func() (string, bool) {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error(), false
		}
		text, err := yaml.Marshal(object)
		require.NoError(t, err)
		return string(text), is(object)
	})
}

// goes waits until an object is not there.
func goes(t *testing.T, object client.Object) {
	t.Helper()
	conditiontest.Eventually(t, patience, "it goes", func() (string, bool) {
		err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		return fmt.Sprintf("%T %s is there (%v)", object, object.GetName(), err), apierrors.IsNotFound(err)
	})
}

// reaches waits until the operator has seen the object as it is, and it has a phase.
func reaches(t *testing.T, object *v1alpha2.LlamaStackDistribution, phase v1alpha2.Phase) {
	t.Helper()
	comes(t, object, "phase "+string(phase), func(o *v1alpha2.LlamaStackDistribution) bool {
		condition := apimeta.FindStatusCondition(o.Status.Conditions, "DeploymentUpdated")
		return o.Status.Phase == phase && condition != nil && condition.ObservedGeneration == o.Generation
	})
}

func conditionOf(object *v1alpha2.LlamaStackDistribution, kind string) metav1.Condition {
	if c := apimeta.FindStatusCondition(object.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func deploymentOf(object client.Object) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named(object.GetNamespace(), object.GetName())}
}

// environment is the environment of a Deployment's server: values, or where they are
// from.
func environment(d *appsv1.Deployment) map[string]string {
	found := map[string]string{}
	for _, variable := range d.Spec.Template.Spec.Containers[0].Env {
		found[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
			found[variable.Name] = "secret " + from.SecretKeyRef.Name + "/" + from.SecretKeyRef.Key
		}
	}
	return found
}

// settles waits until nothing that belongs to the objects of a namespace has been written
// for a while, and returns the resource versions.
func versions(t *testing.T, namespace string) string {
	t.Helper()
	var lines []string
	for _, list := range lists() {
		require.NoError(t, api.List(t.Context(), list, client.InNamespace(namespace)))
		require.NoError(t, apimeta.EachListItem(list, func(item runtimeObject) error {
			object := item.(client.Object)
			lines = append(lines, fmt.Sprintf("%T %s %s", object, object.GetName(), object.GetResourceVersion()))
			return nil
		}))
	}
	return strings.Join(lines, "\n")
}
