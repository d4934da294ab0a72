package capacity

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

func TestNamesOfAccelerators(t *testing.T) {
	configMap := func(namespace, name, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"our-card": value}}
	}
	const system, own = "workload-variant-autoscaler-system", "workload-variant-autoscaler-accelerator-names"
	release := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: "blue", Labels: map[string]string{"app.kubernetes.io/name": "workload-variant-autoscaler", "app.kubernetes.io/component": "manager"}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "manager", Args: []string{"--accelerator-names-config-map-name=blue-accelerator-names"},
		}}}}},
	}
	// pretender is a tenant's Deployment that looks like a manager.
	pretender := release.DeepCopy()
	pretender.Namespace = "evil"
	resource := schema.GroupResource{Resource: "configmaps"}
	for _, c := range []struct {
		name    string
		there   []client.Object
		refuse  error
		from    types.NamespacedName
		want    capacity.Accelerator
		warning string
		err     string
	}{
		{"the manager's", []client.Object{configMap(system, own, "H100")}, nil, types.NamespacedName{}, "H100", "", ""},
		{"the manager's in another namespace", []client.Object{configMap(system, own, "H100"), configMap("prod", own, "L4")}, nil, types.NamespacedName{Namespace: "prod"}, "L4", "", ""},
		{"another one", []client.Object{configMap(system, own, "H100"), configMap("a", "b", "L4")}, nil, types.NamespacedName{Namespace: "a", Name: "b"}, "L4", "", ""},
		{"the manager's is absent", nil, nil, types.NamespacedName{}, "OUR-CARD", "is not there, so accelerators have the names that are built in (no manager is installed", ""},
		{"that of a release", []client.Object{release, configMap("serving", "blue-accelerator-names", "L4"), configMap(system, own, "H100")}, nil, types.NamespacedName{}, "L4", "", ""},
		{"that of one of two", []client.Object{release, pretender, configMap("evil", "blue-accelerator-names", "L4"), configMap(system, own, "H100")}, nil, types.NamespacedName{}, "H100",
			"names of accelerators are those of ConfigMap workload-variant-autoscaler-system/workload-variant-autoscaler-accelerator-names (2 Deployments say that they are a manager (evil/blue, serving/blue): name", ""},
		{"another one is absent", []client.Object{configMap(system, own, "H100")}, nil, types.NamespacedName{Namespace: "a", Name: "b"}, "", "", "reading the names of accelerators in ConfigMap a/b: "},
		{"the manager's may not be read", []client.Object{configMap(system, own, "H100")}, apierrors.NewForbidden(resource, own, nil), types.NamespacedName{}, "OUR-CARD",
			"ConfigMap workload-variant-autoscaler-system/workload-variant-autoscaler-accelerator-names may not be read", ""},
		{"another one may not be read", []client.Object{configMap("a", "b", "L4")}, apierrors.NewForbidden(resource, "b", nil), types.NamespacedName{Namespace: "a", Name: "b"}, "", "", "forbidden"},
		{"no answer", nil, errors.New("connection refused"), types.NamespacedName{}, "", "", "no answer from the cluster"},
		{"the manager's is wrong", []client.Object{configMap(system, own, "//")}, nil, types.NamespacedName{}, "OUR-CARD", `does not count: reading the overrides of accelerator names: "our-card"`, ""},
		{"another one is wrong", []client.Object{configMap("a", "b", "//")}, nil, types.NamespacedName{Namespace: "a", Name: "b"}, "", "", `in ConfigMap a/b: reading the overrides of accelerator names: "our-card"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(c.there...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, below client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if c.refuse != nil {
						return c.refuse
					}
					return below.Get(ctx, key, object, options...)
				},
			}).Build()
			seen := &facts{names: &inventory.Names{}}
			err := seen.readNames(t.Context(), api, c.from)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, seen.names.Of("our-card").Short)
			assert.Empty(t, seen.notes)
			if c.warning == "" {
				assert.Empty(t, seen.warnings)
				return
			}
			require.Len(t, seen.warnings, 1)
			assert.Contains(t, seen.warnings[0], c.warning)
			assert.Equal(t, seen.warnings, seen.served().Notes, "who replays the cluster is told too")
		})
	}
}

func TestTheConfigMapOfTheFlag(t *testing.T) {
	for text, want := range map[string]types.NamespacedName{"": {}, "a/b": {Namespace: "a", Name: "b"}} {
		got, err := parseNames(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"a", "/b", "a/", "/"} {
		_, err := parseNames(text)
		require.ErrorContains(t, err, "NAMESPACE/NAME", text)
	}
}
