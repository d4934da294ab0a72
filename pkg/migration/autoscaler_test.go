package migration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made are the documents that were made, by kind and name.
func made(t *testing.T, given ...string) map[string]map[string]any {
	t.Helper()
	c, err := Convert(documents(t, given...), Options{})
	require.NoError(t, err)
	all := map[string]map[string]any{}
	for _, d := range c.Made() {
		all[d.Kind+" "+d.Name] = d.Object
	}
	return all
}

// field is the value at a path of an object.
func field(object any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			below, _ := object.(map[string]any)
			object = below[s]
		case int:
			object = object.([]any)[s]
		}
	}
	return object
}

const scaled = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llama, namespace: chat, annotations: {autoscaling.keda.sh/paused-replicas: "2"}}
spec:
  scaleTargetRef: {name: llama}
  maxReplicaCount: 9
  fallback: {failureThreshold: 3, replicas: 4}
  advanced: {horizontalPodAutoscalerConfig: {name: of-llama}}
  triggers:
  - {type: prometheus, metadata: {serverAddress: http://p, query: 'wva_desired_replicas{variant_name="llama",accelerator_type="A100"}', threshold: "1"}}
`

const ofKEDA = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: of-llama, namespace: chat, ownerReferences: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: llama, uid: "1", controller: true}]}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}, maxReplicas: 9}
`

// A backup holds the ScaledObject and what KEDA made of it. Two of these would scale one target.
func TestWhatKEDAMakesIsLeftToKEDA(t *testing.T) {
	t.Parallel()
	c, err := Convert(documents(t, multi, scaled, ofKEDA), Options{})
	require.NoError(t, err)
	for _, d := range c.Documents {
		assert.NotEqual(t, KindHPA, d.Kind, d.Name)
	}
	for _, d := range c.Replaced {
		assert.NotEqual(t, KindHPA, d.Kind, "KEDA deletes it with its ScaledObject")
	}
	all := made(t, multi, scaled, ofKEDA)
	require.Len(t, all, 4)
	for name, accelerator := range map[string]string{"llama-h100": "H100", "llama-a100": "A100"} {
		object := all["ScaledObject "+name]
		assert.Equal(t, `wva_desired_replicas{variant_name="`+name+`",accelerator_type="`+accelerator+`"}`, field(object, "spec", "triggers", 0, "metadata", "query"))
		assert.Equal(t, "of-"+name, field(object, "spec", "advanced", "horizontalPodAutoscalerConfig", "name"), "two would share one")
		assert.Equal(t, map[string]any{"autoscaling.keda.sh/paused-replicas": "2"}, field(object, "metadata", "annotations"))
		assert.InDelta(t, 4, field(object, "spec", "fallback", "replicas"), 0)
		assert.Equal(t, "Metric", field(all["VariantAutoscaling "+name], "spec", "actuation"))
	}
}

// Whoever holds a ScaledObject holds those that are made of it, too, and each at as many replicas.
func TestAScaledObjectThatIsHeldIsSaid(t *testing.T) {
	t.Parallel()
	for annotation, want := range map[string]string{
		`autoscaling.keda.sh/paused-replicas: "2"`:    "ScaledObject chat/llama is held at 2 replicas by its annotation autoscaling.keda.sh/paused-replicas, and so is each that follows the 2 objects",
		`autoscaling.keda.sh/paused: "true"`:          "ScaledObject chat/llama is held by its annotation autoscaling.keda.sh/paused, and so is each that is made of it",
		`autoscaling.keda.sh/paused: "until Monday"`:  "is held by its annotation autoscaling.keda.sh/paused",
		`autoscaling.keda.sh/paused: "false"`:         "",
		`autoscaling.keda.sh/paused-scale-in: "true"`: "",
	} {
		c, err := Convert(documents(t, multi, strings.Replace(scaled, `autoscaling.keda.sh/paused-replicas: "2"`, annotation, 1)), Options{})
		require.NoError(t, err)
		if want == "" {
			assert.Empty(t, c.Notes, annotation)
			continue
		}
		require.Len(t, c.Notes, 1, annotation)
		assert.Contains(t, c.Notes[0], want)
	}
	c, err := Convert(documents(t, strings.Replace(scaled, "name: llama, namespace", "name: others, namespace", 1)), Options{})
	require.NoError(t, err)
	assert.Empty(t, c.Notes, "it follows none of ours")
}

func TestSelectorsAreRewrittenByTheWholeName(t *testing.T) {
	t.Parallel()
	query := func(query string) string {
		return strings.Replace(scaled, `wva_desired_replicas{variant_name="llama",accelerator_type="A100"}`, query, 1)
	}
	for name, c := range map[string]struct {
		object, autoscaler, kind, want string
		path                           []any
	}{
		"a name that is part of the label's": {strings.Replace(multi, "  name: llama\n", "  name: name\n", 1), strings.ReplaceAll(query(`up{variant_name="name"}`), "llama", "name"), "ScaledObject name-h100", `up{variant_name="name-h100"}`, []any{"spec", "triggers", 0, "metadata", "query"}},
		"a name that begins another":         {multi, query(`a{variant_name="llama"} + b{variant_name="llama-big"}`), "ScaledObject llama-h100", `a{variant_name="llama-h100"} + b{variant_name="llama-big"}`, []any{"spec", "triggers", 0, "metadata", "query"}},
		"an expression of one name":          {multi, query(`a{variant_name=~"llama"}`), "ScaledObject llama-h100", `a{variant_name=~"llama-h100"}`, []any{"spec", "triggers", 0, "metadata", "query"}},
		"expressions of labels":              {multi, strings.Replace(autoscaler, "matchLabels: {variant_name: llama}", "matchExpressions: [{key: variant_name, operator: In, values: [llama]}]", 1), "HorizontalPodAutoscaler llama-h100", "llama-h100", []any{"spec", "metrics", 0, "external", "metric", "selector", "matchExpressions", 0, "values", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, field(made(t, c.object, c.autoscaler)[c.kind], c.path...))
		})
	}
}

func TestAutoscalersThatCannotBeTurned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ autoscaler, want string }{
		"a query of several":    {strings.Replace(scaled, `variant_name="llama"`, `variant_name=~"llama|other"`, 1), `file 1: ScaledObject "llama": its query selects variant_name=~"llama|other": write variant_name="llama"`},
		"a query of all others": {strings.Replace(scaled, `variant_name="llama"`, `variant_name!="llama"`, 1), `its query selects variant_name!="llama"`},
		"metrics in an annotation": {"apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: llama, namespace: chat, annotations: {autoscaling.alpha.kubernetes.io/metrics: '[]'}}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}, maxReplicas: 2}\n",
			"kubectl get hpa.v2.autoscaling llama -o yaml"},
		"somebody's": {strings.NewReplacer("kind: ScaledObject, name: llama", "kind: InferenceService, name: served").Replace(ofKEDA), "InferenceService served makes it, and would make it again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Convert(documents(t, multi, c.autoscaler), Options{})
			require.ErrorContains(t, err, c.want)
		})
	}
}

// What an autoscaler follows without a selector is a target, which has a kind, and may have another
// name than the object.
func TestAutoscalersOnATarget(t *testing.T) {
	t.Parallel()
	plain := strings.Split(autoscaler, "  metrics:")[0]
	of := func(kind, name string) string {
		return strings.Replace(plain, "kind: Deployment, name: llama", "kind: "+kind+", name: "+name, 1)
	}
	elsewhere := strings.Replace(multi, "  modelProfile:", "  scaleTargetRef: {kind: Deployment, name: server}\n  modelProfile:", 1)
	const single = "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: llama, namespace: chat}\nspec: {modelID: m, scaleTargetRef: {name: server}, modelProfile: {accelerators: [{acc: A100, accCount: 1}]}}\n"
	for name, c := range map[string]struct {
		object, autoscaler string
		documents          int
		actuation          any
	}{
		"its own":                          {multi, of("Deployment", "llama"), 4, "Metric"},
		"one of another kind":              {multi, of("StatefulSet", "llama"), 2, nil},
		"its target has another name":      {elsewhere, of("Deployment", "server"), 4, "Metric"},
		"another target has the name":      {elsewhere, of("Deployment", "llama"), 2, nil},
		"one accelerator, another name":    {single, of("Deployment", "server"), 1, "Metric"},
		"one accelerator, somebody else's": {single, of("Deployment", "llama"), 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := made(t, c.object, c.autoscaler)
			assert.Len(t, all, c.documents)
			for name, object := range all {
				if strings.HasPrefix(name, kindVariant) {
					assert.Equal(t, c.actuation, field(object, "spec", "actuation"))
				}
			}
		})
	}
	c, err := Convert(documents(t, elsewhere), Options{})
	require.NoError(t, err)
	assert.Equal(t, "chat/server", c.Missing[0].Shared, "skeletons are made from its target")
}

// What stands beside the list of accelerators counts, or is an error.
func TestWhatStandsBesideTheList(t *testing.T) {
	t.Parallel()
	beside := func(object, fields string) string {
		return strings.Replace(object, "  modelProfile:", "  "+fields+"\n  modelProfile:", 1)
	}
	single := strings.Replace(multi, strings.Split(multi, "    accelerators:\n")[1], "    - {acc: A100, accCount: 1}\n", 1)
	object := made(t, beside(single, "scaleTargetRef: {kind: StatefulSet, name: server}\n  maxReplicas: 5\n  variantCost: \"2\""))["VariantAutoscaling llama"]
	assert.Equal(t, map[string]any{"kind": "StatefulSet", "name": "server"}, field(object, "spec", "scaleTargetRef"))
	assert.EqualValues(t, 5, field(object, "spec", "maxReplicas"))
	assert.Equal(t, "2", field(object, "spec", "variantCost"))
	for _, object := range made(t, beside(multi, "actuation: \"Off\"")) {
		assert.Equal(t, "Off", field(object, "spec", "actuation"))
	}
	for fields, want := range map[string]string{
		"maxReplicas: 5": "spec.maxReplicas is one for all accelerators of spec.modelProfile.accelerators, and each has an object of its own now",
		"scaleTargetRef: {kind: StatefulSet, name: server}": `spec.scaleTargetRef is StatefulSet "server", which the accelerators of spec.modelProfile.accelerators cannot share`,
	} {
		_, err := Convert(documents(t, beside(multi, fields)), Options{})
		require.ErrorContains(t, err, want)
	}
	_, err := Convert(documents(t, beside(single, "accCount: 2")), Options{})
	require.ErrorContains(t, err, "spec.accCount and spec.modelProfile.accelerators[0].accCount are both there")
}

// What is kept elsewhere comes back, and Argo CD deletes what has its mark and is not written there.
func TestObjectsThatAreKeptElsewhere(t *testing.T) {
	t.Parallel()
	marked := func(labels, annotations string) string {
		return strings.Replace(multi, "  labels: {", "  annotations: {"+annotations+"}\n  labels: {"+labels, 1)
	}
	for name, c := range map[string]struct{ labels, annotations, note string }{
		"Helm":    {"app.kubernetes.io/managed-by: Helm, ", "meta.helm.sh/release-name: models", "Helm release models"},
		"Argo CD": {"argocd.argoproj.io/instance: models, ", "argocd.argoproj.io/tracking-id: 'models:llmd.ai/VariantAutoscaling:chat/llama'", "Argo CD"},
		"Flux":    {"kustomize.toolkit.fluxcd.io/name: models, ", "", "Flux Kustomization models"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c2, err := Convert(documents(t, marked(c.labels, c.annotations)), Options{})
			require.NoError(t, err)
			assert.Equal(t, []string{"VariantAutoscaling chat/llama is kept by " + c.note + ", which may make it again or take the new ones away: change it there too"}, c2.Notes)
			assert.NotContains(t, strings.Join(texts(t, c2.Documents), ""), "argocd")

			single := "    - {acc: A100, accCount: 1}\n"
			c2, err = Convert(documents(t, strings.Replace(marked(c.labels, c.annotations), strings.Split(multi, "    accelerators:\n")[1], single, 1)), Options{})
			require.NoError(t, err)
			assert.Contains(t, texts(t, c2.Documents)[0], "models", "an object that keeps its name keeps its marks")
		})
	}
}
