package adopt

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// OfModel are the objects that this command would write of all Deployments of a namespace,
// or of all, that serve a model. Nothing is created.
func OfModel(ctx context.Context, api client.Client, namespace, managerNamespace, model string) ([]*v1alpha1.VariantAutoscaling, []string, error) {
	manager, err := installation.Find(ctx, api, managerNamespace)
	if err != nil {
		return nil, nil, err
	}
	names, notes := manager.Names(ctx, api)
	var list appsv1.DeploymentList
	if err := api.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, notes, cluster.Advise(err, "list", "deployments", namespace)
	}
	autoscalers := map[string]map[string][]Autoscaler{}
	var objects []*v1alpha1.VariantAutoscaling
	var found []string
	for i := range list.Items {
		d := &list.Items[i]
		if served, err := servedModel(&d.Spec.Template.Spec); err != nil || served != model {
			continue
		}
		if autoscalers[d.Namespace] == nil {
			of, said, err := autoscalersOf(ctx, api, d.Namespace)
			notes = append(notes, said...)
			if err != nil {
				return nil, notes, err
			}
			autoscalers[d.Namespace] = of
		}
		a, err := adopt(d, autoscalers[d.Namespace][d.Name], names, wishes{actuation: v1alpha1.ActuationOff})
		if err != nil {
			return nil, notes, err
		}
		objects, found = append(objects, a.Object), append(found, d.Namespace+"/"+d.Name)
	}
	if len(objects) > 0 {
		notes = append(notes, fmt.Sprintf("no VariantAutoscaling object is of model %s, so the variants are what kubectl wva adopt makes of the Deployments that serve it: %s", model, strings.Join(found, ", ")))
	}
	return objects, notes, nil
}
