package llamastack_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// authority is a new certificate in PEM form.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// Each rule has an object that is refused, and what the user then reads. The rules of the
// schema come first, then those of the webhook.
func TestWhatIsRefused(t *testing.T) {
	namespace := space(t)
	const head = "distribution: {name: starter}\n"
	for name, c := range map[string]struct{ version, spec, message string }{
		"C1":                    {"v1alpha2", "distribution: {name: starter, image: i}", "distribution.name and distribution.image are mutually exclusive"},
		"C2":                    {"v1alpha2", "distribution: {}", "distribution needs name or image"},
		"C3":                    {"v1alpha2", head + "overrideConfig: {configMapName: c}\nproviders: {}", "overrideConfig and providers are mutually exclusive"},
		"C4":                    {"v1alpha2", head + "overrideConfig: {configMapName: c}\nresources: {}", "overrideConfig and resources are mutually exclusive"},
		"C5":                    {"v1alpha2", head + "overrideConfig: {configMapName: c}\nstorage: {}", "overrideConfig and storage are mutually exclusive"},
		"C6":                    {"v1alpha2", head + "overrideConfig: {configMapName: c}\ndisabled: [eval]", "overrideConfig and disabled are mutually exclusive"},
		"C7":                    {"v1alpha2", head + "storage: {kv: {type: redis}}", "storage.kv.type redis needs storage.kv.endpoint"},
		"C8":                    {"v1alpha2", head + "storage: {kv: {endpoint: 'redis://r'}}", "storage.kv.endpoint is only for storage.kv.type redis"},
		"C9":                    {"v1alpha2", head + "storage: {kv: {password: {name: s, key: k}}}", "storage.kv.password is only for storage.kv.type redis"},
		"C10":                   {"v1alpha2", head + "storage: {sql: {type: postgres}}", "storage.sql.type postgres needs storage.sql.connectionString"},
		"C11":                   {"v1alpha2", head + "storage: {sql: {connectionString: {name: s, key: k}}}", "storage.sql.connectionString is only for storage.sql.type postgres"},
		"C12":                   {"v1alpha2", head + "workload: {podDisruptionBudget: {}}", "podDisruptionBudget needs minAvailable or maxUnavailable"},
		"C13":                   {"v1alpha2", head + "workload: {podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}}", "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable are mutually exclusive"},
		"C14":                   {"v1alpha2", head + "workload: {autoscaling: {minReplicas: 3, maxReplicas: 2}}", "autoscaling.minReplicas is above autoscaling.maxReplicas"},
		"C15, a path":           {"v1alpha2", head + "workload: {storage: {mountPath: ''}}", "spec.workload.storage.mountPath in body should be at least 1 chars long"},
		"C15, an account":       {"v1alpha2", head + "workload: {overrides: {serviceAccountName: ''}}", "serviceAccountName in body should be at least 1 chars long"},
		"a form of a reference": {"v1alpha2", head + "storage: {kv: {type: redis, endpoint: r, password: {name: s}}}", "a reference to a Secret is either {name, key} or {secretKeyRef: {name, key}}"},
		"a port":                {"v1alpha2", head + "networking: {port: 70000}", "spec.networking.port in body should be less than or equal to 65535"},
		"an API":                {"v1alpha2", head + "disabled: [other]", "Unsupported value: \"other\""},
		"replicas":              {"v1alpha2", head + "workload: {replicas: -1}", "spec.workload.replicas in body should be greater than or equal to 0"},

		"C15, a host":           {"v1alpha2", head + "networking: {expose: {hostname: ''}}", "spec.networking.expose: Invalid value: \"{\\\"hostname\\\":\\\"\\\"}\": hostname is empty: give it a value, or remove it"},
		"C16, ids":              {"v1alpha2", head + "providers: {vectorIo: [{provider: 'inline::faiss'}, {id: b, provider: qdrant}]}", "spec.providers.vectorIo[0].id: Required value: each of several providers of an API needs an explicit id"},
		"C16, a disabled group": {"v1alpha2", head + "providers: {vectorIo: {provider: qdrant}}\ndisabled: [vectorIo]", "the API is disabled and has a provider in spec.providers.vectorIo"},

		"W1":           {"v1alpha2", "distribution: {name: other}", `unknown distribution "other": use one of meta-reference-gpu, postgres-demo, remote-vllm, starter, starter-gpu`},
		"W2, a form":   {"v1alpha2", head + "providers: {inference: vllm}", "spec.providers.inference: Invalid value: neither an object nor a list"},
		"W2, an empty": {"v1alpha2", head + "providers: {inference: []}", "spec.providers.inference: Invalid value: an empty list: remove it, or add a provider"},
		"W2, a type":   {"v1alpha2", head + "providers: {safety: [{id: a, provider: x}, {id: b}]}", "spec.providers.safety[1]: Invalid value: provider is missing"},
		"W2, a model":  {"v1alpha2", head + "resources: {models: [{provider: a}]}", "spec.resources.models[0]: Invalid value"},
		"W7, a field":  {"v1alpha2", head + "networking: {expose: {host: h}}", "unknown field \"host\": write enabled or hostname"},
		"W2":           {"v1alpha2", head + "providers: {inference: {provider: vllm, url: u}}", `spec.providers.inference: Invalid value: unknown field "url"`},
		"W3":           {"v1alpha2", head + "providers: {inference: [{provider: vllm}, {provider: ollama}]}", "explicit id"},
		"W4":           {"v1alpha2", head + "providers: {inference: {id: a, provider: vllm}, safety: {id: a, provider: nvidia}}", "conflicts with provider in spec.providers.inference"},
		"W5":           {"v1alpha2", head + "providers: {inference: {provider: vllm}}\nresources: {models: [{name: m, provider: other}]}", `references unknown provider ID "other"`},
		"W6":           {"v1alpha2", head + "providers: {safety: {provider: nvidia}}\ndisabled: [safety]", "the API is disabled and has a provider in spec.providers.safety"},
		"W7":           {"v1alpha2", head + "networking: {expose: 'yes'}", "spec.networking.expose: Invalid value"},
		"W9":           {"v1alpha2", head + "providers: {inference: [{id: a-b, provider: vllm}, {id: a_b, provider: vllm}]}", "LLSD_A_B_"},

		"v1alpha1: both":         {"v1alpha1", "server: {distribution: {name: starter, image: i}}", "distribution.name and distribution.image are mutually exclusive"},
		"v1alpha1: neither":      {"v1alpha1", "server: {distribution: {}}", "distribution needs name or image"},
		"v1alpha1: W1":           {"v1alpha1", "server: {distribution: {name: other}}", `unknown distribution "other"`},
		"v1alpha1: a budget":     {"v1alpha1", "server: {distribution: {name: starter}, podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}}", "spec.server.podDisruptionBudget: Forbidden: minAvailable and maxUnavailable are mutually exclusive"},
		"v1alpha1: a percentage": {"v1alpha1", "server: {distribution: {name: starter}, autoscaling: {maxReplicas: 2, targetCPUUtilizationPercentage: 0}}", "spec.server.autoscaling: Forbidden"},
		"v1alpha1: a key":        {"v1alpha1", "server: {distribution: {name: starter}, tlsConfig: {caBundle: {configMapName: c, configMapKeys: [-a]}}}", "spec.server.tlsConfig.caBundle.configMapKeys[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			var spec map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(c.spec), &spec))
			err := api.Create(t.Context(), written(namespace, "refused", c.version, spec), client.DryRunAll)
			assert.ErrorContains(t, err, c.message)
		})
	}
}

// W8: an object of v1alpha1 that carries what only v1alpha2 has gets a configuration of
// its own, which the schema of v1alpha1 cannot see.
func TestAConfigurationOverCarriedProviders(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}\ndisabled: [eval]")
	create(t, object)
	old := view(t, namespace, "demo", "server: {distribution: {name: starter}}")
	read(t, old)
	old.Spec.Server.UserConfig = nil
	require.NoError(t, yaml.Unmarshal([]byte("configMapName: c"), &old.Spec.Server.UserConfig))
	assert.ErrorContains(t, api.Update(t.Context(), old), "overrideConfig and disabled are mutually exclusive")
}

// The scale subresource is the same in both versions.
func TestScale(t *testing.T) {
	namespace := space(t)
	object := hub(t, namespace, "demo", "distribution: {name: starter}")
	create(t, object)
	reaches(t, object, v1alpha2.PhaseReady)
	for i, version := range []string{"v1alpha1", "v1alpha2"} {
		replicas := int64(i + 2)
		scaled := written(namespace, "demo", version, nil)
		scale := written(namespace, "demo", version, map[string]any{"replicas": replicas})
		scale.SetAPIVersion("autoscaling/v1")
		scale.SetKind("Scale")
		require.NoError(t, api.SubResource("scale").Update(t.Context(), scaled, client.WithSubResourceBody(scale)), version)
		comes(t, deploymentOf(object), "the replicas", func(d *deploymentType) bool { return int64(*d.Spec.Replicas) == replicas })
	}
	reaches(t, object, v1alpha2.PhaseReady)
	assert.EqualValues(t, 3, object.Status.Replicas)
	assert.EqualValues(t, 3, object.Status.AvailableReplicas)
}
