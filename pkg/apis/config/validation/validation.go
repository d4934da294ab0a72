package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
)

// AcceleratorPlacementArgs names every field that cannot be used, below the path;
// nil means that all can. The path may be nil.
func AcceleratorPlacementArgs(path *field.Path, args *config.AcceleratorPlacementArgs) error {
	if args.AcceleratorNames == nil {
		return nil
	}
	return configMapReference(path.Child("acceleratorNames"), args.AcceleratorNames).ToAggregate()
}

func configMapReference(path *field.Path, r *config.ConfigMapReference) field.ErrorList {
	var errs field.ErrorList
	if r.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "name the namespace of the ConfigMap, or leave acceleratorNames out"))
	} else {
		for _, wrong := range apivalidation.ValidateNamespaceName(r.Namespace, false) {
			errs = append(errs, field.Invalid(path.Child("namespace"), r.Namespace, wrong))
		}
	}
	if r.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "name the ConfigMap, or leave acceleratorNames out"))
	} else {
		for _, wrong := range apivalidation.NameIsDNSSubdomain(r.Name, false) {
			errs = append(errs, field.Invalid(path.Child("name"), r.Name, wrong))
		}
	}
	return errs
}
