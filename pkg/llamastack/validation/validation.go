package validation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/distribution"
)

// Create says what is wrong with a new object.
func Create(object *v1alpha2.LlamaStackDistribution) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, checkName(object.Name, field.NewPath("metadata", "name"))...)
	spec, path := &object.Spec, field.NewPath("spec")
	errs = append(errs, checkDistribution(spec.Distribution, path.Child("distribution"))...)
	errs = append(errs, checkOverride(spec, path)...)
	declared, problems := readProviders(spec.Providers, path.Child("providers"))
	problems = append(problems, checkIDs(declared)...)
	errs = append(errs, problems...)
	if len(problems) == 0 {
		// Otherwise these errors would say the same again.
		if _, err := configuration.Secrets(object.Name, spec); err != nil {
			errs = append(errs, field.Forbidden(path.Child("providers"), oneLine(err)))
		}
	}
	errs = append(errs, checkResources(spec, declared, path.Child("resources"))...)
	errs = append(errs, checkStorage(spec.Storage, path.Child("storage"))...)
	errs = append(errs, checkDisabled(spec.Disabled, declared, path.Child("disabled"))...)
	errs = append(errs, checkExternal(spec.ExternalProviders, path.Child("externalProviders"))...)
	errs = append(errs, checkExpose(spec.Networking, path.Child("networking", "expose"))...)
	errs = append(errs, checkWorkload(spec.Workload, path.Child("workload"))...)
	errs = append(errs, checkSize(object)...)
	return append(errs, checkRejected(object)...)
}

// Update says what is wrong with a changed object and was not wrong before, so that an
// object that was stored under other rules can be edited and deleted.
func Update(old, object *v1alpha2.LlamaStackDistribution) field.ErrorList {
	before := map[string]bool{}
	for _, err := range Create(old) {
		before[err.Error()] = true
	}
	return slices.DeleteFunc(Create(object), func(err *field.Error) bool { return before[err.Error()] })
}

func invalid(path *field.Path, value any, err error) *field.Error {
	return field.Invalid(path, value, err.Error())
}

// oneLine has joined errors in one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// checkDistribution also has what the schema says, because an object of v1alpha1 may have
// neither a name nor an image.
func checkDistribution(d v1alpha2.Distribution, path *field.Path) field.ErrorList {
	switch {
	case d.Name == "" && d.Image == "":
		return field.ErrorList{field.Required(path, "distribution needs name or image: set one of them")}
	case d.Name != "" && d.Image != "":
		return field.ErrorList{field.Forbidden(path, "distribution.name and distribution.image are mutually exclusive: remove one of them")}
	case d.Name != "" && !slices.Contains(distribution.Names(), d.Name):
		return field.ErrorList{invalid(path.Child("name"), d.Name, distribution.Unknown(d.Name))}
	}
	return nil
}

// checkOverride has what the schema says, because an object of v1alpha1 that carries
// fields of v1alpha2 may get a configuration of its own.
func checkOverride(spec *v1alpha2.LlamaStackDistributionSpec, path *field.Path) field.ErrorList {
	if spec.OverrideConfig == nil {
		return nil
	}
	var errs field.ErrorList
	for _, other := range []struct {
		field string
		given bool
	}{
		{"providers", spec.Providers != nil}, {"resources", spec.Resources != nil},
		{"storage", spec.Storage != nil}, {"disabled", len(spec.Disabled) > 0},
	} {
		if other.given {
			errs = append(errs, field.Forbidden(path.Child("overrideConfig"), fmt.Sprintf("overrideConfig and %s are mutually exclusive: remove one of them", other.field)))
		}
	}
	return errs
}

// provider is a declared provider and where it is declared.
type provider struct {
	v1alpha2.Provider
	group v1alpha2.Group
	path  *field.Path
}

// readProviders reads all groups. A provider that cannot be read is an error and not
// among them.
func readProviders(providers *v1alpha2.Providers, path *field.Path) ([]provider, field.ErrorList) {
	var all []provider
	var errs field.ErrorList
	for _, group := range providers.Groups() {
		at := path.Child(group.Field)
		list, isList, err := group.List()
		if err != nil {
			where := at
			var item *v1alpha2.ItemError
			if errors.As(err, &item) {
				where, err = at.Index(item.Index), item.Err
			}
			errs = append(errs, field.Invalid(where, field.OmitValueType{}, err.Error()))
			continue
		}
		for i, p := range list {
			where := at
			if isList {
				where = at.Index(i)
			}
			if len(list) > 1 && p.ID == "" {
				errs = append(errs, field.Required(where.Child("id"), "each of several providers of an API needs an explicit id"))
			}
			all = append(all, provider{p, group, where})
		}
	}
	return all, errs
}

// checkIDs sees to it that no two providers share an ID, or the variables of their
// secrets.
func checkIDs(all []provider) field.ErrorList {
	var errs field.ErrorList
	byID, byPrefix := map[string]provider{}, map[string]provider{}
	for _, p := range all {
		id := p.EffectiveID()
		prefix := configuration.VariablePrefix(id)
		if other, found := byID[id]; found {
			errs = append(errs, field.Invalid(p.path.Child("id"), id, fmt.Sprintf("the ID %q conflicts with provider in %s: give one of them another id", id, other.path)))
		} else if other, found := byPrefix[prefix]; found {
			errs = append(errs, field.Invalid(p.path.Child("id"), id, fmt.Sprintf("the secrets of %q and of %q in %s would both be variables that begin with %s: give one of them another id",
				id, other.EffectiveID(), other.path, prefix)))
		}
		byID[id], byPrefix[prefix] = p, p
	}
	return errs
}

// checkResources checks the models, and that their providers are declared or in the
// distribution.
func checkResources(spec *v1alpha2.LlamaStackDistributionSpec, declared []provider, path *field.Path) field.ErrorList {
	if spec.Resources == nil {
		return nil
	}
	var errs field.ErrorList
	known := knownIDs(spec, declared)
	for i, value := range spec.Resources.Models {
		at := path.Child("models").Index(i)
		model, err := v1alpha2.ReadModel(value)
		switch {
		case err != nil:
			errs = append(errs, invalid(at, string(value.Raw), err))
		case model.Provider != "" && spec.Providers != nil && !slices.Contains(known, model.Provider):
			errs = append(errs, field.Invalid(at.Child("provider"), model.Provider, fmt.Sprintf("the model %q references unknown provider ID %q: use one of %s",
				model.Name, model.Provider, strings.Join(known, ", "))))
		}
	}
	return errs
}

// knownIDs are the providers that a model may name: the declared ones, and those of the
// distribution where that is known.
func knownIDs(spec *v1alpha2.LlamaStackDistributionSpec, declared []provider) []string {
	var ids []string
	for _, p := range declared {
		ids = append(ids, p.EffectiveID())
	}
	if resolved, err := distribution.Resolve(spec.Distribution, nil); err == nil && resolved.Base != nil {
		ids = append(ids, configuration.ProviderIDs(resolved.Base, "inference")...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func checkExternal(e *v1alpha2.ExternalProviders, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]*field.Path{}
	for _, p := range externalsOf(e, path) {
		if other, found := seen[p.ProviderID]; found {
			errs = append(errs, field.Invalid(p.path, p.ProviderID, fmt.Sprintf("the ID %q conflicts with provider in %s: give one of them another providerId", p.ProviderID, other)))
		}
		seen[p.ProviderID] = p.path
	}
	return errs
}

// external is an external provider and where its ID is.
type external struct {
	v1alpha2.ExternalProvider
	path *field.Path
}

func externalsOf(e *v1alpha2.ExternalProviders, path *field.Path) []external {
	if e == nil {
		return nil
	}
	var all []external
	for _, group := range []struct {
		field string
		list  []v1alpha2.ExternalProvider
	}{{"inference", e.Inference}, {"safety", e.Safety}, {"vectorIo", e.VectorIo}, {"toolRuntime", e.ToolRuntime}, {"telemetry", e.Telemetry}} {
		for i, p := range group.list {
			all = append(all, external{p, path.Child(group.field).Index(i).Child("providerId")})
		}
	}
	return all
}
