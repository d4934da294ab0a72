package installation

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// Locate says in which namespace the manager's ConfigMaps are and what they are called: a
// release of the chart puts its name before them. Without a manager they have the names of
// the plain manifests and no settings, and the note says why; namespace is where to look, empty
// for all. It is unclear where they are where several Deployments say that they are the manager.
func Locate(ctx context.Context, api client.Reader, namespace string) (where config.Config, note string, unclear bool) {
	m, err := Find(ctx, api, namespace)
	switch {
	case err != nil:
		note, unclear = err.Error(), errors.Is(err, errSeveral)
	case m.Name == "":
		note = strings.Join(m.Notes, "; ")
	default:
		where = m.Config
		where.PodNamespace = m.Namespace
		return where, "", false
	}
	for _, key := range config.Keys() {
		switch key.Name {
		case "POD_NAMESPACE":
			where.PodNamespace = cmp.Or(namespace, key.Default)
		case "CONFIG_MAP_NAME":
			where.ConfigMap = key.Default
		case "ACCELERATOR_NAMES_CONFIG_MAP_NAME":
			where.AcceleratorNamesConfigMap = key.Default
		case "SERVICE_CLASS_CONFIG_MAP_NAME":
			where.ServiceClassConfigMap = key.Default
		case "ACCELERATOR_COST_CONFIG_MAP_NAME":
			where.UnitCostConfigMap = key.Default
		case "SATURATION_CONFIG_MAP_NAME":
			where.SaturationConfigMap = key.Default
		case "SCALE_TO_ZERO_CONFIG_MAP_NAME":
			where.ScaleToZeroConfigMap = key.Default
		}
	}
	return where, note, unclear
}
