package llamastack_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/operator"
)

// settings changes the operator's ConfigMap for the test.
func settings(t *testing.T, data map[string]string) {
	t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: named(home, "llama-stack-operator-config")}
	comes(t, configMap, "the operator's settings", func(*corev1.ConfigMap) bool { return true })
	assert.Contains(t, configMap.Data["featureFlags"], "enableNetworkPolicy")
	before := configMap.Data
	edit(t, configMap, func(c *corev1.ConfigMap) { c.Data = data })
	t.Cleanup(func() {
		require.NoError(t, api.Get(context.Background(), clientKey(configMap), configMap))
		configMap.Data = before
		require.NoError(t, api.Update(context.Background(), configMap))
	})
}

// The settings of all servers take effect at once, and so does taking them back.
func TestSettingsOfTheOperator(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}\nnetworking: {allowedFrom: {namespaces: [monitoring]}}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	shipped := read(t, deploymentOf(object)).Spec.Template.Spec.Containers[0].Image
	policy := &networkingv1.NetworkPolicy{ObjectMeta: named(namespace, "demo-network-policy")}
	image := func(want string) {
		t.Helper()
		comes(t, deploymentOf(object), "the image "+want, func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == want })
	}
	configMap := &corev1.ConfigMap{ObjectMeta: named(home, "llama-stack-operator-config")}
	settings(t, map[string]string{"featureFlags": "enableNetworkPolicy: {enabled: true}", "image-overrides": "starter: mirror.example/starter:1\n"})
	image("mirror.example/starter:1")
	comes(t, policy, "a network policy", func(p *networkingv1.NetworkPolicy) bool { return len(p.Spec.Ingress[0].From) == 4 })
	edit(t, configMap, func(c *corev1.ConfigMap) {
		c.Data["featureFlags"] = "enableNetworkPolicy: {enabled: true"
		c.Data["image-overrides"] = "starter: 'not an image'\n"
	})
	reaches(t, object, v1alpha2.PhaseFailed)
	assert.Contains(t, conditionOf(object, "DeploymentUpdated").Message, "the Deployment stays as it is: the ConfigMap "+home+"/llama-stack-operator-config cannot be used")
	image("mirror.example/starter:1")
	read(t, policy)
	edit(t, configMap, func(c *corev1.ConfigMap) { c.Data["featureFlags"], c.Data["image-overrides"] = "", "" })
	image(shipped)
	goes(t, policy)
}

// The connection string of PostgreSQL is taken apart into a Secret of the server, and
// follows a change.
func TestState(t *testing.T) {
	namespace := space(t)
	create(t, &corev1.Secret{ObjectMeta: named(namespace, "db"), StringData: map[string]string{"url": "nonsense"}})
	object := hub(t, namespace, "demo", `
distribution: {name: starter}
storage:
  kv: {type: redis, endpoint: "redis://cache:6379"}
  sql: {type: postgres, connectionString: {secretKeyRef: {name: db, key: url}}}`)
	create(t, object)
	reaches(t, object, v1alpha2.PhaseFailed)
	assert.NotContains(t, conditionOf(object, "ConfigGenerated").Message, "nonsense")
	secret := &corev1.Secret{ObjectMeta: named(namespace, "db")}
	edit(t, secret, func(s *corev1.Secret) { s.Data["url"] = []byte("postgresql://llama:hush@pg.db.svc:5433/stack") })
	reaches(t, object, v1alpha2.PhaseReady)
	parts := read(t, &corev1.Secret{ObjectMeta: named(namespace, "demo-sql-postgres")})
	assert.Equal(t, map[string][]byte{"host": []byte("pg.db.svc"), "port": []byte("5433"), "db": []byte("stack"), "user": []byte("llama"), "password": []byte("hush")}, parts.Data)
	variables := environment(read(t, deploymentOf(object)))
	assert.Equal(t, "secret demo-sql-postgres/password", variables["LLSD_SQL_POSTGRES_PASSWORD"])
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) { o.Spec.Storage.SQL = nil })
	goes(t, parts)
}

// A volume makes the pods be replaced and not doubled, and stays when it is no longer
// asked for: there are data in it.
func TestVolume(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) { o.Spec.Workload.Storage = &v1alpha2.VolumeStorage{} })
	deployment := deploymentOf(object)
	comes(t, deployment, "the strategy Recreate", func(d *appsv1.Deployment) bool { return d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType })
	claim := read(t, &corev1.PersistentVolumeClaim{ObjectMeta: named(namespace, "demo-pvc")})
	assert.Equal(t, "10Gi", claim.Spec.Resources.Requests.Storage().String())
	comes(t, object, "an unbound volume", func(o *v1alpha2.LlamaStackDistribution) bool {
		return conditionOf(o, "StorageReady").Reason == "StorageFailed"
	})
	// Nobody provides volumes in this cluster.
	claim.Status.Phase = corev1.ClaimBound
	require.NoError(t, api.Status().Update(t.Context(), claim))
	comes(t, object, "a bound volume", func(o *v1alpha2.LlamaStackDistribution) bool {
		return conditionOf(o, "StorageReady").Reason == "StorageReady"
	})
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) { o.Spec.Workload.Storage = nil })
	comes(t, deployment, "the strategy RollingUpdate", func(d *appsv1.Deployment) bool {
		return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
	})
	assert.Empty(t, read(t, claim).DeletionTimestamp)
}

// Authorities and a configuration of another namespace, as only v1alpha1 can name them.
func TestConfigMapsOfAnotherNamespace(t *testing.T) {
	namespace, other := space(t), space(t)
	bundle := authority(t)
	create(t,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "ca", Annotations: map[string]string{operator.AnnotationAllowedNamespaces: "*"}},
			Data: map[string]string{"a.crt": bundle, "b.crt": authority(t)}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "config", Labels: map[string]string{"llamastack.io/watch": "true"}}, Data: map[string]string{"config.yaml": "version: 2\n"}})
	create(t, view(t, namespace, "demo", `
server:
  distribution: {name: starter}
  userConfig: {configMapName: config, configMapNamespace: `+other+`}
  tlsConfig: {caBundle: {configMapName: ca, configMapNamespace: `+other+`, configMapKeys: [a.crt]}}`))
	object := &v1alpha2.LlamaStackDistribution{ObjectMeta: named(namespace, "demo")}
	reaches(t, object, v1alpha2.PhaseFailed)
	assert.Contains(t, conditionOf(object, "ConfigMapsReadable").Message, "add the annotation llamastack.io/allowed-namespaces: "+namespace+" to it")
	edit(t, &corev1.ConfigMap{ObjectMeta: named(other, "config")}, func(c *corev1.ConfigMap) {
		c.Annotations = map[string]string{operator.AnnotationAllowedNamespaces: namespace}
	})
	reaches(t, object, v1alpha2.PhaseReady)
	assert.Equal(t, bundle, read(t, &corev1.ConfigMap{ObjectMeta: named(namespace, "demo-ca-bundle")}).Data["ca-bundle.crt"])
	assert.Equal(t, "/etc/ssl/certs/ca-bundle/ca-bundle.crt", environment(read(t, deploymentOf(object)))["SSL_CERT_FILE"])
	copied := &corev1.ConfigMap{ObjectMeta: named(namespace, "demo-user-config")}
	assert.Equal(t, "version: 2\n", read(t, copied).Data["config.yaml"])
	assert.Equal(t, "override", object.Status.ResolvedDistribution.ConfigSource)

	edit(t, &corev1.ConfigMap{ObjectMeta: named(other, "config")}, func(c *corev1.ConfigMap) { c.Data["config.yaml"] = "version: 1\n" })
	comes(t, copied, "the change", func(c *corev1.ConfigMap) bool { return c.Data["config.yaml"] == "version: 1\n" })
}

func TestAMissingConfigMapIsNamed(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}\noverrideConfig: {configMapName: mine}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseFailed)
	assert.Contains(t, conditionOf(object, "DeploymentReady").Message, "reading the ConfigMap "+namespace+"/mine of spec.overrideConfig")
}

// An autoscaler of the object's own gets the replicas as they are.
func TestReplicasAreHandedOver(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}\nworkload: {replicas: 3}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec.Workload.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 5}
	})
	generated(t, object)
	deployment := deploymentOf(object)
	comes(t, deployment, "no claim on the replicas", func(d *appsv1.Deployment) bool {
		return d.Annotations["llamastack.io/applied-hash"] != "" && !claims(d)
	})
	assert.EqualValues(t, 3, ptr.Deref(deployment.Spec.Replicas, 0), "they never fell")
}

// The autoscaler scales a server as any other target: its pods are those of the
// Deployment below it.
func TestTheAutoscalerScalesAServer(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	variant := &v1alpha1.VariantAutoscaling{ObjectMeta: named(namespace, "demo"), Spec: v1alpha1.VariantAutoscalingSpec{
		ModelID: "m", MinReplicas: ptr.To[int32](2),
		ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: "llamastack.io/v1alpha2", Kind: "LlamaStackDistribution", Name: "demo"},
	}}
	create(t, variant)
	comes(t, object, "two replicas", func(o *v1alpha2.LlamaStackDistribution) bool { return ptr.Deref(o.Spec.Workload.Replicas, 0) == 2 })
	comes(t, deploymentOf(object), "two replicas", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 })
	comes(t, variant, "its shape, from the pod template", func(v *v1alpha1.VariantAutoscaling) bool {
		return v.Status.CurrentAlloc != nil && ptr.Deref(v.Status.CurrentAlloc.NumReplicas, 0) == 2 && v.Status.Placement != nil
	})
}
