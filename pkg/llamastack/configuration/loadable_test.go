package configuration_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/distribution"
)

// specs are what an object may declare, each in another part of the configuration.
var specs = map[string]string{
	"nothing":           "workload: {workers: 1}",
	"one provider":      "providers: {inference: {provider: vllm, endpoint: 'http://v/v1', apiKey: {name: s, key: k}}}\nresources: {models: [m]}",
	"several":           "providers: {inference: [{id: a, provider: ollama, endpoint: 'http://a'}, {id: b, provider: vllm, endpoint: 'http://b'}]}\nresources: {models: [{name: m, provider: a, modelType: llm}, {name: other, provider: b, contextLength: 4096}]}",
	"every API":         "providers: {inference: {provider: tgi, endpoint: 'http://t'}, safety: {provider: 'inline::prompt-guard'}, vectorIo: {provider: qdrant, endpoint: 'http://q'}, toolRuntime: {provider: 'remote::wolfram-alpha', apiKey: {name: s, key: k}}}",
	"tools and shields": "resources: {tools: ['builtin::more'], shields: [mine]}",
	"redis":             "storage: {kv: {type: redis, endpoint: 'redis://r:6379', password: {name: s, key: k}}}",
	"postgres":          "storage: {sql: {type: postgres, connectionString: {name: s, key: k}}}",
	"files":             "storage: {kv: {}, sql: {}}",
	"a port":            "networking: {port: 9000}\nworkload: {workers: 4}\ndisabled: [safety]",
	"no inference":      "disabled: [inference, agents]",
	"no vector stores":  "disabled: [vectorIo, toolRuntime, responses]",
}

// apisWithTypes are the types of providers that Llama Stack 0.4 and 0.5 know, by API, as
// far as the bases and the specs here use them.
var apisWithTypes = map[string][]string{
	"agents":    {"inline::meta-reference"},
	"batches":   {"inline::reference"},
	"datasetio": {"remote::huggingface", "inline::localfs"},
	"eval":      {"inline::meta-reference"},
	"files":     {"inline::localfs"},
	"inference": {"remote::anthropic", "remote::azure", "remote::bedrock", "remote::cerebras", "remote::fireworks", "remote::gemini", "remote::groq",
		"remote::nvidia", "remote::ollama", "remote::openai", "remote::sambanova", "remote::tgi", "remote::together", "remote::vertexai", "remote::vllm",
		"inline::sentence-transformers", "inline::meta-reference"},
	"post_training": {"inline::torchtune-cpu", "inline::huggingface-gpu"},
	"safety":        {"inline::llama-guard", "inline::code-scanner", "inline::prompt-guard"},
	"scoring":       {"inline::basic", "inline::llm-as-judge", "inline::braintrust"},
	"tool_runtime":  {"remote::brave-search", "remote::tavily-search", "remote::wolfram-alpha", "remote::model-context-protocol", "inline::rag-runtime"},
	"vector_io":     {"inline::faiss", "inline::sqlite-vec", "inline::milvus", "remote::chromadb", "remote::pgvector", "remote::qdrant", "remote::weaviate", "remote::elasticsearch"},
}

// kindOfStore is the kind of backend that each of the server's stores needs.
var kindOfStore = map[string]string{
	"metadata": "kv_", "prompts": "kv_", "connectors": "kv_", "inference": "sql_", "conversations": "sql_", "responses": "sql_",
}

// neededOfBackend are the settings without which the server does not start.
var neededOfBackend = map[string][]string{
	"kv_sqlite": {"db_path"}, "sql_sqlite": {"db_path"}, "kv_redis": {"host", "port"}, "kv_postgres": {"user"}, "sql_postgres": {"host", "port", "db", "user"},
}

// Every server starts with what is generated for it: what Llama Stack checks before it
// serves is checked here.
func TestTheServerTakesEveryConfiguration(t *testing.T) {
	for _, name := range distribution.Names() {
		for what, text := range specs {
			t.Run(name+" "+what, func(t *testing.T) {
				spec := readSpec(t, "distribution: {name: "+name+"}\n"+text)
				resolved, err := distribution.Resolve(spec.Distribution, nil)
				require.NoError(t, err)
				got, err := configuration.Generate("demo", spec, resolved.Base, configuration.Options{})
				require.NoError(t, err)
				check(t, data(t, got.Text), got.Secrets)
				again, err := configuration.Generate("demo", spec.DeepCopy(), slices.Clone(resolved.Base), configuration.Options{})
				require.NoError(t, err)
				assert.Equal(t, got, again, "the same bytes every time")
			})
		}
	}
}

func check(t *testing.T, c map[string]any, secrets []configuration.Secret) {
	t.Helper()
	assert.True(t, has(c, "distro_name") || has(c, "image_name"), "a name")
	assert.Contains(t, []any{1.0, 2.0}, c["version"])
	port, _ := at(t, c, "server", "port").(float64)
	assert.True(t, port >= 1024 && port <= 65535, port)
	providers := checkProviders(t, c)
	checkStorage(t, c)
	checkResources(t, c, providers)
	var variables []string
	for _, s := range secrets {
		variables = append(variables, s.Variable)
	}
	walk(c, func(text string) {
		for _, match := range regexp.MustCompile(`\$\{env\.(LLSD_[A-Z0-9_]*)\}`).FindAllStringSubmatch(text, -1) {
			assert.Contains(t, variables, match[1], "a variable that nobody sets would end the server")
		}
	})
}

// checkProviders returns the IDs of the providers by API.
func checkProviders(t *testing.T, c map[string]any) map[string][]string {
	t.Helper()
	ids := map[string][]string{}
	for api, list := range c["providers"].(map[string]any) {
		assert.Contains(t, c["apis"], api)
		for _, entry := range list.([]any) {
			fields := entry.(map[string]any)
			assert.Contains(t, apisWithTypes[api], fields["provider_type"], api)
			id := fields["provider_id"].(string)
			assert.NotContains(t, ids[api], id, "an ID is unique within its API")
			ids[api] = append(ids[api], id)
		}
	}
	return ids
}

func checkStorage(t *testing.T, c map[string]any) {
	t.Helper()
	backends := at(t, c, "storage", "backends").(map[string]any)
	kinds := map[string]string{}
	for name, backend := range backends {
		kind := at(t, backend, "type").(string)
		kinds[name] = kind
		for _, key := range neededOfBackend[kind] {
			assert.Contains(t, backend, key, kind)
		}
		assert.Contains(t, neededOfBackend, kind)
	}
	for store, reference := range at(t, c, "storage", "stores").(map[string]any) {
		backend := at(t, reference, "backend").(string)
		assert.Regexp(t, "^"+kindOfStore[store], kinds[backend], store)
	}
}

func checkResources(t *testing.T, c map[string]any, providers map[string][]string) {
	t.Helper()
	registered, _ := c["registered_resources"].(map[string]any)
	for key, api := range map[string]string{"models": "inference", "tool_groups": "tool_runtime", "shields": "safety"} {
		list, _ := registered[key].([]any)
		for _, entry := range list {
			id, _ := entry.(map[string]any)["provider_id"].(string)
			if match := regexp.MustCompile(`:\+(.*)\}$`).FindStringSubmatch(id); match != nil && !slices.Contains(providers[api], id) {
				id = match[1]
			}
			if id != "" {
				assert.Contains(t, providers[api], id, "%s: %v", key, entry)
			}
		}
	}
	if shield, ok := c["safety"].(map[string]any); ok {
		list := registered["shields"].([]any)
		assert.True(t, slices.ContainsFunc(list, func(entry any) bool { return entry.(map[string]any)["shield_id"] == shield["default_shield_id"] }))
	}
	if stores, ok := c["vector_stores"].(map[string]any); ok {
		assert.Contains(t, providers["vector_io"], stores["default_provider_id"])
		if model, ok := stores["default_embedding_model"].(map[string]any); ok {
			assert.Contains(t, providers["inference"], model["provider_id"])
		}
	}
}

// walk visits every text of the data.
func walk(value any, visit func(string)) {
	switch value := value.(type) {
	case string:
		visit(value)
	case []any:
		for _, one := range value {
			walk(one, visit)
		}
	case map[string]any:
		for _, one := range value {
			walk(one, visit)
		}
	}
}
