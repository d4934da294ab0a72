package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/randfill"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// kept is what server-side apply leaves of an object in a version in which the applier does not
// write, when the applier takes something away: of the object before, every field that the object
// without it still has, with the value of before.
func kept(before, without any) any {
	was, isObject := before.(map[string]any)
	still, alsoObject := without.(map[string]any)
	if !isObject || !alsoObject {
		return before
	}
	result := map[string]any{}
	for key, value := range was {
		if other, found := still[key]; found {
			result[key] = kept(value, other)
		}
	}
	return result
}

// applied is kept for objects.
func applied[T any](t *testing.T, before, without *T) *T {
	t.Helper()
	result := new(T)
	text, err := json.Marshal(kept(content(t, before), content(t, without)))
	assert.NoError(t, err)
	assert.NoError(t, json.Unmarshal(text, result))
	return result
}

func content(t *testing.T, object any) any {
	t.Helper()
	var fields any
	assert.NoError(t, json.Unmarshal([]byte(asJSON(t, object)), &fields))
	return fields
}

// What only v1alpha2 has can be taken away by server-side apply through v1alpha2, also of an object
// of which v1alpha1 has once been written.
func TestRemovalThroughV1alpha2(t *testing.T) {
	manyObjects(t, objects, func(filler *randfill.Filler) (want, got any) {
		hub := &v1alpha2.LlamaStackDistribution{}
		filler.Fill(&hub.ObjectMeta)
		filler.Fill(&hub.Spec)
		without := hub.DeepCopy()
		spec := &without.Spec
		if maybe(filler) {
			filler.Fill(&spec.Disabled)
			spec.Disabled = nil
		}
		if spec.Providers != nil {
			for _, group := range []**apiextensionsv1.JSON{&spec.Providers.Inference, &spec.Providers.Safety, &spec.Providers.VectorIo} {
				lessJSON(t, filler, group)
			}
		}
		if spec.Resources != nil && maybe(filler) {
			spec.Resources.Models = nil
		}
		if s := spec.Storage; s != nil && s.KV != nil && maybe(filler) {
			s.KV.Endpoint, s.KV.Password = "", nil
		}
		if s := spec.Storage; s != nil && maybe(filler) {
			s.SQL = nil
		}
		if maybe(filler) {
			spec.ExternalProviders = nil
		}
		if networking := spec.Networking; networking != nil && maybe(filler) {
			networking.Expose = nil
		}
		view := applied(t, down(hub), down(without))
		return onlyHub(t, without), onlyHub(t, up(view))
	})
}

// maybe is true in half of all cases.
func maybe(filler *randfill.Filler) bool {
	var yes bool
	filler.Fill(&yes)
	return yes
}

// lessJSON takes an entry of an object away, or all of the value.
func lessJSON(t *testing.T, filler *randfill.Filler, value **apiextensionsv1.JSON) {
	if *value == nil || maybe(filler) {
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal((*value).Raw, &fields) != nil || maybe(filler) {
		*value = nil
		return
	}
	for key := range fields {
		if maybe(filler) {
			delete(fields, key)
		}
	}
	text, err := json.Marshal(fields)
	assert.NoError(t, err)
	*value = &apiextensionsv1.JSON{Raw: text}
}

// onlyHub is what of an object only v1alpha2 has.
func onlyHub(t *testing.T, hub *v1alpha2.LlamaStackDistribution) string {
	t.Helper()
	var expose *apiextensionsv1.JSON
	if hub.Spec.Networking != nil {
		expose = hub.Spec.Networking.Expose
	}
	return asJSON(t, []any{hub.Spec.Providers, hub.Spec.Resources, hub.Spec.Storage, hub.Spec.Disabled, hub.Spec.ExternalProviders, v1alpha2.ExposureOf(expose)})
}

// What only v1alpha1 has can be taken away through v1alpha1, also of an object of which v1alpha2
// has been written.
func TestRemovalThroughV1alpha1(t *testing.T) {
	manyObjects(t, objects, func(filler *randfill.Filler) (want, got any) {
		view := &v1alpha1.LlamaStackDistribution{}
		filler.Fill(&view.ObjectMeta)
		filler.Fill(&view.Spec)
		without := view.DeepCopy()
		server := &without.Spec.Server
		if p := server.PodOverrides; p != nil && maybe(filler) {
			p.TerminationGracePeriodSeconds = nil
		}
		if c := server.UserConfig; c != nil && maybe(filler) {
			c.ConfigMapNamespace = ""
		}
		if c := server.TLSConfig; c != nil && c.CABundle != nil {
			if maybe(filler) {
				c.CABundle.ConfigMapNamespace = ""
			}
			if maybe(filler) {
				c.CABundle.ConfigMapKeys = nil
			}
		}
		if maybe(filler) {
			server.Autoscaling = nil
		}
		if maybe(filler) {
			server.PodDisruptionBudget = nil
		}
		hub := applied(t, up(view), up(without))
		return onlyView(t, without), onlyView(t, down(hub))
	})
}

// onlyView is what of an object only v1alpha1 has, and what v1alpha2 may refuse.
func onlyView(t *testing.T, view *v1alpha1.LlamaStackDistribution) string {
	t.Helper()
	server := view.Spec.Server
	var grace *int64
	if server.PodOverrides != nil {
		grace = server.PodOverrides.TerminationGracePeriodSeconds
	}
	config, bundle := v1alpha1.UserConfig{}, v1alpha1.CABundle{}
	if server.UserConfig != nil {
		config = *server.UserConfig
	}
	if server.TLSConfig != nil && server.TLSConfig.CABundle != nil {
		bundle = *server.TLSConfig.CABundle
	}
	return asJSON(t, []any{grace, config, bundle, server.Autoscaling, server.PodDisruptionBudget})
}

// Whoever names another ConfigMap in v1alpha2 means one of the object's own namespace, and its
// usual entry: what v1alpha1 said was about the one before.
func TestWhatIsCarriedBelongsToAName(t *testing.T) {
	const written = `{spec: {replicas: 1, server: {distribution: {name: d}, userConfig: {configMapName: c, configMapNamespace: other},
		tlsConfig: {caBundle: {configMapName: ca, configMapNamespace: other, configMapKeys: [k]}}}}}`
	hub := up(readView(t, written))
	extras, _ := v1alpha2.ReadV1alpha1Extras(hub)
	require.NotNil(t, extras.UserConfig)
	assert.Equal(t, "other", extras.UserConfig.Namespace)
	assert.Equal(t, []string{"k"}, extras.CABundle.Keys)

	hub.Spec.OverrideConfig.ConfigMapName = "mine"
	extras, _ = v1alpha2.ReadV1alpha1Extras(hub)
	assert.Nil(t, extras.UserConfig)
	require.NotNil(t, extras.CABundle, "it is still the same")
	assert.Empty(t, down(hub).Spec.Server.UserConfig.ConfigMapNamespace)

	hub.Spec.Networking.TLS.CABundle.ConfigMapName = "mine"
	extras, _ = v1alpha2.ReadV1alpha1Extras(hub)
	assert.Nil(t, extras.CABundle)
	assert.Equal(t, &v1alpha1.CABundle{ConfigMapName: "mine"}, down(hub).Spec.Server.TLSConfig.CABundle)
	assert.NotContains(t, asData(t, up(down(hub)).ObjectMeta), "other", "and it does not come back")
}

// What v1alpha2 refused is over once v1alpha2 says something else.
func TestWhatWasRejectedIsJudgedAnew(t *testing.T) {
	hub := up(readView(t, `{spec: {replicas: -1, network: {allowedFrom: {labels: [""]}}, server: {distribution: {name: d, image: i}, containerSpec: {port: 70000}, autoscaling: {maxReplicas: 0}, podDisruptionBudget: {}}}}`))
	extras, _ := v1alpha2.ReadV1alpha1Extras(hub)
	require.NotNil(t, extras.Rejected)
	hub.Spec = readHub(t, `{spec: {distribution: {name: d}, networking: {port: 1, allowedFrom: {labels: [l]}}, workload: {replicas: 1, autoscaling: {maxReplicas: 2}, podDisruptionBudget: {minAvailable: 1}}}}`).Spec
	extras, _ = v1alpha2.ReadV1alpha1Extras(hub)
	assert.Nil(t, extras.Rejected)
	hub.Spec.Workload.Autoscaling = nil
	extras, _ = v1alpha2.ReadV1alpha1Extras(hub)
	assert.Equal(t, &v1alpha2.Rejected{Autoscaling: &v1alpha2.Autoscaling{}}, extras.Rejected, "all but this one")
}

// An object that was stored with one annotation for all is read as before.
func TestTheEarlierAnnotationForAll(t *testing.T) {
	hub := readHub(t, `
metadata:
  annotations:
    llamastack.io/v1alpha1-extras: '{"containerName":"srv","userConfigNamespace":"u","caBundleNamespace":"c","caBundleKeys":["k"],"presence":["network"],"rejected":{"autoscaling":{"maxReplicas":0}}}'
spec: {distribution: {name: d}, networking: {port: 1, tls: {caBundle: {configMapName: ca}}}, overrideConfig: {configMapName: o}, workload: {replicas: 1}}`)
	view := down(hub)
	assert.JSONEq(t, asJSON(t, readView(t, `
spec:
  replicas: 1
  network: {}
  server:
    distribution: {name: d}
    containerSpec: {name: srv, port: 1}
    autoscaling: {maxReplicas: 0}
    userConfig: {configMapName: o, configMapNamespace: u}
    tlsConfig: {caBundle: {configMapName: ca, configMapNamespace: c, configMapKeys: [k]}}`)), asJSON(t, view))
	assert.NotContains(t, up(view).Annotations, v1alpha2.AnnotationV1alpha1Extras)

	view = readView(t, `
metadata: {annotations: {llamastack.io/v1alpha2-extras: '{"providers":{"inference":{"provider":"vllm"}},"disabled":["eval"],"presence":["workload.overrides"]}', v1alpha2.llamastack.io/disabled: '["safety"]'}}
spec: {replicas: 1, server: {distribution: {name: d}, containerSpec: {name: llama-stack, port: 1}}}`)
	assert.JSONEq(t, asJSON(t, readHub(t, `{spec: {distribution: {name: d}, providers: {inference: {provider: vllm}}, disabled: [safety], networking: {port: 1}, workload: {replicas: 1, overrides: {}}}}`)),
		asJSON(t, up(view)))
}
