package settings

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

const (
	localThresholds = "wva-saturation-scaling-config"
	localSleep      = "wva-model-scale-to-zero-config"
)

// localsWith are locals without informers, and what events they record.
func localsWith(t *testing.T, objects ...metav1.Object) (*Locals, *events.FakeRecorder) {
	t.Helper()
	recorder := events.NewFakeRecorder(100)
	l := emptyLocals("home", newTeller(recorder, nil))
	for _, name := range config.LocalConfigMaps() {
		l.named[name] = toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	}
	l.namespaces = toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for _, object := range objects {
		l.put(t, object)
	}
	return l, recorder
}

func (l *Locals) put(t *testing.T, object metav1.Object) {
	t.Helper()
	if m, ok := object.(*corev1.ConfigMap); ok {
		require.NoError(t, l.named[m.Name].Add(m))
		return
	}
	require.NoError(t, l.namespaces.Add(object))
}

func localMap(namespace, name, version, entry string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), ResourceVersion: version},
		Data:       map[string]string{"default": entry},
	}
}

func in(namespaces ...string) iter.Seq[string] { return slices.Values(namespaces) }

func TestNamespacesHaveASayWhereTheyHaveVariants(t *testing.T) {
	l, recorder := localsWith(t,
		localMap("chat", localThresholds, "1", "kvCacheThreshold: 0.5"),
		localMap("home", localThresholds, "1", "kvCacheThreshold: 0.4"),
		localMap("without", localThresholds, "1", "kvCacheThreshold: five"),
		localMap("labelled", localThresholds, "1", "kvCacheThreshold: five"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "labelled", Labels: map[string]string{v1alpha1.LabelConfigEnabled: "true"}}},
	)
	said := l.Read(t.Context(), in("chat", "home", "plain"))
	require.Contains(t, said, "chat")
	assert.InDelta(t, 0.5, said["chat"].Saturation.Default.KVCacheThreshold, 0)
	assert.Nil(t, said["chat"].ScaleToZero)
	assert.Equal(t, config.Local{}, said["plain"])
	assert.NotContains(t, said, "home", "those beside the manager are not local")
	assert.NotContains(t, said, "without", "no variant is there")
	require.Len(t, recorder.Events, 1, "only where the label is, a mistake is told without a variant")
	assert.Contains(t, <-recorder.Events, "Warning InvalidConfiguration")
}

func TestALocalConfigMapThatCannotBeUsedChangesNothing(t *testing.T) {
	l, recorder := localsWith(t, localMap("chat", localSleep, "1", "enable_scale_to_zero: true"))
	sleeps := func() bool { return *l.Read(t.Context(), in("chat"))["chat"].ScaleToZero.Default.Enabled }
	require.True(t, sleeps())
	l.put(t, localMap("chat", localSleep, "2", "enable_scale_to_zero: maybe"))
	assert.True(t, sleeps(), "the last good one stays")
	assert.True(t, sleeps())
	assert.Len(t, recorder.Events, 1, "each version is told of once")
	l.put(t, localMap("chat", localSleep, "3", "enable_scale_to_zero: false"))
	assert.False(t, sleeps())
	empty := localMap("chat", localSleep, "4", "")
	empty.Data = nil
	l.put(t, empty)
	assert.Nil(t, l.Read(t.Context(), in("chat"))["chat"].ScaleToZero, "one without entries is none")
}

func TestNoModelSleepsInANamespaceOfWhichNobodyKnows(t *testing.T) {
	l, recorder := localsWith(t, localMap("chat", localSleep, "1", "enable_scale_to_zero: maybe"))
	for range 2 {
		assert.Equal(t, config.NoneSleeps(), *l.Read(t.Context(), in("chat"))["chat"].ScaleToZero)
	}
	assert.Contains(t, <-recorder.Events, "no model scales to zero until it is corrected")
}

func TestTheFirstOfTheNamesCountsInANamespace(t *testing.T) {
	l, recorder := localsWith(t,
		localMap("chat", localThresholds, "1", "kvCacheThreshold: 0.5"),
		localMap("chat", "capacity-scaling-config", "1", "kvCacheThreshold: 0.6"),
	)
	said := l.Read(t.Context(), in("chat"))
	assert.InDelta(t, 0.5, said["chat"].Saturation.Default.KVCacheThreshold, 0)
	require.Len(t, recorder.Events, 1)
	assert.Contains(t, <-recorder.Events, "Warning ConfigMapIgnored ConfigMap "+localThresholds+" holds the same kind of settings and counts")
	require.NoError(t, l.named[localThresholds].Delete(localMap("chat", localThresholds, "1", "")))
	assert.InDelta(t, 0.6, l.Read(t.Context(), in("chat"))["chat"].Saturation.Default.KVCacheThreshold, 0)
}

func TestExcludedNamespacesAreLeftAlone(t *testing.T) {
	excluded := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "chat", Labels: map[string]string{v1alpha1.LabelConfigEnabled: "true"}, Annotations: map[string]string{v1alpha1.AnnotationExclude: "true"},
	}}
	l, _ := localsWith(t, excluded, localMap("chat", localThresholds, "1", "kvCacheThreshold: 0.5"))
	assert.True(t, l.Excludes("chat"))
	assert.False(t, l.Excludes("unknown"))
	assert.Empty(t, l.Read(t.Context(), in()), "the annotation wins over the label")
	l.namespaces = nil
	assert.False(t, l.Excludes("chat"), "the only namespace that is watched is meant")
	assert.False(t, (*Locals)(nil).Excludes("chat"))
	assert.Nil(t, (*Locals)(nil).Read(t.Context(), in("chat")))
}

func TestWhatIsUnreadOfANamespace(t *testing.T) {
	l, _ := localsWith(t)
	assert.Empty(t, l.Unread("chat", ""))
	assert.Equal(t, "what namespace chat says for itself is not known, and the settings beside the manager count: the permission is missing",
		l.Unread("chat", "the permission is missing"))
	assert.Empty(t, l.Unread("home", "the permission is missing"), "the ConfigMaps beside the manager are its own")
	assert.Empty(t, (*Locals)(nil).Unread("chat", "the permission is missing"), "namespaces have no say")
}
