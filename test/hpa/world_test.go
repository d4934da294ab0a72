package hpa

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	core "k8s.io/client-go/testing"
	autoscalingdefaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"

	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

const (
	namespace = "serving"
	selector  = "app=model"
	// step is the time between two rounds of the controller.
	step = horizontal.Period
)

// pod is one of the target's: what it is, and what the metrics API says of it.
type pod struct {
	pending, silent bool
	value           int64
}

// world is what the controller sees: a target, its pods and the metrics.
type world struct {
	replicas int32
	pods     []pod
	// outside is the value of the metric of type External; negative where nobody knows it.
	outside int64
}

var errUnknown = errors.New("there is no such metric")

func (w *world) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	all := metrics.PodMetricsInfo{}
	for i, p := range w.pods {
		if !p.silent {
			all[podName(i)] = metrics.PodMetric{Timestamp: time.Now(), Window: time.Minute, Value: p.value}
		}
	}
	if len(all) == 0 {
		return nil, time.Time{}, errUnknown
	}
	return all, time.Now(), nil
}

func (w *world) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	if w.outside < 0 {
		return nil, time.Time{}, errUnknown
	}
	return []int64{w.outside}, time.Now(), nil
}

func (*world) GetResourceMetric(context.Context, corev1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	return nil, time.Time{}, errUnknown
}

func (*world) GetObjectMetric(string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	return 0, time.Time{}, errUnknown
}

func podName(i int) string { return fmt.Sprintf("model-%d", i) }

// controlled starts Kubernetes' controller on the world, in a bubble of virtual time.
func (w *world) controlled(t *testing.T, object *autoscalingv2.HorizontalPodAutoscaler) (sync func()) {
	t.Helper()
	autoscalingdefaults.SetDefaults_HorizontalPodAutoscaler(object)
	client := fake.NewClientset(object)
	factory := informers.NewSharedInformerFactory(client, 0)
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{deployments.GroupVersion()})
	mapper.Add(deployments, apimeta.RESTScopeNamespace)
	pods := factory.Core().V1().Pods()
	controller := podautoscaler.NewHorizontalController(t.Context(), client.CoreV1(), w.scales(), client.AutoscalingV2(), mapper, w,
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), pods, step, horizontal.Window, horizontal.Tolerance, time.Minute, time.Minute)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	go controller.Run(t.Context(), 1)
	synctest.Wait()
	return func() {
		known := pods.Informer().GetIndexer()
		var all []any
		for i, p := range w.pods {
			phase := corev1.PodRunning
			if p.pending {
				phase = corev1.PodPending
			}
			all = append(all, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName(i), Labels: map[string]string{"app": "model"}},
				Status:     corev1.PodStatus{Phase: phase},
			})
		}
		require.NoError(t, known.Replace(all, ""))
		<-time.After(step) // virtual: the test runs in a bubble of synctest
		synctest.Wait()
	}
}

// scales is the scale subresource of the target.
func (w *world) scales() *scalefake.FakeScaleClient {
	client := &scalefake.FakeScaleClient{}
	scale := func() *autoscalingv1.Scale {
		return &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "model"},
			Spec:       autoscalingv1.ScaleSpec{Replicas: w.replicas},
			Status:     autoscalingv1.ScaleStatus{Replicas: int32(len(w.pods)), Selector: selector},
		}
	}
	client.AddReactor("get", "deployments", func(core.Action) (bool, runtime.Object, error) { return true, scale(), nil })
	client.AddReactor("update", "deployments", func(action core.Action) (bool, runtime.Object, error) {
		w.replicas = action.(core.UpdateAction).GetObject().(*autoscalingv1.Scale).Spec.Replicas
		return true, scale(), nil
	})
	return client
}

// The handlers slow down whoever has errors one after another, by a time that they share with
// what is outside of the bubble.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil //nolint:reassign // they are meant to be replaced, and have no other setter
	os.Exit(m.Run())
}
