package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
)

// kept is how many generated configurations stay: the present one, and the one before for
// whoever compares.
const kept = 2

// sweep deletes older generated configurations of the object, in its namespace alone, but
// never one that a pod may still start with.
func (o *operator) sweep(ctx context.Context, p *plan, deployment *appsv1.Deployment) error {
	in := client.InNamespace(p.Object.Namespace)
	var maps corev1.ConfigMapList
	if err := o.cached.List(ctx, &maps, in, client.MatchingLabels{child.LabelConfigFor: p.Object.Name}); err != nil {
		return err
	}
	old := slices.DeleteFunc(maps.Items, func(m corev1.ConfigMap) bool { return !metav1.IsControlledBy(&m, p.Object) })
	if len(old) <= kept {
		return nil
	}
	used := map[string]bool{}
	if p.Configuration != nil {
		used[p.Configuration.ConfigMap] = true
	}
	if deployment != nil {
		use(used, deployment.Spec.Template.Spec)
	}
	var sets appsv1.ReplicaSetList
	if err := o.api.List(ctx, &sets, in, client.MatchingLabels(child.Selector(p.Object.Name))); err != nil {
		return fmt.Errorf("listing the ReplicaSets of %s/%s: %w", p.Object.Namespace, p.Object.Name, err)
	}
	for _, set := range sets.Items {
		if set.Status.Replicas > 0 || set.Spec.Replicas != nil && *set.Spec.Replicas > 0 {
			use(used, set.Spec.Template.Spec)
		}
	}
	isPresent := func(m corev1.ConfigMap) int {
		if p.Configuration != nil && m.Name == p.Configuration.ConfigMap {
			return 0
		}
		return 1
	}
	// Several may be of the same second.
	slices.SortFunc(old, func(a, b corev1.ConfigMap) int {
		return cmp.Or(isPresent(a)-isPresent(b), b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, configMap := range old[kept:] {
		if used[configMap.Name] {
			continue
		}
		if err := o.api.Delete(ctx, &configMap); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the ConfigMap %s/%s: %w", configMap.Namespace, configMap.Name, err)
		}
	}
	return nil
}

// use notes the ConfigMaps that a pod mounts.
func use(used map[string]bool, pod corev1.PodSpec) {
	for _, volume := range pod.Volumes {
		if volume.ConfigMap != nil {
			used[volume.ConfigMap.Name] = true
		}
	}
}
