package configuration

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// modelTypes are those that the server knows.
var modelTypes = []string{"llm", "embedding", "rerank"}

// addResources registers the models, tools and shields of the object.
func (c document) addResources(spec *v1alpha2.LlamaStackDistributionSpec, all []declared) error {
	if spec.Resources == nil {
		return nil
	}
	off := disabledAPIs(spec.Disabled)
	registered := child(c, "registered_resources")
	var models []any
	for i, value := range spec.Resources.Models {
		model, err := v1alpha2.ReadModel(value)
		if err != nil {
			return failed(ReasonFailed, "spec.resources.models[%d]: %w", i, err)
		}
		if slices.Contains(off, "inference") {
			return failed(ReasonMissingProvider, "spec.resources.models[%d]: the model %q needs the API inference, which spec.disabled names", i, model.Name)
		}
		provider, err := c.chooseFor(model, spec, all)
		if err != nil {
			return failed(ReasonMissingProvider, "spec.resources.models[%d]: the model %q needs an inference provider: %w", i, model.Name, err)
		}
		models = append(models, modelEntry(model, provider))
	}
	tools, err := c.named(spec.Resources.Tools, "tools", "tool_runtime", "toolRuntime", "toolgroup_id", off, all)
	if err != nil {
		return err
	}
	shields, err := c.named(spec.Resources.Shields, "shields", "safety", "safety", "shield_id", off, all)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		key, id string
		entries []any
	}{{"models", "model_id", models}, {"tool_groups", "toolgroup_id", tools}, {"shields", "shield_id", shields}} {
		if len(kind.entries) > 0 {
			registered[kind.key] = merge(items(registered, kind.key), kind.entries, kind.id)
		}
	}
	if len(shields) > 0 {
		c.checkDefaultShield()
	}
	return nil
}

// modelEntry is a model as the configuration has it. With a context length the server
// also wants the provider's own name of the model, which is the same.
func modelEntry(m v1alpha2.Model, provider string) map[string]any {
	entry := map[string]any{"model_id": m.Name, "provider_id": provider}
	metadata := map[string]any{}
	if m.ContextLength != nil {
		metadata["context_length"] = *m.ContextLength
		entry["provider_model_id"] = m.Name
	}
	if m.ModelType != "" {
		metadata["model_type"] = m.ModelType
		if slices.Contains(modelTypes, m.ModelType) {
			entry["model_type"] = m.ModelType
		}
	}
	if m.Quantization != "" {
		metadata["quantization"] = m.Quantization
	}
	if len(metadata) > 0 {
		entry["metadata"] = metadata
	}
	return entry
}

// named are resources that have nothing but a name.
func (c document) named(names []string, field, api, group, id string, off []string, all []declared) ([]any, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if slices.Contains(off, api) {
		return nil, failed(ReasonMissingProvider, "spec.resources.%s: they need the API %s, which spec.disabled names", field, api)
	}
	provider, err := c.choose(api, "", all)
	if err != nil {
		return nil, failed(ReasonMissingProvider, "spec.resources.%s: they need a %s provider: add one to spec.providers.%s", field, group, group)
	}
	entries := make([]any, 0, len(names))
	for _, name := range names {
		entries = append(entries, map[string]any{id: name, "provider_id": provider})
	}
	return entries, nil
}

// checkDefaultShield drops the default shield where it may not be among the registered
// ones: with any shield, the server refuses a default that is none of them.
func (c document) checkDefaultShield() {
	safety, ok := c["safety"].(map[string]any)
	if !ok {
		return
	}
	for _, entry := range items(child(c, "registered_resources"), "shields") {
		_, gatedShield := innerID(textOf(entry, "shield_id"))
		_, gatedProvider := innerID(textOf(entry, "provider_id"))
		if textOf(entry, "shield_id") == safety["default_shield_id"] && !gatedShield && !gatedProvider {
			return
		}
	}
	delete(safety, "default_shield_id")
	if len(safety) == 0 {
		delete(c, "safety")
	}
}
