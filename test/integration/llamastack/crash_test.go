package llamastack_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

func clientKey(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

// claims says whether the operator claims the replicas of a Deployment.
func claims(d *appsv1.Deployment) bool {
	for _, entry := range d.ManagedFields {
		if entry.Manager == "llama-stack-operator" && strings.Contains(entry.FieldsV1.GetRawString(), `"f:replicas"`) {
			return true
		}
	}
	return false
}

// forms are what an object of the test below may ask for.
var forms = []string{
	"distribution: {name: starter}",
	"distribution: {name: starter}\nworkload: {replicas: 2}",
	"distribution: {name: starter}\ndisabled: [eval]\nnetworking: {port: 9000, expose: true}",
	"distribution: {name: remote-vllm}\nproviders: {inference: {provider: ollama, endpoint: 'http://o/v1'}}\nresources: {models: [m]}",
	"distribution: {name: starter}\nworkload: {replicas: 0, podDisruptionBudget: {minAvailable: 1}}",
	"distribution: {name: starter}\nstorage: {kv: {type: redis, endpoint: 'redis://r'}}\nworkload: {workers: 2}",
	"distribution: {image: 'mine/stack:1'}\nworkload: {autoscaling: {maxReplicas: 3}}",
}

// An operator that is killed again and again while objects change leaves the same
// children in the end as one that only ever saw the last form. Nothing is asked of the
// webhooks while nobody serves them: the edits wait.
func TestAKilledOperatorConverges(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	namespace, twin := space(t), space(t)
	const objects, rounds = 3, 6
	last := map[string]string{}
	for i := range objects {
		name := fmt.Sprint("demo-", i)
		last[name] = forms[chance.IntN(len(forms))]
		create(t, hub(t, namespace, name, last[name]))
	}
	for range rounds {
		for name := range last {
			last[name] = forms[chance.IntN(len(forms))]
			object := &v1alpha2.LlamaStackDistribution{ObjectMeta: named(namespace, name)}
			edit(t, object, func(o *v1alpha2.LlamaStackDistribution) {
				o.Spec = v1alpha2.LlamaStackDistributionSpec{}
				require.NoError(t, yaml.UnmarshalStrict([]byte(last[name]), &o.Spec))
			})
		}
		require.NoError(t, cluster.Kill("manager"))
		require.NoError(t, cluster.Restart(t.Context(), "manager"))
	}
	for name, form := range last {
		create(t, hub(t, twin, name, form))
	}
	for name := range last {
		for _, in := range []string{namespace, twin} {
			comes(t, &v1alpha2.LlamaStackDistribution{ObjectMeta: named(in, name)}, "its children", func(o *v1alpha2.LlamaStackDistribution) bool {
				c := conditionOf(o, "DeploymentUpdated")
				return c.Reason == "DeploymentUpdateSucceeded" && c.ObservedGeneration == o.Generation
			})
		}
	}
	assert.Equal(t, withoutVolumes(children(t, twin, false)), withoutVolumes(children(t, namespace, false)))
}

// withoutVolumes leaves out what stays because of the data in it, and what an autoscaler
// took over.
func withoutVolumes(all map[string]any) map[string]any {
	for name, spec := range all {
		if strings.Contains(name, "PersistentVolumeClaim") {
			delete(all, name)
		}
		if fields, ok := spec.(map[string]any); ok && strings.Contains(name, "Deployment") {
			if metrics := all["*v2.HorizontalPodAutoscaler "+strings.TrimPrefix(name, "*v1.Deployment ")+"-hpa"]; metrics != nil {
				delete(fields, "replicas")
			}
		}
	}
	return all
}
