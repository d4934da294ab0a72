package operator

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// secretWord is what only the owner of a ConfigMap may read.
const secretWord = "hush"

func TestWhichNamespacesAConfigMapAllows(t *testing.T) {
	for annotation, want := range map[string]bool{
		"": false, ",": false, "ns": true, "*": true, "other, ns": true, "other,ns ": true, "other": false, "ns2": false, "n*": false, "NS": false,
	} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationAllowedNamespaces: annotation}}}
		assert.Equal(t, want, allows(object, "ns"), "%q", annotation)
	}
	assert.False(t, allows(&corev1.ConfigMap{}, "ns"))
}

// A tenant writes an object of any form. Whatever the ConfigMaps of others are, the tenant
// finds nothing of them that they do not allow: neither in the tenant's namespace, nor in
// the status, nor in an event, and not even whether they exist.
func TestATenantReadsNothingOfOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	told := map[bool]int{}
	for range 300 {
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "theirs"}}
		foreign.Annotations = map[string]string{AnnotationAllowedNamespaces: pick("", "nobody", "other", "ns2", "kube-system,other")}
		foreign.Data = map[string]string{pick("config.yaml", "ca-bundle.crt", "a.crt"): pick(
			"version: "+secretWord, "version: 2\nkey: "+secretWord, "["+secretWord, secretWord,
			"-----BEGIN CERTIFICATE-----\n"+secretWord+"\n-----END CERTIFICATE-----\n",
		)}
		annotations := map[string]string{
			v1alpha2.AnnotationV1alpha1Extras:      pick("", "{", `{"userConfigNamespace":"other","caBundleNamespace":"other"}`, `{"caBundleNamespace":"other","caBundleKeys":["a.crt"]}`),
			v1alpha2.PrefixV1alpha1 + "userConfig": pick("{", `{"namespace":"other"}`, `{"name":"theirs","namespace":"other"}`),
			pick("llamastack.io/v1alpha1-user-config-namespace", "llamastack.io/v1alpha1-ca-bundle-namespace"): "other",
		}
		spec := v1alpha2.LlamaStackDistributionSpec{Distribution: v1alpha2.Distribution{Name: "starter"}}
		if random.IntN(2) == 0 {
			spec.OverrideConfig = &v1alpha2.OverrideConfig{ConfigMapName: "theirs"}
		}
		if random.IntN(2) == 0 || spec.OverrideConfig == nil {
			spec.Networking = &v1alpha2.Networking{TLS: &v1alpha2.TLS{CABundle: &v1alpha2.CABundle{ConfigMapName: "theirs"}}}
		}
		seen := seenByATenant(t, annotations, spec, foreign)
		assert.NotContains(t, seen, secretWord)
		assert.Equal(t, seen, seenByATenant(t, annotations, spec, nil), "whether it exists")
		told[strings.Contains(seen, "add the annotation "+AnnotationAllowedNamespaces+": ns to it")]++
	}
	assert.Greater(t, told[true], 100, "refused for want of the permission")
}

// seenByATenant is all that a tenant of the namespace ns may read after a turn.
func seenByATenant(t *testing.T, annotations map[string]string, spec v1alpha2.LlamaStackDistributionSpec, foreign *corev1.ConfigMap) string {
	t.Helper()
	w := newWorld(t, interceptor.Funcs{})
	w.object.Annotations, w.object.Spec = annotations, spec
	require.NoError(t, w.Update(t.Context(), w.object))
	if foreign != nil {
		require.NoError(t, w.Create(t.Context(), foreign.DeepCopy()))
	}
	_ = w.turn(t) // the status has it
	var configMaps corev1.ConfigMapList
	require.NoError(t, w.List(t.Context(), &configMaps, client.InNamespace("ns")))
	text, err := json.Marshal([]any{w.object.Status, configMaps.Items})
	require.NoError(t, err)
	recorder := w.recorder.(*events.FakeRecorder)
	close(recorder.Events)
	return fmt.Sprintln(string(text), slices.Collect(func(yield func(string) bool) {
		for event := range recorder.Events {
			if !yield(event) {
				return
			}
		}
	}))
}

func TestAConfigMapOfAnotherNamespaceThatAllowsIt(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.object.Annotations = map[string]string{v1alpha2.AnnotationV1alpha1Extras: `{"userConfigNamespace":"other"}`}
	w.object.Spec.OverrideConfig = &v1alpha2.OverrideConfig{ConfigMapName: "theirs"}
	require.NoError(t, w.Update(t.Context(), w.object))
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "theirs"}, Data: map[string]string{"config.yaml": "version: 2\n"}}
	require.NoError(t, w.Create(t.Context(), theirs))
	require.Error(t, w.turn(t))
	condition := apimeta.FindStatusCondition(w.object.Status.Conditions, conditionConfigMaps)
	require.NotNil(t, condition)
	assert.Equal(t, "NotAllowed", condition.Reason)
	assert.Contains(t, condition.Message, "the ConfigMap other/theirs of spec.overrideConfig is in another namespace")
	assert.Contains(t, condition.Message, "add the annotation llamastack.io/allowed-namespaces: ns to it")

	theirs.Annotations = map[string]string{AnnotationAllowedNamespaces: "ns"}
	require.NoError(t, w.Update(t.Context(), theirs))
	require.NoError(t, w.turn(t))
	assert.Nil(t, apimeta.FindStatusCondition(w.object.Status.Conditions, conditionConfigMaps))
	copied := &corev1.ConfigMap{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo-user-config"}, copied))
	assert.Equal(t, "version: 2\n", copied.Data["config.yaml"])

	theirs.Data["config.yaml"] = "version: " + secretWord
	require.NoError(t, w.Update(t.Context(), theirs))
	err := w.turn(t)
	require.ErrorContains(t, err, "is no configuration of version 1 or 2")
	assert.NotContains(t, err.Error(), secretWord, "its author may still not read it")
}
