package configuration

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// aliases are other names of APIs.
var aliases = map[v1alpha2.API]string{
	"postTraining": "post_training", "toolRuntime": "tool_runtime", "vectorIo": "vector_io",
}

// CanonicalAPI is the name that the server has for an API.
func CanonicalAPI(api v1alpha2.API) string {
	if name, ok := aliases[api]; ok {
		return name
	}
	return string(api)
}

// disabledAPIs are the server's names of the APIs. Agents and responses are one API under
// its earlier and its later name.
func disabledAPIs(disabled []v1alpha2.API) []string {
	var apis []string
	for _, api := range disabled {
		name := CanonicalAPI(api)
		apis = append(apis, name)
		switch name {
		case "agents":
			apis = append(apis, "responses")
		case "responses":
			apis = append(apis, "agents")
		}
	}
	return apis
}

// disable takes APIs out, and what means nothing without them.
func (c document) disable(disabled []v1alpha2.API) {
	off := disabledAPIs(disabled)
	if len(off) == 0 {
		return
	}
	if apis := c.apis(); apis != nil {
		c["apis"] = slices.DeleteFunc(apis, func(api string) bool { return slices.Contains(off, api) })
	}
	registered := child(c, "registered_resources")
	for _, api := range off {
		switch api {
		case "inference":
			c.dropModels(registered)
		case "safety":
			delete(registered, "shields")
			delete(c, "safety")
		case "tool_runtime":
			delete(registered, "tool_groups")
		case "vector_io":
			delete(registered, "vector_stores")
			delete(c, "vector_stores")
		}
		delete(child(c, "providers"), api)
	}
}

// dropModels takes out what providers of inference would serve: the registered models,
// and the default model of vector stores.
func (c document) dropModels(registered map[string]any) {
	var ids []string
	for _, entry := range c.providers("inference") {
		id := textOf(entry, "provider_id")
		inner, _ := innerID(id)
		ids = append(ids, id, inner)
	}
	served := func(entry any) bool { return slices.Contains(ids, textOf(entry, "provider_id")) }
	if models := items(registered, "models"); models != nil {
		registered["models"] = slices.DeleteFunc(models, served)
	}
	if stores, ok := c["vector_stores"].(map[string]any); ok && served(stores["default_embedding_model"]) {
		delete(stores, "default_embedding_model")
	}
}
