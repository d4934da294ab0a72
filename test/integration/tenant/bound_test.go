package tenant_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// managerIsBounded uses the manager's own token, as whoever took over its process could: a pod keeps its
// image, and a Deployment its template. What a policy refuses must have been known to the API server.
func managerIsBounded(t *testing.T, w *world) {
	kubeconfig, err := w.cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	as, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	manager, err := client.New(as, client.Options{Scheme: w.api.Scheme()})
	require.NoError(t, err)
	pods := &corev1.PodList{}
	require.NoError(t, w.api.List(t.Context(), pods, client.InNamespace(victim)))
	patched := func(object client.Object, patch string) error {
		return manager.Patch(t.Context(), object, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	}
	pod := func() *corev1.Pod { return pods.Items[0].DeepCopy() }
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"an image of a pod":        {patched(pod(), `{"spec":{"containers":[{"name":"server","image":"evil"}]}}`), "may not change the spec"},
		"labels of a pod":          {patched(pod(), `{"metadata":{"labels":{"app":"other"}}}`), "may not change the labels"},
		"an annotation of a pod":   {patched(pod(), `{"metadata":{"annotations":{"sidecar.istio.io/inject":"true"}}}`), "may only write its own two annotations"},
		"an image of a Deployment": {patched(deployment(victim, "busy", 1), `{"spec":{"template":{"spec":{"containers":[{"name":"server","image":"evil"}]}}}}`), "cannot patch resource"},
		"the spec of an object":    {patched(variant(victim, "busy", "busy"), `{"spec":{"maxReplicas":1}}`), "cannot patch resource"},
		"a Secret":                 {manager.List(t.Context(), &corev1.SecretList{}, client.InNamespace(victim)), "cannot list resource"},
	} {
		require.True(t, apierrors.IsForbidden(c.err) || apierrors.IsInvalid(c.err), "%s: %v", name, c.err)
		assert.ErrorContains(t, c.err, c.says, name)
	}
	require.NoError(t, patched(pod(), `{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":null}}}`))
}

// longNumber gives a number that readers of objects would multiply out.
func longNumber(t *testing.T, w *world) {
	object := variant(theirs, "long", "long")
	object.Spec.Behavior = &v1alpha1.Behavior{ScaleUp: &v1alpha1.ScalingRules{Tolerance: new(resource.Quantity)}}
	raw := fmt.Sprintf(`{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{"name":"long","namespace":%q},
		"spec":{"modelID":"long","scaleTargetRef":{"name":"long"},"behavior":{"scaleUp":{"tolerance":"1e-999999999"}}}}`, theirs)
	err := w.tenant.Patch(t.Context(), object, client.RawPatch(types.ApplyYAMLPatchType, []byte(raw)), client.ForceOwnership, client.FieldOwner(attacker))
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
}

// strangers are full replicas of the tenant that name the victim's ReplicaSet as their owner. Kubernetes removes
// such pods after a while.
func strangers(t *testing.T, w *world, busy *v1alpha1.VariantAutoscaling) {
	var sets appsv1.ReplicaSetList
	require.NoError(t, w.api.List(t.Context(), &sets, client.InNamespace(victim), client.MatchingLabels{"app": busy.Name}))
	require.NotEmpty(t, sets.Items)
	for i := range 3 {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: fmt.Sprint("stranger-", i), Labels: map[string]string{"app": busy.Name}},
			Spec:       deployment(theirs, "stranger", 1).Spec.Template.Spec,
		}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&sets.Items[0], appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		pod.OwnerReferences[0].BlockOwnerDeletion = nil
		require.NoError(t, w.tenant.Create(t.Context(), pod))
		t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(w.tenant.Delete(context.Background(), pod))) })
		labels := fmt.Sprintf(`{engine="0",model_name=%q,namespace=%q,pod=%q,instance="stranger-%d"}`, busy.Spec.ModelID, theirs, pod.Name, i)
		w.shown.show("vllm:kv_cache_usage_perc"+labels, 1)
		w.shown.show("vllm:num_requests_waiting"+labels, 100)
	}
	t.Cleanup(func() { w.shown.forget("stranger-") })
	w.stays(t, busy.Name, 1)
	w.goesOn(t, busy)
}

// manyNames shows, from one pod, series with a name of a pod each. They count for that one pod.
func manyNames(t *testing.T, w *world, busy *v1alpha1.VariantAutoscaling) {
	for i := range 3000 {
		w.shown.show(fmt.Sprintf(`vllm:num_requests_running{engine="0",namespace=%q,pod="fake",pod_name="n%d",instance="fake"}`, theirs, i), 1)
	}
	t.Cleanup(func() { w.shown.forget(`pod="fake"`) })
	w.goesOn(t, busy)
}

// goesOn looks for a while whether a model is seen as it was.
func (w *world) goesOn(t *testing.T, v *v1alpha1.VariantAutoscaling) {
	t.Helper()
	conditiontest.Throughout(t, aWhile, "its metrics are found", func() (string, bool) {
		require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(v), v))
		for _, c := range v.Status.Conditions {
			if c.Type == v1alpha1.ConditionMetricsAvailable {
				return c.Message, c.Reason == "MetricsFound"
			}
		}
		return "no condition", false
	})
}

// tooMuch shows more than the manager reads of an answer. From the next reading on the tenant's own
// namespace is left out, and others are read, and woken.
func tooMuch(t *testing.T, w *world, busy *v1alpha1.VariantAutoscaling) {
	sleeper := w.model(t, "sleeper", 0, nil)
	w.shown.gateway(trusted, sleeper.Name, 0, 0)
	w.shows(t, sleeper, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetFound)
	own := variant(theirs, "own", "own")
	w.while(t, own, deployment(theirs, "own", 1))
	// The answers of a reading pass its limit together.
	whose := theirs
	w.crowd.namespace.Store(&whose)
	forget := func() { w.crowd.namespace.Store(nil) }
	t.Cleanup(forget)
	conditiontest.Eventually(t, 5*patience, "the namespace is left out", func() (string, bool) {
		text, err := os.ReadFile(filepath.Join(w.cluster.Logs(), "manager.log"))
		require.NoError(t, err)
		return "", strings.Contains(string(text), "left out for up to 10m0s: "+theirs)
	})
	forget()
	w.shown.gateway(trusted, sleeper.Name, 0, 1)
	conditiontest.Eventually(t, patience, "the model wakes", func() (string, bool) {
		n := w.replicas(t, sleeper.Name)
		return fmt.Sprint(n, " replicas"), n == 1
	})
	w.shown.gateway(trusted, sleeper.Name, 0, 0)
	w.goesOn(t, busy)
	w.shows(t, own, v1alpha1.ConditionMetricsAvailable, v1alpha1.ReasonPrometheusError)
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(busy), busy))
	for _, c := range busy.Status.Conditions {
		assert.NotContains(t, c.Message, theirs, "nobody is told of the other namespace")
	}
}

// endlessAnswer lets a pod of the tenant answer without end where the manager asks the pods themselves.
func endlessAnswer(t *testing.T, w *world) {
	of := func(namespace, name string) *v1alpha1.VariantAutoscaling {
		v := variant(namespace, name, name)
		v.Labels = map[string]string{v1alpha1.LabelControllerInstance: asking}
		return v
	}
	honest, endless := of(victim, "asked"), of(theirs, "endless")
	require.NoError(t, w.api.Create(t.Context(), deployment(victim, honest.Name, 1)))
	require.NoError(t, w.api.Create(t.Context(), honest))
	w.while(t, endless, deployment(theirs, endless.Name, 1))
	line := []byte(strings.Repeat("# a comment that says nothing\n", 1<<10))
	w.listens(t, endless, func(out io.Writer) {
		for {
			if _, err := out.Write(line); err != nil {
				return
			}
		}
	})
	w.listens(t, honest, func(out io.Writer) {
		_, _ = fmt.Fprintln(out, "vllm:kv_cache_usage_perc 0.02\nvllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:request_success_total 7")
	})
	w.shows(t, endless, v1alpha1.ConditionMetricsAvailable, "MetricsMissing")
	w.shows(t, honest, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
	w.goesOn(t, honest)
}

// listens waits for the pod of an object and serves its metrics.
func (w *world) listens(t *testing.T, v *v1alpha1.VariantAutoscaling, page func(io.Writer)) {
	t.Helper()
	address := ""
	conditiontest.Eventually(t, patience, "a pod with an address", func() (string, bool) {
		var pods corev1.PodList
		require.NoError(t, w.api.List(t.Context(), &pods, client.InNamespace(v.Namespace), client.MatchingLabels{"app": v.Name}))
		for i := range pods.Items {
			address = pods.Items[i].Status.PodIP
		}
		return fmt.Sprint(len(pods.Items), " pods"), address != ""
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, "8000"))
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { page(out) })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}
