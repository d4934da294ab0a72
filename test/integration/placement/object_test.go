package placement_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// filler is the app of pods that hold devices for somebody else.
const filler = "filler"

// space makes a namespace; its variants go with the test, so that the managers forget
// them.
func (w *world) space(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	require.NoError(t, w.api.Create(t.Context(), namespace))
	t.Cleanup(func() {
		// The test's own context has ended by now.
		require.NoError(t, w.api.DeleteAllOf(context.Background(), &v1alpha1.VariantAutoscaling{}, client.InNamespace(namespace.Name)))
		require.NoError(t, w.api.Delete(context.Background(), namespace))
	})
	return namespace.Name
}

func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, w.api.Create(t.Context(), object))
	}
}

// read gets the newest version of an object.
func read[T client.Object](t *testing.T, w *world, object T) T {
	t.Helper()
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

func (w *world) patch(t *testing.T, object client.Object, merge string) {
	t.Helper()
	require.NoError(t, w.api.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(merge))))
}

// product is what a kind of node is labelled with.
func product(kind string) string {
	i := slices.IndexFunc(fleet, func(k machines) bool { return k.name == kind })
	return fleet[i].shape.Product
}

// podSpec is one model server on devices of a kind.
func podSpec(kind string, devices int) corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName:                 scheduler,
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		NodeSelector:                  map[string]string{"nvidia.com/gpu.product": product(kind)},
		Tolerations: []corev1.Toleration{
			{Key: localcluster.GPUTaint, Operator: corev1.TolerationOpExists},
			{Key: v1alpha1.TaintScheduler, Operator: corev1.TolerationOpEqual, Value: scheduler},
		},
		Containers: []corev1.Container{{
			Name: "server", Image: "model-server",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
				Limits:   corev1.ResourceList{localcluster.GPUResource: *resource.NewQuantity(int64(devices), resource.DecimalSI)},
			},
		}},
	}
}

// deployment is the scale target of that name.
func deployment(namespace, name, kind string, devices int, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(kind, devices)},
		},
	}
}

// halve lets each device of a Deployment serve half as much as others.
func halve(d *appsv1.Deployment) {
	d.Spec.Template.Labels[halved] = ""
}

// variant is the object of a Deployment of the same name, with what is known of what
// a replica serves.
func variant(d *appsv1.Deployment, instance, cost string) *v1alpha1.VariantAutoscaling {
	return &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, Labels: map[string]string{v1alpha1.LabelControllerInstance: instance}},
		Spec: v1alpha1.VariantAutoscalingSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: d.Name},
			ModelID:        "llama",
			VariantCost:    cost,
			VariantProfile: &v1alpha1.VariantProfile{
				// As many requests at once as the servers hold, each of which takes as long as
				// the servers need for it.
				MaxBatchSize: ptr.To(int32(holds * units(d.Spec.Template.Labels, &d.Spec.Template.Spec))),
				PerfParms: &v1alpha1.PerfParms{
					DecodeParms:  &v1alpha1.DecodeParms{Alpha: "100", Beta: "0"},
					PrefillParms: &v1alpha1.PrefillParms{Gamma: "1", Delta: "0"},
				},
			},
			Behavior: &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScalingRules{StabilizationWindowSeconds: ptr.To[int32](15)}},
		},
	}
}

// fill lets a pod of somebody else hold devices of a node.
func (w *world) fill(t *testing.T, namespace, node string, devices int) *corev1.Pod {
	t.Helper()
	kind, _, _ := strings.Cut(node, "-")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "filler-" + node, Labels: map[string]string{"app": filler}},
		Spec:       podSpec(kind, devices),
	}
	pod.Spec.NodeName = node
	// The service account of the pod comes from a controller, a moment after the
	// namespace.
	conditiontest.Eventually(t, patience, "a pod that holds devices of "+node, func() (string, bool) {
		err := w.api.Create(t.Context(), pod)
		return fmt.Sprint(err), err == nil
	})
	return pod
}

func (w *world) node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (w *world) cordon(t *testing.T, cordoned bool, nodes ...string) {
	t.Helper()
	for _, name := range nodes {
		w.patch(t, w.node(name), fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, cordoned))
	}
}

// pods are the app's pods that are not being deleted.
func (w *world) pods(t *testing.T, namespace, app string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, w.api.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{"app": app}))
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// readyOn waits until the app has so many pods, all of them Ready, and returns how many
// are on each node.
func (w *world) readyOn(t *testing.T, namespace, app string, count int) map[string]int {
	t.Helper()
	var on map[string]int
	conditiontest.Eventually(t, patience, fmt.Sprintf("%d ready pods of %s", count, app), func() (string, bool) {
		on = map[string]int{}
		pods := w.pods(t, namespace, app)
		ready := 0
		for i := range pods {
			on[pods[i].Spec.NodeName]++
			if isReady(&pods[i]) {
				ready++
			}
		}
		return fmt.Sprint(on, " of which ready ", ready), ready == count && len(pods) == count
	})
	return on
}

// describe is the state of a variant for people.
func describe(v *v1alpha1.VariantAutoscaling) string {
	var lines []string
	for _, c := range v.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	if p := v.Status.Placement; p != nil {
		lines = append(lines, fmt.Sprintf("slots %d %s pending %d unschedulable %d unplaced %d", ptr.Deref(p.Slots, -1), p.SlotsBound,
			ptr.Deref(p.Pending, -1), ptr.Deref(p.Unschedulable, -1), ptr.Deref(p.Unplaced, -1)))
	}
	if d := v.Status.Decision; d != nil {
		lines = append(lines, d.Reason+": "+d.Message)
		for _, s := range d.Steps {
			lines = append(lines, fmt.Sprintf("%s %d -> %d %s: %s", s.Stage, s.Before, s.After, s.Reason, s.Detail))
		}
	}
	return strings.Join(lines, "\n")
}

// shows waits until the condition has the reason, and returns it.
func (w *world) shows(t *testing.T, limit time.Duration, v *v1alpha1.VariantAutoscaling, condition, reason string) *metav1.Condition {
	t.Helper()
	var found *metav1.Condition
	conditiontest.Eventually(t, limit, fmt.Sprintf("condition %s of %s with reason %s", condition, v.Name, reason), func() (string, bool) {
		found = apimeta.FindStatusCondition(read(t, w, v).Status.Conditions, condition)
		return describe(v), found != nil && found.Reason == reason && found.ObservedGeneration == v.Generation
	})
	return found
}

// asks waits until the number of replicas that a Deployment asks for is one that will
// do.
func (w *world) asks(t *testing.T, limit time.Duration, d *appsv1.Deployment, v *v1alpha1.VariantAutoscaling, what string, will func(replicas int32) bool) int32 {
	t.Helper()
	conditiontest.Eventually(t, limit, fmt.Sprintf("%s replicas of %s", what, d.Name), func() (string, bool) {
		read(t, w, d)
		return fmt.Sprintf("%d are asked for\n%s", *d.Spec.Replicas, describe(read(t, w, v))), will(*d.Spec.Replicas)
	})
	return *d.Spec.Replicas
}

func exactly(n int32) func(int32) bool { return func(m int32) bool { return m == n } }

func atLeast(n int32) func(int32) bool { return func(m int32) bool { return m >= n } }

// slots is how many more replicas fit, as the last full round wrote it; -1 means
// unknown.
func (w *world) slots(t *testing.T, v *v1alpha1.VariantAutoscaling) int32 {
	t.Helper()
	return written(read(t, w, v))
}

// written is the number of slots in the status; -1 means unknown.
func written(v *v1alpha1.VariantAutoscaling) int32 {
	if p := v.Status.Placement; p != nil {
		return ptr.Deref(p.Slots, -1)
	}
	return -1
}

// rounds is how many full rounds a manager has ended.
func (w *world) rounds(t *testing.T, instance string) uint64 {
	t.Helper()
	rounds := uint64(0)
	w.scrape(t, instance, "wva_round_duration_seconds", func(labels map[string]string, m *dto.Metric) {
		if labels["round"] == "Full" && labels["result"] == "success" {
			rounds = m.GetHistogram().GetSampleCount()
		}
	})
	return rounds
}

// scrape looks at all series of a manager's metric.
func (w *world) scrape(t *testing.T, instance, name string, each func(labels map[string]string, m *dto.Metric)) {
	t.Helper()
	for _, m := range prometheustest.Page(t, w.metrics[instance])[name].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		each(labels, m)
	}
}
