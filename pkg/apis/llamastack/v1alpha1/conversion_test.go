package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

func readView(t *testing.T, text string) *v1alpha1.LlamaStackDistribution {
	t.Helper()
	view := &v1alpha1.LlamaStackDistribution{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), view), text)
	return view
}

func readHub(t *testing.T, text string) *v1alpha2.LlamaStackDistribution {
	t.Helper()
	hub := &v1alpha2.LlamaStackDistribution{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), hub), text)
	return hub
}

// asData is what a reader of the API sees of an object.
func asData(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

// Each object of v1alpha1 becomes that object of v1alpha2, and itself again.
func TestV1alpha1(t *testing.T) {
	for name, c := range map[string]struct{ view, hub string }{
		"the least": {
			view: `{spec: {replicas: 1, server: {distribution: {name: starter}}}}`,
			hub: `{metadata: {annotations: {v1alpha1.llamastack.io/portUnset: 'true'}},
				spec: {distribution: {name: starter}, workload: {replicas: 1}}}`,
		},
		"with the defaults that the API server sets": {
			view: `{spec: {replicas: 1, server: {distribution: {name: starter}, containerSpec: {name: llama-stack, port: 8321}}}}`,
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321}, workload: {replicas: 1}}}`,
		},
		"an image": {
			view: `{spec: {replicas: 2, server: {distribution: {image: "a/b:c"}, containerSpec: {name: llama-stack, port: 80}}}}`,
			hub:  `{spec: {distribution: {image: "a/b:c"}, networking: {port: 80}, workload: {replicas: 2}}}`,
		},
		"scaled to zero": {
			view: `{spec: {replicas: 0, server: {distribution: {name: starter}, containerSpec: {name: llama-stack, port: 80}}}}`,
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 80}, workload: {replicas: 0}}}`,
		},
		"every awkward field": {
			view: `
spec:
  replicas: 0
  server:
    distribution: {name: starter}
    containerSpec: {name: srv, port: 9000, env: [{name: A, value: b}]}
    podOverrides: {terminationGracePeriodSeconds: 60}
    userConfig: {configMapName: c, configMapNamespace: other}
    tlsConfig: {caBundle: {configMapName: ca, configMapNamespace: certs, configMapKeys: [a.crt, b.crt]}}
  network: {exposeRoute: true, allowedFrom: {namespaces: [monitoring]}}`,
			hub: `
metadata:
  annotations:
    v1alpha1.llamastack.io/caBundle: '{}'
    v1alpha1.llamastack.io/caBundle.keys: '["a.crt","b.crt"]'
    v1alpha1.llamastack.io/caBundle.name: '"ca"'
    v1alpha1.llamastack.io/caBundle.namespace: '"certs"'
    v1alpha1.llamastack.io/containerName: '"srv"'
    v1alpha1.llamastack.io/terminationGracePeriod: '60'
    v1alpha1.llamastack.io/userConfig: '{}'
    v1alpha1.llamastack.io/userConfig.name: '"c"'
    v1alpha1.llamastack.io/userConfig.namespace: '"other"'
spec:
  distribution: {name: starter}
  overrideConfig: {configMapName: c}
  networking: {port: 9000, expose: true, tls: {caBundle: {configMapName: ca}}, allowedFrom: {namespaces: [monitoring]}}
  workload: {replicas: 0, overrides: {env: [{name: A, value: b}]}}`,
		},
		"all that is mapped": {
			view: `
spec:
  replicas: 2
  server:
    distribution: {name: starter}
    workers: 4
    containerSpec: {name: llama-stack, port: 8321, resources: {requests: {cpu: "1"}}, command: [a], args: [b]}
    podOverrides: {serviceAccountName: sa, volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /v}]}
    podDisruptionBudget: {minAvailable: 50%}
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
    autoscaling: {minReplicas: 2, maxReplicas: 10, targetCPUUtilizationPercentage: 75, targetMemoryUtilizationPercentage: 70}
    storage: {size: 20Gi, mountPath: /data}
  network: {allowedFrom: {labels: [team]}}
status:
  phase: Ready
  version: {operatorVersion: v1, llamaStackServerVersion: 0.5.0, lastUpdated: "2026-01-02T03:04:05Z"}
  distributionConfig: {activeDistribution: starter, availableDistributions: {starter: image}}
  availableReplicas: 2
  serviceURL: http://x
  routeURL: ""`,
			hub: `
spec:
  distribution: {name: starter}
  networking: {port: 8321, allowedFrom: {labels: [team]}}
  workload:
    replicas: 2
    workers: 4
    resources: {requests: {cpu: "1"}}
    overrides: {serviceAccountName: sa, command: [a], args: [b], volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /v}]}
    podDisruptionBudget: {minAvailable: 50%}
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
    autoscaling: {minReplicas: 2, maxReplicas: 10, targetCPUUtilizationPercentage: 75, targetMemoryUtilizationPercentage: 70}
    storage: {size: 20Gi, mountPath: /data}
status:
  phase: Ready
  version: {operatorVersion: v1, llamaStackServerVersion: 0.5.0, lastUpdated: "2026-01-02T03:04:05Z"}
  distributionConfig: {activeDistribution: starter, availableDistributions: {starter: image}}
  availableReplicas: 2
  serviceURL: http://x
  routeURL: ""`,
		},
		"parents with nothing in them": {
			view: `{spec: {replicas: 1, network: {}, server: {distribution: {name: starter}, containerSpec: {name: llama-stack}, podOverrides: {},
				storage: {}, tlsConfig: {}, userConfig: {configMapName: ""}}}}`,
			hub: `{metadata: {annotations: {v1alpha1.llamastack.io/portUnset: 'true', v1alpha1.llamastack.io/presence: '{}', v1alpha1.llamastack.io/presence.containerSpec: 'true', v1alpha1.llamastack.io/presence.network: 'true', v1alpha1.llamastack.io/presence.podOverrides: 'true', v1alpha1.llamastack.io/presence.userConfig: 'true'}},
				spec: {distribution: {name: starter}, networking: {tls: {}}, workload: {replicas: 1, storage: {}}}}`,
		},
		"a grace period of zero and nothing else": {
			view: `{spec: {replicas: 1, server: {distribution: {name: starter}, containerSpec: {name: llama-stack, port: 1}, podOverrides: {terminationGracePeriodSeconds: 0}}}}`,
			hub: `{metadata: {annotations: {v1alpha1.llamastack.io/terminationGracePeriod: '0'}},
				spec: {distribution: {name: starter}, networking: {port: 1}, workload: {replicas: 1}}}`,
		},
		"what v1alpha2 would refuse": {
			view: `{spec: {replicas: -1, network: {allowedFrom: {labels: [""]}}, server: {distribution: {name: known, image: i}, containerSpec: {name: llama-stack, port: 70000},
				autoscaling: {maxReplicas: 0}, podDisruptionBudget: {}}}}`,
			hub: `{metadata: {annotations: {v1alpha1.llamastack.io/rejected: '{}', v1alpha1.llamastack.io/rejected.allowedFrom: '{}', v1alpha1.llamastack.io/rejected.allowedFrom.labels: '[""]', v1alpha1.llamastack.io/rejected.autoscaling: '{}', v1alpha1.llamastack.io/rejected.autoscaling.maxReplicas: '0', v1alpha1.llamastack.io/rejected.distributionName: '"known"', v1alpha1.llamastack.io/rejected.podDisruptionBudget: '{}', v1alpha1.llamastack.io/rejected.port: '70000', v1alpha1.llamastack.io/rejected.replicas: '-1'}},
				spec: {distribution: {image: i}}}`,
		},
		"another annotation": {
			view: `{metadata: {name: x, annotations: {a: b}}, spec: {replicas: 1, server: {distribution: {name: starter}, containerSpec: {name: llama-stack, port: 1}}}}`,
			hub:  `{metadata: {name: x, annotations: {a: b}}, spec: {distribution: {name: starter}, networking: {port: 1}, workload: {replicas: 1}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := readView(t, c.view)
			before := view.DeepCopy()
			hub := up(view)
			assert.Equal(t, asData(t, readHub(t, c.hub)), asData(t, hub))
			assert.Equal(t, before, view, "the source was changed")
			stored := hub.DeepCopy()
			assert.Equal(t, view, down(hub))
			assert.Equal(t, stored, hub, "the source was changed")
		})
	}
}

// Each object of v1alpha2 becomes that object of v1alpha1, and itself again.
func TestV1alpha2(t *testing.T) {
	const (
		shown = `server: {distribution: {name: starter}, containerSpec: {name: llama-stack, port: 8321}}`
		given = `distribution: {name: starter}, networking: {port: 8321}, workload: {replicas: 1}`
	)
	carrying := func(annotations, spec string) string {
		return `{metadata: {annotations: {` + annotations + `}}, spec: {` + spec + `}}`
	}
	for name, c := range map[string]struct{ hub, view string }{
		"the least": {
			hub:  `{spec: {distribution: {name: starter}}}`,
			view: carrying(`v1alpha2.llamastack.io/portUnset: 'true', v1alpha2.llamastack.io/replicasUnset: 'true'`, `replicas: 1, `+shown),
		},
		"parents with nothing in them": {
			hub:  `{spec: {distribution: {name: starter}, networking: {}, workload: {}}}`,
			view: carrying(`v1alpha2.llamastack.io/portUnset: 'true', v1alpha2.llamastack.io/presence: '{}', v1alpha2.llamastack.io/presence.networking: 'true', v1alpha2.llamastack.io/presence.workload: 'true', v1alpha2.llamastack.io/replicasUnset: 'true'`, `replicas: 1, `+shown),
		},
		"a parent in a parent": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321}, workload: {replicas: 0, overrides: {}}}}`,
			view: carrying(`v1alpha2.llamastack.io/presence: '{}', v1alpha2.llamastack.io/presence.overrides: 'true'`, `replicas: 0, `+shown),
		},
		"providers": {
			hub:  `{spec: {` + given + `, providers: {inference: {provider: vllm, secretRefs: {a: {name: s, key: k}}, settings: {big: 12345678901234567890}}}}}`,
			view: carrying(`v1alpha2.llamastack.io/providers: '{}', v1alpha2.llamastack.io/providers.inference: '{}', v1alpha2.llamastack.io/providers.inference.provider: '"vllm"', v1alpha2.llamastack.io/providers.inference.secretRefs: '{}', v1alpha2.llamastack.io/providers.inference.secretRefs.a: '{}', v1alpha2.llamastack.io/providers.inference.secretRefs.a.key: '"k"', v1alpha2.llamastack.io/providers.inference.secretRefs.a.name: '"s"', v1alpha2.llamastack.io/providers.inference.settings: '{}', v1alpha2.llamastack.io/providers.inference.settings.big: '12345678901234567890'`, `replicas: 1, `+shown),
		},
		"resources": {
			hub:  `{spec: {` + given + `, resources: {models: [m, {name: other}], tools: [t], shields: [s]}}}`,
			view: carrying(`v1alpha2.llamastack.io/resources: '{}', v1alpha2.llamastack.io/resources.models: '["m",{"name":"other"}]', v1alpha2.llamastack.io/resources.shields: '["s"]', v1alpha2.llamastack.io/resources.tools: '["t"]'`, `replicas: 1, `+shown),
		},
		"storage": {
			hub:  `{spec: {` + given + `, storage: {kv: {type: redis, endpoint: "redis://r", password: {secretKeyRef: {name: s, key: k}}}, sql: {type: postgres, connectionString: {name: s, key: k}}}}}`,
			view: carrying(`v1alpha2.llamastack.io/storage: '{}', v1alpha2.llamastack.io/storage.kv: '{}', v1alpha2.llamastack.io/storage.kv.endpoint: '"redis://r"', v1alpha2.llamastack.io/storage.kv.password: '{}', v1alpha2.llamastack.io/storage.kv.password.secretKeyRef: '{}', v1alpha2.llamastack.io/storage.kv.password.secretKeyRef.key: '"k"', v1alpha2.llamastack.io/storage.kv.password.secretKeyRef.name: '"s"', v1alpha2.llamastack.io/storage.kv.type: '"redis"', v1alpha2.llamastack.io/storage.sql: '{}', v1alpha2.llamastack.io/storage.sql.connectionString: '{}', v1alpha2.llamastack.io/storage.sql.connectionString.key: '"k"', v1alpha2.llamastack.io/storage.sql.connectionString.name: '"s"', v1alpha2.llamastack.io/storage.sql.type: '"postgres"'`, `replicas: 1, `+shown),
		},
		"disabled and external providers": {
			hub:  `{spec: {` + given + `, disabled: [eval], externalProviders: {inference: [{providerId: p, image: i, config: {a: [1]}}]}}}`,
			view: carrying(`v1alpha2.llamastack.io/disabled: '["eval"]', v1alpha2.llamastack.io/externalProviders: '{}', v1alpha2.llamastack.io/externalProviders.inference: '[{"providerId":"p","image":"i","config":{"a":[1]}}]'`, `replicas: 1, `+shown),
		},
		"exposed": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: true}, workload: {replicas: 1}}}`,
			view: `{spec: {replicas: 1, ` + shown + `, network: {exposeRoute: true}}}`,
		},
		"expressly not exposed": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: false}, workload: {replicas: 1}}}`,
			view: carrying(`v1alpha2.llamastack.io/expose: 'false'`, `replicas: 1, `+shown),
		},
		"exposed by an empty object": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: {}}, workload: {replicas: 1}}}`,
			view: carrying(`v1alpha2.llamastack.io/expose: '{}'`, `replicas: 1, network: {exposeRoute: true}, `+shown),
		},
		"exposed with a name": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: {hostname: h}}, workload: {replicas: 1}}}`,
			view: carrying(`v1alpha2.llamastack.io/expose: '{}', v1alpha2.llamastack.io/expose.hostname: '"h"'`, `replicas: 1, network: {exposeRoute: true}, `+shown),
		},
		"not exposed, with a name": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: {enabled: false, hostname: h}}, workload: {replicas: 1}}}`,
			view: carrying(`v1alpha2.llamastack.io/expose: '{}', v1alpha2.llamastack.io/expose.enabled: 'false', v1alpha2.llamastack.io/expose.hostname: '"h"'`, `replicas: 1, `+shown),
		},
		"status": {
			hub: `{spec: {` + given + `}, status: {resolvedDistribution: {image: i, configSource: embedded, configHash: h},
				configGeneration: {configMapName: c, generatedAt: "2026-01-02T03:04:05Z", providerCount: 1}, phase: Ready}}`,
			view: `{metadata: {annotations: {v1alpha2.llamastack.io/status: '{}', v1alpha2.llamastack.io/status.configGeneration: '{}', v1alpha2.llamastack.io/status.configGeneration.configMapName: '"c"', v1alpha2.llamastack.io/status.configGeneration.generatedAt: '"2026-01-02T03:04:05Z"', v1alpha2.llamastack.io/status.configGeneration.providerCount: '1', v1alpha2.llamastack.io/status.resolvedDistribution: '{}', v1alpha2.llamastack.io/status.resolvedDistribution.configHash: '"h"', v1alpha2.llamastack.io/status.resolvedDistribution.configSource: '"embedded"', v1alpha2.llamastack.io/status.resolvedDistribution.image: '"i"'}},
				spec: {replicas: 1, ` + shown + `}, status: {phase: Ready}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := readHub(t, c.hub)
			view := down(hub)
			assert.Equal(t, asData(t, readView(t, c.view)), asData(t, view))
			again := up(view)
			assert.JSONEq(t, asJSON(t, hub), asJSON(t, again))
			assert.NotContains(t, asData(t, again.ObjectMeta), v1alpha2.PrefixV1alpha2)
		})
	}
}

func asJSON(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	assert.NoError(t, err)
	return string(text)
}
