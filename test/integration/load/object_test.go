package load_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// target is one way to serve a model: a Deployment and the object that scales it, which
// have the same name.
type target struct {
	*site
	deployment *appsv1.Deployment
	variant    *v1alpha1.VariantAutoscaling
}

// plan says what a target is.
type plan struct {
	name, model string
	// instance is the manager that scales it.
	instance string
	// kind is that of its nodes, and devices what a replica takes; 0 is one.
	kind    string
	devices int
	// replicas is how many there are at first; while they are held, the manager may not
	// change that.
	replicas int32
	held     bool
	// startup is how long a model server takes to answer; 0 is three seconds.
	startup time.Duration
	// window of scale-down; 0 is one second.
	window time.Duration
	// cost of a replica; 0 is ten.
	cost int
	// adjust changes both objects before they are created.
	adjust func(*appsv1.Deployment, *v1alpha1.VariantAutoscaling)
}

// target creates the objects of a plan.
func (s *site) target(t *testing.T, p plan) *target {
	t.Helper()
	p.devices, p.cost = cmp.Or(p.devices, 1), cmp.Or(p.cost, 10)
	p.startup, p.window = cmp.Or(p.startup, 3*time.Second), cmp.Or(p.window, time.Second)
	x := &target{site: s, deployment: s.deployment(p), variant: s.variant(p)}
	if p.held {
		x.variant.Spec.MinReplicas, x.variant.Spec.MaxReplicas = &p.replicas, &p.replicas
	}
	if p.adjust != nil {
		p.adjust(x.deployment, x.variant)
	}
	require.NoError(t, s.api.Create(t.Context(), x.deployment))
	require.NoError(t, s.api.Create(t.Context(), x.variant))
	return x
}

func (s *site) deployment(p plan) *appsv1.Deployment {
	labels := map[string]string{"app": p.name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: p.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &p.replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
					emulation.ServerAnnotation: "",
					modelAnnotation:            s.model(p.model),
					startupAnnotation:          p.startup.String(),
					"prometheus.io/scrape":     "true",
					"prometheus.io/port":       strconv.Itoa(emulation.DefaultPort),
				}},
				Spec: s.podSpec(p),
			},
		},
	}
}

func (s *site) podSpec(p plan) corev1.PodSpec {
	i := slices.IndexFunc(fleet, func(m machines) bool { return m.name == p.kind })
	return corev1.PodSpec{
		SchedulerName: scheduler,
		// Long enough for every request that a replica has when it is to go.
		TerminationGracePeriodSeconds: ptr.To[int64](60),
		NodeSelector:                  map[string]string{"nvidia.com/gpu.product": fleet[i].product},
		Tolerations: []corev1.Toleration{
			{Key: localcluster.GPUTaint, Operator: corev1.TolerationOpExists},
			{Key: localcluster.OwnershipTaint, Operator: corev1.TolerationOpEqual, Value: scheduler},
		},
		Containers: []corev1.Container{{
			Name: "server", Image: "model-server",
			Args:  []string{"--model=" + s.model(p.model), "--max-num-seqs=" + strconv.Itoa(batchLimit)},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: emulation.DefaultPort}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
				Limits:   corev1.ResourceList{localcluster.GPUResource: *resource.NewQuantity(int64(p.devices), resource.DecimalSI)},
			},
		}},
	}
}

// variant states what the model servers do, so that nothing has to be learned first.
func (s *site) variant(p plan) *v1alpha1.VariantAutoscaling {
	return &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: p.name, Labels: map[string]string{v1alpha1.LabelControllerInstance: p.instance},
		},
		Spec: v1alpha1.VariantAutoscalingSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: p.name},
			ModelID:        s.model(p.model),
			VariantCost:    strconv.Itoa(p.cost),
			VariantProfile: &v1alpha1.VariantProfile{
				MaxBatchSize: ptr.To[int32](batchLimit),
				PerfParms: &v1alpha1.PerfParms{
					DecodeParms:  &v1alpha1.DecodeParms{Alpha: v1alpha1.ParameterMilliseconds(strconv.Itoa(iteration)), Beta: "0"},
					PrefillParms: &v1alpha1.PrefillParms{Gamma: "1", Delta: "0"},
				},
			},
			Behavior: &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScalingRules{
				StabilizationWindowSeconds: ptr.To(int32(p.window.Seconds())),
			}},
		},
	}
}

// read gets the newest version of both objects.
func (x *target) read(t *testing.T) {
	t.Helper()
	require.NoError(t, x.api.Get(t.Context(), client.ObjectKeyFromObject(x.deployment), x.deployment))
	require.NoError(t, x.api.Get(t.Context(), client.ObjectKeyFromObject(x.variant), x.variant))
}

func (w *world) patch(t *testing.T, object client.Object, merge string) {
	t.Helper()
	require.NoError(t, w.api.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(merge))))
}

// asks is the number of replicas that the Deployment asks for, and the state of the
// variant for people.
func (x *target) asks(t *testing.T) (int32, string) {
	t.Helper()
	x.read(t)
	v := x.variant
	lines := []string{fmt.Sprintf("%s: %d are asked for", v.Name, *x.deployment.Spec.Replicas)}
	for _, c := range v.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	if d := v.Status.Decision; d != nil {
		lines = append(lines, d.Reason+": "+d.Message)
		for _, s := range d.Steps {
			lines = append(lines, fmt.Sprintf("%s %d -> %d %s: %s", s.Stage, s.Before, s.After, s.Reason, s.Detail))
		}
	}
	return *x.deployment.Spec.Replicas, strings.Join(lines, "\n")
}

// comesToAsk waits until the Deployment asks for a number that will do.
func (x *target) comesToAsk(t *testing.T, limit time.Duration, what string, will func(replicas int32) bool) int32 {
	t.Helper()
	var replicas int32
	eventually(t, limit, fmt.Sprintf("%s replicas of %s", what, x.variant.Name), func() (string, bool) {
		found, text := x.asks(t)
		replicas = found
		return text, will(replicas)
	})
	return replicas
}

func exactly(n int32) func(int32) bool { return func(m int32) bool { return m == n } }

func atLeast(n int32) func(int32) bool { return func(m int32) bool { return m >= n } }

func below(n int32) func(int32) bool { return func(m int32) bool { return m < n } }

// shows waits until the condition has the reason, and returns it.
func (x *target) shows(t *testing.T, limit time.Duration, condition, reason string) *metav1.Condition {
	t.Helper()
	var found *metav1.Condition
	eventually(t, limit, fmt.Sprintf("condition %s of %s with reason %s", condition, x.variant.Name, reason), func() (string, bool) {
		_, text := x.asks(t)
		found = apimeta.FindStatusCondition(x.variant.Status.Conditions, condition)
		return text, found != nil && found.Reason == reason && found.ObservedGeneration == x.variant.Generation
	})
	return found
}

// pods are the target's pods that are not being deleted, by name.
func (x *target) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, x.api.List(t.Context(), &list, client.InNamespace(x.namespace), client.MatchingLabels(x.deployment.Spec.Selector.MatchLabels)))
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// serves waits until so many replicas are ready and seen by Prometheus.
func (x *target) serves(t *testing.T, replicas int) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%d ready replicas of %s with metrics", replicas, x.variant.Name), func() (string, bool) {
		ready := 0
		pods := x.pods(t)
		for i := range pods {
			if isReady(&pods[i]) {
				ready++
			}
		}
		seen, _ := x.query(t, fmt.Sprintf(`count(vllm:num_requests_running{namespace=%q,pod=~"%s-.*"})`, x.namespace, x.variant.Name))
		_, text := x.asks(t)
		return fmt.Sprintf("%d of %d pods ready, %.0f seen\n%s", ready, len(pods), seen, text), ready == replicas && int(seen) == replicas
	})
}

// steady waits until replicas that are held serve, lets them have a rate that they
// carry, and then leaves their number to the manager, which keeps it.
func (x *target) steady(t *testing.T, load *clients, rate float64) {
	t.Helper()
	replicas, instance := *x.deployment.Spec.Replicas, x.variant.Labels[v1alpha1.LabelControllerInstance]
	x.serves(t, int(replicas))
	load.ask(rate)
	// Longer than the metrics window, and until all of the rate is seen: a busy machine
	// sends some of it late, and one that is too busy less of it.
	x.roundsLater(t, instance, 5)
	eventually(t, 2*patience, fmt.Sprintf("%g requests/s", rate), func() (string, bool) {
		seen, _ := x.query(t, fmt.Sprintf("sum(rate(vllm:request_success_total{namespace=%q}[10s]))", x.namespace))
		return fmt.Sprintf("%g are seen", seen), seen > 0.97*rate
	})
	x.patch(t, x.variant, `{"spec":{"minReplicas":0,"maxReplicas":null}}`)
	x.shows(t, patience, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
	x.roundsLater(t, instance, 2)
	found, text := x.asks(t)
	require.Equal(t, replicas, found, "%s\n%s", text, x.notes(t))
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// told are the events on the variant with that reason: their notes.
func (x *target) told(t *testing.T, reason string) []string {
	t.Helper()
	var list eventsv1.EventList
	require.NoError(t, x.api.List(t.Context(), &list, client.InNamespace(x.namespace)))
	var notes []string
	for _, e := range list.Items {
		if e.Regarding.Name == x.variant.Name && e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// notes are those of the events that tell of writes, for people.
func (x *target) notes(t *testing.T) string {
	t.Helper()
	return strings.Join(append(x.told(t, "ScaledUp"), x.told(t, "ScaledDown")...), "\n")
}

// configMap makes one of the managers' ConfigMaps, which goes with the test.
func (w *world) configMap(t *testing.T, name string, data map[string]string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Data: data}
	require.NoError(t, w.api.Create(t.Context(), object))
	t.Cleanup(func() { require.NoError(t, w.api.Delete(context.Background(), object)) })
}

// write is a change of the replicas that a Deployment asks for.
type write struct {
	at       time.Time
	from, to int32
	// settled is set when no pod of it was being replaced just before.
	settled bool
}

// writes records them from now on.
type writes struct {
	lock sync.Mutex
	list []write
}

func (x *target) watchWrites(t *testing.T) *writes {
	t.Helper()
	recorded := &writes{}
	ctx, cancel := context.WithCancel(context.Background())
	watched, err := x.api.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(x.namespace),
		client.MatchingFields{"metadata.name": x.deployment.Name})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var last *appsv1.Deployment
		for event := range watched.ResultChan() {
			now, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			if last != nil && *now.Spec.Replicas != *last.Spec.Replicas {
				recorded.add(write{at: time.Now(), from: *last.Spec.Replicas, to: *now.Spec.Replicas, settled: isSettled(last)})
			}
			last = now
		}
	}()
	t.Cleanup(func() {
		watched.Stop()
		cancel()
		<-done
	})
	return recorded
}

// isSettled reports whether all replicas are of the newest template, and no other is
// left.
func isSettled(d *appsv1.Deployment) bool {
	s, replicas := d.Status, *d.Spec.Replicas
	return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == replicas && s.Replicas == replicas && s.AvailableReplicas == replicas
}

func (w *writes) add(one write) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.list = append(w.list, one)
}

func (w *writes) seen() []write {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.Clone(w.list)
}

// String is for people.
func (w *writes) String() string {
	var lines []string
	for _, one := range w.seen() {
		lines = append(lines, fmt.Sprintf("%s: %d -> %d", one.at.Format("15:04:05.000"), one.from, one.to))
	}
	return strings.Join(lines, "\n")
}
