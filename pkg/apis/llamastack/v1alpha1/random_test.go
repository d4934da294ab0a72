package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// newFiller fills objects of both versions. Every field is as often absent as present, and
// so is every parent, so that parents without fields are common. A list is absent or has
// items: in the API's JSON there is no empty one. What has bounds in either version is
// often beside them.
func newFiller(seed int64) *randfill.Filler {
	fills := []any{fillMeta, fillEnv, fillVolume, fillMount, fillSpread, fillHubDistribution, fillAPI, fillPhase}
	fills = append(fills, optional(fillString)...)
	fills = append(fills, optional(fillInt32)...)
	fills = append(fills, optional(fillTime)...)
	fills = append(fills, optional(fillQuantity)...)
	fills = append(fills, optional(fillIntOrString)...)
	fills = append(fills, optional(fillJSON)...)
	fills = append(fills, optional(fillResources)...)
	fills = append(fills, optional(fillContainer)...)
	fills = append(fills, optional(fillNetworking)...)
	fills = append(fills, optional(fillWorkload)...)
	fills = append(fills, optional(fillAutoscaling)...)
	fills = append(fills, optional(fillBudget)...)
	fills = append(fills, optional(fillAllowedFrom)...)
	fills = append(fills, optional(fillCABundle)...)
	fills = append(fills, optional(fillOverrideConfig)...)
	return randfill.NewWithSeed(seed).NilChance(0.5).NumElements(1, 2).Funcs(fills...)
}

// optional fills values, and pointers to them, which randfill would never leave nil where
// their values have a function of their own.
func optional[T any](fill func(*T, randfill.Continue)) []any {
	return []any{fill, func(pointer **T, c randfill.Continue) {
		if *pointer = nil; c.Bool() {
			*pointer = new(T)
			fill(*pointer, c)
		}
	}}
}

func pick[T any](c randfill.Continue, values ...T) T { return values[c.Intn(len(values))] }

func fillString(s *string, c randfill.Continue) {
	*s = pick(c, "", "", "", "a", "b<&>", "ü\u2028", `"quoted"`)
}

func fillInt32(n *int32, c randfill.Continue) {
	*n = pick(c, 0, 1, 2, 80, 100, 101, 8321, 65535, 65536, -1, math.MaxInt32, math.MinInt32, int32(c.Uint32()))
}

// fillMeta leaves out what the API server alone writes.
func fillMeta(m *metav1.ObjectMeta, c randfill.Continue) {
	*m = metav1.ObjectMeta{Name: "n", Namespace: "ns", UID: types.UID(fmt.Sprint(c.Uint64())), Generation: int64(c.Uint32())}
	if c.Bool() {
		m.Annotations = map[string]string{"llamastack.io/other": "kept", "a": pick(c, "", "b")}
	}
	if c.Bool() {
		m.Labels = map[string]string{"l": "m"}
	}
	if c.Bool() {
		m.Finalizers = []string{"f"}
		m.OwnerReferences = []metav1.OwnerReference{{Name: "o", Controller: ptr.To(c.Bool())}}
	}
}

func fillTime(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(int64(c.Uint32()), 0) }

func fillQuantity(q *resource.Quantity, c randfill.Continue) {
	*q = resource.MustParse(pick(c, "0", "1", "1500m", "20Gi", "1e3"))
}

func fillIntOrString(v *intstr.IntOrString, c randfill.Continue) {
	*v = pick(c, intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("50%"))
}

// fillJSON makes any value, in the form in which encoding/json writes it.
func fillJSON(j *apiextensionsv1.JSON, c randfill.Continue) {
	j.Raw = []byte(pick(c, `{}`, `[]`, `true`, `false`, `"yes"`, `1.50`, `12345678901234567890`,
		`{"provider":"vllm","settings":{"big":9007199254740993,"deep":[{"a":null}]}}`,
		`[{"id":"a","provider":"ollama"},{"id":"b","provider":"inline::faiss"}]`,
		`{"hostname":"h"}`, `{"enabled":false,"hostname":"h"}`, `{"enabled":true}`, `{"enabled":1}`))
}

// Fields of pods are copied as they are: a few of them stand for all.

func fillEnv(v *corev1.EnvVar, c randfill.Continue) {
	*v = corev1.EnvVar{Name: pick(c, "A", "B"), Value: pick(c, "", "x")}
	if c.Bool() {
		v.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k", Optional: ptr.To(c.Bool())}}
	}
}

func fillVolume(v *corev1.Volume, c randfill.Continue) {
	*v = corev1.Volume{Name: pick(c, "v", "w"), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("1Gi"))}}}
}

func fillMount(m *corev1.VolumeMount, c randfill.Continue) {
	*m = corev1.VolumeMount{Name: "v", MountPath: pick(c, "/a", "/b"), ReadOnly: c.Bool()}
}

func fillSpread(s *corev1.TopologySpreadConstraint, c randfill.Continue) {
	*s = corev1.TopologySpreadConstraint{MaxSkew: int32(c.Intn(3)), TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
}

func fillResources(r *corev1.ResourceRequirements, c randfill.Continue) {
	if c.Bool() {
		r.Requests = corev1.ResourceList{"cpu": resource.MustParse(pick(c, "1", "500m"))}
	}
	if c.Bool() {
		r.Limits = corev1.ResourceList{"memory": resource.MustParse("1Gi")}
	}
}

func fillContainer(s *v1alpha1.ContainerSpec, c randfill.Continue) {
	c.FillNoCustom(s)
	s.Name = pick(c, s.Name, v1alpha2.DefaultContainerName, v1alpha2.DefaultContainerName, "srv")
	s.Port = pick(c, 0, 0, v1alpha2.DefaultPort, s.Port)
}

// An object of the hub has what its schema admits, and a few forms that it would not.

func fillHubDistribution(d *v1alpha2.Distribution, c randfill.Continue) {
	*d = pick(c, v1alpha2.Distribution{Name: "n"}, v1alpha2.Distribution{Image: "i"}, v1alpha2.Distribution{})
}

func fillNetworking(n *v1alpha2.Networking, c randfill.Continue) {
	c.FillNoCustom(n)
	n.Port = pick(c, 0, 0, v1alpha2.DefaultPort, 1, 9000, 65535)
}

func fillWorkload(w *v1alpha2.Workload, c randfill.Continue) {
	c.FillNoCustom(w)
	if w.Replicas != nil {
		w.Replicas = ptr.To(pick[int32](c, 0, 1, 2, math.MaxInt32))
	}
}

func fillAutoscaling(a *v1alpha2.Autoscaling, c randfill.Continue) {
	a.MaxReplicas = pick[int32](c, 3, math.MaxInt32)
	if c.Bool() {
		a.MinReplicas = ptr.To(pick[int32](c, 1, 3))
	}
	if c.Bool() {
		a.TargetCPUUtilizationPercentage = ptr.To(pick[int32](c, 1, 100))
	}
	if c.Bool() {
		a.TargetMemoryUtilizationPercentage = ptr.To(pick[int32](c, 1, 100))
	}
}

func fillBudget(b *v1alpha2.PodDisruptionBudget, c randfill.Continue) {
	var value intstr.IntOrString
	c.Fill(&value)
	if b.MinAvailable = &value; c.Bool() {
		b.MinAvailable, b.MaxUnavailable = nil, &value
	}
}

func fillAllowedFrom(f *v1alpha2.AllowedFrom, c randfill.Continue) {
	*f = pick(c, v1alpha2.AllowedFrom{}, v1alpha2.AllowedFrom{Namespaces: []string{"*"}}, v1alpha2.AllowedFrom{Namespaces: []string{"a", "b"}, Labels: []string{"l"}})
}

func fillCABundle(b *v1alpha2.CABundle, c randfill.Continue) { b.ConfigMapName = pick(c, "a", "b") }

func fillOverrideConfig(o *v1alpha2.OverrideConfig, c randfill.Continue) {
	o.ConfigMapName = pick(c, "a", "b")
}

func fillAPI(a *v1alpha2.API, c randfill.Continue) { *a = pick[v1alpha2.API](c, "eval", "vectorIo") }

func fillPhase(p *v1alpha2.Phase, c randfill.Continue) { *p = pick(c, v1alpha2.PhaseReady, "") }

// describe is an object as a reader of a failure wants it.
func describe(object any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return err.Error()
	}
	return text.String()
}
