package installation

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// Cost is the price of one replica of a variant per hour, as the manager has it: its
// variantCost, else that of its devices; nil where nobody gave one. Notes say what of the prices
// does not count.
func (m *Manager) Cost(ctx context.Context, api client.Reader, object *v1alpha1.VariantAutoscaling) (*float64, []string, error) {
	costs, notes := m.Prices(ctx, api)
	var device capacity.Device
	count := 0
	if p := object.Status.Placement; p != nil && p.Shape != nil {
		device = p.Shape.Device()
		count = int(ptr.Deref(p.Shape.Devices, 0)) * int(ptr.Deref(p.Shape.Pods, 1))
	}
	cost, given, err := costs.Replica(&object.Spec, device, count)
	if err != nil {
		return nil, notes, fmt.Errorf("VariantAutoscaling %s: %w", object.Name, err)
	}
	if !given {
		return nil, notes, nil
	}
	return ptr.To(float64(cost)), notes, nil
}

// Prices are those of accelerators. Notes say what of them does not count. The ConfigMap may
// be absent.
func (m *Manager) Prices(ctx context.Context, api client.Reader) (config.UnitCosts, []string) {
	for _, name := range m.Config.UnitCostConfigMaps() {
		var data corev1.ConfigMap
		err := api.Get(ctx, client.ObjectKey{Namespace: cmp.Or(m.Namespace, m.Config.PodNamespace), Name: name}, &data)
		if apierrors.IsNotFound(err) {
			continue
		}
		var costs config.UnitCosts
		if err == nil {
			costs, _, err = config.ParseUnitCosts(data.Data)
		}
		if err != nil {
			return costs, []string{fmt.Sprintf("the prices in ConfigMap %s do not count: %v", name, err)}
		}
		return costs, nil
	}
	return config.UnitCosts{}, nil
}
