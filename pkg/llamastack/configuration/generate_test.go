package configuration_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/distribution"
)

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return text
}

func readSpec(t *testing.T, text string) *v1alpha2.LlamaStackDistributionSpec {
	t.Helper()
	spec := &v1alpha2.LlamaStackDistributionSpec{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), spec), text)
	return spec
}

// generate makes the configuration of an object called demo from the small base.
func generate(t *testing.T, spec string) (configuration.Generated, error) {
	t.Helper()
	return configuration.Generate("demo", readSpec(t, spec), readFile(t, "base.yaml"), configuration.Options{})
}

// data is YAML as data.
func data(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var read map[string]any
	require.NoError(t, yaml.UnmarshalStrict(text, &read), string(text))
	return read
}

// at is what is at a path of keys and indexes.
func at(t *testing.T, from any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			require.Contains(t, from, step)
			from = from.(map[string]any)[step]
		case int:
			require.Greater(t, len(from.([]any)), step)
			from = from.([]any)[step]
		}
	}
	return from
}

func TestWholeConfigurations(t *testing.T) {
	for name, want := range map[string]configuration.Generated{
		"one-provider": {Providers: 1, Resources: 1, Version: 2},
		"everything": {Providers: 3, Resources: 3, Version: 2, Secrets: []configuration.Secret{
			{Variable: "LLSD_LLM_B_API_KEY", From: v1alpha2.SecretKeySelector{Name: "llm-b-auth", Key: "token"}, Field: "spec.providers.inference[1].apiKey"},
			{Variable: "LLSD_PGVECTOR_PASSWORD", From: v1alpha2.SecretKeySelector{Name: "pg-creds", Key: "pw"}, Field: "spec.providers.vectorIo.secretRefs.password"},
			{Variable: "LLSD_KV_REDIS_PASSWORD", From: v1alpha2.SecretKeySelector{Name: "cache-auth", Key: "pw"}, Field: "spec.storage.kv.password"},
			{Variable: "LLSD_SQL_POSTGRES_CONNECTIONSTRING", From: v1alpha2.SecretKeySelector{Name: "state-db", Key: "url"}, Field: "spec.storage.sql.connectionString"},
			{Variable: "LLSD_SQL_POSTGRES_HOST", From: v1alpha2.SecretKeySelector{Name: "demo-sql-postgres", Key: "host"}},
			{Variable: "LLSD_SQL_POSTGRES_PORT", From: v1alpha2.SecretKeySelector{Name: "demo-sql-postgres", Key: "port"}},
			{Variable: "LLSD_SQL_POSTGRES_DB", From: v1alpha2.SecretKeySelector{Name: "demo-sql-postgres", Key: "db"}},
			{Variable: "LLSD_SQL_POSTGRES_USER", From: v1alpha2.SecretKeySelector{Name: "demo-sql-postgres", Key: "user"}},
			{Variable: "LLSD_SQL_POSTGRES_PASSWORD", From: v1alpha2.SecretKeySelector{Name: "demo-sql-postgres", Key: "password"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := generate(t, string(readFile(t, name+".spec.yaml")))
			require.NoError(t, err)
			assert.Equal(t, data(t, readFile(t, name+".config.yaml")), data(t, got.Text))
			assert.Equal(t, configuration.Hash(got.Text), got.Hash)
			assert.NotContains(t, string(got.Text), "llm-b-auth", "the text names variables, not Secrets")
			want.Text, want.Hash = got.Text, got.Hash
			assert.Equal(t, want, got)
		})
	}
}

func TestWhatAConfigurationIsWantedFor(t *testing.T) {
	for spec, want := range map[string]bool{
		"distribution: {name: starter}":                                     false,
		"distribution: {name: starter}\nproviders: {}":                      false,
		"distribution: {name: starter}\nresources: {}":                      false,
		"distribution: {name: starter}\nstorage: {}":                        false,
		"distribution: {name: starter}\nnetworking: {port: 9000}":           false,
		"distribution: {name: starter}\nworkload: {workers: 2}":             false,
		"distribution: {name: starter}\nproviders: {safety: {provider: x}}": true,
		"distribution: {name: starter}\nresources: {tools: [t]}":            true,
		"distribution: {name: starter}\nstorage: {kv: {}}":                  true,
		"distribution: {name: starter}\nstorage: {sql: {}}":                 true,
		"distribution: {name: starter}\ndisabled: [eval]":                   true,
	} {
		assert.Equal(t, want, configuration.Wanted(readSpec(t, spec)), spec)
	}
}

func TestProviders(t *testing.T) {
	for name, c := range map[string]struct {
		providers string
		path      []any
		want      string
	}{
		"a type without a prefix is remote": {
			`inference: {provider: vllm, endpoint: "http://v/v1"}`, []any{"inference", 2},
			`{provider_id: vllm, provider_type: "remote::vllm", config: {base_url: "http://v/v1"}}`,
		},
		"a type with a prefix stays": {
			`inference: {provider: "inline::meta-reference"}`, []any{"inference", 2},
			`{provider_id: meta-reference, provider_type: "inline::meta-reference", config: {}}`,
		},
		"a prefix of two parts": {
			`inference: {provider: "remote::hf::endpoint"}`, []any{"inference", 2},
			`{provider_id: endpoint, provider_type: "remote::hf::endpoint", config: {}}`,
		},
		"the same ID replaces where it is": {
			`safety: {id: llama-guard, provider: nvidia, endpoint: "http://n"}`, []any{"safety"},
			`[{provider_id: llama-guard, provider_type: "remote::nvidia", config: {guardrails_service_url: "http://n"}}]`,
		},
		"what has a field wins over settings": {
			`inference: {provider: openai, endpoint: "http://e", apiKey: {name: s, key: k}, settings: {base_url: b, api_key: a, other: 1}}`, []any{"inference", 2, "config"},
			`{base_url: "http://e", api_key: "${env.LLSD_OPENAI_API_KEY}", other: 1}`,
		},
		"the other form of a reference": {
			`inference: {provider: openai, apiKey: {secretKeyRef: {name: s, key: k}}}`, []any{"inference", 2, "config"},
			`{api_key: "${env.LLSD_OPENAI_API_KEY}"}`,
		},
		"a setting from a Secret": {
			`inference: {id: my-own.1, provider: bedrock, settings: {aws_key: {secretKeyRef: {name: s, key: k}}, like: {secretKeyRef: {name: s}}, deep: {a: {secretKeyRef: {name: s, key: k}}}}}`,
			[]any{"inference", 2, "config"},
			`{aws_key: "${env.LLSD_MY_OWN_1_AWS_KEY}", like: {secretKeyRef: {name: s}}, deep: {a: {secretKeyRef: {name: s, key: k}}}}`,
		},
		"chromadb has its own word for the address, and vector stores keep state": {
			`vectorIo: {provider: chromadb, endpoint: "http://c"}`, []any{"vector_io", 1, "config"},
			`{url: "http://c", persistence: {backend: kv_default, namespace: "vector_io::chromadb"}}`,
		},
		"state that is given stays": {
			`vectorIo: {provider: milvus, endpoint: "http://m", settings: {persistence: {backend: other, namespace: n}}}`, []any{"vector_io", 1, "config"},
			`{uri: "http://m", persistence: {backend: other, namespace: n}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := generate(t, "distribution: {name: starter}\nproviders: {"+c.providers+"}")
			require.NoError(t, err)
			var want any
			require.NoError(t, yaml.Unmarshal([]byte(c.want), &want))
			assert.Equal(t, want, at(t, data(t, got.Text), append([]any{"providers"}, c.path...)...))
		})
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	got, err := generate(t, "distribution: {name: starter}\nproviders: {inference: {provider: vllm, settings: {million: 1000000, exact: 9007199254740993, part: 0.5}}}")
	require.NoError(t, err)
	assert.Contains(t, string(got.Text), "million: 1000000\n")
	assert.Contains(t, string(got.Text), "exact: 9007199254740993\n")
	assert.Contains(t, string(got.Text), "part: 0.5\n")
}

func TestResources(t *testing.T) {
	const head = "distribution: {name: starter}\n"
	for name, c := range map[string]struct {
		spec string
		key  string
		want string
	}{
		"a model of a provider that may not be there": {
			head + "resources: {models: [{name: m, provider: ollama}]}", "models",
			`[{model_id: m, provider_id: "${env.OLLAMA_URL:+ollama}"}]`,
		},
		"without a provider the one whose variable is set": {
			head + "resources: {models: [m]}\nworkload: {overrides: {env: [{name: A, value: b}, {name: OLLAMA_URL, value: 'http://o'}]}}", "models",
			`[{model_id: m, provider_id: "${env.OLLAMA_URL:+ollama}"}]`,
		},
		"without a provider a declared one": {
			head + "providers: {inference: {provider: vllm}}\nresources: {models: [m]}\nworkload: {overrides: {env: [{name: OLLAMA_URL, value: 'http://o'}]}}", "models",
			`[{model_id: m, provider_id: vllm}]`,
		},
		"an embedding model is served in the server": {
			head + "resources: {models: [{name: m, modelType: embedding}]}", "models",
			`[{model_id: m, provider_id: sentence-transformers, model_type: embedding, metadata: {model_type: embedding}}]`,
		},
		"a type that the server does not know": {
			head + "resources: {models: [{name: m, provider: ollama, modelType: audio, quantization: fp8}]}", "models",
			`[{model_id: m, provider_id: "${env.OLLAMA_URL:+ollama}", metadata: {model_type: audio, quantization: fp8}}]`,
		},
		"tools fall back on the base": {
			head + "resources: {tools: [a, b]}", "tool_groups",
			`[{toolgroup_id: "builtin::rag", provider_id: rag-runtime}, {toolgroup_id: a, provider_id: rag-runtime}, {toolgroup_id: b, provider_id: rag-runtime}]`,
		},
		"the same tool is replaced": {
			head + "providers: {toolRuntime: {provider: 'inline::other'}}\nresources: {tools: ['builtin::rag']}", "tool_groups",
			`[{toolgroup_id: "builtin::rag", provider_id: other}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := generate(t, c.spec)
			require.NoError(t, err)
			var want any
			require.NoError(t, yaml.Unmarshal([]byte(c.want), &want))
			read := data(t, got.Text)
			assert.Equal(t, want, at(t, read, "registered_resources", c.key))
			assert.NotContains(t, read, c.key, "never at the top")
		})
	}
}

// Requests for a model, and what is in them, must not go to an API of somebody else that nobody
// asked for.
func TestAModelIsNotGivenToAnAPIOfSomebodyElse(t *testing.T) {
	for _, base := range distribution.Names() {
		for name, more := range map[string]string{
			"no variable":    "",
			"another":        "\nworkload: {overrides: {env: [{name: OTHER, value: 'http://o'}]}}",
			"without value":  "\nworkload: {overrides: {env: [{name: OLLAMA_URL}]}}",
			"another's name": "\nworkload: {overrides: {env: [{name: OLLAMA, value: 'http://o'}]}}",
		} {
			spec := readSpec(t, "distribution: {name: "+base+"}\nresources: {models: [m]}"+more)
			resolved, err := distribution.Resolve(spec.Distribution, nil)
			require.NoError(t, err)
			got, err := configuration.Generate("demo", spec, resolved.Base, configuration.Options{})
			if err != nil {
				assert.Equal(t, configuration.ReasonMissingProvider, configuration.ReasonOf(err), base)
				assert.ErrorContains(t, err, "give the model a provider, one of", base)
				continue
			}
			models := at(t, data(t, got.Text), "registered_resources", "models").([]any)
			assert.Contains(t, models[0].(map[string]any)["provider_id"], "meta-reference", "%s, %s: it is in the server", base, name)
		}
	}
}
