package manager_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/scale"
)

var serverRef = autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "server"}

func scaler(t *testing.T, config *rest.Config) *scale.Client {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	require.NoError(t, err)
	client, err := scale.New(config, mapper)
	require.NoError(t, err)
	return client
}

func TestAScaleIsWrittenUnderTheVersionThatWasRead(t *testing.T) {
	scales := scaler(t, cluster.Config())
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
