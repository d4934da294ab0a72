package dashboard

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// readers is how many targets are read side by side.
const readers = 8

// selected is a variant whose pods its target finds by their labels.
type selected struct {
	variant  types.NamespacedName
	selector labels.Selector
}

func (s selected) matches(pod *corev1.Pod) bool { return s.selector.Matches(labels.Set(pod.Labels)) }

// ownKinds are the kinds of targets whose pods owner references or a label tell.
var ownKinds = []string{"Deployment", "ReplicaSet", "StatefulSet", leaderWorkerSet}

// readSelectors finds out how the pods of all other targets are found: by the one Deployment or
// StatefulSet that the target made, and else by its scale subresource. A target that cannot be
// read has no pods that are known.
func readSelectors(ctx context.Context, api client.Client, variants []*v1alpha1.VariantAutoscaling) map[string][]selected {
	found, made := make([]labels.Selector, len(variants)), map[string]children{}
	var group errgroup.Group
	group.SetLimit(readers)
	for i, v := range variants {
		ref := v.Spec.ScaleTargetRef
		kind, err := ref.GroupVersionKind()
		if err != nil || slices.Contains(ownKinds, cmp.Or(ref.Kind, v1alpha1.DefaultTargetKind)) {
			continue
		}
		if _, known := made[v.Namespace]; !known {
			made[v.Namespace] = readChildren(ctx, api, v.Namespace)
		}
		below := made[v.Namespace]
		group.Go(func() error {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			object.SetNamespace(v.Namespace)
			object.SetName(ref.Name)
			scale, err := cluster.Scale(ctx, api, object)
			if err != nil {
				return nil //nolint:nilerr // the variant's own conditions say what is wrong with its target
			}
			if own := below[scale.UID]; len(own) == 1 {
				found[i], _ = metav1.LabelSelectorAsSelector(own[0]) // the API server has checked it
				return nil
			}
			// An empty selector would take in the pods of others.
			if s, err := labels.Parse(scale.Status.Selector); err == nil && !s.Empty() {
				found[i] = s
			}
			return nil
		})
	}
	_ = group.Wait()
	selectors := map[string][]selected{}
	for i, s := range found {
		if s != nil {
			selectors[variants[i].Namespace] = append(selectors[variants[i].Namespace], selected{keyOf(variants[i]), s})
		}
	}
	return selectors
}

// children are what selects the pods of the Deployments and StatefulSets that others made, by
// the UID of whoever did.
type children map[types.UID][]*metav1.LabelSelector

// readChildren are those of a namespace. Where they may not be read, there are none: the
// selector of a scale tells as much in most cases.
func readChildren(ctx context.Context, api client.Reader, namespace string) children {
	var deployments appsv1.DeploymentList
	var sets appsv1.StatefulSetList
	if api.List(ctx, &deployments, client.InNamespace(namespace)) != nil || api.List(ctx, &sets, client.InNamespace(namespace)) != nil {
		return nil
	}
	below := children{}
	add := func(object metav1.Object, selector *metav1.LabelSelector) {
		if maker := metav1.GetControllerOfNoCopy(object); maker != nil {
			below[maker.UID] = append(below[maker.UID], selector)
		}
	}
	for i := range deployments.Items {
		add(&deployments.Items[i], deployments.Items[i].Spec.Selector)
	}
	for i := range sets.Items {
		add(&sets.Items[i], sets.Items[i].Spec.Selector)
	}
	return below
}
