package capacity

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// managerScheduler is that of the pods that the manager's webhook sends on their way, when
// nobody tells it another one.
var managerScheduler = func() string {
	for _, key := range config.Keys() {
		if key.Name == "WEBHOOK_SCHEDULER_NAME" {
			return key.Default
		}
	}
	return ""
}()

// parseNames reads NAMESPACE/NAME; an empty text names none.
func parseNames(text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if text != "" && (!ok || namespace == "" || name == "") {
		return types.NamespacedName{}, fmt.Errorf("--accelerator-names %q is not of the form NAMESPACE/NAME", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// readNames reads the ConfigMap with names of accelerators. One that somebody named is
// to be believed, so that it is an error when it is not there. The manager's own, which a
// release of the chart calls after itself, may be absent, as it may be for the manager, and
// what is wrong with it is a warning.
func (f *facts) readNames(ctx context.Context, api client.Reader, name types.NamespacedName) error {
	given, unclear := name.Name != "", false
	why := ""
	if !given {
		var where config.Config
		var note string
		where, note, unclear = installation.Locate(ctx, api, name.Namespace)
		name = types.NamespacedName{Namespace: where.PodNamespace, Name: where.AcceleratorNamesConfigMap}
		if note != "" {
			why = " (" + note + ")"
		}
	}
	var data corev1.ConfigMap
	switch err := api.Get(ctx, name, &data); {
	case err == nil && unclear:
		f.warnings = append(f.warnings, fmt.Sprintf("names of accelerators are those of ConfigMap %s%s", name, why))
	case err == nil:
	case !given && apierrors.IsNotFound(err):
		f.warnings = append(f.warnings, fmt.Sprintf("ConfigMap %s is not there, so accelerators have the names that are built in%s", name, why))
		return nil
	case !given && apierrors.IsForbidden(err):
		f.warnings = append(f.warnings, fmt.Sprintf("ConfigMap %s may not be read, so names of accelerators in it do not count: ask for the permission to get it, or name another one with --accelerator-names", name))
		return nil
	default:
		return fmt.Errorf("reading the names of accelerators in ConfigMap %s: %w%s", name, err, advice(err, "configmaps", name.Namespace))
	}
	overrides, err := inventory.ParseOverrides(data.Data)
	switch {
	case err != nil && given:
		return fmt.Errorf("in ConfigMap %s: %w", name, err)
	case err != nil:
		f.warnings = append(f.warnings, fmt.Sprintf("ConfigMap %s does not count: %v", name, err))
	default:
		f.names.SetOverrides(overrides)
	}
	return nil
}
