package llamastack_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// A server whose answer is another one every time is not asked again because of what it
// said: each question makes it ask all its providers.
func TestAServerThatNeverSaysTheSameIsNotAskedForEver(t *testing.T) {
	var asked atomic.Int64
	// The message of a connection that is reset names the port at this end.
	vllm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		connection, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) && assert.NoError(t, connection.(*net.TCPConn).SetLinger(0)) {
			assert.NoError(t, connection.Close())
		}
	}))
	t.Cleanup(vllm.Close)
	object := hub(t, space(t), "demo", "distribution: {name: starter}\nproviders: {inference: {provider: vllm, endpoint: '"+vllm.URL+"/v1'}}")
	create(t, object)
	comes(t, object, "the server's providers", func(o *v1alpha2.LlamaStackDistribution) bool {
		return conditionOf(o, "HealthCheck").Reason == "HealthCheckPassed"
	})
	conditiontest.Throughout(t, quiet, "it is asked a few times", func() (string, bool) {
		const few = 5 // while it starts, once for each thing that happens to it
		n := asked.Load()
		return fmt.Sprint(n, " times"), n <= few
	})
}

// An autoscaler does nothing for a Deployment without pods.
func TestAutoscalingWakesAServerOfNoReplicas(t *testing.T) {
	object := hub(t, space(t), "demo", "distribution: {name: starter}\nworkload: {replicas: 0}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec.Workload.Replicas = ptr.To[int32](1)
		o.Spec.Workload.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 3}
	})
	comes(t, deploymentOf(object), "a replica, which the operator leaves to the autoscaler", func(d *appsv1.Deployment) bool {
		return *d.Spec.Replicas == 1 && !claims(d)
	})
}

// What somebody adds to a list that is the operator's as a whole is taken out again.
func TestARuleThatSomebodyAddsGoes(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}\nnetworking: {expose: {hostname: demo.example}}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	ingress := &networkingv1.Ingress{ObjectMeta: named(namespace, "demo-ingress")}
	edit(t, ingress, func(i *networkingv1.Ingress) {
		other := i.Spec.Rules[0].DeepCopy()
		other.Host = "other.example"
		i.Spec.Rules = append(i.Spec.Rules, *other)
	})
	comes(t, ingress, "its own rule alone", func(i *networkingv1.Ingress) bool { return len(i.Spec.Rules) == 1 })
}

// An edit that is refused does not hide what becomes of the pods.
func TestThePodsOfARefusedObjectAreCounted(t *testing.T) {
	object := hub(t, space(t), "demo", "distribution: {name: starter}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec.Providers = &v1alpha2.Providers{Inference: &apiextensions.JSON{Raw: []byte(`{"provider":"openai","apiKey":{"name":"gone","key":"token"}}`)}}
	})
	reaches(t, object, v1alpha2.PhaseFailed)
	edit(t, deploymentOf(object), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) })
	comes(t, object, "no pod", func(o *v1alpha2.LlamaStackDistribution) bool {
		return o.Status.Replicas == 0 && o.Status.AvailableReplicas == 0
	})
	assert.Equal(t, v1alpha2.PhaseFailed, object.Status.Phase)
	require.Contains(t, conditionOf(object, "DeploymentReady").Message, "does not exist", "why is still said")
}

// An edit whose pods the API server refuses changes nothing else: a Service that leads to
// the new port would lead to nobody.
func TestAnEditThatNoPodCanHaveChangesNothing(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec.Networking = &v1alpha2.Networking{Port: 9000}
		o.Spec.Workload.Overrides = &v1alpha2.Overrides{ServiceAccountName: "no name"}
	})
	reaches(t, object, v1alpha2.PhaseFailed)
	assert.Contains(t, conditionOf(object, "DeploymentUpdated").Message, "serviceAccountName")
	assert.EqualValues(t, 8321, read(t, &corev1.Service{ObjectMeta: named(namespace, "demo-service")}).Spec.Ports[0].Port)
}

// While a change of the port is rolled out, the Service leads to the port that each pod listens on. The
// addresses of these pods are those of a loopback, which no EndpointSlice may have, so that the test
// looks up the name as the EndpointSlice controller does.
func TestAChangeOfThePortLosesNoPod(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec.Networking = &v1alpha2.Networking{Port: 9000}
		// The new pod fits on no node, so that the one of before goes on.
		o.Spec.Workload.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10k")}}
	})
	service := &corev1.Service{ObjectMeta: named(namespace, "demo-service")}
	comes(t, service, "the new port", func(s *corev1.Service) bool { return s.Spec.Ports[0].Port == 9000 })
	comes(t, deploymentOf(object), "a pod that does not start", func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.UnavailableReplicas == 1
	})
	require.Equal(t, "http", service.Spec.Ports[0].TargetPort.StrVal)
	pods := &corev1.PodList{}
	require.NoError(t, api.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels(read(t, service).Spec.Selector)))
	var ports []int32
	for _, pod := range pods.Items {
		for _, port := range pod.Spec.Containers[0].Ports {
			if port.Name == service.Spec.Ports[0].TargetPort.StrVal {
				ports = append(ports, port.ContainerPort)
			}
		}
	}
	assert.ElementsMatch(t, []int32{8321, 9000}, ports)
}
