package placement_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

const (
	// leastPause is how long a variant is left alone at least after its replicas found
	// no node.
	leastPause = time.Minute
	// vain is the longest that replicas may wait for a node in vain until then.
	vain = 90 * time.Second
)

// raises records when more replicas are asked of a Deployment, from now on.
type raises struct {
	lock  sync.Mutex
	times []time.Time
}

func (w *world) watchRaises(t *testing.T, d *appsv1.Deployment) *raises {
	t.Helper()
	r := &raises{}
	ctx, cancel := context.WithCancel(context.Background())
	last := *d.Spec.Replicas
	watched, err := w.api.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(d.Namespace),
		client.MatchingFields{"metadata.name": d.Name})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watched.ResultChan() {
			now, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			if *now.Spec.Replicas > last {
				r.lock.Lock()
				r.times = append(r.times, time.Now())
				r.lock.Unlock()
			}
			last = *now.Spec.Replicas
		}
	}()
	t.Cleanup(func() {
		watched.Stop()
		cancel()
		<-done
	})
	return r
}

func (r *raises) seen() []time.Time {
	r.lock.Lock()
	defer r.lock.Unlock()
	return append([]time.Time(nil), r.times...)
}

// keepUp lets no replica go because the load falls, so that whatever goes was given
// back.
func keepUp(variants ...*v1alpha1.VariantAutoscaling) {
	for _, v := range variants {
		v.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = ptr.To[int32](3600)
	}
}

// gated lets pods only beside a pod that is not there: a constraint that the model
// does not know, so that there seems to be room.
func gated(template *corev1.PodTemplateSpec) {
	template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gate": "open"}},
			TopologyKey:   corev1.LabelHostname,
		}},
	}}
}

// Space appears and the first variant gets it, but its replica cannot be placed after
// all. It is given back, left alone for a while whatever is asked meanwhile, and has
// another try after that.
func comesBack(t *testing.T, w *world) {
	namespace := w.space(t)
	w.cordon(t, true, "b200-0")
	small, large := deployment(namespace, "small", "l4", 1, 1), deployment(namespace, "large", "b200", 8, 0)
	gated(&large.Spec.Template)
	halve(large)
	vSmall, vLarge := variant(small, limited, "10"), variant(large, limited, "25")
	w.create(t, small, large, vSmall, vLarge)
	raised := w.watchRaises(t, large)
	w.servers.ask(namespace, 1)
	w.readyOn(t, namespace, "small", 1)
	w.shows(t, patience, vSmall, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
	w.servers.ask(namespace, 6)
	w.asks(t, patience, small, vSmall, "five", atLeast(5))
	w.shows(t, patience, vLarge, v1alpha1.ConditionScalingLimited, "NoSlots")
	assert.Empty(t, raised.seen())

	w.cordon(t, false, "b200-0")
	w.asks(t, patience, large, vLarge, "one", exactly(1))
	w.shows(t, patience, vLarge, v1alpha1.ConditionCapacityKnown, v1alpha1.ReasonCapacityUpperBound)
	w.asks(t, vain, large, vLarge, "no", exactly(0))
	given := time.Now()
	// More is asked, which the others cannot serve: what found no node is not tried.
	w.servers.ask(namespace, 16)
	w.asks(t, patience, small, vSmall, "eight", exactly(8))
	conditiontest.Throughout(t, leastPause-10*time.Second-time.Since(given), "left alone", func() (string, bool) {
		return describe(read(t, w, vLarge)), len(raised.seen()) == 1
	})
	w.create(t, gate(namespace))
	w.asks(t, patience, large, vLarge, "one again", exactly(1))
	w.readyOn(t, namespace, "large", 1)
	times := raised.seen()
	require.Len(t, times, 2)
	assert.Greater(t, times[1].Sub(given), leastPause-10*time.Second, "the pause began before the replica was given back")
}

// gate is the pod beside which gated ones may be.
func gate(namespace string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gate", Labels: map[string]string{"gate": "open", "app": filler}},
		Spec:       podSpec("b200", 0),
	}
	pod.Spec.Containers[0].Resources.Limits = nil
	pod.Spec.NodeName = "b200-0"
	return pod
}

// In a cluster that may grow, replicas of the first variant stay unschedulable, because
// each of them wants a node without another. The next variant gets the demand, the
// first gives back what it cannot place, and is left alone for a while.
func givesWay(t *testing.T, w *world) {
	namespace := w.space(t)
	first, second := deployment(namespace, "first", "a10", 1, 1), deployment(namespace, "second", "t4", 1, 0)
	alone(&first.Spec.Template)
	vFirst, vSecond := variant(first, growing, "5"), variant(second, growing, "10")
	keepUp(vFirst, vSecond)
	w.create(t, first, second, vFirst, vSecond)
	raised := w.watchRaises(t, first)
	w.servers.ask(namespace, 1)
	w.becomesReady(t, namespace, "first", 2*time.Second)
	w.shows(t, patience, vFirst, v1alpha1.ConditionMetricsAvailable, "MetricsFound")

	w.servers.ask(namespace, 2)
	w.asks(t, patience, first, vFirst, "more", atLeast(2))
	conditiontest.Eventually(t, patience, "replicas that no node can hold", func() (string, bool) {
		placement := read(t, w, vFirst).Status.Placement
		return describe(vFirst), placement != nil && ptr.Deref(placement.Unschedulable, 0) > 0
	})
	w.asks(t, vain, second, vSecond, "some", atLeast(1))
	w.asks(t, vain, first, vFirst, "one", exactly(1))
	given, before := time.Now(), len(raised.seen())
	w.servers.ask(namespace, 4)
	w.asks(t, patience, second, vSecond, "more", atLeast(2))
	conditiontest.Throughout(t, leastPause/2-time.Since(given), "left alone", func() (string, bool) {
		return describe(read(t, w, vFirst)), len(raised.seen()) == before
	})
}

// alone lets only one pod of the app on each node, and says itself when it is ready.
func alone(template *corev1.PodTemplateSpec) {
	template.Annotations = map[string]string{emulation.ServerAnnotation: ""}
	template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: template.Labels},
			TopologyKey:   corev1.LabelHostname,
		}},
	}}
}

// becomesReady lets the app's only pod be ready when it is that old, so that its
// variant is known to start fast.
func (w *world) becomesReady(t *testing.T, namespace, app string, age time.Duration) {
	t.Helper()
	conditiontest.Eventually(t, patience, fmt.Sprintf("a running pod of %s", app), func() (string, bool) {
		pods := w.pods(t, namespace, app)
		if len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning || time.Since(pods[0].CreationTimestamp.Time) < age {
			return fmt.Sprint(len(pods)), false
		}
		w.patch(t, &pods[0], fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, emulation.ReadyAnnotation))
		return "", true
	})
	w.readyOn(t, namespace, app, 1)
}
