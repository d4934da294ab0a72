package llamastack_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// The status has what a running server says of itself, without its secrets, and the
// versions of both.
func TestWhatAServerSaysOfItself(t *testing.T) {
	vllm := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(vllm.Close)
	namespace := space(t)
	create(t, &corev1.Secret{ObjectMeta: named(namespace, "auth"), StringData: map[string]string{"token": "hush-hush"}})
	object := hub(t, namespace, "demo", `
distribution: {name: starter}
providers:
  inference:
  - {id: near, provider: vllm, endpoint: "`+vllm.URL+`/v1", apiKey: {name: auth, key: token}}
  - {id: gone, provider: vllm, endpoint: "http://127.0.0.1:1/v1"}
resources: {models: [{name: m, provider: near}]}`)
	create(t, object)
	comes(t, object, "the server's providers", func(o *v1alpha2.LlamaStackDistribution) bool {
		return conditionOf(o, "HealthCheck").Reason == "HealthCheckPassed"
	})
	health := map[string]string{}
	for _, p := range object.Status.DistributionConfig.Providers {
		assert.Contains(t, []string{"OK", "Error", "Not Implemented"}, p.Health.Status)
		health[p.API+" "+p.ProviderID] = p.Health.Status
	}
	assert.Equal(t, "OK", health["inference near"])
	assert.Equal(t, "Error", health["inference gone"])
	assert.Equal(t, "Not Implemented", health["inference sentence-transformers"], "the base's own are still there")
	assert.Equal(t, "0.5.0", object.Status.Version.LlamaStackServerVersion)
	assert.NotEmpty(t, object.Status.Version.OperatorVersion)
	text, err := json.Marshal(object.Status)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hush")

	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) { o.Spec.Workload.Replicas = ptr.To[int32](0) })
	comes(t, object, "nobody to ask", func(o *v1alpha2.LlamaStackDistribution) bool {
		return o.Status.Phase == v1alpha2.PhaseReady && o.Status.AvailableReplicas == 0 && len(o.Status.DistributionConfig.Providers) == 0
	})
	assert.Equal(t, "Deployment not ready", conditionOf(object, "HealthCheck").Message)
}

// Every kind of child is made, belongs to the object, and goes when it is no longer asked
// for. What is in a volume stays.
func TestEveryChild(t *testing.T) {
	namespace, bundle := space(t), authority(t)
	settings(t, map[string]string{"featureFlags": "enableNetworkPolicy: {enabled: true}"})
	create(t, &corev1.ConfigMap{ObjectMeta: named(namespace, "ca"), Data: map[string]string{"ca-bundle.crt": bundle}},
		&corev1.ServiceAccount{ObjectMeta: named(namespace, "mine")})
	object := hub(t, namespace, "demo", `
distribution: {name: starter}
disabled: [eval]
networking: {port: 9000, expose: true, tls: {caBundle: {configMapName: ca}}}
workload:
  replicas: 2
  workers: 2
  storage: {size: 5Gi, mountPath: /data}
  autoscaling: {minReplicas: 1, maxReplicas: 4, targetMemoryUtilizationPercentage: 70}
  overrides: {serviceAccountName: mine, env: [{name: A, value: b}]}`)
	create(t, object)
	reachesChildren(t, object)

	children := map[string]client.Object{
		"Service": &corev1.Service{}, "ServiceAccount": &corev1.ServiceAccount{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaim{},
		"HorizontalPodAutoscaler": &autoscalingv2.HorizontalPodAutoscaler{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
		"NetworkPolicy": &networkingv1.NetworkPolicy{}, "Ingress": &networkingv1.Ingress{}, "bundle": &corev1.ConfigMap{}, "configuration": &corev1.ConfigMap{},
	}
	names := map[string]string{
		"Service": "demo-service", "ServiceAccount": "demo-sa", "PersistentVolumeClaim": "demo-pvc", "HorizontalPodAutoscaler": "demo-hpa", "PodDisruptionBudget": "demo-pdb",
		"NetworkPolicy": "demo-network-policy", "Ingress": "demo-ingress", "bundle": "demo-ca-bundle", "configuration": object.Status.ConfigGeneration.ConfigMapName,
	}
	for kind, child := range children {
		child.SetNamespace(namespace)
		child.SetName(names[kind])
		read(t, child)
		assert.True(t, metav1.IsControlledBy(child, object), kind)
		assert.Equal(t, "llama-stack-operator", child.GetLabels()["app.kubernetes.io/managed-by"], kind)
	}
	assert.EqualValues(t, 9000, children["Service"].(*corev1.Service).Spec.Ports[0].Port)
	assert.Equal(t, resource.MustParse("5Gi"), children["PersistentVolumeClaim"].(*corev1.PersistentVolumeClaim).Spec.Resources.Requests["storage"])
	scaler := children["HorizontalPodAutoscaler"].(*autoscalingv2.HorizontalPodAutoscaler).Spec
	assert.EqualValues(t, 2, *scaler.MinReplicas, "never below the replicas of the object")
	assert.Equal(t, corev1.ResourceMemory, scaler.Metrics[0].Resource.Name)
	deployment := read(t, deploymentOf(object))
	assert.True(t, metav1.IsControlledBy(deployment, object))
	pod := deployment.Spec.Template.Spec
	assert.Equal(t, "mine", pod.ServiceAccountName)
	assert.Equal(t, "2", pod.Containers[0].Resources.Limits.Cpu().String(), "one core for each worker")
	mounted := map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounted[m.Name] = m.MountPath
	}
	assert.Equal(t, map[string]string{"lls-storage": "/data", "ca-bundle": "/etc/ssl/certs/ca-bundle", "user-config": "/etc/llama-stack/"}, mounted)
	assert.Equal(t, "b", environment(deployment)["A"])

	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec = v1alpha2.LlamaStackDistributionSpec{Distribution: o.Spec.Distribution}
	})
	for _, kind := range []string{"HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress", "bundle"} {
		goes(t, children[kind])
	}
	assert.Nil(t, read(t, children["PersistentVolumeClaim"]).GetDeletionTimestamp())

	require.NoError(t, api.Delete(t.Context(), object))
	for _, kind := range []string{"Service", "ServiceAccount", "NetworkPolicy", "configuration"} {
		goes(t, children[kind])
	}
	goes(t, deployment)
	comesTo(t, namespace, 0)
	noPods(t, namespace)
}

// reachesChildren waits until the operator has written the children of the object as it is.
func reachesChildren(t *testing.T, object *v1alpha2.LlamaStackDistribution) {
	t.Helper()
	comes(t, object, "its children", func(o *v1alpha2.LlamaStackDistribution) bool {
		c := conditionOf(o, "DeploymentUpdated")
		return c.Reason == "DeploymentUpdateSucceeded" && c.ObservedGeneration == o.Generation
	})
}

// What a platform puts into the cluster counts for every server: authorities that it
// trusts, and the role by which a pod runs as the user of its image.
func TestWhatAPlatformBrings(t *testing.T) {
	namespace, bundle := space(t), authority(t)
	settings(t, map[string]string{"featureFlags": "grantAnyUID: {enabled: true}"})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:openshift:scc:anyuid"}}
	trusted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "odh-trusted-ca-bundle", Labels: map[string]string{"llamastack.io/watch": "true"}},
		Data:       map[string]string{"a.crt": bundle, "b.crt": "no certificate", "c.crt": " "},
	}
	create(t, role, trusted)
	t.Cleanup(func() { _ = api.Delete(context.Background(), role) })
	object := hub(t, namespace, "demo", "distribution: {name: starter}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	authorities := &corev1.ConfigMap{ObjectMeta: named(namespace, "demo-ca-bundle")}
	assert.Equal(t, bundle, read(t, authorities).Data["ca-bundle.crt"], "what cannot be read is left out")
	binding := &rbacv1.RoleBinding{ObjectMeta: named(namespace, "demo-rb")}
	assert.Equal(t, role.Name, read(t, binding).RoleRef.Name)
	assert.Equal(t, "demo-sa", binding.Subjects[0].Name)

	require.NoError(t, api.Delete(t.Context(), role))
	require.NoError(t, api.Delete(t.Context(), trusted))
	goes(t, authorities)
	goes(t, binding)
	assert.NotContains(t, environment(read(t, deploymentOf(object))), "SSL_CERT_FILE")
}

// A server with a volume is rolled out with the volume: the old pod goes first, and the new
// one starts on another node where the old node takes none.
func TestARolloutWithAVolume(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}\nworkload: {storage: {}}")
	create(t, object)
	provide(t, namespace, "demo-pvc")
	reaches(t, object, v1alpha2.PhaseReady)
	comes(t, object, "a bound volume", func(o *v1alpha2.LlamaStackDistribution) bool {
		return conditionOf(o, "StorageReady").Reason == "StorageReady"
	})

	first := podsOf(t, namespace)
	require.Len(t, first, 1)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: first[0].Spec.NodeName}}
	edit(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	defer edit(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec.Workload.Overrides = &v1alpha2.Overrides{Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}
	})
	comes(t, deploymentOf(object), "the change", func(d *deploymentType) bool { return environment(d)["A"] == "b" })
	reaches(t, object, v1alpha2.PhaseReady)
	second := podsOf(t, namespace)
	require.Len(t, second, 1)
	assert.NotEqual(t, first[0].UID, second[0].UID)
	assert.NotEqual(t, node.Name, second[0].Spec.NodeName)
}

// provide binds a volume to a claim, as nobody else does in this cluster.
func provide(t *testing.T, namespace, name string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named(namespace, name)}
	comes(t, claim, "the claim", func(*corev1.PersistentVolumeClaim) bool { return true })
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
		},
	}
	create(t, volume)
	t.Cleanup(func() { require.NoError(t, api.Delete(context.Background(), volume)) })
	edit(t, claim, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName = volume.Name
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	})
	claim.Status.Phase = corev1.ClaimBound
	require.NoError(t, api.Status().Update(t.Context(), claim))
}

// podsOf are the pods in a namespace that do not end.
func podsOf(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, api.List(t.Context(), &list, client.InNamespace(namespace)))
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

func noPods(t *testing.T, namespace string) {
	t.Helper()
	settled(t, "no pods", func() (string, bool) {
		var names []string
		for _, pod := range podsOf(t, namespace) {
			names = append(names, pod.Name)
		}
		return strings.Join(names, " "), len(names) == 0
	})
}
