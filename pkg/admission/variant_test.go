package admission

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
)

// neighbourhood is a cluster of which only what is beside an object is known.
type neighbourhood struct {
	variants []*v1alpha1.VariantAutoscaling
	err      error
}

func (neighbourhood) Handles(object client.Object) bool { return object.GetLabels()["theirs"] == "" }

func (n neighbourhood) Around(context.Context, *v1alpha1.VariantAutoscaling) (review.Surroundings, error) {
	return review.Surroundings{Variants: n.variants}, n.err
}

func (neighbourhood) Scalable(_ context.Context, gvk schema.GroupVersionKind) (bool, bool) {
	return gvk.Kind != "DaemonSet", true
}

// object is on Deployment d.
func object(name string, change ...func(*v1alpha1.VariantAutoscaling)) *v1alpha1.VariantAutoscaling {
	v := &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "m", ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: "d"}},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func theirs(v *v1alpha1.VariantAutoscaling) { v.Labels = map[string]string{"theirs": "true"} }
func deleted(v *v1alpha1.VariantAutoscaling) {
	v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}
func daemon(v *v1alpha1.VariantAutoscaling) { v.Spec.ScaleTargetRef.Kind = "DaemonSet" }

func TestWhatIsAnswered(t *testing.T) {
	const shared = "spec.scaleTargetRef: VariantAutoscaling b also scales Deployment d: delete all but one"
	const unscalable = "spec.scaleTargetRef: DaemonSet has no scale subresource, so its replicas cannot be set: name an object that has one, such as a Deployment"
	taken := neighbourhood{variants: []*v1alpha1.VariantAutoscaling{object("b")}}
	unread := neighbourhood{variants: taken.variants, err: errors.New("no answer")}
	for name, c := range map[string]struct {
		cluster  neighbourhood
		old, new *v1alpha1.VariantAutoscaling // without an old one, it is created
		refusal  string
		warnings admission.Warnings
	}{
		"all is well":                       {new: object("a")},
		"a target that is taken":            {cluster: taken, new: object("a"), refusal: shared},
		"a kind without a scale":            {new: object("a", daemon), refusal: unscalable},
		"somebody else's object":            {cluster: taken, new: object("a", theirs)},
		"the cluster cannot be read":        {cluster: unread, new: object("a"), warnings: admission.Warnings{"nobody looked at what else is on the target: the autoscaler cannot read the cluster"}},
		"an old fault":                      {cluster: taken, old: object("a"), new: object("a"), warnings: admission.Warnings{shared}},
		"a new fault":                       {old: object("a"), new: object("a", daemon), refusal: unscalable},
		"it was somebody else's":            {cluster: taken, old: object("a", theirs), new: object("a"), refusal: shared},
		"it goes, and loses its finalizers": {cluster: taken, old: object("a", deleted), new: object("a", deleted)},
	} {
		t.Run(name, func(t *testing.T) {
			w := &variants{c.cluster}
			var warnings admission.Warnings
			var err error
			if c.old == nil {
				warnings, err = w.ValidateCreate(t.Context(), c.new)
			} else {
				warnings, err = w.ValidateUpdate(t.Context(), c.old, c.new)
			}
			if c.refusal == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.refusal)
			}
			assert.Equal(t, c.warnings, warnings)
		})
	}
	warnings, err := (&variants{taken}).ValidateDelete(t.Context(), object("a"))
	require.NoError(t, err)
	assert.Empty(t, warnings)
}

// An object that was stored under an earlier schema may not fit the present kind. It can be
// corrected, and whatever leaves it as it is can be done: labels, and taking a finalizer away.
func TestAnObjectThatCannotBeReadCanBeCorrected(t *testing.T) {
	const stored = `{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{"namespace":"n","name":"a"},"spec":{"modelID":"m","scaleTargetRef":{"name":"d"},"variantCost":10}}`
	corrected := strings.Replace(stored, "10", `"10"`, 1)
	const unreadable = "the object cannot be read, so the autoscaler leaves it out: json: cannot unmarshal number into Go struct field VariantAutoscalingSpec.spec.variantCost of type string"
	for name, c := range map[string]struct {
		cluster  neighbourhood
		old, new string
		refusal  string
		warnings []string
	}{
		"it is corrected":                 {old: stored, new: corrected},
		"it is corrected and is at fault": {cluster: neighbourhood{variants: []*v1alpha1.VariantAutoscaling{object("b")}}, old: stored, new: corrected, refusal: "spec.scaleTargetRef: VariantAutoscaling b also scales Deployment d: delete all but one"},
		"it stays as it is":               {old: stored, new: strings.Replace(stored, `"name":"a"`, `"name":"a","labels":{"team":"blue"}`, 1), warnings: []string{unreadable}},
		"it is somebody else's":           {old: strings.Replace(stored, `"name":"a"`, `"name":"a","labels":{"theirs":"true"}`, 1), new: strings.Replace(stored, `"name":"a"`, `"name":"a","labels":{"theirs":"true"}`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{}
			request.Operation = admissionv1.Update
			request.OldObject.Raw, request.Object.Raw = []byte(c.old), []byte(c.new)
			answer := variantsWebhook(newScheme(t), c.cluster).Handle(t.Context(), request)
			assert.Equal(t, c.refusal == "", answer.Allowed, answer.Result)
			if c.refusal != "" {
				assert.Equal(t, c.refusal, answer.Result.Message)
			}
			assert.Equal(t, c.warnings, answer.Warnings)
		})
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return scheme
}

// sender sends every pod to one scheduler, or fails.
type sender struct {
	err   error
	asked *corev1.Pod
}

func (s *sender) Send(_ context.Context, pod *corev1.Pod) (*corev1.PodSpec, string, error) {
	s.asked = pod
	if pod.Name == "other" || s.err != nil {
		return nil, "it says otherwise", s.err
	}
	return &corev1.PodSpec{SchedulerName: "packer"}, "", nil
}

// A pod is changed only where somebody knows where it goes; it is never refused.
func TestPodsAreNeverRefused(t *testing.T) {
	request := admission.Request{}
	request.Namespace = "chat"
	ctx := admission.NewContextWithRequest(t.Context(), request)
	for name, c := range map[string]struct {
		pod  string
		err  error
		want string
	}{"it is sent": {"pod", nil, "packer"}, "it says otherwise": {"other", nil, ""}, "nobody knows": {"pod", errors.New("no answer"), ""}} {
		t.Run(name, func(t *testing.T) {
			s := &sender{err: c.err}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.pod}}
			require.NoError(t, pods{s}.Default(ctx, pod))
			assert.Equal(t, c.want, pod.Spec.SchedulerName)
			assert.Equal(t, "chat", s.asked.Namespace, "the namespace of the request")
			assert.Empty(t, pod.Namespace, "nothing else is changed")
		})
	}
}
