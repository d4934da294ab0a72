package installation

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// ServiceClasses are those of the manager, and the ConfigMap that holds them or is to. Notes say why
// they are not known.
func (m *Manager) ServiceClasses(ctx context.Context, api client.Reader) (classes config.ServiceClasses, at types.NamespacedName, notes []string) {
	namespace, names := cmp.Or(m.Namespace, m.Config.PodNamespace), m.Config.ServiceClassConfigMaps()
	for _, name := range names {
		at = types.NamespacedName{Namespace: namespace, Name: name}
		var data corev1.ConfigMap
		err := api.Get(ctx, at, &data)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			classes, _, err = config.ParseServiceClasses(name, data.Data)
		}
		if err != nil {
			return classes, at, []string{fmt.Sprintf("the service classes in ConfigMap %s are not known: %v", at, err)}
		}
		return classes, at, nil
	}
	return classes, types.NamespacedName{Namespace: namespace, Name: names[0]}, nil
}
