package dashboard

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
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

// readSelectors asks the scale subresource of all other targets how their pods are found. A
// target that cannot be read has no pods that are known.
func readSelectors(ctx context.Context, api client.Client, variants []*v1alpha1.VariantAutoscaling) map[string][]selected {
	found := make([]labels.Selector, len(variants))
	var group errgroup.Group
	group.SetLimit(readers)
	for i, v := range variants {
		ref := v.Spec.ScaleTargetRef
		kind, err := ref.GroupVersionKind()
		if err != nil || slices.Contains(ownKinds, cmp.Or(ref.Kind, v1alpha1.DefaultTargetKind)) {
			continue
		}
		group.Go(func() error {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			object.SetNamespace(v.Namespace)
			object.SetName(ref.Name)
			scale, err := cluster.Scale(ctx, api, object)
			if err != nil {
				return nil //nolint:nilerr // the variant's own conditions say what is wrong with its target
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
