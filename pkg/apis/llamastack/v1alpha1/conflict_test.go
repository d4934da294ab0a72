package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// An object of v1alpha2 is read as v1alpha1, edited and written back: what was edited
// counts, and the rest stays.
func TestAnEditOfTheViewWins(t *testing.T) {
	for name, c := range map[string]struct {
		hub  string
		edit func(*v1alpha1.LlamaStackDistribution)
		want string
	}{
		"no longer exposed": {
			`{spec: {distribution: {name: d}, networking: {port: 1, expose: {hostname: h}}}}`,
			func(view *v1alpha1.LlamaStackDistribution) { view.Spec.Network.ExposeRoute = false },
			`{metadata: {annotations: {v1alpha1.llamastack.io/presence: '{}', v1alpha1.llamastack.io/presence.network: 'true'}}, spec: {distribution: {name: d}, networking: {port: 1}}}`,
		},
		"exposed after all": {
			`{spec: {distribution: {name: d}, networking: {port: 1, expose: {enabled: false, hostname: h}}}}`,
			func(view *v1alpha1.LlamaStackDistribution) {
				view.Spec.Network = &v1alpha1.Network{ExposeRoute: true}
			},
			`{spec: {distribution: {name: d}, networking: {port: 1, expose: true}}}`,
		},
		"a port and replicas that were not given": {
			`{spec: {distribution: {name: d}}}`,
			func(view *v1alpha1.LlamaStackDistribution) {
				view.Spec.Server.ContainerSpec.Port, view.Spec.Replicas = 9000, 3
			},
			`{spec: {distribution: {name: d}, networking: {port: 9000}, workload: {replicas: 3}}}`,
		},
		"a whole configuration over providers, for the webhook to refuse": {
			`{spec: {distribution: {name: d}, networking: {port: 1}, providers: {inference: {provider: vllm}}}}`,
			func(view *v1alpha1.LlamaStackDistribution) {
				view.Spec.Server.UserConfig = &v1alpha1.UserConfig{ConfigMapName: "c"}
			},
			`{spec: {distribution: {name: d}, networking: {port: 1}, providers: {inference: {provider: vllm}}, overrideConfig: {configMapName: c}}}`,
		},
		"without the annotation what only v1alpha2 has is gone": {
			`{spec: {distribution: {name: d}, networking: {port: 1}, workload: {replicas: 1}, providers: {inference: {provider: vllm}}}}`,
			func(view *v1alpha1.LlamaStackDistribution) { view.Annotations = nil },
			`{spec: {distribution: {name: d}, networking: {port: 1}, workload: {replicas: 1}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := down(readHub(t, c.hub))
			c.edit(view)
			assert.JSONEq(t, asJSON(t, readHub(t, c.want)), asJSON(t, up(view)))
		})
	}
}

// An object of v1alpha1 is stored as v1alpha2 and edited there.
func TestAnEditOfTheHubWins(t *testing.T) {
	for name, c := range map[string]struct {
		view string
		edit func(*v1alpha2.LlamaStackDistribution)
		want string
	}{
		"a port": {
			`{spec: {replicas: 1, server: {distribution: {name: d}}}}`,
			func(hub *v1alpha2.LlamaStackDistribution) { hub.Spec.Networking = &v1alpha2.Networking{Port: 9000} },
			`{spec: {replicas: 1, server: {distribution: {name: d}, containerSpec: {name: llama-stack, port: 9000}}}}`,
		},
		"no authorities any more": {
			`{spec: {replicas: 1, server: {distribution: {name: d}, tlsConfig: {caBundle: {configMapName: c, configMapNamespace: o, configMapKeys: [k]}}}}}`,
			func(hub *v1alpha2.LlamaStackDistribution) { hub.Spec.Networking = nil },
			`{spec: {replicas: 1, server: {distribution: {name: d}}}}`,
		},
		"no configuration any more": {
			`{spec: {replicas: 1, server: {distribution: {name: d}, userConfig: {configMapName: c, configMapNamespace: o}}}}`,
			func(hub *v1alpha2.LlamaStackDistribution) { hub.Spec.OverrideConfig = nil },
			`{spec: {replicas: 1, server: {distribution: {name: d}}}}`,
		},
		"values that were refused": {
			`{spec: {replicas: 1, server: {distribution: {name: d}, autoscaling: {maxReplicas: 0}, podDisruptionBudget: {}}}}`,
			func(hub *v1alpha2.LlamaStackDistribution) {
				hub.Spec.Workload.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 2}
			},
			`{spec: {replicas: 1, server: {distribution: {name: d}, autoscaling: {maxReplicas: 2}, podDisruptionBudget: {}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := up(readView(t, c.view))
			c.edit(hub)
			assert.JSONEq(t, asJSON(t, readView(t, c.want)), asJSON(t, down(hub)))
		})
	}
}

func TestAnnotationsOfEarlierForms(t *testing.T) {
	t.Run("one annotation per value is read and not written", func(t *testing.T) {
		hub := readHub(t, `
metadata:
  annotations:
    llamastack.io/v1alpha1-container-name: srv
    llamastack.io/v1alpha1-termination-grace-period: "30"
    llamastack.io/v1alpha1-user-config-namespace: u
    llamastack.io/v1alpha1-ca-bundle-namespace: c
    llamastack.io/v1alpha1-ca-bundle-keys: '["k"]'
spec:
  distribution: {name: d}
  networking: {port: 1, tls: {caBundle: {configMapName: ca}}}
  overrideConfig: {configMapName: o}
  workload: {replicas: 1}`)
		view := down(hub)
		assert.JSONEq(t, asJSON(t, readView(t, `
spec:
  replicas: 1
  server:
    distribution: {name: d}
    containerSpec: {name: srv, port: 1}
    podOverrides: {terminationGracePeriodSeconds: 30}
    userConfig: {configMapName: o, configMapNamespace: u}
    tlsConfig: {caBundle: {configMapName: ca, configMapNamespace: c, configMapKeys: [k]}}`)), asJSON(t, view))
		assert.Equal(t, map[string]string{
			"v1alpha1.llamastack.io/containerName":          `"srv"`,
			"v1alpha1.llamastack.io/terminationGracePeriod": "30",
			"v1alpha1.llamastack.io/userConfig":             "{}",
			"v1alpha1.llamastack.io/userConfig.name":        `"o"`,
			"v1alpha1.llamastack.io/userConfig.namespace":   `"u"`,
			"v1alpha1.llamastack.io/caBundle":               "{}",
			"v1alpha1.llamastack.io/caBundle.name":          `"ca"`,
			"v1alpha1.llamastack.io/caBundle.namespace":     `"c"`,
			"v1alpha1.llamastack.io/caBundle.keys":          `["k"]`,
		}, up(view).Annotations)
	})
	t.Run("the name of a host alone", func(t *testing.T) {
		view := readView(t, `
metadata: {annotations: {llamastack.io/v1alpha2-extras: '{"exposeHostname":"h","of-another-version":1}'}}
spec: {replicas: 1, network: {exposeRoute: true}, server: {distribution: {name: d}, containerSpec: {name: llama-stack, port: 1}}}`)
		assert.JSONEq(t, asJSON(t, readHub(t, `{spec: {distribution: {name: d}, networking: {port: 1, expose: {hostname: h}}, workload: {replicas: 1}}}`)), asJSON(t, up(view)))
	})
	t.Run("what cannot be read is left where it is", func(t *testing.T) {
		hub := readHub(t, `{metadata: {annotations: {llamastack.io/v1alpha1-extras: "{"}}, spec: {distribution: {name: d}, networking: {port: 1}, workload: {replicas: 1}}}`)
		view := down(hub)
		assert.Equal(t, hub.Annotations, view.Annotations)
		assert.Equal(t, hub, up(view))
		view = readView(t, `{metadata: {annotations: {llamastack.io/v1alpha2-extras: "{"}}, spec: {replicas: 1, server: {distribution: {name: d}, containerSpec: {name: llama-stack, port: 1}}}}`)
		assert.Equal(t, view.Annotations, up(view).Annotations)
	})
}
