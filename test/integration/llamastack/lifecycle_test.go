package llamastack_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// A declared server: its pods run, its configuration is generated and replaced when the
// object changes, and what nobody wants any more goes.
func TestTheLifeOfADeclaredServer(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", `
distribution: {name: starter}
providers:
  inference: {provider: ollama, endpoint: "http://ollama.ollama-dist.svc:11434/v1"}
resources:
  models: [{name: "llama3.2:1b"}]
networking: {port: 8321, expose: {hostname: demo.example}}
workload: {replicas: 1, workers: 2}`)
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)

	first := object.Status.ConfigGeneration.ConfigMapName
	assert.EqualValues(t, 1, object.Status.ConfigGeneration.ProviderCount)
	assert.EqualValues(t, 1, object.Status.ConfigGeneration.ResourceCount)
	assert.Contains(t, object.Status.ResolvedDistribution.Image, "/distribution-starter:")
	assert.Equal(t, "embedded", object.Status.ResolvedDistribution.ConfigSource)
	assert.Equal(t, "app=llama-stack,app.kubernetes.io/instance=demo", object.Status.Selector)
	assert.Equal(t, "http://demo-service."+namespace+".svc.cluster.local:8321", object.Status.ServiceURL)
	assert.Equal(t, "http://demo.example", ptr.Deref(object.Status.RouteURL, ""))
	assert.Equal(t, "starter", object.Status.DistributionConfig.ActiveDistribution)

	configMap := read(t, &corev1.ConfigMap{ObjectMeta: named(namespace, first)})
	assert.Contains(t, configMap.Data["config.yaml"], "http://ollama.ollama-dist.svc:11434/v1")
	assert.Equal(t, "generated-config", configMap.Labels["app.kubernetes.io/component"])
	deployment := read(t, deploymentOf(object))
	variables := environment(deployment)
	assert.Equal(t, "/etc/llama-stack/config.yaml", variables["RUN_CONFIG_PATH"])
	assert.Equal(t, "2", variables["LLS_WORKERS"])
	service := read(t, &corev1.Service{ObjectMeta: named(namespace, "demo-service")})
	assert.EqualValues(t, 8321, service.Spec.Ports[0].Port)
	ingress := read(t, &networkingv1.Ingress{ObjectMeta: named(namespace, "demo-ingress")})
	assert.Equal(t, "demo.example", ingress.Spec.Rules[0].Host)

	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec.Providers.Inference = &apiextensions.JSON{Raw: []byte(`{"provider":"ollama","endpoint":"http://other/v1"}`)}
		o.Spec.Networking.Expose = nil
	})
	reaches(t, object, v1alpha2.PhaseReady)
	assert.NotEqual(t, first, object.Status.ConfigGeneration.ConfigMapName)
	assert.Nil(t, object.Status.RouteURL)
	goes(t, ingress)

	require.NoError(t, api.Delete(t.Context(), object))
	goes(t, object)
	goes(t, deployment)
	goes(t, service)
	goes(t, configMap)
}

// What somebody else changes of a child is put right; what is somebody else's is left
// alone, and nothing is written while nothing changes.
func TestDriftIsRevertedAndNothingElseIsTouched(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	assert.Nil(t, object.Status.ConfigGeneration, "the configuration in the image counts")
	assert.Equal(t, "distribution-default", object.Status.ResolvedDistribution.ConfigSource)

	deployment := deploymentOf(object)
	edit(t, deployment, func(d *deploymentType) {
		d.Spec.Replicas = ptr.To[int32](3)
		d.Annotations["mine"] = "stays"
	})
	comes(t, deployment, "one replica again", func(d *deploymentType) bool { return *d.Spec.Replicas == 1 })
	assert.Equal(t, "stays", deployment.Annotations["mine"])

	service := &corev1.Service{ObjectMeta: named(namespace, "demo-service")}
	require.NoError(t, api.Delete(t.Context(), read(t, service)))
	comes(t, service, "the Service again", func(*corev1.Service) bool { return true })
	reaches(t, object, v1alpha2.PhaseReady)
	// Kubernetes writes the status until the two pods are gone.
	comes(t, deployment, "one replica in its status", func(d *deploymentType) bool {
		return d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == 1 && d.Status.AvailableReplicas == 1 && ptr.Deref(d.Status.TerminatingReplicas, 0) == 0
	})

	before := versions(t, namespace)
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) { o.Labels = map[string]string{"some": "label"} })
	nothingChanges(t, namespace, before)
}

func TestAChildOfSomebodyElseIsLeftAlone(t *testing.T) {
	namespace := space(t)
	foreign := &corev1.ConfigMap{ObjectMeta: named(namespace, "demo-service")}
	service := &corev1.Service{ObjectMeta: named(namespace, "demo-service"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	create(t, foreign, service)
	object := hub(t, namespace, "demo", "distribution: {name: starter}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseFailed)
	assert.Contains(t, conditionOf(object, "DeploymentReady").Message, "applying Service "+namespace+"/demo-service: it exists and does not belong to this LlamaStackDistribution")
	assert.EqualValues(t, 1, read(t, service).Spec.Ports[0].Port)
	require.NoError(t, api.Delete(t.Context(), service))
	reaches(t, object, v1alpha2.PhaseReady)
}

// An edit that cannot be run leaves the pods as they are.
func TestAnInvalidEditRestartsNothing(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}\nproviders: {inference: {provider: openai, apiKey: {name: key, key: token}}}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseFailed)
	assert.Equal(t, "SecretNotFound", conditionOf(object, "SecretsResolved").Reason)
	assert.Contains(t, conditionOf(object, "ConfigGenerated").Message, "the Secret "+namespace+"/key of spec.providers.inference.apiKey (variable LLSD_OPENAI_API_KEY) does not exist")
	goes(t, deploymentOf(object))

	secret := &corev1.Secret{ObjectMeta: named(namespace, "key"), StringData: map[string]string{"token": "hush-hush"}}
	create(t, secret)
	reaches(t, object, v1alpha2.PhaseReady)
	deployment := read(t, deploymentOf(object))
	assert.Equal(t, "secret key/token", environment(deployment)["LLSD_OPENAI_API_KEY"])
	configMap := read(t, &corev1.ConfigMap{ObjectMeta: named(namespace, object.Status.ConfigGeneration.ConfigMapName)})
	assert.Contains(t, configMap.Data["config.yaml"], "${env.LLSD_OPENAI_API_KEY}")
	assert.NotContains(t, configMap.Data["config.yaml"], "hush")

	generation := deployment.Generation
	edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec.Resources = &v1alpha2.Resources{Models: []apiextensions.JSON{{Raw: []byte(`"m"`)}}}
		o.Spec.Providers.Inference = &apiextensions.JSON{Raw: []byte(`{"provider":"openai","apiKey":{"name":"other","key":"token"}}`)}
	})
	reaches(t, object, v1alpha2.PhaseFailed)
	assert.Equal(t, "DeploymentUpdateSkipped", conditionOf(object, "DeploymentUpdated").Reason)
	assert.Equal(t, generation, read(t, deployment).Generation)
}

func TestOldConfigurationsAreDeletedInTheirNamespaceAlone(t *testing.T) {
	mine, other := space(t), space(t)
	object, twin := hub(t, mine, "demo", "distribution: {name: starter}\ndisabled: [eval]"), hub(t, other, "demo", "distribution: {name: starter}\ndisabled: [eval]")
	create(t, object, twin)
	reaches(t, twin, v1alpha2.PhaseReady)
	for _, api := range []v1alpha2.API{"batches", "scoring", "datasetio", "files"} {
		edit(t, object, func(o *v1alpha2.LlamaStackDistribution) { o.Spec.Disabled = []v1alpha2.API{api} })
		reaches(t, object, v1alpha2.PhaseReady)
	}
	comesTo(t, mine, 2)
	comesTo(t, other, 1)
	names := configurations(t, mine)
	assert.Contains(t, strings.Join(names, " "), object.Status.ConfigGeneration.ConfigMapName)
}
