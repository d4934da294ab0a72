package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// deployment is that of the world, after a change of it.
func (w world) deployment(t *testing.T, change func(*appsv1.Deployment)) {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(w.object), d))
	change(d)
	status := d.Status
	require.NoError(t, w.Update(t.Context(), d))
	d.Status = status
	require.NoError(t, w.Status().Update(t.Context(), d))
}

// rolledOut has all pods replaced, or none yet.
func rolledOut(all bool) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Generation++
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, ReadyReplicas: 1}
		if all {
			d.Status.UpdatedReplicas = 1
		}
	}
}

// leads is where the Service leads, and whom the policy lets in by which ports.
func (w world) leads(t *testing.T) (port int32, target string, open []int32) {
	t.Helper()
	require.NoError(t, w.turn(t))
	service, policy := &corev1.Service{}, &networkingv1.NetworkPolicy{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo-service"}, service))
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo-network-policy"}, policy))
	for _, p := range policy.Spec.Ingress[0].Ports {
		open = append(open, p.Port.IntVal)
	}
	return service.Spec.Ports[0].Port, service.Spec.Ports[0].TargetPort.String(), open
}

func protected(t *testing.T) world {
	t.Helper()
	// A fake client does not apply policies.
	w := newWorld(t, interceptor.Funcs{Apply: func(ctx context.Context, to client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		wanted := object.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
		if wanted["kind"] != "NetworkPolicy" {
			return to.Apply(ctx, object, options...)
		}
		policy := &networkingv1.NetworkPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(wanted, policy); err != nil {
			return err
		}
		policy.UID = ""
		if err := to.Delete(ctx, policy); client.IgnoreNotFound(err) != nil {
			return err
		}
		return to.Create(ctx, policy)
	}})
	require.NoError(t, w.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: settingsName}, Data: map[string]string{entryFlags: "enableNetworkPolicy: {enabled: true}"},
	}))
	return w
}

// While a change of the port is rolled out, pods of before and new ones are both reached.
func TestAChangeOfThePortReachesAllPods(t *testing.T) {
	w := protected(t)
	port, target, open := w.leads(t)
	assert.Equal(t, []any{int32(8321), "http", []int32{8321}}, []any{port, target, open})
	w.deployment(t, rolledOut(true))

	w.object.Spec.Networking = &v1alpha2.Networking{Port: 9000}
	require.NoError(t, w.Update(t.Context(), w.object))
	for _, turn := range []string{"when it is written", "and before anything is replaced"} {
		port, target, open = w.leads(t)
		assert.Equal(t, []any{int32(9000), "http", []int32{9000, 8321}}, []any{port, target, open}, turn)
		w.deployment(t, rolledOut(false))
	}
	w.deployment(t, rolledOut(true))
	_, _, open = w.leads(t)
	assert.Equal(t, []int32{9000}, open, "nothing stays open")
}

// Pods that an earlier version made have no name for their port. The Service leads to the number until
// they are replaced.
func TestPodsWhosePortHasNoNameAreReached(t *testing.T) {
	w := protected(t)
	_, _, _ = w.leads(t)
	w.deployment(t, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Ports[0].Name = ""
		d.Annotations[annotationApplied] = "earlier"
		rolledOut(true)(d)
	})
	service := &corev1.Service{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo-service"}, service))
	service.Spec.Ports[0].TargetPort.Type, service.Spec.Ports[0].TargetPort.IntVal = 0, 8321
	service.Annotations[annotationApplied] = "earlier"
	require.NoError(t, w.Update(t.Context(), service))

	for _, turn := range []string{"when the Deployment is written", "and before anything is replaced"} {
		_, target, _ := w.leads(t)
		assert.Equal(t, "8321", target, turn)
		w.deployment(t, rolledOut(false))
	}
	w.deployment(t, rolledOut(true))
	for range 2 {
		_, target, _ := w.leads(t)
		assert.Equal(t, "http", target)
		w.deployment(t, rolledOut(false))
	}
}
