package installation

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// manager is the Deployment of a manager with these arguments.
func manager(namespace string, arguments ...string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager", Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "sidecar", Args: []string{"--controller-instance=wrong"}},
			{Name: container, Args: arguments, Env: []corev1.EnvVar{
				{Name: "CONTROLLER_INSTANCE", Value: "blue"},
				{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
			}},
		}}}},
	}
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func cluster(t *testing.T, forbidden string, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	// The fake client writes to what it is given, and tests that run at once share objects.
	copies := make([]client.Object, len(objects))
	for i, o := range objects {
		copies[i] = o.DeepCopyObject().(client.Object)
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(copies...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if forbidden == "list" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", nil)
			}
			return c.List(ctx, list, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if forbidden == "get" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, nil)
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}

// The settings count as the manager has them: flags, then the environment, then its ConfigMap,
// whatever the release calls it.
func TestTheSettingsOfARelease(t *testing.T) {
	t.Parallel()
	api := cluster(t, "",
		manager("b", "--leader-elect", "--config-map-name=rel-config", "--accelerator-names-config-map-name=rel-names", "--accelerator-cost-config-map-name=rel-costs"),
		configMap("b", "rel-config", map[string]string{"config.yaml": "PROMETHEUS_BASE_URL: https://prom.monitoring.svc:9090\nCONTROLLER_INSTANCE: red\n"}),
		configMap("b", "rel-names", map[string]string{"OUR-CARD": "H100"}),
		configMap("b", "rel-costs", map[string]string{"H100": `{"cost": "3"}`}),
	)
	m, err := Find(t.Context(), api, "")
	require.NoError(t, err)
	assert.Empty(t, m.Notes)
	assert.Equal(t, "https://prom.monitoring.svc:9090", m.Config.Prometheus.BaseURL)
	assert.Equal(t, "blue", m.Config.ControllerInstance, "the environment before the ConfigMap")
	assert.Equal(t, types.NamespacedName{Namespace: "b", Name: "rel-names"}, m.AcceleratorNames())
	names, notes := m.Names(t.Context(), api)
	assert.Empty(t, notes)
	assert.EqualValues(t, "H100", names.Of("OUR-CARD").Short)

	object := &v1alpha1.VariantAutoscaling{}
	two := int32(2)
	object.Status.Placement = &v1alpha1.Placement{Shape: &v1alpha1.Shape{Accelerator: "H100", Devices: &two}}
	cost, notes, err := m.Cost(t.Context(), api, object)
	require.NoError(t, err)
	assert.Empty(t, notes)
	assert.InDelta(t, 6, *cost, 0)
	object.Spec.VariantCost = "4.5"
	cost, _, err = m.Cost(t.Context(), api, object)
	require.NoError(t, err)
	assert.InDelta(t, 4.5, *cost, 0)
	object.Spec.VariantCost = "dear"
	_, _, err = m.Cost(t.Context(), api, object)
	require.ErrorContains(t, err, "variantCost")
}

func TestOfSeveralManagers(t *testing.T) {
	t.Parallel()
	address := "--prometheus-base-url=https://p"
	api := cluster(t, "", manager("b", address), manager("a", address), configMap("a", "workload-variant-autoscaler-variantautoscaling-config", nil))
	_, err := Find(t.Context(), api, "")
	require.ErrorContains(t, err, "2 Deployments say that they are a manager (a/manager, b/manager): name the namespace of yours with --manager-namespace")
	m, err := Find(t.Context(), api, "b")
	require.NoError(t, err)
	assert.Equal(t, "b", m.Namespace)
	assert.Contains(t, strings.Join(m.Notes, "\n"), "ConfigMap b/workload-variant-autoscaler-variantautoscaling-config could not be read")
}

func TestManagersThatHandleTheSameObjects(t *testing.T) {
	t.Parallel()
	const address, same = "--prometheus-base-url=https://p", "managers a/manager and b/manager handle the same objects"
	resting := manager("b", address)
	resting.Spec.Replicas = new(int32)
	for name, c := range map[string]struct {
		a, b *appsv1.Deployment
		same bool
	}{
		"both everywhere":               {manager("a", address), manager("b", address), true},
		"one everywhere":                {manager("a", address, "--watch-namespace=$(POD_NAMESPACE)"), manager("b", address), true},
		"each in its own namespace":     {manager("a", address, "--watch-namespace=$(POD_NAMESPACE)"), manager("b", address, "--watch-namespace=$(POD_NAMESPACE)"), false},
		"each with an instance":         {manager("a", address, "--controller-instance=red"), manager("b", address), false},
		"one of them has no pods":       {manager("a", address), resting, false},
		"one whose settings are broken": {manager("a", address), manager("b", address, "--global-opt-interval=soon"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := cluster(t, "", c.a, c.b)
			_, err := Find(t.Context(), api, "")
			require.ErrorContains(t, err, "2 Deployments say that they are a manager")
			assert.Equal(t, c.same, strings.Contains(err.Error(), same), err)
			_, notes := FindModes(t.Context(), api, "")
			assert.Equal(t, c.same, strings.Contains(strings.Join(notes, "\n"), same), notes)
		})
	}
}

// What is not found is said, and the published names count.
func TestWithoutAManager(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ forbidden, namespace, note string }{
		"none":                  {"", "", "no manager is installed, in no namespace"},
		"none in the namespace": {"", "here", "no manager is installed, not in namespace here"},
		"nothing may be listed": {"list", "", "the Deployment of the manager may not be looked for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Find(t.Context(), cluster(t, c.forbidden), c.namespace)
			require.NoError(t, err)
			require.Len(t, m.Notes, 1)
			assert.Contains(t, m.Notes[0], c.note)
			assert.Equal(t, "workload-variant-autoscaler-accelerator-names", m.AcceleratorNames().Name)
			assert.Empty(t, m.Config.Prometheus.BaseURL)
		})
	}
}

func TestWhatMayNotBeRead(t *testing.T) {
	t.Parallel()
	api := cluster(t, "get", manager("a", "--prometheus-base-url=https://p"))
	m, err := Find(t.Context(), api, "")
	require.NoError(t, err)
	assert.Contains(t, m.Notes[0], "could not be read")
	_, notes := m.Names(t.Context(), api)
	assert.Contains(t, notes[0], "the names of accelerators in ConfigMap a/workload-variant-autoscaler-accelerator-names do not count")
	_, notes, err = m.Cost(t.Context(), api, &v1alpha1.VariantAutoscaling{})
	require.NoError(t, err)
	assert.Contains(t, notes[0], "the prices in ConfigMap")
}

func TestSettingsThatAreWrong(t *testing.T) {
	t.Parallel()
	api := cluster(t, "", manager("a", "--prometheus-base-url=https://p", "--global-opt-interval=soon"), configMap("a", "workload-variant-autoscaler-variantautoscaling-config", map[string]string{}))
	_, err := Find(t.Context(), api, "")
	require.ErrorContains(t, err, "the settings of manager a/manager: ")
}
