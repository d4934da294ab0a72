package adopt

import (
	"context"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// onNodes are the types of accelerators that the nodes have, sorted; none where the nodes may not be
// read.
func onNodes(ctx context.Context, api client.Reader, names *inventory.Names) []capacity.Accelerator {
	var nodes corev1.NodeList
	if err := api.List(ctx, &nodes); err != nil {
		return nil
	}
	var all []capacity.Accelerator
	for i := range nodes.Items {
		for _, devices := range names.Carried(&nodes.Items[i]).Devices {
			if devices.Name.Known() && !slices.Contains(all, devices.Name.Short) {
				all = append(all, devices.Name.Short)
			}
		}
	}
	slices.Sort(all)
	return all
}

var scaledObjects = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}

// defaultMost is the upper bound of a ScaledObject without one.
const defaultMost = 100

// autoscalersOf are what scales each Deployment of a namespace, by its name. A ScaledObject
// comes before a HorizontalPodAutoscaler, and the one that KEDA makes of it does not count.
func autoscalersOf(ctx context.Context, api client.Reader, namespace string) (map[string][]Autoscaler, []string, error) {
	found := map[string][]Autoscaler{}
	var notes []string
	scaled := &unstructured.UnstructuredList{}
	scaled.SetGroupVersionKind(scaledObjects)
	switch err := api.List(ctx, scaled, client.InNamespace(namespace)); {
	case apimeta.IsNoMatchError(err), apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		notes = append(notes, "ScaledObjects may not be listed, so their bounds are not taken")
	case err != nil:
		return nil, nil, cluster.Advise(err, "list", "scaledobjects", namespace)
	}
	for i := range scaled.Items {
		name, a, err := ofScaledObject(&scaled.Items[i])
		if err != nil {
			return nil, nil, err
		}
		if name != "" {
			found[name] = append(found[name], a)
		}
	}
	var list autoscalingv2.HorizontalPodAutoscalerList
	switch err := api.List(ctx, &list, client.InNamespace(namespace)); {
	case apierrors.IsForbidden(err):
		notes = append(notes, "HorizontalPodAutoscalers may not be listed, so their bounds are not taken")
	case err != nil:
		return nil, nil, cluster.Advise(err, "list", "horizontalpodautoscalers", namespace)
	}
	for i := range list.Items {
		if name, a := ofHPA(&list.Items[i]); name != "" {
			found[name] = append(found[name], a)
		}
	}
	return found, notes, nil
}

// ofHPA is the Deployment that a HorizontalPodAutoscaler scales; empty for another target
// and for one of KEDA's.
func ofHPA(h *autoscalingv2.HorizontalPodAutoscaler) (deployment string, a Autoscaler) {
	for _, owner := range h.OwnerReferences {
		if owner.Kind == scaledObjects.Kind {
			return "", a
		}
	}
	if h.Spec.ScaleTargetRef.Kind != v1alpha1.DefaultTargetKind {
		return "", a
	}
	return h.Spec.ScaleTargetRef.Name, Autoscaler{Kind: "HorizontalPodAutoscaler", Name: h.Name, Min: ptr.Deref(h.Spec.MinReplicas, 1), Max: h.Spec.MaxReplicas}
}

func ofScaledObject(object *unstructured.Unstructured) (deployment string, a Autoscaler, err error) {
	var s struct {
		Spec struct {
			ScaleTargetRef struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"scaleTargetRef"`
			MinReplicaCount  int32  `json:"minReplicaCount"`
			MaxReplicaCount  *int32 `json:"maxReplicaCount"`
			IdleReplicaCount *int32 `json:"idleReplicaCount"`
			Advanced         struct {
				Restores bool `json:"restoreToOriginalReplicaCount"`
			} `json:"advanced"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s); err != nil {
		return "", a, fmt.Errorf("ScaledObject %s: %w", object.GetName(), err)
	}
	if kind := s.Spec.ScaleTargetRef.Kind; kind != "" && kind != v1alpha1.DefaultTargetKind {
		return "", a, nil
	}
	notes := pauses(object.GetName(), object.GetAnnotations())
	if s.Spec.Advanced.Restores {
		notes = append(notes, fmt.Sprintf("ScaledObject %s sets the replicas back to those of before it came when it is deleted, because spec.advanced.restoreToOriginalReplicaCount is true: set it to false before you delete it", object.GetName()))
	}
	if idle := s.Spec.IdleReplicaCount; idle != nil && *idle < s.Spec.MinReplicaCount {
		notes = append(notes, fmt.Sprintf("ScaledObject %s goes below its minReplicaCount, to %d, while nothing is asked: for that, set spec.minReplicas to 0 and allow the model to scale to zero", object.GetName(), *idle))
	}
	return s.Spec.ScaleTargetRef.Name, Autoscaler{
		Kind: scaledObjects.Kind, Name: object.GetName(), Min: s.Spec.MinReplicaCount, Max: ptr.Deref(s.Spec.MaxReplicaCount, defaultMost),
		Notes: notes,
	}, nil
}
