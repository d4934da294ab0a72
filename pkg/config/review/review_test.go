package review_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
)

// variant is an object on Deployment d.
func variant(name string, change ...func(*v1alpha1.VariantAutoscaling)) *v1alpha1.VariantAutoscaling {
	v := &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "m", ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: "d"}},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func TestObject(t *testing.T) {
	deployment := review.Target{Kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "n", Name: "d"}
	classes, _, err := config.ParseServiceClasses("classes", map[string]string{"a": "{name: Premium, priority: 1, data: [{model: m, slo-ttft: 5}]}"})
	require.NoError(t, err)
	none := func(schema.GroupVersionKind) (bool, bool) { return false, true }
	unknown := func(schema.GroupVersionKind) (bool, bool) { return false, false }
	hpa := []review.Autoscaler{{Kind: "HorizontalPodAutoscaler", Name: "h", Target: deployment}}
	class := func(name string) func(*v1alpha1.VariantAutoscaling) {
		return func(v *v1alpha1.VariantAutoscaling) { v.Spec.SLOClassRef = &v1alpha1.SLOClassReference{Name: name} }
	}
	elsewhere := variant("b", func(v *v1alpha1.VariantAutoscaling) { v.Namespace = "other" })
	for name, c := range map[string]struct {
		object   *v1alpha1.VariantAutoscaling
		around   review.Surroundings
		errs     []string
		warnings []string
	}{
		"nothing is known around it":   {object: variant("a", class("Premium"))},
		"all is well":                  {object: variant("a", class("premium")), around: review.Surroundings{Variants: []*v1alpha1.VariantAutoscaling{variant("a"), elsewhere}, Scalable: unknown, Classes: &classes}},
		"two objects on one target":    {object: variant("a"), around: review.Surroundings{Variants: []*v1alpha1.VariantAutoscaling{variant("c"), variant("b")}}, errs: []string{"spec.scaleTargetRef: VariantAutoscaling b, c also scales Deployment d: delete all but one"}},
		"another autoscaler":           {object: variant("a"), around: review.Surroundings{Autoscalers: hpa}, warnings: []string{"HorizontalPodAutoscaler h also scales Deployment d: delete it, or set spec.actuation to Metric and let it act on the metric wva_desired_replicas"}},
		"one that acts on our metric":  {object: variant("a", func(v *v1alpha1.VariantAutoscaling) { v.Spec.Actuation = v1alpha1.ActuationMetric }), around: review.Surroundings{Autoscalers: hpa}},
		"a kind that cannot be scaled": {object: variant("a", func(v *v1alpha1.VariantAutoscaling) { v.Spec.ScaleTargetRef.Kind = "DaemonSet" }), around: review.Surroundings{Scalable: none}, errs: []string{"spec.scaleTargetRef: DaemonSet has no scale subresource, so its replicas cannot be set: name an object that has one, such as a Deployment"}},
		"a class that does not exist":  {object: variant("a", class("Gold")), around: review.Surroundings{Classes: &classes}, warnings: []string{`spec.sloClassRef: variant a names service class "Gold", which does not exist: there are Premium`}},
		"an object of an older form":   {object: variant("a", func(v *v1alpha1.VariantAutoscaling) { v.Spec.ScaleTargetRef.Name = "" }), errs: []string{review.ErrOlderForm.Error()}},
		"fields that contradict others": {object: variant("a", func(v *v1alpha1.VariantAutoscaling) {
			v.Spec.MinReplicas, v.Spec.MaxReplicas, v.Spec.VariantCost, v.Spec.ModelID = ptr.To[int32](3), ptr.To[int32](2), "dear", ""
		}), errs: []string{
			"spec.minReplicas (3) is above spec.maxReplicas (2): lower it or raise maxReplicas", `spec.variantCost is "dear": write a number of at least 0`,
			"spec.modelID is missing: name the model as its clients do",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			errs, warnings := review.Object(c.object, c.around)
			var texts []string
			for _, err := range errs {
				texts = append(texts, err.Error())
			}
			assert.Equal(t, c.errs, texts)
			assert.Equal(t, c.warnings, warnings)
		})
	}
}

func TestChange(t *testing.T) {
	around := review.Surroundings{Variants: []*v1alpha1.VariantAutoscaling{variant("a"), variant("b")}}
	crossed := func(v *v1alpha1.VariantAutoscaling) {
		v.Spec.MinReplicas, v.Spec.MaxReplicas = ptr.To[int32](3), ptr.To[int32](2)
	}
	apart := func(v *v1alpha1.VariantAutoscaling) { v.Spec.ScaleTargetRef.Name = "e" }
	const shared = "spec.scaleTargetRef: VariantAutoscaling b also scales Deployment d: delete all but one"
	const bounds = "spec.minReplicas (3) is above spec.maxReplicas (2): lower it or raise maxReplicas"
	for name, c := range map[string]struct {
		old, object *v1alpha1.VariantAutoscaling
		errs        []string
		warnings    []string
	}{
		"what was wrong before may stay":  {old: variant("a"), object: variant("a"), warnings: []string{shared}},
		"what becomes wrong is refused":   {old: variant("a", apart), object: variant("a"), errs: []string{shared}},
		"one old fault and one new":       {old: variant("a"), object: variant("a", crossed), errs: []string{bounds}, warnings: []string{shared}},
		"a fault is mended beside others": {old: variant("a", crossed), object: variant("a"), warnings: []string{shared}},
		"all is well in the end":          {old: variant("a", crossed), object: variant("a", apart)},
	} {
		t.Run(name, func(t *testing.T) {
			errs, warnings := review.Change(c.old, c.object, around)
			var texts []string
			for _, err := range errs {
				texts = append(texts, err.Error())
			}
			assert.Equal(t, c.errs, texts)
			assert.Equal(t, c.warnings, warnings)
		})
	}
}

func TestBuiltIn(t *testing.T) {
	for kind, want := range map[schema.GroupVersionKind][2]bool{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:    {true, true},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}:   {true, true},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:    {true, true},
		{Version: "v1", Kind: "ReplicationController"}:        {true, true},
		{Group: "apps", Version: "v1", Kind: "DaemonSet"}:     {false, true},
		{Version: "v1", Kind: "Pod"}:                          {false, true},
		{Group: "batch", Version: "v1", Kind: "Job"}:          {false, true},
		{Group: "example.com", Version: "v1", Kind: "Server"}: {false, false},
	} {
		scalable, known := review.BuiltIn(kind)
		assert.Equal(t, want, [2]bool{scalable, known}, kind.String())
	}
}
