package manager_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/scale"
)

var serverRef = autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "server"}

// asManager has the rights of the manager and no others.
func asManager(t *testing.T) *rest.Config {
	t.Helper()
	kubeconfig, err := cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	return config
}

func scaler(t *testing.T, config *rest.Config) *scale.Client {
	t.Helper()
	client, err := scale.New(config)
	require.NoError(t, err)
	return client
}

func TestAScaleIsWrittenUnderTheVersionThatWasRead(t *testing.T) {
	scales := scaler(t, asManager(t))
	cases := []struct {
		name string
		// meanwhile happens between the read and the write.
		meanwhile func(t *testing.T, namespace string)
		conflict  string
		want      int32
	}{
		{"nothing happens meanwhile", func(*testing.T, string) {}, "", 2},
		{"the template changes meanwhile", func(t *testing.T, namespace string) {
			t.Helper()
			change(t, namespace, `{"spec":{"paused":true}}`)
		}, "", 2},
		{"somebody else scales meanwhile", func(t *testing.T, namespace string) {
			t.Helper()
			change(t, namespace, `{"spec":{"replicas":5}}`)
		}, "somebody else changed its replicas from 0 to 5", 5},
		{"it is created anew meanwhile", func(t *testing.T, namespace string) {
			t.Helper()
			remove(t, deployment(namespace, "server", 0))
			create(t, deployment(namespace, "server", 0))
		}, "it was deleted and created again", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			namespace := space(t)
			create(t, deployment(namespace, "server", 0))
			before, err := scales.Read(t.Context(), namespace, serverRef)
			require.NoError(t, err)
			c.meanwhile(t, namespace)
			after, err := scales.Write(t.Context(), namespace, serverRef, before, 2)
			if c.conflict == "" {
				require.NoError(t, err)
				assert.EqualValues(t, 2, after.Spec.Replicas)
				assert.NotEqual(t, before.ResourceVersion, after.ResourceVersion)
			} else {
				var conflict *scale.ConflictError
				require.ErrorAs(t, err, &conflict)
				assert.True(t, apierrors.IsConflict(err))
				assert.Contains(t, err.Error(), "Deployment "+namespace+"/server: "+c.conflict)
			}
			assert.Equal(t, c.want, *read(t, deployment(namespace, "server", 0)).Spec.Replicas)
		})
	}
}

// What only moved otherwise is read again and written, whatever kind it is of.
func TestAScaleIsReadAgainWhereItsObjectChanged(t *testing.T) {
	scales := scaler(t, asManager(t))
	labels := map[string]string{"app": "server"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	for kind, made := range map[string]func(meta metav1.ObjectMeta) client.Object{
		"StatefulSet": func(meta metav1.ObjectMeta) client.Object {
			return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0), Selector: selector, Template: template}}
		},
		"ReplicaSet": func(meta metav1.ObjectMeta) client.Object {
			return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Selector: selector, Template: template}}
		},
		"LeaderWorkerSet": nil,
	} {
		t.Run(kind, func(t *testing.T) {
			namespace := space(t)
			ref := autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: kind, Name: "server"}
			var object client.Object
			if made != nil {
				object = made(metav1.ObjectMeta{Namespace: namespace, Name: "server"})
				create(t, object)
			} else {
				ref.APIVersion = "leaderworkerset.x-k8s.io/v1"
				object = custom(t, ref.APIVersion, kind, namespace, "hpaPodSelector", 0, nil)
			}
			before, err := scales.Read(t.Context(), namespace, ref)
			require.NoError(t, err)
			require.NoError(t, api.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"moved":"yes"}}}`))))
			after, err := scales.Write(t.Context(), namespace, ref, before, 2)
			require.NoError(t, err)
			assert.EqualValues(t, 2, after.Spec.Replicas)
		})
	}
}

func change(t *testing.T, namespace, patch string) {
	t.Helper()
	require.NoError(t, api.Patch(t.Context(), deployment(namespace, "server", 0), client.RawPatch(types.MergePatchType, []byte(patch))))
}

func TestErrorsOfScalesAreToldApart(t *testing.T) {
	namespace := space(t)
	_, err := scaler(t, cluster.Config()).Read(t.Context(), namespace, serverRef)
	var missing *scale.NotFoundError
	require.ErrorAs(t, err, &missing)
	assert.True(t, apierrors.IsNotFound(err))

	// Somebody who may do nothing at all.
	nobody := cluster.Config()
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}
	_, err = scaler(t, nobody).Read(t.Context(), namespace, serverRef)
	var forbidden *scale.ForbiddenError
	require.ErrorAs(t, err, &forbidden)
	assert.True(t, apierrors.IsForbidden(err))
	rule := forbidden.MissingRule()
	assert.Equal(t, []string{"apps", "deployments/scale", "get"}, []string{rule.APIGroups[0], rule.Resources[0], rule.Verbs[0]})

	for _, ref := range []autoscalingv1.CrossVersionObjectReference{
		{APIVersion: "v1", Kind: "Node", Name: "cpu"},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "x"},
		{APIVersion: "no.such/v1", Kind: "Group", Name: "x"},
	} {
		_, err := scaler(t, cluster.Config()).Read(t.Context(), namespace, ref)
		var unscalable *scale.NotScalableError
		assert.ErrorAs(t, err, &unscalable, ref.Kind)
	}
}
