package configuration

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// declared is a provider of the object and the API that it backs.
type declared struct {
	api string
	v1alpha2.Provider
}

// endpointFields has the setting that a provider takes its address from, by API and type,
// where it is not base_url.
var endpointFields = map[[2]string]string{
	{"vector_io", "remote::chromadb"}:      "url",
	{"vector_io", "remote::qdrant"}:        "url",
	{"vector_io", "remote::milvus"}:        "uri",
	{"vector_io", "remote::weaviate"}:      "weaviate_cluster_url",
	{"vector_io", "remote::elasticsearch"}: "elasticsearch_url",
	{"safety", "remote::nvidia"}:           "guardrails_service_url",
	{"safety", "remote::sambanova"}:        "url",
}

// tokenTypes are the providers of inference that read their credential from api_token.
var tokenTypes = []string{"remote::vllm", "remote::databricks", "remote::runpod"}

// addProviders merges the declared providers into those of the base, by their IDs, and
// returns them.
func (c document) addProviders(providers *v1alpha2.Providers) ([]declared, error) {
	var all []declared
	for _, group := range providers.Groups() {
		list, _, err := group.List()
		if err != nil {
			return nil, failed(ReasonFailed, "spec.providers.%s: %w", group.Field, err)
		}
		if len(list) == 0 {
			continue
		}
		if group.API == "telemetry" && !c.hasAPI(group.API) {
			return nil, failed(ReasonFailed, "spec.providers.telemetry: the distribution has no telemetry API, and its server would not start: remove the provider")
		}
		entries := make([]any, 0, len(list))
		for _, provider := range list {
			entries = append(entries, entryOf(group.API, provider))
			all = append(all, declared{group.API, provider})
		}
		child(c, "providers")[group.API] = merge(c.providers(group.API), entries, "provider_id")
		if c.apis() != nil && !c.hasAPI(group.API) {
			c["apis"] = append(c.apis(), group.API)
		}
	}
	return all, nil
}

// entryOf is a provider as the configuration has it. What has a field of its own wins
// over the settings.
func entryOf(api string, p v1alpha2.Provider) map[string]any {
	config := map[string]any{}
	for key, value := range p.Settings {
		if _, ok := secretIn(value); ok {
			value = placeholder(variable(p.EffectiveID(), key))
		}
		config[key] = value
	}
	if p.Endpoint != "" {
		field, ok := endpointFields[[2]string{api, p.Type()}]
		if !ok {
			field = "base_url"
		}
		config[field] = p.Endpoint
	}
	if p.APIKey != nil {
		value := placeholder(variable(p.EffectiveID(), apiKeyField))
		config[apiKeyField] = value
		if api == "inference" && slices.Contains(tokenTypes, p.Type()) {
			config["api_token"] = value
		}
	}
	for key := range p.SecretRefs {
		config[key] = placeholder(variable(p.EffectiveID(), key))
	}
	if _, ok := config["persistence"]; !ok && api == "vector_io" {
		config["persistence"] = map[string]any{"backend": "kv_default", "namespace": "vector_io::" + p.EffectiveID()}
	}
	return map[string]any{"provider_id": p.EffectiveID(), "provider_type": p.Type(), "config": config}
}

// variableIn is a variable of the environment in a configuration.
var variableIn = regexp.MustCompile(`\$\{env\.([A-Za-z0-9_]+)`)

// chooseFor finds the provider of a model: the one that it names, else the first that the object
// declares, else the first of the base of which the object sets a variable, or that is in the
// server. Any other of the base is an API of somebody else, to which requests must not go unasked.
func (c document) chooseFor(m v1alpha2.Model, spec *v1alpha2.LlamaStackDistributionSpec, all []declared) (string, error) {
	const api = "inference"
	if m.Provider != "" || slices.ContainsFunc(all, func(p declared) bool { return p.api == api }) {
		return c.choose(api, m.Provider, all)
	}
	var ids []string
	for _, entry := range c.providers(api) {
		id, kind := textOf(entry, "provider_id"), textOf(entry, "provider_type")
		inner, isGated := innerID(id)
		inside := !isGated && strings.HasPrefix(kind, "inline::") && (kind != "inline::sentence-transformers" || m.ModelType == "embedding")
		if inside || setsVariable(spec, entry) {
			return id, nil
		}
		ids = append(ids, inner)
	}
	if len(ids) == 0 {
		return c.choose(api, "", all)
	}
	return "", fmt.Errorf("the object declares none and sets no variable of one of the distribution: add one to spec.providers.inference, or give the model a provider, one of %s", strings.Join(ids, ", "))
}

// setsVariable says whether the environment of the object has a variable that an entry reads.
func setsVariable(spec *v1alpha2.LlamaStackDistributionSpec, entry any) bool {
	if spec.Workload == nil || spec.Workload.Overrides == nil {
		return false
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return false
	}
	for _, read := range variableIn.FindAllSubmatch(text, -1) {
		for _, set := range spec.Workload.Overrides.Env {
			if set.Name == string(read[1]) && (set.Value != "" || set.ValueFrom != nil) {
				return true
			}
		}
	}
	return false
}

// choose finds the provider that a resource of an API belongs to: the one that it names,
// else the first that the object declares, else the first of the base that is always
// there. The answer is the ID as the configuration has it.
func (c document) choose(api, named string, all []declared) (string, error) {
	if named == "" {
		for _, p := range all {
			if p.api == api {
				return p.EffectiveID(), nil
			}
		}
	}
	var ids []string
	for _, entry := range c.providers(api) {
		id := textOf(entry, "provider_id")
		inner, isGated := innerID(id)
		if named == "" && !isGated || named != "" && inner == named {
			return id, nil
		}
		ids = append(ids, inner)
	}
	if named != "" {
		return "", fmt.Errorf("there is no provider with the ID %q: use one of %s", named, strings.Join(ids, ", "))
	}
	return "", fmt.Errorf("there is no provider for it")
}
