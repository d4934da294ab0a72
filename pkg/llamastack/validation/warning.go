package validation

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/distribution"
)

// inlineOnly are types of providers that run in the server, and are unknown to it with
// the prefix that a bare name gets.
var inlineOnly = []string{"llama-guard", "code-scanner", "prompt-guard", "faiss", "sqlite-vec", "sentence-transformers", "rag-runtime", "meta-reference"}

// withPath are types of providers whose address has a path, /v1.
var withPath = []string{"remote::ollama", "remote::vllm", "remote::tgi"}

// Warnings say what is allowed and probably not meant. They are about objects that
// Create finds nothing wrong with.
func Warnings(object *v1alpha2.LlamaStackDistribution) []string {
	warnings := effective(object)
	spec := &object.Spec
	declared, _ := readProviders(spec.Providers, field.NewPath("spec", "providers"))
	for _, p := range declared {
		if slices.Contains(inlineOnly, p.Provider.Provider) {
			warnings = append(warnings, fmt.Sprintf("%s.provider: the server knows no %s: write inline::%s", p.path, p.Type(), p.Provider.Provider))
		}
		if slices.Contains(withPath, p.Type()) && withoutPath(p.Endpoint) {
			warnings = append(warnings, fmt.Sprintf("%s.endpoint: %s has no path, and the server appends none: you may mean %s/v1", p.path, p.Endpoint, strings.TrimSuffix(p.Endpoint, "/")))
		}
	}
	if n := spec.Networking; n != nil && n.Port != 0 && n.Port < 1024 {
		warnings = append(warnings, fmt.Sprintf("spec.networking.port: a Llama Stack server listens at a port of at least 1024, and not at %d", n.Port))
	}
	if n := spec.Networking; n != nil && n.AllowedFrom != nil {
		warnings = append(warnings, unusable(n.AllowedFrom, field.NewPath("spec", "networking", "allowedFrom"))...)
	}
	if w := spec.Workload; w != nil && w.Storage != nil && (w.Autoscaling != nil && w.Autoscaling.MaxReplicas > 1 || w.Replicas != nil && *w.Replicas > 1) {
		warnings = append(warnings, "spec.workload.storage: all pods share one volume, which the pods of one node alone can mount: the others do not start")
	}
	if spec.ExternalProviders != nil {
		warnings = append(warnings, "spec.externalProviders: they are stored and not injected into the server yet; see the condition ExternalProvidersApplied")
		warnings = append(warnings, replaced(spec.ExternalProviders, declared)...)
	}
	if configuration.Wanted(spec) {
		if resolved, err := distribution.Resolve(spec.Distribution, nil); err == nil {
			if _, err := configuration.Generate(object.Name, spec, resolved.Base, configuration.Options{}); err != nil {
				warnings = append(warnings, "the configuration of the server cannot be generated: "+oneLine(err))
			}
		}
	}
	return warnings
}

// unusable warns of what no network policy can say. It is no error, because it does no harm
// where network policies are off, and was accepted there.
func unusable(from *v1alpha2.AllowedFrom, path *field.Path) []string {
	var warnings []string
	for i, label := range from.Labels {
		if len(apivalidation.IsQualifiedName(label)) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %s is no key of a label, so no network policy can be made of it: write the key alone, such as team", path.Child("labels").Index(i), label))
		}
	}
	for i, namespace := range from.Namespaces {
		if namespace != "*" && len(apivalidation.IsDNS1123Label(namespace)) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %s is no name of a namespace, so no network policy can be made of it", path.Child("namespaces").Index(i), namespace))
		}
	}
	return warnings
}

// replaced warns of providers that an external one with the same ID is to take the place of.
func replaced(e *v1alpha2.ExternalProviders, declared []provider) []string {
	var warnings []string
	for _, external := range externalsOf(e, field.NewPath("spec", "externalProviders")) {
		for _, p := range declared {
			if p.EffectiveID() == external.ProviderID {
				warnings = append(warnings, fmt.Sprintf("%s: %q is also the provider in %s, whose place the external one takes once it is injected", external.path, external.ProviderID, p.path))
			}
		}
	}
	return warnings
}

func withoutPath(endpoint string) bool {
	address, err := url.Parse(endpoint)
	return err == nil && address.Host != "" && strings.Trim(address.Path, "/") == ""
}

// Dropped warns of what only v1alpha2 has and an update through v1alpha1 took away,
// because the annotations that carry it were not written back.
func Dropped(old, object *v1alpha2.LlamaStackDistribution) []string {
	var lost []string
	for _, one := range []struct {
		field      string
		was, still bool
	}{
		{"providers", old.Spec.Providers != nil, object.Spec.Providers != nil},
		{"resources", old.Spec.Resources != nil, object.Spec.Resources != nil},
		{"storage", old.Spec.Storage != nil, object.Spec.Storage != nil},
		{"disabled", len(old.Spec.Disabled) > 0, len(object.Spec.Disabled) > 0},
		{"externalProviders", old.Spec.ExternalProviders != nil, object.Spec.ExternalProviders != nil},
	} {
		if one.was && !one.still {
			lost = append(lost, "spec."+one.field)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("this update through v1alpha1 lost %s: keep the annotations %s*, or use v1alpha2", strings.Join(lost, ", "), v1alpha2.PrefixV1alpha2)}
}
