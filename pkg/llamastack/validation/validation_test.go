package validation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/validation"
)

const head = "distribution: {name: starter}\n"

func object(t *testing.T, spec string) *v1alpha2.LlamaStackDistribution {
	t.Helper()
	object := &v1alpha2.LlamaStackDistribution{}
	object.Name = "demo"
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &object.Spec), spec)
	return object
}

func messages(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// Each rule has an object that it refuses, what the user then reads, and the nearest
// object that it accepts.
func TestCreate(t *testing.T) {
	for name, c := range map[string]struct {
		refused  string
		messages []string
		accepted string
	}{
		"a distribution is needed": {
			"{}", []string{"spec.distribution: Required value: distribution needs name or image: set one of them"}, head,
		},
		"and only one": {
			"distribution: {name: starter, image: a/b}",
			[]string{"spec.distribution: Forbidden: distribution.name and distribution.image are mutually exclusive: remove one of them"}, "distribution: {image: a/b}",
		},
		"a distribution is known": {
			"distribution: {name: other}",
			[]string{`spec.distribution.name: Invalid value: "other": unknown distribution "other": use one of meta-reference-gpu, postgres-demo, remote-vllm, starter, starter-gpu, or give an image`},
			"distribution: {name: remote-vllm}",
		},
		"a whole configuration stands alone": {
			head + "overrideConfig: {configMapName: c}\nproviders: {}\nresources: {}\nstorage: {}\ndisabled: [eval]",
			[]string{
				"spec.overrideConfig: Forbidden: overrideConfig and providers are mutually exclusive: remove one of them",
				"spec.overrideConfig: Forbidden: overrideConfig and resources are mutually exclusive: remove one of them",
				"spec.overrideConfig: Forbidden: overrideConfig and storage are mutually exclusive: remove one of them",
				"spec.overrideConfig: Forbidden: overrideConfig and disabled are mutually exclusive: remove one of them",
			},
			head + "overrideConfig: {configMapName: c}",
		},
		"providers are an object or a list": {
			head + "providers: {inference: vllm}",
			[]string{"spec.providers.inference: Invalid value: neither an object nor a list: write one provider, or a list of them"},
			head + "providers: {inference: {provider: vllm}}",
		},
		"a list of providers has one": {
			head + "providers: {inference: []}", []string{"spec.providers.inference: Invalid value: an empty list: remove it, or add a provider"},
			head + "providers: {inference: [{provider: vllm}]}",
		},
		"a provider has a type": {
			head + "providers: {safety: [{id: a, provider: x}, {id: b}]}",
			[]string{"spec.providers.safety[1]: Invalid value: provider is missing: name its type, such as vllm or inline::faiss"},
			head + "providers: {safety: [{id: a, provider: x}, {id: b, provider: z}]}",
		},
		"a type has a name": {
			head + "providers: {safety: {provider: 'inline::'}}", []string{`spec.providers.safety: Invalid value: provider "inline::" has no name after its prefix`}, head,
		},
		"a provider has no other fields": {
			head + "providers: {inference: {provider: vllm, url: u}}",
			[]string{`spec.providers.inference: Invalid value: unknown field "url": write id, provider, endpoint, apiKey, secretRefs or settings`},
			head + "providers: {inference: {provider: vllm, endpoint: u}}",
		},
		"a field of a provider has its type": {
			head + "providers: {inference: {provider: 1}}", []string{"spec.providers.inference: Invalid value: provider is a number where a string is expected"}, head,
		},
		"a reference is no text": {
			head + "providers: {inference: {provider: vllm, apiKey: hush}}", []string{"spec.providers.inference: Invalid value: apiKey is a string where an object is expected"}, head,
		},
		"a provider in a list is an object": {
			head + "providers: {inference: [vllm]}", []string{"spec.providers.inference[0]: Invalid value: it is a string where an object is expected"}, head,
		},
		"settings are an object": {
			head + "providers: {inference: {provider: vllm, settings: [a]}}", []string{"spec.providers.inference: Invalid value: settings is a list where an object is expected"}, head,
		},
		"a context is a number": {
			head + "resources: {models: [{name: m, contextLength: long}]}", []string{"contextLength is a string where a whole number is expected"}, head,
		},
		"a switch is true or false": {
			head + "networking: {expose: {enabled: 'yes'}}", []string{"enabled is a string where true or false is expected"}, head,
		},
		"an id is not empty": {
			head + "providers: {inference: {provider: vllm, id: ''}}", []string{"id is empty: give it a value, or remove it"}, head,
		},
		"a reference is whole": {
			head + "providers: {inference: {provider: vllm, apiKey: {name: s}}}",
			[]string{"spec.providers.inference: Invalid value: apiKey: name or key of the Secret is missing: write {name: <Secret>, key: <entry>}"},
			head + "providers: {inference: {provider: vllm, apiKey: {secretKeyRef: {name: s, key: k}}}}",
		},
		"a reference has one form": {
			head + "providers: {inference: {provider: vllm, secretRefs: {a: {name: s, key: k, secretKeyRef: {name: s, key: k}}}}}",
			[]string{"spec.providers.inference: Invalid value: secretRefs.a: both forms of a reference at once"},
			head + "providers: {inference: {provider: vllm, secretRefs: {a: {name: s, key: k}}}}",
		},
		"references are some": {
			head + "providers: {inference: {provider: vllm, secretRefs: {}}}", []string{"secretRefs is empty: add a reference, or remove it"}, head,
		},
		"several providers of an API have ids": {
			head + "providers: {inference: [{provider: vllm}, {id: b, provider: ollama}]}",
			[]string{"spec.providers.inference[0].id: Required value: each of several providers of an API needs an explicit id"},
			head + "providers: {inference: [{id: a, provider: vllm}, {id: b, provider: ollama}]}",
		},
		"an id is that of one provider among all": {
			head + "providers: {inference: {id: a, provider: vllm}, vectorIo: [{provider: 'remote::a'}]}",
			[]string{`spec.providers.vectorIo[0].id: Invalid value: "a": the ID "a" conflicts with provider in spec.providers.inference: give one of them another id`},
			head + "providers: {inference: {id: a, provider: vllm}, vectorIo: [{id: b, provider: 'remote::a'}]}",
		},
		"so are its variables": {
			head + "providers: {inference: [{id: a-b, provider: vllm}, {id: A.b, provider: vllm}]}",
			[]string{`spec.providers.inference[1].id: Invalid value: "A.b": the secrets of "A.b" and of "a-b" in spec.providers.inference[0] would both be variables that begin with LLSD_A_B_: give one of them another id`},
			head + "providers: {inference: [{id: a-b, provider: vllm}, {id: a-c, provider: vllm}]}",
		},
		"a variable is of one Secret": {
			head + "providers: {inference: [{id: a, provider: x, secretRefs: {b_c: {name: s, key: k}}}, {id: a-b, provider: x, secretRefs: {c: {name: t, key: k}}}]}",
			[]string{"spec.providers: Forbidden: spec.providers.inference[0].secretRefs.b_c and spec.providers.inference[1].secretRefs.c would both be the variable LLSD_A_B_C"},
			head + "providers: {inference: [{id: a, provider: x, secretRefs: {b_c: {name: s, key: k}}}, {id: a-b, provider: x, secretRefs: {d: {name: t, key: k}}}]}",
		},
		"a model is a name or an object": {
			head + "resources: {models: [1]}", []string{"spec.resources.models[0]: Invalid value: \"1\": neither a name nor an object"}, head + "resources: {models: [m, {name: other}]}",
		},
		"a model has a name": {
			head + "resources: {models: [{provider: a}]}", []string{"name is missing: write the name by which clients ask for the model"}, head,
		},
		"a context has tokens": {
			head + "resources: {models: [{name: m, contextLength: 0}]}", []string{"contextLength is 0: it must be at least 1 token"}, head + "resources: {models: [{name: m, contextLength: 1}]}",
		},
		"a model names a provider that there is": {
			head + "providers: {inference: {provider: vllm}}\nresources: {models: [{name: m, provider: other}]}",
			[]string{`the model "m" references unknown provider ID "other": use one of anthropic, azure, bedrock,`},
			head + "providers: {inference: {provider: vllm}}\nresources: {models: [{name: m, provider: vllm}, {name: o, provider: openai}]}",
		},
		"redis has an address": {
			head + "storage: {kv: {type: redis}}", []string{"spec.storage.kv.endpoint: Required value: storage.kv.type redis needs storage.kv.endpoint"}, head + "storage: {kv: {type: redis, endpoint: 'redis://r'}}",
		},
		"an address of redis has no password": {
			head + "storage: {kv: {type: redis, endpoint: 'redis://:hush@r'}}", []string{"spec.storage.kv.endpoint: Invalid value: it has a user or a password"}, head,
		},
		"a file has no address": {
			head + "storage: {kv: {endpoint: 'redis://r', password: {name: s, key: k}}}",
			[]string{"storage.kv.endpoint is only for storage.kv.type redis", "storage.kv.password is only for storage.kv.type redis"}, head + "storage: {kv: {}}",
		},
		"postgres has a connection string": {
			head + "storage: {sql: {type: postgres}}", []string{"storage.sql.type postgres needs storage.sql.connectionString"}, head + "storage: {sql: {type: postgres, connectionString: {name: s, key: k}}}",
		},
		"a file has no connection string": {
			head + "storage: {sql: {type: sqlite, connectionString: {name: s, key: k}}}", []string{"storage.sql.connectionString is only for storage.sql.type postgres"}, head + "storage: {sql: {type: sqlite}}",
		},
		"a disabled API has no provider": {
			head + "providers: {vectorIo: {provider: 'inline::x'}}\ndisabled: [eval, vector_io]",
			[]string{`spec.disabled[1]: Invalid value: "vector_io": the API is disabled and has a provider in spec.providers.vectorIo: remove one of them`},
			head + "providers: {vectorIo: {provider: 'inline::x'}}\ndisabled: [eval, inference]",
		},
		"an API is known": {
			head + "disabled: [other]", []string{`spec.disabled[0]: Unsupported value: "other": supported values: "agents"`}, head + "disabled: [postTraining]",
		},
		"expose has a form": {
			head + "networking: {expose: 'yes'}", []string{`spec.networking.expose: Invalid value: "\"yes\"": neither true nor false nor an object`}, head + "networking: {expose: {}}",
		},
		"a host has a name": {
			head + "networking: {expose: {hostname: ''}}", []string{"hostname is empty: give it a value, or remove it"}, head + "networking: {expose: {hostname: h, enabled: false}}",
		},
		"a host is a name of DNS": {
			head + "networking: {expose: {hostname: 'http://demo.example/'}}",
			[]string{`spec.networking.expose.hostname: Invalid value: "http://demo.example/": no Ingress takes it as its host: write a name such as demo.example.com`},
			head + "networking: {expose: {hostname: '*.demo.example'}}",
		},
		"a host is no address": {
			head + "networking: {expose: {hostname: 10.0.0.1}}", []string{`spec.networking.expose.hostname: Invalid value: "10.0.0.1"`}, head,
		},
		"a volume has a size": {
			head + "workload: {storage: {size: 0}}", []string{`spec.workload.storage.size: Invalid value: "0": a volume has more than nothing: write a size such as 10Gi`},
			head + "workload: {storage: {size: 1Gi}}",
		},
		"a budget counts pods or has a share of them": {
			head + "workload: {podDisruptionBudget: {minAvailable: half}}",
			[]string{`spec.workload.podDisruptionBudget.minAvailable: Invalid value: "half": write a number of pods, such as 1, or a share of them, such as 50%`},
			head + "workload: {podDisruptionBudget: {minAvailable: 50%}}",
		},
		"a budget is not below none": {
			head + "workload: {podDisruptionBudget: {maxUnavailable: -1}}", []string{"spec.workload.podDisruptionBudget.maxUnavailable: Invalid value: -1"},
			head + "workload: {podDisruptionBudget: {maxUnavailable: 0}}",
		},
		"a budget is not above all": {
			head + "workload: {podDisruptionBudget: {maxUnavailable: 101%}}", []string{`spec.workload.podDisruptionBudget.maxUnavailable: Invalid value: "101%"`}, head,
		},
		"a volume has a name of its own": {
			head + "workload: {overrides: {volumes: [{name: lls-storage, emptyDir: {}}, {name: a, emptyDir: {}}, {name: a, emptyDir: {}}]}}",
			[]string{
				`spec.workload.overrides.volumes[0].name: Invalid value: "lls-storage": the pods have another volume of this name: give it another one`,
				`spec.workload.overrides.volumes[2].name: Invalid value: "a": the pods have another volume of this name: give it another one`,
			},
			head + "workload: {overrides: {volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}]}}",
		},
		"a mount has a place of its own": {
			head + "workload: {storage: {mountPath: /data}, overrides: {volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /data}]}}",
			[]string{`spec.workload.overrides.volumeMounts[1].mountPath: Invalid value: "/data": another volume is mounted there: choose another path`},
			head + "workload: {storage: {mountPath: /data}, overrides: {volumeMounts: [{name: a, mountPath: /.llama}]}}",
		},
		"expose has no other fields": {
			head + "networking: {expose: {host: h}}", []string{`unknown field "host": write enabled or hostname`}, head + "networking: {expose: false}",
		},
		"external providers have IDs of their own": {
			head + "externalProviders: {inference: [{providerId: a, image: i}], safety: [{providerId: a, image: j}]}",
			[]string{`spec.externalProviders.safety[0].providerId: Invalid value: "a": the ID "a" conflicts with provider in spec.externalProviders.inference[0].providerId`},
			head + "externalProviders: {inference: [{providerId: a, image: i}], safety: [{providerId: b, image: j}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := messages(validation.Create(object(t, c.refused)))
			require.Len(t, got, len(c.messages), got)
			for i, want := range c.messages {
				assert.Contains(t, got[i], want)
				assert.NotContains(t, got[i], "hush")
			}
			assert.Empty(t, messages(validation.Create(object(t, c.accepted))))
		})
	}
}

func TestNamesLeaveRoomForThoseOfTheChildren(t *testing.T) {
	o := object(t, head)
	o.Name = strings.Repeat("a", 55)
	assert.Empty(t, validation.Create(o))
	o.Name += "a"
	assert.Contains(t, messages(validation.Create(o))[0], "metadata.name: Too long: may not be more than 55 bytes")
}

// The Service has the name of the object in its own, and takes fewer names than an object
// may have.
func TestNamesThatNoServiceMayHave(t *testing.T) {
	for name, wrong := range map[string]bool{"demo": false, "demo-2": false, "demo.v2": true, "2-demo": true} {
		o := object(t, head)
		o.Name = name
		got := messages(validation.Create(o))
		require.Equal(t, wrong, len(got) > 0, name)
		if wrong {
			assert.Contains(t, got[0], `metadata.name: Invalid value: "`+name+`": the Service `+name+`-service could not be made`)
		}
	}
	o := object(t, head)
	o.Name, o.GenerateName = "", "demo-"
	assert.Empty(t, validation.Create(o), "it has no name yet")
}

// What the schema of v1alpha1 admits and v1alpha2 cannot hold is refused by the fields of
// v1alpha1.
func TestValuesOfV1alpha1(t *testing.T) {
	view := &v1alpha1.LlamaStackDistribution{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(`{spec: {replicas: -1, network: {allowedFrom: {labels: [""]}}, server: {distribution: {name: starter, image: i},
		containerSpec: {port: 70000}, autoscaling: {maxReplicas: 1, minReplicas: 2}, podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}}}}`), view))
	hub := &v1alpha2.LlamaStackDistribution{}
	v1alpha1.ConvertToHub(view, hub)
	got := strings.Join(messages(validation.Create(hub)), "\n")
	for _, want := range []string{
		"spec.server.distribution.name: Invalid value: \"starter\"", "spec.replicas: Invalid value: -1: must be 0 or more",
		"spec.server.containerSpec.port: Invalid value: 70000: must be between 1 and 65535", "spec.server.autoscaling: Forbidden: maxReplicas must be 0 or more",
		"spec.server.podDisruptionBudget: Forbidden: minAvailable and maxUnavailable are mutually exclusive", "spec.network.allowedFrom: Forbidden: the name of a namespace",
	} {
		assert.Contains(t, got, want)
	}
}

func TestAnUpdateIsNotRefusedForWhatWasWrongBefore(t *testing.T) {
	old := object(t, "distribution: {name: gone}\nproviders: {inference: 1}")
	same := old.DeepCopy()
	same.Labels = map[string]string{"a": "b"}
	assert.Empty(t, validation.Update(old, same))
	worse := object(t, "distribution: {name: other}\nproviders: {inference: 1}")
	got := messages(validation.Update(old, worse))
	require.Len(t, got, 1)
	assert.Contains(t, got[0], `unknown distribution "other"`)
}

func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"nothing":                    {head, nil},
		"an address without a path":  {head + "providers: {inference: {provider: ollama, endpoint: 'http://o:11434/'}}", []string{"spec.providers.inference.endpoint: http://o:11434/ has no path, and the server appends none: you may mean http://o:11434/v1"}},
		"an address with one":        {head + "providers: {inference: {provider: ollama, endpoint: 'http://o:11434/v1'}}", nil},
		"an address of another type": {head + "providers: {inference: {provider: openai, endpoint: 'http://o'}}", nil},
		"a type that is only inline": {head + "providers: {safety: {provider: llama-guard}}", []string{"spec.providers.safety.provider: the server knows no remote::llama-guard: write inline::llama-guard"}},
		"a low port":                 {head + "networking: {port: 80}", []string{"spec.networking.port: a Llama Stack server listens at a port of at least 1024, and not at 80"}},
		"a label with a value":       {head + "networking: {allowedFrom: {labels: [team=frontend, app/team]}}", []string{"spec.networking.allowedFrom.labels[0]: team=frontend is no key of a label, so no network policy can be made of it: write the key alone, such as team"}},
		"no name of a namespace":     {head + "networking: {allowedFrom: {namespaces: ['*', 'team a', b]}}", []string{"spec.networking.allowedFrom.namespaces[1]: team a is no name of a namespace, so no network policy can be made of it"}},
		"a volume for several pods":  {head + "workload: {replicas: 2, storage: {}}", []string{"spec.workload.storage: all pods share one volume, which the pods of one node alone can mount"}},
		"a volume for one pod":       {head + "workload: {replicas: 1, storage: {}}", nil},
		"external providers":         {head + "externalProviders: {}", []string{"spec.externalProviders: they are stored and not injected"}},
		"an external provider in place of another": {head + "providers: {inference: {id: a, provider: x}}\nexternalProviders: {safety: [{providerId: b, image: i}, {providerId: a, image: i}]}",
			[]string{"they are stored and not injected", `spec.externalProviders.safety[1].providerId: "a" is also the provider in spec.providers.inference, whose place the external one takes once it is injected`}},
		"telemetry":                     {head + "providers: {telemetry: {provider: otel}}", []string{"cannot be generated: spec.providers.telemetry: the distribution has no telemetry API"}},
		"an image without a known base": {"distribution: {image: i}\ndisabled: [eval]", []string{`no configuration is known for the image "i"`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, c.spec)
			require.Empty(t, messages(validation.Create(o)))
			got := validation.Warnings(o)
			require.Len(t, got, len(c.want), got)
			for i, want := range c.want {
				assert.Contains(t, got[i], want)
			}
		})
	}
}

func TestWhatAnUpdateThroughV1alpha1Lost(t *testing.T) {
	old := object(t, head+"providers: {inference: {provider: vllm}}\ndisabled: [eval]\nstorage: {}\nresources: {}\nexternalProviders: {}")
	assert.Empty(t, validation.Dropped(old, old))
	assert.Equal(t, []string{"this update through v1alpha1 lost spec.providers, spec.resources, spec.storage, spec.disabled, spec.externalProviders: keep the annotations v1alpha2.llamastack.io/*, or use v1alpha2"},
		validation.Dropped(old, object(t, head)))
}

// An object whose annotations are too long in v1alpha1 would break every list in v1alpha1.
func TestAnObjectThatV1alpha1CannotShow(t *testing.T) {
	of := func(size int) *v1alpha2.LlamaStackDistribution {
		o := object(t, head+"providers: {inference: {provider: vllm, settings: {long: "+strings.Repeat("x", size)+"}}}")
		o.Status.ConfigGeneration = &v1alpha2.ConfigGeneration{ConfigMapName: strings.Repeat("x", 1<<20)}
		return o
	}
	assert.Empty(t, messages(validation.Create(of(240<<10))))
	got := messages(validation.Create(of(256 << 10)))
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "read as v1alpha1, the object has 256 KiB of annotations, and at most 248 KiB can be there")
	assert.Empty(t, validation.Update(of(256<<10), of(256<<10)), "one that is stored can be edited")
}

// Such objects ran before: what Kubernetes takes is run, and the author is told how.
func TestWhatV1alpha1SaidIsRun(t *testing.T) {
	for name, c := range map[string]struct {
		server      string
		want        string
		warning     string
		refusedWith string
	}{
		"a target above the request": {"autoscaling: {minReplicas: 1, maxReplicas: 3, targetCPUUtilizationPercentage: 150}",
			"autoscaling: {minReplicas: 1, maxReplicas: 3, targetCPUUtilizationPercentage: 150}", "the server is scaled up to 3 replicas", ""},
		"no least number":  {"autoscaling: {minReplicas: 0, maxReplicas: 3}", "autoscaling: {maxReplicas: 3}", "the server is scaled up to 3 replicas", ""},
		"none at all":      {"autoscaling: {maxReplicas: 0}", "", "the server is not scaled, because maxReplicas is 0", ""},
		"an empty budget":  {"podDisruptionBudget: {}", "podDisruptionBudget: {maxUnavailable: 1}", "it is empty and counts as maxUnavailable: 1", ""},
		"a target of none": {"autoscaling: {maxReplicas: 3, targetCPUUtilizationPercentage: 0}", "", "", "spec.server.autoscaling"},
		"less than none":   {"autoscaling: {maxReplicas: -1}", "", "", "spec.server.autoscaling"},
		"a least above":    {"autoscaling: {minReplicas: 4, maxReplicas: 3}", "", "", "spec.server.autoscaling"},
		"both of a budget": {"podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}", "", "", "spec.server.podDisruptionBudget"},
	} {
		t.Run(name, func(t *testing.T) {
			view := &v1alpha1.LlamaStackDistribution{}
			require.NoError(t, yaml.UnmarshalStrict([]byte("{metadata: {name: demo}, spec: {replicas: 1, server: {distribution: {name: starter}, "+c.server+"}}}"), view))
			hub := &v1alpha2.LlamaStackDistribution{}
			v1alpha1.ConvertToHub(view, hub)
			before := hub.DeepCopy()
			got, rest := validation.Effective(hub)
			assert.Equal(t, before, hub, "the object was changed")
			if c.refusedWith != "" {
				require.NotNil(t, rest)
				assert.Contains(t, messages(validation.Create(hub))[0], c.refusedWith)
				return
			}
			require.Nil(t, rest)
			assert.Empty(t, validation.Create(hub))
			assert.Equal(t, object(t, head+"workload: {replicas: 1, "+c.want+"}").Spec.Workload, got.Spec.Workload)
			warnings := validation.Warnings(hub)
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0], c.warning)
			repaired := hub.DeepCopy()
			repaired.Spec.Workload = object(t, head+"workload: {replicas: 1, autoscaling: {maxReplicas: 2}, podDisruptionBudget: {minAvailable: 1}}").Spec.Workload
			got, rest = validation.Effective(repaired)
			require.Nil(t, rest)
			assert.Equal(t, repaired.Spec, got.Spec, "v1alpha2 counts")
		})
	}
}
