package operator

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
)

// world is an operator of one object demo, whose client may be made to fail.
type world struct {
	*operator
	client.Client
	object *v1alpha2.LlamaStackDistribution
}

func newWorld(t *testing.T, failing interceptor.Funcs) world {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha2.AddToScheme(scheme))
	object := &v1alpha2.LlamaStackDistribution{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", UID: "1"}}
	object.Spec.Distribution.Name = "starter"
	all := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).WithStatusSubresource(object, &appsv1.Deployment{}).Build()
	// A fake client writes what is only tried.
	all = interceptor.NewClient(all, interceptor.Funcs{Apply: func(ctx context.Context, to client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		if tried := (&client.ApplyOptions{}).ApplyOptions(options); len(tried.DryRun) > 0 {
			return nil
		}
		return to.Apply(ctx, object, options...)
	}})
	o := &operator{
		Options: Options{Server: silence{}, Clock: still{time.Unix(1, 0)}, Version: "v1", Namespace: "home"},
		cached:  all, api: interceptor.NewClient(all, failing), recorder: events.NewFakeRecorder(100),
	}
	return world{o, all, object}
}

// silence is a server that has nothing to say.
type silence struct{}

func (silence) Look(context.Context, string) Answer { return Answer{} }

func (w world) turn(t *testing.T) error {
	t.Helper()
	_, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.object)})
	require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(w.object), w.object))
	return err
}

// noManager has nothing but what a cache is made with.
type noManager struct{ manager.Manager }

func (noManager) GetHTTPClient() *http.Client       { return nil }
func (noManager) GetScheme() *runtime.Scheme        { return nil }
func (noManager) GetRESTMapper() apimeta.RESTMapper { return nil }

// An operator of one namespace also follows its own settings, which are beside it.
func TestWhatIsFollowed(t *testing.T) {
	namespaces := func(only string) map[string]cache.Config {
		for kind, by := range cacheOptions(noManager{}, only, "home").ByObject {
			if _, ok := kind.(*corev1.ConfigMap); ok {
				return by.Namespaces
			}
		}
		return nil
	}
	assert.Empty(t, namespaces(""), "all of them")
	assert.Equal(t, map[string]cache.Config{"mine": {}, "home": {}}, namespaces("mine"))

	w := newWorld(t, interceptor.Funcs{})
	w.WatchNamespace = "mine"
	require.NoError(t, w.turn(t))
	assert.Empty(t, w.object.Status.Phase, "a server of another namespace is not worked on")
}

// What an admission webhook or the API server writes in another way is applied each time and
// the same again: nothing was updated, and no event says so.
func TestAnApplyThatChangesNothing(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	require.NoError(t, w.turn(t))
	require.Len(t, w.recorder.(*events.FakeRecorder).Events, 1)
	assert.Contains(t, <-w.recorder.(*events.FakeRecorder).Events, "DeploymentUpdated")
	deployment := &appsv1.Deployment{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(w.object), deployment))
	deployment.Spec.Template.Spec.Containers[0].Image = "mirror.example/starter:1"
	require.NoError(t, w.Update(t.Context(), deployment))
	version, applied := deployment.ResourceVersion, 0
	w.api = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
		applied++
		object.(interface{ SetResourceVersion(string) }).SetResourceVersion(version)
		return nil
	}})
	require.NoError(t, w.turn(t))
	assert.Equal(t, 2, applied, "tried, and then written")
	assert.Empty(t, w.recorder.(*events.FakeRecorder).Events)
}

// Of a thousand objects the API server is asked for no child that the cache would have.
func TestATurnAsksForNoChildThatIsNotWanted(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	require.NoError(t, w.turn(t))
	var asked []string
	w.api = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		asked = append(asked, fmt.Sprintf("%T %s", object, key.Name))
		return to.Get(ctx, key, object, options...)
	}})
	require.NoError(t, w.turn(t))
	assert.Equal(t, []string{
		"*v1.ConfigMap llama-stack-operator-config", "*v1.ConfigMap odh-trusted-ca-bundle",
		"*v1.Secret demo-sql-postgres", "*v1.RoleBinding demo-rb",
	}, asked)
}

// A thousand servers that do not answer are waited for, five seconds each. Who edits an
// object does not wait behind them.
func TestAnEditGoesBeforeALook(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.object)})
	require.NoError(t, err)
	assert.Equal(t, soon, result.RequeueAfter)
	require.NotNil(t, result.Priority)
	assert.Negative(t, *result.Priority, "an event has 0")
}

// A server that runs has not failed because the API server could not answer for a moment.
func TestAnErrorThatPasses(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, c := range map[string]struct {
		err   error
		phase v1alpha2.Phase
	}{
		"a conflict":       {apierrors.NewConflict(deployments, "demo", nil), ""},
		"too many at once": {apierrors.NewTooManyRequests("later", 1), ""},
		"a time-out":       {apierrors.NewServerTimeout(deployments, "patch", 1), ""},
		"not a right":      {apierrors.NewForbidden(deployments, "demo", nil), v1alpha2.PhaseFailed},
		"an admission":     {apierrors.NewInternalError(assert.AnError), v1alpha2.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			failing := true
			w := newWorld(t, interceptor.Funcs{Apply: func(ctx context.Context, to client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				if failing {
					return c.err
				}
				return to.Apply(ctx, object, options...)
			}})
			require.ErrorIs(t, w.turn(t), c.err)
			assert.Equal(t, c.phase, w.object.Status.Phase)
			failing = false
			require.NoError(t, w.turn(t))
			assert.Equal(t, v1alpha2.PhaseInitializing, w.object.Status.Phase)
		})
	}
}

// Pods read the values of a Secret when they start. What else changes about it is no reason to start them
// anew.
func TestWhichChangeOfASecretStartsPodsAnew(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.object.Spec.Providers = &v1alpha2.Providers{Inference: &apiextensions.JSON{Raw: []byte(`{"provider":"openai","apiKey":{"name":"key","key":"token"}}`)}}
	require.NoError(t, w.Update(t.Context(), w.object))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "key", UID: "one"}, Data: map[string][]byte{"token": []byte("hush"), "other": []byte("a")}}
	require.NoError(t, w.Create(t.Context(), secret))
	annotations := func() map[string]string {
		require.NoError(t, w.turn(t))
		deployment := &appsv1.Deployment{}
		require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(w.object), deployment))
		return deployment.Spec.Template.Annotations
	}
	first := annotations()
	require.NotEmpty(t, first["secret.hash/environment"])

	secret.Labels = map[string]string{"team": "blue"}
	secret.Annotations = map[string]string{"rotated-by": "nobody"}
	secret.Data["other"] = []byte("b")
	require.NoError(t, w.Update(t.Context(), secret))
	assert.Equal(t, first, annotations(), "labels, annotations and an entry that no pod reads")

	secret.Data["token"] = []byte("quiet")
	require.NoError(t, w.Update(t.Context(), secret))
	second := annotations()
	assert.NotEqual(t, first, second, "the entry that they read")
	secret.Data["token"] = []byte("hush")
	require.NoError(t, w.Update(t.Context(), secret))
	assert.Equal(t, first, annotations(), "and back")
	assert.NotEqual(t, fingerprint(secret, "token"), fingerprint(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key", UID: "two"}, Data: secret.Data}, "token"),
		"who does not know the UID cannot try values")
}

// Values of v1alpha1 that the schema of v1alpha2 refuses are run as far as Kubernetes takes them.
func TestValuesOfV1alpha1AreRun(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.object.Annotations = map[string]string{v1alpha2.PrefixV1alpha1 + "rejected": `{"autoscaling":{"maxReplicas":3,"targetCPUUtilizationPercentage":150},"podDisruptionBudget":{}}`}
	require.NoError(t, w.Update(t.Context(), w.object))
	require.NoError(t, w.turn(t))
	scaler, budget := &autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo-hpa"}, scaler))
	assert.EqualValues(t, 150, *scaler.Spec.Metrics[0].Resource.Target.AverageUtilization)
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo-pdb"}, budget))
	assert.Equal(t, 1, budget.Spec.MaxUnavailable.IntValue())
}

// Whoever may create an object may run pods by the account of its server, so that the right to be
// any user is given only where somebody chose it for the cluster.
func TestAnyUserIsASetting(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	require.NoError(t, w.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: child.AnyUID}}))
	key := client.ObjectKey{Namespace: "ns", Name: "demo-rb"}
	require.NoError(t, w.turn(t))
	require.True(t, apierrors.IsNotFound(w.Get(t.Context(), key, &rbacv1.RoleBinding{})))

	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: settingsName}, Data: map[string]string{entryFlags: "grantAnyUID: {enabled: true}"}}
	require.NoError(t, w.Create(t.Context(), settings))
	require.NoError(t, w.turn(t))
	binding := &rbacv1.RoleBinding{}
	require.NoError(t, w.Get(t.Context(), key, binding))
	assert.Equal(t, child.AnyUID, binding.RoleRef.Name)

	settings.Data[entryFlags] = ""
	require.NoError(t, w.Update(t.Context(), settings))
	require.NoError(t, w.turn(t))
	assert.True(t, apierrors.IsNotFound(w.Get(t.Context(), key, &rbacv1.RoleBinding{})))
}
