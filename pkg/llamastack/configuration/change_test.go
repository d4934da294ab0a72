package configuration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/distribution"
)

// starter makes the configuration of an object from the base of the distribution starter.
func starter(t *testing.T, spec string) (configuration.Generated, error) {
	t.Helper()
	read := readSpec(t, spec)
	resolved, err := distribution.Resolve(read.Distribution, nil)
	require.NoError(t, err)
	return configuration.Generate("demo", read, resolved.Base, configuration.Options{})
}

func TestStorage(t *testing.T) {
	for name, c := range map[string]struct{ storage, kv, sql string }{
		"a key-value store alone": {
			`{kv: {type: redis, endpoint: "redis://r"}}`,
			`{type: kv_redis, host: r, port: 6379}`,
			`{type: sql_sqlite, db_path: "${env.SQLITE_STORE_DIR:=~/.llama/distributions/starter}/sql_store.db"}`,
		},
		"files": {
			`{kv: {type: sqlite}, sql: {}}`,
			`{type: kv_sqlite, db_path: "${env.SQLITE_STORE_DIR:=~/.llama}/kvstore.db"}`,
			`{type: sql_sqlite, db_path: "${env.SQLITE_STORE_DIR:=~/.llama}/sqlstore.db"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := generate(t, "distribution: {name: starter}\nstorage: "+c.storage)
			require.NoError(t, err)
			read := data(t, got.Text)
			assert.Equal(t, data(t, []byte(c.kv)), at(t, read, "storage", "backends", "kv_default"))
			assert.Equal(t, data(t, []byte(c.sql)), at(t, read, "storage", "backends", "sql_default"))
			assert.Equal(t, at(t, data(t, readFile(t, "base.yaml")), "storage", "stores"), at(t, read, "storage", "stores"))
		})
	}
	t.Run("a base without backends", func(t *testing.T) {
		_, err := configuration.Generate("demo", readSpec(t, "distribution: {name: starter}\nstorage: {kv: {}}"), []byte("version: 1\nmetadata_store: {}\n"), configuration.Options{})
		assert.ErrorContains(t, err, "has no storage.backends to replace")
	})
}

func TestDisabledAPIs(t *testing.T) {
	for api, c := range map[string]struct {
		canonical string
		gone      [][]any
		stays     [][]any
	}{
		"inference":    {"inference", [][]any{{"registered_resources", "models", 0}, {"vector_stores", "default_embedding_model"}}, [][]any{{"vector_stores", "default_provider_id"}}},
		"safety":       {"safety", [][]any{{"registered_resources", "shields"}, {"safety"}}, [][]any{{"registered_resources", "tool_groups"}}},
		"toolRuntime":  {"tool_runtime", [][]any{{"registered_resources", "tool_groups"}}, [][]any{{"registered_resources", "shields"}}},
		"vectorIo":     {"vector_io", [][]any{{"vector_stores"}}, [][]any{{"registered_resources", "tool_groups"}}},
		"responses":    {"agents", nil, nil},
		"agents":       {"agents", nil, nil},
		"postTraining": {"post_training", nil, nil},
		"eval":         {"eval", nil, [][]any{{"providers", "inference"}}},
	} {
		t.Run(api, func(t *testing.T) {
			got, err := starter(t, "distribution: {name: starter}\ndisabled: ["+api+"]")
			require.NoError(t, err)
			read := data(t, got.Text)
			assert.NotContains(t, read["apis"], c.canonical)
			assert.Len(t, read["apis"], 10)
			assert.NotContains(t, read["providers"], c.canonical)
			for _, path := range c.gone {
				assert.False(t, has(read, path...), path)
			}
			for _, path := range c.stays {
				assert.True(t, has(read, path...), path)
			}
		})
	}
	t.Run("a model of another provider stays", func(t *testing.T) {
		base := string(readFile(t, "base.yaml"))
		var read map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(base), &read))
		read["registered_resources"] = map[string]any{"models": []any{
			map[string]any{"model_id": "gone", "provider_id": "ollama"}, map[string]any{"model_id": "stays", "provider_id": "elsewhere"},
		}}
		text, err := yaml.Marshal(read)
		require.NoError(t, err)
		got, err := configuration.Generate("demo", readSpec(t, "distribution: {name: starter}\ndisabled: [inference]"), text, configuration.Options{})
		require.NoError(t, err)
		assert.Equal(t, []any{map[string]any{"model_id": "stays", "provider_id": "elsewhere"}}, at(t, data(t, got.Text), "registered_resources", "models"))
	})
}

// has says whether there is something at a path.
func has(from any, path ...any) bool {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := from.(map[string]any)
			if from = fields[step]; from == nil {
				return false
			}
		case int:
			list, _ := from.([]any)
			if step >= len(list) {
				return false
			}
			from = list[step]
		}
	}
	return true
}

// With any shield registered the server refuses a default shield that is none of them,
// and those of the base are there only where their variables are set.
func TestShieldsAndTheDefaultOne(t *testing.T) {
	got, err := starter(t, "distribution: {name: starter}\nresources: {shields: [mine]}")
	require.NoError(t, err)
	read := data(t, got.Text)
	assert.False(t, has(read, "safety"))
	assert.Len(t, at(t, read, "registered_resources", "shields"), 3, "those of the base stay")

	got, err = starter(t, "distribution: {name: starter}\nresources: {shields: [llama-guard]}")
	require.NoError(t, err)
	assert.Equal(t, "llama-guard", at(t, data(t, got.Text), "safety", "default_shield_id"))

	got, err = starter(t, "distribution: {name: starter}\nresources: {tools: [t]}")
	require.NoError(t, err)
	assert.Equal(t, "llama-guard", at(t, data(t, got.Text), "safety", "default_shield_id"), "nothing was added")
}

func TestWhatIsUnknownStays(t *testing.T) {
	got, err := configuration.Generate("demo", readSpec(t, "distribution: {name: starter}\ndisabled: [eval]\nnetworking: {tls: {}}"),
		[]byte("version: '2'\nlogging: {level: debug}\nproviders: {}\nserver: {port: 1234, auth: {a: b}}\n"), configuration.Options{})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"version": "2", "logging": map[string]any{"level": "debug"}, "providers": map[string]any{}, "registered_resources": map[string]any{},
		"server": map[string]any{"port": 1234.0, "auth": map[string]any{"a": "b"}},
	}, data(t, got.Text))
}

func TestErrors(t *testing.T) {
	const head = "distribution: {name: starter}\n"
	for name, c := range map[string]struct {
		spec, base      string
		reason, message string
	}{
		"no base":                    {"distribution: {image: 'a/b'}\ndisabled: [eval]", "-", configuration.ReasonBaseRequired, `no configuration is known for the image "a/b"`},
		"version 0":                  {head, "version: 0", configuration.ReasonUnsupportedVersion, "has the version 0: 1 or 2 is expected"},
		"version 99":                 {head, "version: 99", configuration.ReasonUnsupportedVersion, "has the version 99"},
		"version 1.5":                {head, "version: 1.5", configuration.ReasonUnsupportedVersion, "has the version 1.5"},
		"version text":               {head, "version: new", configuration.ReasonUnsupportedVersion, "has the version new"},
		"no version":                 {head, "apis: []", configuration.ReasonUnsupportedVersion, "has no version"},
		"no map":                     {head, "[]", configuration.ReasonFailed, "reading the configuration"},
		"nothing":                    {head, "", configuration.ReasonFailed, "it is empty"},
		"telemetry":                  {head + "providers: {telemetry: {provider: otel}}", "", configuration.ReasonFailed, "has no telemetry API"},
		"no such model provider":     {head + "resources: {models: [{name: m, provider: other}]}", "", configuration.ReasonMissingProvider, `"m" needs an inference provider: there is no provider with the ID "other": use one of ollama, sentence-transformers`},
		"tools without a provider":   {head + "resources: {tools: [t]}", "version: 2\nproviders: {}", configuration.ReasonMissingProvider, "they need a toolRuntime provider: add one to spec.providers.toolRuntime"},
		"shields without a provider": {head + "resources: {shields: [s]}", "version: 2\nproviders: {}", configuration.ReasonMissingProvider, "they need a safety provider"},
		"a model and only providers that may not be there": {head + "resources: {models: [m]}", "version: 2\nproviders: {inference: [{provider_id: '${env.A:+a}'}]}", configuration.ReasonMissingProvider, `"m" needs an inference provider`},
		"a model without inference":                        {head + "resources: {models: [m]}\ndisabled: [inference]", "", configuration.ReasonMissingProvider, `the model "m" needs the API inference, which spec.disabled names`},
		"tools without their API":                          {head + "resources: {tools: [t]}\ndisabled: [toolRuntime]", "", configuration.ReasonMissingProvider, "need the API tool_runtime, which spec.disabled names"},
		"two references of one variable": {head + "providers: {inference: [{id: a-b, provider: x, apiKey: {name: s, key: k}}, {id: a_b, provider: z, apiKey: {name: t, key: k}}]}", "", configuration.ReasonFailed,
			"spec.providers.inference[0].apiKey and spec.providers.inference[1].apiKey would both be the variable LLSD_A_B_API_KEY"},
		"two ways to give a key":  {head + "providers: {inference: {provider: x, apiKey: {name: s, key: k}, secretRefs: {api_key: {name: s, key: k}}}}", "", configuration.ReasonFailed, "apiKey and secretRefs.api_key are the same setting"},
		"a model that is none":    {head + "resources: {models: [1]}", "", configuration.ReasonFailed, "spec.resources.models[0]: neither a name nor an object"},
		"a provider that is none": {head + "providers: {safety: 1}", "", configuration.ReasonFailed, "spec.providers.safety: neither an object nor a list"},
		"redis over TLS":          {head + "storage: {kv: {type: redis, endpoint: 'rediss://r'}}", "", configuration.ReasonFailed, "spec.storage.kv.endpoint: the server knows only the scheme redis"},
	} {
		t.Run(name, func(t *testing.T) {
			base := []byte(c.base)
			switch {
			case c.base == "-":
				base = nil
			case c.base == "" && name != "nothing":
				base = readFile(t, "base.yaml")
			}
			_, err := configuration.Generate("demo", readSpec(t, c.spec), base, configuration.Options{})
			require.ErrorContains(t, err, c.message)
			assert.Equal(t, c.reason, configuration.ReasonOf(err))
		})
	}
}

func TestOverrides(t *testing.T) {
	assert.NoError(t, configuration.CheckOverride([]byte("version: 2\nproviders: {}")))
	assert.ErrorContains(t, configuration.CheckOverride([]byte("version: 3")), "1 or 2 is expected")
	assert.ErrorContains(t, configuration.CheckOverride([]byte("a: [")), "config.yaml is no YAML map")
	assert.ErrorContains(t, configuration.CheckOverride([]byte("a: 1\na: 2")), "config.yaml is no YAML map")
}

func TestThePasswordOfRedisBeforeTheHost(t *testing.T) {
	spec := readSpec(t, "distribution: {name: starter}\nstorage: {kv: {type: redis, endpoint: 'redis://cache:6379', password: {name: s, key: k}}}")
	got, err := configuration.Generate("demo", spec, readFile(t, "base.yaml"), configuration.Options{RedisPasswordInHost: true})
	require.NoError(t, err)
	backend := at(t, data(t, got.Text), "storage", "backends", "kv_default").(map[string]any)
	assert.Equal(t, ":${env.LLSD_KV_REDIS_PASSWORD}@cache", backend["host"])
	assert.InDelta(t, 6379, backend["port"], 0)
	spec.Storage.KV.Password = nil
	got, err = configuration.Generate("demo", spec, readFile(t, "base.yaml"), configuration.Options{RedisPasswordInHost: true})
	require.NoError(t, err)
	assert.Equal(t, "cache", at(t, data(t, got.Text), "storage", "backends", "kv_default", "host"), "there is none")
}
