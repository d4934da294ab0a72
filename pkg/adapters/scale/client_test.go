package scale

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
)

var server = autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "server"}

// asked is an API server with one Deployment, of which each update first meets what is given.
func asked(t *testing.T, meets func(api *autoscalingv1.Scale, wanted int32) error) (*Client, *autoscalingv1.Scale) {
	t.Helper()
	stored := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: "models", Name: "server", UID: "uid", ResourceVersion: "1"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: 3},
	}
	scales := &fake.FakeScaleClient{}
	scales.AddReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, stored.DeepCopy(), nil })
	scales.AddReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		update, ok := action.(clienttesting.UpdateAction)
		require.True(t, ok)
		wanted, ok := update.GetObject().(*autoscalingv1.Scale)
		require.True(t, ok)
		if err := meets(stored, wanted.Spec.Replicas); err != nil {
			return true, nil, err
		}
		stored.Spec.Replicas, stored.ResourceVersion = wanted.Spec.Replicas, stored.ResourceVersion+"+"
		return true, stored.DeepCopy(), nil
	})
	return &Client{scales: scales, kinds: kindsOf(t)}, stored
}

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, "server", nil)
}

// An API server, or a proxy before it, may take a write and lose the answer. The client then
// tries once more, under a version that is gone by its own doing.
func TestAWriteThatArrivedIsNoConflictWithItself(t *testing.T) {
	first := true
	client, stored := asked(t, func(api *autoscalingv1.Scale, wanted int32) error {
		if !first {
			return nil
		}
		first = false
		api.Spec.Replicas, api.ResourceVersion = wanted, "2"
		return conflict()
	})
	read, err := client.Read(t.Context(), "models", server)
	require.NoError(t, err)
	written, err := client.Write(t.Context(), "models", server, read, 5)
	require.NoError(t, err)
	assert.EqualValues(t, 5, written.Spec.Replicas)
	assert.Equal(t, "2", written.ResourceVersion, "the scale is that of the target, which asks for them already")
	assert.EqualValues(t, 5, stored.Spec.Replicas)
}

func TestAConflictNamesWhatBecameOfTheTarget(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(api *autoscalingv1.Scale)
		want      string
	}{
		"somebody else wants another number": {func(api *autoscalingv1.Scale) { api.Spec.Replicas = 4 }, "somebody else changed its replicas from 3 to 4"},
		"another object asks for as many":    {func(api *autoscalingv1.Scale) { api.UID, api.Spec.Replicas = "other", 5 }, "it was deleted and created again"},
		"its status never rests":             {func(*autoscalingv1.Scale) {}, "it changes faster than it can be written"},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := asked(t, func(api *autoscalingv1.Scale, _ int32) error {
				c.meanwhile(api)
				return conflict()
			})
			read, err := client.Read(t.Context(), "models", server)
			require.NoError(t, err)
			_, err = client.Write(t.Context(), "models", server, read, 5)
			require.ErrorContains(t, err, "Deployment models/server: "+c.want)
			assert.True(t, apierrors.IsConflict(err))
		})
	}
}

// Gatekeeper and others refuse with the code of a missing permission. Whoever reads that one is
// missing adds it, and nothing changes.
func TestAPolicyThatRefusesIsNoMissingPermission(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	webhook := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden,
		Message: `admission webhook "validation.gatekeeper.sh" denied the request: [replica-limits] at most 4 replicas`,
	}}
	policy := apierrors.NewForbidden(resource, "server", errors.New(`ValidatingAdmissionPolicy 'limits' with binding 'all' denied request: at most 4 replicas`))
	right := apierrors.NewForbidden(resource, "server", errors.New(`User "manager" cannot update resource "deployments/scale" in API group "apps" in the namespace "models"`))
	for name, c := range map[string]struct {
		err       error
		forbidden bool
		want      string
	}{
		"a webhook":            {webhook, false, `Deployment models/server: the cluster's admission refuses to update its scale: admission webhook "validation.gatekeeper.sh" denied the request: [replica-limits] at most 4 replicas`},
		"a policy":             {policy, false, `Deployment models/server: the cluster's admission refuses to update its scale: deployments.apps "server" is forbidden: ValidatingAdmissionPolicy 'limits'`},
		"a missing permission": {right, true, `Deployment models/server: the permission to update deployments/scale in API group "apps" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := asked(t, func(*autoscalingv1.Scale, int32) error { return c.err })
			read, err := client.Read(t.Context(), "models", server)
			require.NoError(t, err)
			_, err = client.Write(t.Context(), "models", server, read, 5)
			require.ErrorContains(t, err, c.want)
			assert.Equal(t, c.forbidden, apierrors.IsForbidden(err))
		})
	}
}
