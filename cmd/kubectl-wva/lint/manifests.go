package lint

import (
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
)

// manifests are what the files hold.
type manifests struct {
	variants []written
	// beside are the objects of ours that are refused, as far as they can be read: who shares
	// their target is to know.
	beside      []*v1alpha1.VariantAutoscaling
	autoscalers []review.Autoscaler
	classes     *config.ServiceClasses
	// refused are of objects that the API server refuses before it asks the webhook, and of
	// settings that the manager does not take.
	refused []finding
	// settings is how many ConfigMaps were read.
	settings int
}

// written is an object and the file that it is in.
type written struct {
	file   string
	object *v1alpha1.VariantAutoscaling
}

// finding is one thing to say of an object.
type finding struct {
	File   string `json:"file"`
	Kind   string `json:"kind"`
	Object string `json:"object"`
	Level  level  `json:"level"`
	Text   string `json:"text"`
}

// level says how bad a finding is.
type level string

const (
	levelError   level = "error"
	levelWarning level = "warning"
)

func (f finding) wrong() bool { return f.Level == levelError }

func (f finding) String() string {
	return fmt.Sprintf("%s: %s %s: %s: %s", f.File, f.Kind, f.Object, f.Level, f.Text)
}

// header is what every object has.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	// Items are those of a List; other kinds may call anything items.
	Items stdjson.RawMessage `json:"items"`
}

// read takes one document.
func (m *manifests) read(file string, text []byte) error {
	var h header
	if err := yaml.Unmarshal(text, &h); err != nil {
		return err
	}
	if strings.HasSuffix(h.Kind, "List") && h.Items != nil {
		var items []stdjson.RawMessage
		if err := stdjson.Unmarshal(h.Items, &items); err != nil {
			return err
		}
		for _, item := range items {
			if err := m.read(file, item); err != nil {
				return err
			}
		}
	}
	group := h.GroupVersionKind().Group
	switch {
	case group == v1alpha1.GroupName && h.Kind == v1alpha1.Kind:
		return m.readVariant(file, text, h)
	case h.Kind == "HorizontalPodAutoscaler" && group == "autoscaling", h.Kind == "ScaledObject" && group == "keda.sh":
		return m.readAutoscaler(text, h)
	case h.Kind == "ConfigMap" && group == "":
		return m.readSettings(file, text, h)
	}
	return nil
}

func (m *manifests) readVariant(file string, text []byte, h header) error {
	refuse := func(texts ...string) {
		for _, text := range texts {
			m.refused = append(m.refused, finding{file, v1alpha1.Kind, nameOf(h.Metadata), levelError, text})
		}
	}
	if isOlder(text) {
		refuse(review.ErrOlderForm.Error())
		return nil
	}
	if h.APIVersion != v1alpha1.GroupVersion.String() {
		refuse(fmt.Sprintf("apiVersion is %q, which has no such kind: write %s", h.APIVersion, v1alpha1.GroupVersion))
		return nil
	}
	said, err := refusalsOf(text, h)
	if err != nil {
		return err
	}
	if refuse(said...); len(said) > 0 {
		if v, ok := asFarAsRead(text); ok {
			m.beside = append(m.beside, v)
		}
		return nil
	}
	if values, err := valuesOf(text); err == nil {
		if at := v1alpha1.LongExponent(values); at != "" {
			refuse(at + " is a number with an exponent that takes too long to read: leave status out")
			return nil
		}
	}
	// As the API server reads it: fields are told apart by case, too, and none is there twice.
	var v v1alpha1.VariantAutoscaling
	if _, _, err := decoder().Decode(text, nil, &v); err != nil {
		refuse(strings.ReplaceAll(err.Error(), "\n  ", " "))
		return nil
	}
	m.variants = append(m.variants, written{file, &v})
	return nil
}

// asFarAsRead is a refused object without what nobody asks of it and could take minutes to read.
func asFarAsRead(text []byte) (*v1alpha1.VariantAutoscaling, bool) {
	values, err := valuesOf(text)
	if err != nil {
		return nil, false
	}
	delete(values, "status")
	if spec, ok := values["spec"].(map[string]any); ok {
		delete(spec, "behavior")
	}
	if text, err = stdjson.Marshal(values); err != nil {
		return nil, false
	}
	v := &v1alpha1.VariantAutoscaling{}
	return v, yaml.Unmarshal(text, v) == nil
}

func decoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}

func nameOf(meta metav1.ObjectMeta) string {
	name := cmp.Or(meta.Name, meta.GenerateName, "(without a name)")
	if meta.Namespace == "" {
		return name
	}
	return meta.Namespace + "/" + name
}

// readAutoscaler reads what an autoscaler is for. A ScaledObject may leave out that it is
// a Deployment.
func (m *manifests) readAutoscaler(text []byte, h header) error {
	var object struct {
		Spec struct {
			ScaleTargetRef v1alpha1.ScaleTargetReference `json:"scaleTargetRef"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("%s %s: %w", h.Kind, nameOf(h.Metadata), err)
	}
	var gvk schema.GroupVersionKind
	gvk, err := object.Spec.ScaleTargetRef.GroupVersionKind()
	if err != nil {
		return fmt.Errorf("%s %s: %w", h.Kind, nameOf(h.Metadata), err)
	}
	m.autoscalers = append(m.autoscalers, review.Autoscaler{Kind: h.Kind, Name: h.Metadata.Name, Target: review.Target{
		Kind: gvk.GroupKind(), Namespace: h.Metadata.Namespace, Name: object.Spec.ScaleTargetRef.Name,
	}})
	return nil
}

// findings are all of them, in the order of the files.
func (m *manifests) findings() []finding {
	around := review.Surroundings{Autoscalers: m.autoscalers, Scalable: review.BuiltIn, Classes: m.classes}
	around.Variants = append(around.Variants, m.beside...)
	for _, w := range m.variants {
		around.Variants = append(around.Variants, w.object)
	}
	all, first := append([]finding{}, m.refused...), map[string]string{}
	for _, w := range m.variants {
		name := nameOf(w.object.ObjectMeta)
		if file, twice := first[name]; twice && w.object.Name != "" {
			all = append(all, finding{w.file, v1alpha1.Kind, name, levelError, fmt.Sprintf("%s has an object of this name too, and whichever is applied last replaces the other: delete one", file)})
		} else {
			first[name] = w.file
		}
		errs, warnings := review.Object(w.object, around)
		if ref := w.object.Spec.SLOClassRef; ref != nil && m.classes == nil {
			warnings = append(warnings, fmt.Sprintf("spec.sloClassRef: %s was not checked: no ConfigMap of service classes is among the files", ref.Name))
		}
		for _, err := range each(errors.Join(errs...)) {
			all = append(all, finding{w.file, v1alpha1.Kind, nameOf(w.object.ObjectMeta), levelError, err.Error()})
		}
		for _, warning := range warnings {
			all = append(all, finding{w.file, v1alpha1.Kind, nameOf(w.object.ObjectMeta), levelWarning, warning})
		}
	}
	return all
}
