package adopt

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A ScaledObject that is held is said, because its replicas say nothing of the load, and to let it run
// again is not the way to go on.
func TestAScaledObjectThatIsHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotations string
		want        []string
	}{
		"not at all":           {`{}`, nil},
		"no longer":            {`{autoscaling.keda.sh/paused: "false", autoscaling.keda.sh/paused-scale-in: "false"}`, nil},
		"where it is":          {`{autoscaling.keda.sh/paused: "true"}`, []string{"ScaledObject k is held by its annotation autoscaling.keda.sh/paused: nothing scales the Deployment", "leave the annotation on, and delete it in the last step"}},
		"by what is no answer": {`{autoscaling.keda.sh/paused: "since Monday"}`, []string{"nothing scales the Deployment"}},
		"at a number":          {`{autoscaling.keda.sh/paused-replicas: "3", autoscaling.keda.sh/paused: "false"}`, []string{"autoscaling.keda.sh/paused-replicas: it keeps the Deployment at 3 replicas", "With actuation Metric take the annotation away"}},
		"on the way down":      {`{autoscaling.keda.sh/paused-scale-in: "true"}`, []string{"it removes no replicas", "set spec.behavior.scaleDown.selectPolicy to Disabled"}},
		"on both ways":         {`{autoscaling.keda.sh/paused-scale-in: "true", autoscaling.keda.sh/paused-scale-out: "true"}`, []string{"it removes no replicas", "it adds no replicas", "set spec.behavior.scaleUp.selectPolicy to Disabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{Object: map[string]any{}}
			require.NoError(t, yaml.Unmarshal([]byte(`{metadata: {name: k, annotations: `+c.annotations+`}, spec: {scaleTargetRef: {name: llama}, maxReplicaCount: 4}}`), &object.Object))
			_, a, err := ofScaledObject(object)
			require.NoError(t, err)
			text, notes := written(t, deploymentOf(t, deployment), []Autoscaler{a}, wishes{prices: pricesOf(t, "H100")})
			assert.Contains(t, text, "maxReplicas: 4", "its bounds count in any case")
			if c.want == nil {
				assert.Empty(t, notes)
			}
			for _, want := range c.want {
				assert.Contains(t, notes, want)
			}
		})
	}
}

// What becomes of the replicas when a ScaledObject is deleted, and when nothing is asked, does not show in its
// bounds.
func TestWhatAScaledObjectDoesBesideItsBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spec, want string }{
		"nothing":               {`{scaleTargetRef: {name: llama}, minReplicaCount: 1, idleReplicaCount: 1, advanced: {restoreToOriginalReplicaCount: false}}`, ""},
		"it sets them back":     {`{scaleTargetRef: {name: llama}, advanced: {restoreToOriginalReplicaCount: true}}`, "set it to false before you delete it"},
		"it goes lower at rest": {`{scaleTargetRef: {name: llama}, minReplicaCount: 2, idleReplicaCount: 0}`, "to 0, while nothing is asked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{Object: map[string]any{}}
			require.NoError(t, yaml.Unmarshal([]byte(`{metadata: {name: k}, spec: `+c.spec+`}`), &object.Object))
			_, a, err := ofScaledObject(object)
			require.NoError(t, err)
			_, notes := written(t, deploymentOf(t, deployment), []Autoscaler{a}, wishes{prices: pricesOf(t, "H100")})
			if c.want == "" {
				assert.Empty(t, notes)
			} else {
				assert.Contains(t, notes, c.want)
			}
		})
	}
}
