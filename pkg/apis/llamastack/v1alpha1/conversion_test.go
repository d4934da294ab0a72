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

const extras = v1alpha2.AnnotationV1alpha1Extras

// Each object of v1alpha1 becomes that object of v1alpha2, and itself again.
func TestV1alpha1(t *testing.T) {
	for name, c := range map[string]struct{ view, hub string }{
		"the least": {
			view: `{spec: {replicas: 1, server: {distribution: {name: starter}}}}`,
			hub: `{metadata: {annotations: {` + extras + `: '{"portUnset":true}'}},
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
    llamastack.io/v1alpha1-extras: '{"containerName":"srv","terminationGracePeriod":60,"userConfigNamespace":"other","caBundleNamespace":"certs","caBundleKeys":["a.crt","b.crt"]}'
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
			hub: `{metadata: {annotations: {` + extras + `: '{"portUnset":true,"presence":["userConfig","podOverrides","containerSpec","network"]}'}},
				spec: {distribution: {name: starter}, networking: {tls: {}}, workload: {replicas: 1, storage: {}}}}`,
		},
		"a grace period of zero and nothing else": {
			view: `{spec: {replicas: 1, server: {distribution: {name: starter}, containerSpec: {name: llama-stack, port: 1}, podOverrides: {terminationGracePeriodSeconds: 0}}}}`,
			hub: `{metadata: {annotations: {` + extras + `: '{"terminationGracePeriod":0}'}},
				spec: {distribution: {name: starter}, networking: {port: 1}, workload: {replicas: 1}}}`,
		},
		"what v1alpha2 would refuse": {
			view: `{spec: {replicas: -1, network: {allowedFrom: {labels: [""]}}, server: {distribution: {name: known, image: i}, containerSpec: {name: llama-stack, port: 70000},
				autoscaling: {maxReplicas: 0}, podDisruptionBudget: {}}}}`,
			hub: `{metadata: {annotations: {` + extras + `: '{"rejected":{"distributionName":"known","replicas":-1,"port":70000,"autoscaling":{"maxReplicas":0},"podDisruptionBudget":{},"allowedFrom":{"labels":[""]}}}'}},
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
		hubExtras = v1alpha2.AnnotationV1alpha2Extras
		shown     = `server: {distribution: {name: starter}, containerSpec: {name: llama-stack, port: 8321}}`
		given     = `distribution: {name: starter}, networking: {port: 8321}, workload: {replicas: 1}`
	)
	carrying := func(annotation, spec string) string {
		return `{metadata: {annotations: {` + hubExtras + `: '` + annotation + `'}}, spec: {` + spec + `}}`
	}
	for name, c := range map[string]struct{ hub, view string }{
		"the least": {
			hub:  `{spec: {distribution: {name: starter}}}`,
			view: carrying(`{"portUnset":true,"replicasUnset":true}`, `replicas: 1, `+shown),
		},
		"parents with nothing in them": {
			hub:  `{spec: {distribution: {name: starter}, networking: {}, workload: {}}}`,
			view: carrying(`{"portUnset":true,"replicasUnset":true,"presence":["workload","networking"]}`, `replicas: 1, `+shown),
		},
		"a parent in a parent": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321}, workload: {replicas: 0, overrides: {}}}}`,
			view: carrying(`{"presence":["workload.overrides"]}`, `replicas: 0, `+shown),
		},
		"providers": {
			hub:  `{spec: {` + given + `, providers: {inference: {provider: vllm, secretRefs: {a: {name: s, key: k}}, settings: {big: 12345678901234567890}}}}}`,
			view: carrying(`{"providers":{"inference":{"provider":"vllm","secretRefs":{"a":{"key":"k","name":"s"}},"settings":{"big":12345678901234567890}}}}`, `replicas: 1, `+shown),
		},
		"resources": {
			hub:  `{spec: {` + given + `, resources: {models: [m, {name: other}], tools: [t], shields: [s]}}}`,
			view: carrying(`{"resources":{"models":["m",{"name":"other"}],"tools":["t"],"shields":["s"]}}`, `replicas: 1, `+shown),
		},
		"storage": {
			hub:  `{spec: {` + given + `, storage: {kv: {type: redis, endpoint: "redis://r", password: {secretKeyRef: {name: s, key: k}}}, sql: {type: postgres, connectionString: {name: s, key: k}}}}}`,
			view: carrying(`{"storage":{"kv":{"type":"redis","endpoint":"redis://r","password":{"secretKeyRef":{"name":"s","key":"k"}}},"sql":{"type":"postgres","connectionString":{"name":"s","key":"k"}}}}`, `replicas: 1, `+shown),
		},
		"disabled and external providers": {
			hub:  `{spec: {` + given + `, disabled: [eval], externalProviders: {inference: [{providerId: p, image: i, config: {a: [1]}}]}}}`,
			view: carrying(`{"disabled":["eval"],"externalProviders":{"inference":[{"providerId":"p","image":"i","config":{"a":[1]}}]}}`, `replicas: 1, `+shown),
		},
		"exposed": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: true}, workload: {replicas: 1}}}`,
			view: `{spec: {replicas: 1, ` + shown + `, network: {exposeRoute: true}}}`,
		},
		"expressly not exposed": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: false}, workload: {replicas: 1}}}`,
			view: carrying(`{"expose":false}`, `replicas: 1, `+shown),
		},
		"exposed by an empty object": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: {}}, workload: {replicas: 1}}}`,
			view: carrying(`{"expose":{}}`, `replicas: 1, network: {exposeRoute: true}, `+shown),
		},
		"exposed with a name": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: {hostname: h}}, workload: {replicas: 1}}}`,
			view: carrying(`{"expose":{"hostname":"h"}}`, `replicas: 1, network: {exposeRoute: true}, `+shown),
		},
		"not exposed, with a name": {
			hub:  `{spec: {distribution: {name: starter}, networking: {port: 8321, expose: {enabled: false, hostname: h}}, workload: {replicas: 1}}}`,
			view: carrying(`{"expose":{"enabled":false,"hostname":"h"}}`, `replicas: 1, `+shown),
		},
		"status": {
			hub: `{spec: {` + given + `}, status: {resolvedDistribution: {image: i, configSource: embedded, configHash: h},
				configGeneration: {configMapName: c, generatedAt: "2026-01-02T03:04:05Z", providerCount: 1}, phase: Ready}}`,
			view: `{metadata: {annotations: {` + hubExtras + `: '{"status":{"resolvedDistribution":{"image":"i","configSource":"embedded","configHash":"h"},"configGeneration":{"configMapName":"c","generatedAt":"2026-01-02T03:04:05Z","providerCount":1}}}'}},
				spec: {replicas: 1, ` + shown + `}, status: {phase: Ready}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := readHub(t, c.hub)
			view := down(hub)
			assert.Equal(t, asData(t, readView(t, c.view)), asData(t, view))
			again := up(view)
			assert.JSONEq(t, asJSON(t, hub), asJSON(t, again))
			assert.NotContains(t, again.Annotations, hubExtras)
		})
	}
}

func asJSON(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	assert.NoError(t, err)
	return string(text)
}
