package installation

import (
	"strings"
	"testing"
	"time"

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

// runs is a pod of the manager in a namespace that has run since then.
func runs(namespace string, since time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager-x", Labels: labels},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "sidecar", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}},
		}},
	}
}

// with changes the container of a manager.
func with(d *appsv1.Deployment, change func(c *corev1.Container)) *appsv1.Deployment {
	change(&d.Spec.Template.Spec.Containers[1])
	return d
}

// A mode is told where it is sure, and never guessed.
func TestTheModeOfTheManager(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	late := configMap("a", settingsName, nil)
	late.CreationTimestamp = metav1.NewTime(noon.Add(time.Minute))
	waits := runs("a", noon)
	waits.Status.ContainerStatuses = nil
	hybrid := map[string]string{"config.yaml": "EXPERIMENTAL_PROACTIVE_MODEL: true\n"}
	capacityOnly := map[string]string{"config.yaml": "EXPERIMENTAL_PROACTIVE_MODEL: false\n"}
	// decided is an object that was decided about, of a model in that service class.
	decided := func(class string) *v1alpha1.VariantAutoscaling {
		v := object("chat", "blue", "SaturationOnlyMode")
		v.Status.ServiceClass, v.Status.Decision = class, &v1alpha1.Decision{}
		return v
	}
	resting := manager("b", prometheusFlag, "--experimental-proactive-model")
	resting.Spec.Replicas = new(int32)
	for name, c := range map[string]struct {
		forbidden string
		objects   []client.Object
		of        *v1alpha1.VariantAutoscaling
		want      Mode
		note      string
	}{
		"by the ConfigMap":     {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, hybrid), runs("a", noon)}, object("chat", "blue", ""), Hybrid, ""},
		"by default":           {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, nil), runs("a", noon)}, object("chat", "blue", ""), Hybrid, ""},
		"it has an SLO":        {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, nil), runs("a", noon)}, decided("Premium"), Hybrid, ""},
		"it has none":          {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, nil), runs("a", noon)}, decided(""), CapacityOnly, ""},
		"turned off":           {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, capacityOnly), runs("a", noon)}, decided("Premium"), CapacityOnly, ""},
		"saturation alone":     {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, hybrid), runs("a", noon)}, object("chat", "blue", "SaturationOnlyMode"), Hybrid, ""},
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
			}), configMap("a", settingsName, nil), runs("a", noon)},
			object("chat", "blue", ""), "", "comes from a ConfigMap or a Secret",
		},
		"all variables from elsewhere": {
			"",
			[]client.Object{with(manager("a", prometheusFlag), func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{}} }), configMap("a", settingsName, nil), runs("a", noon)},
			object("chat", "blue", ""), "", "comes from a ConfigMap or a Secret",
		},
		"changed after the start":                    {"", []client.Object{manager("a", prometheusFlag), late, runs("a", noon)}, object("chat", "blue", ""), "", "was changed after the manager started"},
		"changed after the start, and a flag counts": {"", []client.Object{manager("a", prometheusFlag, "--experimental-proactive-model"), late, runs("a", noon)}, object("chat", "blue", ""), Hybrid, ""},
		"it does not run":                            {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, nil), waits}, object("chat", "blue", ""), "", "no pod of manager a/manager runs"},
		"no manager":                                 {"", nil, object("chat", "blue", ""), "", "no Deployment of a manager was found in any namespace"},
		"none may be looked for":                     {"list", nil, object("chat", "blue", ""), "", "the Deployment of the manager cannot be looked for"},
		"settings that are wrong":                    {"", []client.Object{manager("a", prometheusFlag, "--global-opt-interval=soon"), configMap("a", settingsName, nil), runs("a", noon)}, object("chat", "blue", ""), "", "the settings of manager a/manager: "},
		"the decision shows it":                      {"list", nil, object("chat", "blue", "SaturationSafetyOverride"), Hybrid, "the Deployment of the manager cannot be looked for"},
		"the manager of another object":              {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, hybrid), runs("a", noon)}, object("chat", "red", ""), "", ""},
		"two managers, one mode":                     {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, capacityOnly), manager("b", prometheusFlag), configMap("b", settingsName, capacityOnly), runs("a", noon), runs("b", noon)}, object("chat", "blue", ""), CapacityOnly, "managers a/manager and b/manager handle the same objects"},
		"two managers, two modes":                    {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, hybrid), manager("b", prometheusFlag), configMap("b", settingsName, capacityOnly), runs("a", noon), runs("b", noon)}, object("chat", "blue", ""), "", "managers a/manager and b/manager handle the same objects"},
		"two managers of two namespaces":             {"", []client.Object{manager("a", prometheusFlag, "--watch-namespace=chat"), configMap("a", settingsName, hybrid), manager("b", prometheusFlag, "--watch-namespace=b"), configMap("b", settingsName, nil), runs("a", noon), runs("b", noon)}, object("chat", "blue", ""), Hybrid, ""},
		"one of them has no pods":                    {"", []client.Object{manager("a", prometheusFlag), configMap("a", settingsName, capacityOnly), runs("a", noon), resting}, object("chat", "blue", ""), CapacityOnly, ""},
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

// An instance that no manager is decides about nothing, and nobody would say so.
func TestInstancesThatNobodyRuns(t *testing.T) {
	t.Parallel()
	instance := func(name string) *appsv1.Deployment {
		return with(manager(name, prometheusFlag), func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "CONTROLLER_INSTANCE", Value: name})
		})
	}
	var objects []v1alpha1.VariantAutoscaling
	for namespace, label := range map[string]string{"chat": "a", "batch": "gone", "web": "gone", "shop": "gone", "test": "gone", "free": ""} {
		objects = append(objects, *object(namespace, label, ""))
	}
	for name, c := range map[string]struct {
		namespace string
		managers  []client.Object
		want      []string
	}{
		"two managers":                 {"", []client.Object{instance("a"), instance("b")}, []string{`no manager is controller instance "gone", so nobody decides about batch/a, shop/a, test/a and 1 more: correct the label wva.llmd.ai/controller-instance, or the manager's CONTROLLER_INSTANCE`}},
		"it runs":                      {"", []client.Object{instance("a"), instance("gone")}, nil},
		"only some managers are known": {"a", []client.Object{instance("a")}, nil},
		"no manager is there":          {"", nil, nil},
		"that of one is in a Secret": {"", []client.Object{instance("a"), with(manager("b", prometheusFlag), func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "CONTROLLER_INSTANCE", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "instance"}}})
		})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modes, _ := FindModes(t.Context(), cluster(t, "", c.managers...), c.namespace)
			assert.Equal(t, c.want, modes.Orphans(objects))
		})
	}
}

func TestWhenAConfigMapWasChanged(t *testing.T) {
	t.Parallel()
	noon := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	later := metav1.NewTime(noon.Add(time.Hour))
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: noon}}
	assert.Equal(t, noon.Time, changed(data))
	data.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &later}, {Time: &noon}, {}}
	assert.Equal(t, later.Time, changed(data))
}
