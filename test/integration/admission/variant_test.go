package admission_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// space makes a namespace with labels; its objects go with the test.
func space(t *testing.T, labels map[string]string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-", Labels: labels}}
	require.NoError(t, api.Create(t.Context(), namespace))
	t.Cleanup(func() { require.NoError(t, api.Delete(context.Background(), namespace)) })
	return namespace.Name
}

// variant is an object on a Deployment.
func variant(namespace, name, target string, change ...func(*v1alpha1.VariantAutoscaling)) *v1alpha1.VariantAutoscaling {
	v := &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "llama", ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: target}},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

// listener is a client that hears warnings, as kubectl prints them.
type listener struct {
	client.Client
	lock  sync.Mutex
	heard []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (l *listener) HandleWarningHeader(_ int, _, text string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.heard = append(l.heard, text)
}

// told are the warnings since the last call.
func (l *listener) told() []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	told := l.heard
	l.heard = nil
	return told
}

func listen(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	config := rest.CopyConfig(cluster.Config())
	config.WarningHandler = l
	var err error
	l.Client, err = client.New(config, client.Options{Scheme: api.Scheme()})
	require.NoError(t, err)
	return l
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, api.Create(t.Context(), object), "creating %T %s", object, object.GetName())
	}
}

// answers waits until creating an object is answered with an error and warnings. The
// manager may be a moment behind with what it knows of the cluster.
func (l *listener) answers(t *testing.T, object client.Object, refusal string, warnings ...string) {
	t.Helper()
	conditiontest.Eventually(t, patience, "the answer", func() (string, bool) {
		err := l.Create(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
		told := l.told()
		refused := refusal == "" && err == nil || refusal != "" && err != nil && strings.Contains(err.Error(), refusal)
		return fmt.Sprintf("%v\nwarnings: %q", err, told), refused && slices.Equal(told, warnings)
	})
}

const (
	alsoScales = "also scales Deployment server: delete it, or set spec.actuation to Metric and let it act on the metric wva_desired_replicas"
	refused    = `admission webhook "variants.wva.llmd.ai" denied the request: `
	shared     = refused + "spec.scaleTargetRef: VariantAutoscaling first also scales Deployment server: delete all but one"
)

// What the schema cannot see is refused, or warned of, before it is stored.
func TestWhatIsRefusedAndWhatIsWarnedOf(t *testing.T) {
	l := listen(t)
	t.Run("all is well", func(t *testing.T) {
		namespace := space(t, nil)
		l.answers(t, variant(namespace, "first", "server", func(v *v1alpha1.VariantAutoscaling) {
			v.Spec.SLOClassRef = &v1alpha1.SLOClassReference{Name: "premium"}
		}), "")
	})
	t.Run("two objects on one target", func(t *testing.T) {
		namespace := space(t, nil)
		first := variant(namespace, "first", "server")
		create(t, first)
		l.answers(t, variant(namespace, "second", "server"), shared)
		l.answers(t, variant(namespace, "second", "other"), "")
		l.answers(t, variant(space(t, nil), "second", "server"), "")

		// An object that was there before can be changed, and is warned of.
		second := variant(namespace, "second", "other")
		create(t, second)
		edit := client.MergeFrom(second.DeepCopy())
		second.Spec.ScaleTargetRef.Name = "server"
		require.ErrorContains(t, api.Patch(t.Context(), second, edit), shared)

		require.NoError(t, api.Delete(t.Context(), first))
		l.answers(t, variant(namespace, "third", "server"), "")
	})
	t.Run("a HorizontalPodAutoscaler", func(t *testing.T) {
		namespace := space(t, nil)
		create(t, &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				MaxReplicas:    2,
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "server"},
			},
		})
		l.answers(t, variant(namespace, "first", "server"), "", "HorizontalPodAutoscaler other "+alsoScales)
		l.answers(t, variant(namespace, "first", "server", func(v *v1alpha1.VariantAutoscaling) { v.Spec.Actuation = v1alpha1.ActuationMetric }), "")
	})
	t.Run("a ScaledObject", func(t *testing.T) {
		namespace := space(t, nil)
		create(t, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": map[string]any{"namespace": namespace, "name": "other"},
			"spec": map[string]any{"scaleTargetRef": map[string]any{"name": "server"}},
		}})
		l.answers(t, variant(namespace, "first", "server"), "", "ScaledObject other "+alsoScales)
	})
	t.Run("kinds of targets", func(t *testing.T) {
		namespace := space(t, nil)
		of := func(apiVersion, kind string) client.Object {
			return variant(namespace, "first", "server", func(v *v1alpha1.VariantAutoscaling) {
				v.Spec.ScaleTargetRef.APIVersion, v.Spec.ScaleTargetRef.Kind = apiVersion, kind
			})
		}
		l.answers(t, of("apps/v1", "DaemonSet"), refused+"spec.scaleTargetRef: DaemonSet has no scale subresource, so its replicas cannot be set: name an object that has one, such as a Deployment")
		l.answers(t, of("apps/v1", "StatefulSet"), "")
		l.answers(t, of("example.com/v1", "Server"), "") // it may be installed later
	})
	t.Run("a service class that does not exist", func(t *testing.T) {
		namespace := space(t, nil)
		l.answers(t, variant(namespace, "first", "server", func(v *v1alpha1.VariantAutoscaling) {
			v.Spec.SLOClassRef = &v1alpha1.SLOClassReference{Name: "gold"}
		}), "", `spec.sloClassRef: variant first names service class "gold", which does not exist: there are Premium`)
	})
	t.Run("an object of another controller", func(t *testing.T) {
		namespace := space(t, nil)
		create(t, variant(namespace, "first", "server"))
		l.answers(t, variant(namespace, "second", "server"), shared)
		l.answers(t, variant(namespace, "second", "server", func(v *v1alpha1.VariantAutoscaling) {
			v.Labels = map[string]string{v1alpha1.LabelControllerInstance: "blue"}
		}), "")
	})
}

// An object that becomes this controller's is looked at as if it were new.
func TestAnObjectThatChangesItsController(t *testing.T) {
	namespace := space(t, nil)
	create(t, variant(namespace, "first", "server"))
	second := variant(namespace, "second", "server", func(v *v1alpha1.VariantAutoscaling) {
		v.Labels = map[string]string{v1alpha1.LabelControllerInstance: "blue"}
	})
	create(t, second)
	second.Labels = nil
	require.ErrorContains(t, api.Update(t.Context(), second), shared)
}
