package installation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const (
	prometheusFlag = "--prometheus-base-url=https://p"
	settingsName   = "workload-variant-autoscaler-variantautoscaling-config"
)

// object is one of the instance that the managers of these tests have, with the reason of
// its condition OptimizationReady.
func object(namespace, instance, reason string) *v1alpha1.VariantAutoscaling {
	v := &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	if instance != "" {
		v.Labels = map[string]string{v1alpha1.LabelControllerInstance: instance}
	}
	if reason != "" {
		v.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOptimizationReady, Status: metav1.ConditionTrue, Reason: reason}}
	}
	return v
}

// with changes the container of a manager.
func with(d *appsv1.Deployment, change func(c *corev1.Container)) *appsv1.Deployment {
	change(&d.Spec.Template.Spec.Containers[1])
	return d
}

// A mode is told where it is sure, and never guessed.
func TestTheModeOfTheManager(t *testing.T) {
	t.Parallel()
	hybrid := map[string]string{"config.yaml": "EXPERIMENTAL_PROACTIVE_MODEL: true\n"}
	resting := manager("b", prometheusFlag, "--experimental-proactive-model")
	resting.Spec.Replicas = new(int32)
	for name, c := range map[string]struct {
		forbidden string
		objects   []client.Object
		of        *v1alpha1.VariantAutoscaling
		want      Mode
		note      string
	}{
		"by the ConfigMap":     {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, hybrid)}, object("chat", "blue", ""), Hybrid, ""},
		"by default":           {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, nil)}, object("chat", "blue", ""), CapacityOnly, ""},
		"saturation alone":     {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, hybrid)}, object("chat", "blue", "SaturationOnlyMode"), Hybrid, ""},
		"the ConfigMap is not": {"", []client.Object{manager("a", prometheusFlag)}, object("chat", "blue", ""), "", "ConfigMap a/" + settingsName + " could not be read"},
		"by a variable, without the ConfigMap": {
			"get",
			[]client.Object{with(manager("a", prometheusFlag), func(c *corev1.Container) {
				c.Env = append(c.Env, corev1.EnvVar{Name: modeSetting, Value: "true"})
			})},
			object("chat", "blue", ""), Hybrid, "",
		},
		"a variable from elsewhere": {
			"",
			[]client.Object{with(manager("a", prometheusFlag), func(c *corev1.Container) {
				c.Env = append(c.Env, corev1.EnvVar{Name: modeSetting, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "x"}}})
			}), configMap("a", settingsName, nil)},
			object("chat", "blue", ""), "", "comes from a ConfigMap or a Secret",
		},
		"all variables from elsewhere": {
			"",
			[]client.Object{with(manager("a", prometheusFlag), func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{}} }), configMap("a", settingsName, nil)},
			object("chat", "blue", ""), "", "comes from a ConfigMap or a Secret",
		},
		"no manager":                     {"", nil, object("chat", "blue", ""), "", "no Deployment of a manager was found in any namespace"},
		"none may be looked for":         {"list", nil, object("chat", "blue", ""), "", "the Deployment of the manager cannot be looked for"},
		"settings that are wrong":        {"", []client.Object{manager("a", prometheusFlag, "--global-opt-interval=soon"), configMap("a", settingsName, nil)}, object("chat", "blue", ""), "", "the settings of manager a/manager: "},
		"the decision shows it":          {"list", nil, object("chat", "blue", "SaturationSafetyOverride"), Hybrid, "the Deployment of the manager cannot be looked for"},
		"the manager of another object":  {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, hybrid)}, object("chat", "red", ""), "", ""},
		"two managers, one mode":         {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, nil), manager("b", prometheusFlag), configMap("b", settingsName, nil)}, object("chat", "blue", ""), CapacityOnly, ""},
		"two managers, two modes":        {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, hybrid), manager("b", prometheusFlag), configMap("b", settingsName, nil)}, object("chat", "blue", ""), "", ""},
		"two managers of two namespaces": {"", []client.Object{manager("a", prometheusFlag, "--watch-namespace=chat"), configMap("a", settingsName, hybrid), manager("b", prometheusFlag, "--watch-namespace=b"), configMap("b", settingsName, nil)}, object("chat", "blue", ""), Hybrid, ""},
		"one of them has no pods":        {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, nil), resting}, object("chat", "blue", ""), CapacityOnly, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modes, notes := FindModes(t.Context(), cluster(t, c.forbidden, c.objects...), "")
			assert.Equal(t, c.want, modes.Of(c.of), notes)
			if c.note == "" {
				assert.Empty(t, notes)
			} else {
				require.Len(t, notes, 1)
				assert.Contains(t, notes[0], c.note)
			}
		})
	}
	_, notes := FindModes(t.Context(), cluster(t, "", manager("a", prometheusFlag)), "elsewhere")
	assert.Equal(t, "no Deployment of a manager was found in namespace elsewhere", strings.Join(notes, ""))
}
