package capacity

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readers is how many targets are read side by side.
const readers = 16

// target is a scale target as it was found.
type target struct {
	kind string
	// template is nil when it is not known.
	template *corev1.PodTemplateSpec
	// podsPerReplica is 1 unless a replica spans nodes.
	podsPerReplica int
	// selector finds the pods; nil when it is not known.
	selector labels.Selector
	// problem says why the target is not known; empty when it is.
	problem string
}

// targets finds scale targets.
type targets struct{ api client.Client }

// find fills in the targets of all variants.
func (t targets) find(ctx context.Context, variants []variant) {
	var group errgroup.Group
	group.SetLimit(readers)
	for i := range variants {
		v := &variants[i]
		group.Go(func() error {
			v.target = t.read(ctx, v)
			return nil
		})
	}
	_ = group.Wait()
}

func (t targets) read(ctx context.Context, v *variant) target {
	ref := v.object.Spec.ScaleTargetRef
	kind, err := ref.GroupVersionKind()
	if err != nil {
		return target{kind: ref.Kind, problem: err.Error()}
	}
	found := target{kind: kind.Kind, podsPerReplica: 1}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err = t.api.Get(ctx, client.ObjectKey{Namespace: v.object.Namespace, Name: ref.Name}, object)
	if err == nil {
		err = t.fill(ctx, &found, kind.GroupKind(), object)
	}
	if err != nil {
		found.problem = explain(err, kind, v.object.Namespace, ref.Name)
	}
	return found
}

// explain says why a target is not known, and what to do.
func explain(err error, kind schema.GroupVersionKind, namespace, name string) string {
	switch {
	case apimeta.IsNoMatchError(err):
		return fmt.Sprintf("the cluster serves no kind %s in %s: correct spec.scaleTargetRef", kind.Kind, kind.GroupVersion())
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s %s does not exist in namespace %s", kind.Kind, name, namespace)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%s %s may not be read, so what a replica takes is not known: ask for the permission to get it (%v)", kind.Kind, name, err)
	default:
		return fmt.Sprintf("reading %s %s: %v", kind.Kind, name, err)
	}
}

var leaderWorkerSet = schema.GroupKind{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"}

// fill takes from the target what its pods are like and by what they are found.
func (t targets) fill(ctx context.Context, found *target, kind schema.GroupKind, object *unstructured.Unstructured) error {
	switch {
	case kind.Group == appsv1.GroupName:
		return found.workload(object)
	case kind == leaderWorkerSet:
		return found.leaderWorkerSet(object)
	}
	// A kind with a scale subresource, of which nothing else is known.
	scale := &autoscalingv1.Scale{}
	if err := t.api.SubResource("scale").Get(ctx, object, scale); err != nil {
		return err
	}
	return found.selectBy(scale.Status.Selector)
}

// workload reads a Deployment, ReplicaSet or StatefulSet.
func (t *target) workload(object *unstructured.Unstructured) error {
	var workload struct {
		Spec struct {
			Selector *metav1.LabelSelector  `json:"selector"`
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &workload); err != nil {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(workload.Spec.Selector)
	if err != nil {
		return err
	}
	t.template = &workload.Spec.Template
	return t.selectBy(selector.String())
}

// leaderWorkerSet reads groups of pods, all of which hold devices.
func (t *target) leaderWorkerSet(object *unstructured.Unstructured) error {
	var set struct {
		Spec struct {
			Template struct {
				Size   *int                    `json:"size"`
				Leader *corev1.PodTemplateSpec `json:"leaderTemplate"`
				Worker corev1.PodTemplateSpec  `json:"workerTemplate"`
			} `json:"leaderWorkerTemplate"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		return err
	}
	if size := set.Spec.Template.Size; size != nil {
		t.podsPerReplica = *size
	}
	t.template = &set.Spec.Template.Worker
	if leader := set.Spec.Template.Leader; leader != nil && t.podsPerReplica == 1 {
		t.template = leader
	}
	return t.selectBy("leaderworkerset.sigs.k8s.io/name=" + object.GetName())
}

// selectBy finds pods by a selector, unless it could take in the pods of others.
func (t *target) selectBy(text string) error {
	selector, err := labels.Parse(text)
	if err != nil {
		return fmt.Errorf("the selector %q: %w", text, err)
	}
	if !selector.Empty() {
		t.selector = selector
	}
	return nil
}
