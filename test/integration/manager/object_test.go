package manager_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// space makes a namespace; its objects go with the test, so that the managers
// forget them.
func space(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	require.NoError(t, api.Create(t.Context(), namespace))
	t.Cleanup(func() {
		// The test's own context has ended by now.
		require.NoError(t, api.DeleteAllOf(context.Background(), &v1alpha1.VariantAutoscaling{}, client.InNamespace(namespace.Name)))
		require.NoError(t, api.Delete(context.Background(), namespace))
	})
	return namespace.Name
}

// deployment is a model server on one H100.
func deployment(namespace, name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       podSpec(),
			},
		},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		NodeSelector:                  map[string]string{"nvidia.com/gpu.product": localcluster.EightH100.Product},
		Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: "server", Image: "model-server",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{localcluster.GPUResource: resource.MustParse("1")}},
		}},
	}
}

// variant is an object for a Deployment, without windows.
func variant(namespace, name, target, instance string) *v1alpha1.VariantAutoscaling {
	v := &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.VariantAutoscalingSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: target},
			ModelID:        "llama",
			Behavior:       &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScalingRules{StabilizationWindowSeconds: ptr.To[int32](1)}},
		},
	}
	if instance != "" {
		v.Labels = map[string]string{v1alpha1.LabelControllerInstance: instance}
	}
	return v
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, api.Create(t.Context(), object))
	}
}

// remove deletes an object and waits until it is gone.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, api.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	conditiontest.Eventually(t, patience, "deletion", func() (string, bool) {
		err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

// read gets the newest version of an object.
func read[T client.Object](t *testing.T, object T) T {
	t.Helper()
	require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

// shows waits until the condition has the reason, and returns the object.
func shows(t *testing.T, limit time.Duration, v *v1alpha1.VariantAutoscaling, condition, reason string) *metav1.Condition {
	t.Helper()
	var found *metav1.Condition
	conditiontest.Eventually(t, limit, fmt.Sprintf("condition %s with reason %s", condition, reason), func() (string, bool) {
		read(t, v)
		found = apimeta.FindStatusCondition(v.Status.Conditions, condition)
		return describe(v), found != nil && found.Reason == reason && found.ObservedGeneration == v.Generation
	})
	return found
}

func describe(v *v1alpha1.VariantAutoscaling) string {
	var lines []string
	for _, c := range v.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	if d := v.Status.DesiredOptimizedAlloc; d != nil && d.NumReplicas != nil {
		lines = append(lines, fmt.Sprint("desired ", *d.NumReplicas))
	}
	if d := v.Status.Decision; d != nil {
		for _, s := range d.Steps {
			lines = append(lines, fmt.Sprintf("%s %d -> %d %s: %s", s.Stage, s.Before, s.After, s.Reason, s.Detail))
		}
	}
	return strings.Join(lines, "\n")
}

// hasReplicas waits until the Deployment asks for so many.
func hasReplicas(t *testing.T, limit time.Duration, d *appsv1.Deployment, v *v1alpha1.VariantAutoscaling, replicas int32) {
	t.Helper()
	conditiontest.Eventually(t, limit, fmt.Sprint(replicas, " replicas"), func() (string, bool) {
		read(t, d)
		read(t, v)
		return fmt.Sprintf("spec.replicas %d\n%s", *d.Spec.Replicas, describe(v)), *d.Spec.Replicas == replicas
	})
}

// told are the reasons of the events on an object, in the order of time.
func told(t *testing.T, object client.Object) []string {
	t.Helper()
	var list eventsv1.EventList
	require.NoError(t, api.List(t.Context(), &list, client.InNamespace(object.GetNamespace())))
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.Name == object.GetName() && e.Regarding.UID == object.GetUID() {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}
