package migration

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// The published names of the present form.
const (
	group             = "llmd.ai"
	kindVariant       = "VariantAutoscaling"
	targetVersion     = "apps/v1"
	kindDeployment    = "Deployment"
	labelAccelerator  = "inference.optimization/acceleratorName"
	actuationByMetric = "Metric"
)

// lastApplied is the copy that kubectl keeps of an object; it would show the earlier form.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// earlierVariants is an object that lists the accelerators of a model, or one of a model and
// one accelerator in earlier words. What it does not name is refused, so that nothing is
// lost.
type earlierVariants struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		// ModelID is modelId in some forms: names of fields are read without regard to case.
		ModelID      string         `json:"modelID"`
		SLOClassRef  map[string]any `json:"sloClassRef"`
		ModelProfile *struct {
			Accelerators []earlierVariant `json:"accelerators"`
		} `json:"modelProfile"`
		Variants []earlierVariant `json:"variants"`
		earlierVariant
	} `json:"spec"`
	// Status is made anew by the controller.
	Status any `json:"status"`
}

// earlierVariant is one accelerator of an object, in the words of all forms.
type earlierVariant struct {
	Acc              string         `json:"acc"`
	Accelerator      string         `json:"accelerator"`
	AcceleratorType  string         `json:"acceleratorType"`
	AccCount         int            `json:"accCount"`
	AcceleratorCount int            `json:"acceleratorCount"`
	PerfParms        map[string]any `json:"perfParms"`
	MaxBatchSize     int            `json:"maxBatchSize"`
	VariantProfile   struct {
		PerfParms    map[string]any `json:"perfParms"`
		MaxBatchSize int            `json:"maxBatchSize"`
	} `json:"variantProfile"`
	VariantID      string         `json:"variantID"`
	VariantCost    any            `json:"variantCost"`
	MinReplicas    *int           `json:"minReplicas"`
	MaxReplicas    *int           `json:"maxReplicas"`
	Behavior       map[string]any `json:"behavior"`
	Actuation      string         `json:"actuation"`
	ScaleTargetRef map[string]any `json:"scaleTargetRef"`
}

func (v *earlierVariant) accelerator() string {
	return cmp.Or(v.Acc, v.Accelerator, v.AcceleratorType)
}

// earlierFields are those of a spec that only earlier forms have.
var earlierFields = []string{"modelProfile", "variants", "acceleratorType", "acc", "accCount", "perfParms", "maxBatchSize", "modelId"}

// IsEarlier reports whether a VariantAutoscaling is of an earlier form.
func IsEarlier(object map[string]any) bool {
	spec, _ := object["spec"].(map[string]any)
	return spec["scaleTargetRef"] == nil || slices.ContainsFunc(earlierFields, func(field string) bool { return spec[field] != nil })
}

// Variant is an object of the present form that was made of one of an earlier form.
type Variant struct {
	Document
	// Accelerator is its accelerator as it was written, and Count the number of those of a
	// replica.
	Accelerator string
	Count       int
	// from says which part of the earlier object it is of.
	from string
	// ownTarget says that the target is a Deployment of the object's own name, which may
	// have to be made.
	ownTarget bool
	// shared is the name of the Deployment that was the target of the object of the earlier form.
	shared string
}

// variantsOf are one object for each accelerator of an object of an earlier form.
func variantsOf(text []byte, unitCost UnitCost) ([]Variant, error) {
	var e earlierVariants
	if err := yaml.UnmarshalStrict(text, &e); err != nil {
		return nil, fmt.Errorf("it is of no form that is known: %w", err)
	}
	name, _ := e.Metadata["name"].(string)
	if name == "" || e.Spec.ModelID == "" {
		return nil, errors.New("metadata.name and spec.modelID are needed: give both")
	}
	entries, field, err := e.entries()
	if err != nil {
		return nil, err
	}
	names, err := namesOf(name, field, entries)
	if err != nil {
		return nil, err
	}
	shared, err := e.inherit(entries, field)
	if err != nil {
		return nil, err
	}
	var all []Variant
	for i := range entries {
		place := field
		if field != "spec" {
			place = fmt.Sprintf("%s[%d]", field, i)
		}
		t, err := e.variant(&entries[i], names[i], place, unitCost)
		if err != nil {
			return nil, err
		}
		t.shared = cmp.Or(shared, name)
		all = append(all, t)
	}
	return all, nil
}

// entries are the variants that an object lists, and in which field.
func (e *earlierVariants) entries() ([]earlierVariant, string, error) {
	const profile, list = "spec.modelProfile.accelerators", "spec.variants"
	s := &e.Spec
	switch {
	case s.ModelProfile != nil && s.Variants != nil:
		return nil, "", fmt.Errorf("%s and %s are both there: leave one", profile, list)
	case s.Variants != nil && len(s.Variants) == 0:
		return nil, "", fmt.Errorf("%s is empty, so there is no variant: list one", list)
	case s.Variants != nil:
		return s.Variants, list, nil
	case s.ModelProfile != nil && len(s.ModelProfile.Accelerators) > 0:
		return s.ModelProfile.Accelerators, profile, nil
	case s.earlierVariant.accelerator() != "":
		return []earlierVariant{s.earlierVariant}, "spec", nil
	}
	return nil, "", fmt.Errorf("%s is empty, so there is no variant: list one", profile)
}

// inherit gives the entries what the object says beside its list. Of several entries each has its
// own Deployment, made from the one that is the object's target, whose name is returned.
func (e *earlierVariants) inherit(entries []earlierVariant, list string) (shared string, err error) {
	beside := &e.Spec.earlierVariant
	if list == "spec" {
		return "", nil // it is the entry
	}
	if target := beside.ScaleTargetRef; target != nil && len(entries) > 1 {
		kind, _ := target["kind"].(string)
		if shared, _ = target["name"].(string); shared == "" || cmp.Or(kind, kindDeployment) != kindDeployment {
			return "", fmt.Errorf("spec.scaleTargetRef is %s %q, which the accelerators of %s cannot share: give each of them a scaleTargetRef", kind, shared, list)
		}
		beside.ScaleTargetRef = nil
	}
	said := reflect.ValueOf(beside).Elem()
	for i := range said.NumField() {
		if said.Field(i).IsZero() {
			continue
		}
		field := said.Type().Field(i).Tag.Get("json")
		if len(entries) > 1 && field != "behavior" && field != "actuation" {
			return "", fmt.Errorf("spec.%s is one for all accelerators of %s, and each has an object of its own now: give each of them its %s", field, list, field)
		}
		for j := range entries {
			own := reflect.ValueOf(&entries[j]).Elem().Field(i)
			if !own.IsZero() && len(entries) == 1 {
				return "", fmt.Errorf("spec.%s and %s[0].%s are both there: leave one", field, list, field)
			} else if own.IsZero() {
				own.Set(said.Field(i))
			}
		}
	}
	return shared, nil
}

// namesOf are the names of the objects: one alone keeps its name, of several each has its
// accelerator in it, and the number of those too where two have the same accelerator.
func namesOf(name, field string, entries []earlierVariant) ([]string, error) {
	if len(entries) == 1 {
		return []string{name}, nil
	}
	shared := map[string]int{}
	for i := range entries {
		shared[objectName(entries[i].accelerator())]++
	}
	names := make([]string, len(entries))
	for i := range entries {
		accelerator := objectName(entries[i].accelerator())
		names[i] = name + "-" + accelerator
		if shared[accelerator] > 1 {
			count, _ := entries[i].count()
			names[i] += "-" + strconv.Itoa(count)
		}
		if before := slices.Index(names[:i], names[i]); before >= 0 {
			return nil, fmt.Errorf("%s[%d] and [%d] have the same accelerator and number: remove one", field, before, i)
		}
	}
	return names, nil
}

// count is the number of devices of a replica, which may stand in the variant's ID alone.
func (v *earlierVariant) count() (int, bool) {
	if count := cmp.Or(v.AccCount, v.AcceleratorCount); count != 0 {
		return count, count > 0
	}
	count, err := strconv.Atoi(v.VariantID[strings.LastIndexByte(v.VariantID, '-')+1:])
	return count, err == nil && count > 0
}

// variant is the object of one entry.
func (e *earlierVariants) variant(v *earlierVariant, name, place string, unitCost UnitCost) (Variant, error) {
	accelerator := v.accelerator()
	count, ok := v.count()
	if accelerator == "" || !ok {
		return Variant{}, fmt.Errorf("%s: acc is %q and accCount is %d: name the accelerator and at least 1", place, accelerator, count)
	}
	id := fmt.Sprintf("%s-%s-%d", e.Spec.ModelID, accelerator, count)
	if v.VariantID != "" && v.VariantID != id {
		return Variant{}, fmt.Errorf("%s.variantID is %q: expected %s, which follows from the model, the accelerator and the number", place, v.VariantID, id)
	}
	spec := map[string]any{
		"modelID": e.Spec.ModelID, "variantID": id, "accelerator": accelerator, "acceleratorCount": count,
		"scaleTargetRef": map[string]any{"apiVersion": targetVersion, "kind": kindDeployment, "name": name},
	}
	if v.ScaleTargetRef != nil {
		spec["scaleTargetRef"] = v.ScaleTargetRef
	}
	if e.Spec.SLOClassRef != nil {
		spec["sloClassRef"] = e.Spec.SLOClassRef
	}
	if profile := v.profile(); len(profile) > 0 {
		spec["variantProfile"] = profile
	}
	if err := v.cost(spec, accelerator, count, unitCost); err != nil {
		return Variant{}, fmt.Errorf("%s.%w", place, err)
	}
	v.limits(spec)
	namespace, _ := e.Metadata["namespace"].(string)
	object := map[string]any{"apiVersion": e.APIVersion, "kind": e.Kind, "metadata": e.metadata(name, accelerator), "spec": spec}
	return Variant{
		Document:    Document{Kind: e.Kind, Namespace: namespace, Name: name, Object: object},
		Accelerator: accelerator, Count: count, from: place, ownTarget: v.ScaleTargetRef == nil,
	}, nil
}

// profile is the latency model of a replica in the present form. Its numbers are in quotes.
func (v *earlierVariant) profile() map[string]any {
	profile := map[string]any{}
	parameters := v.PerfParms
	if parameters == nil {
		parameters = v.VariantProfile.PerfParms
	}
	if parameters != nil {
		profile["perfParms"] = quoted(parameters)
	}
	if size := cmp.Or(v.MaxBatchSize, v.VariantProfile.MaxBatchSize); size > 0 {
		profile["maxBatchSize"] = size
	}
	return profile
}

// quoted is a map with its numbers as texts.
func quoted(values map[string]any) map[string]any {
	made := make(map[string]any, len(values))
	for key, value := range values {
		switch v := value.(type) {
		case map[string]any:
			made[key] = quoted(v)
		case float64:
			made[key] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			made[key] = value
		}
	}
	return made
}

// cost sets the price of a replica: that of the object, else that of its accelerators, if
// their prices are given.
func (v *earlierVariant) cost(spec map[string]any, accelerator string, count int, unitCost UnitCost) error {
	switch given := v.VariantCost.(type) {
	case string:
		spec["variantCost"] = given
		return nil
	case float64:
		spec["variantCost"] = strconv.FormatFloat(given, 'f', -1, 64)
		return nil
	case nil:
	default:
		return fmt.Errorf("variantCost is %v: expected a decimal number in quotes", given)
	}
	if unitCost == nil {
		return nil
	}
	if unit, ok := unitCost(accelerator); ok {
		spec["variantCost"] = strconv.FormatFloat(float64(unit*capacity.Cost(count)), 'f', -1, 64)
	}
	return nil
}

// limits keeps what the user allows.
func (v *earlierVariant) limits(spec map[string]any) {
	if v.MinReplicas != nil {
		spec["minReplicas"] = *v.MinReplicas
	}
	if v.MaxReplicas != nil {
		spec["maxReplicas"] = *v.MaxReplicas
	}
	if v.Behavior != nil {
		spec["behavior"] = v.Behavior
	}
	if v.Actuation != "" {
		spec["actuation"] = v.Actuation
	}
}

// metadata is what users write of it. Without the reference to its Deployment the object
// stays when that is deleted.
func (e *earlierVariants) metadata(name, accelerator string) map[string]any {
	metadata := map[string]any{"name": name}
	if namespace, ok := e.Metadata["namespace"]; ok {
		metadata["namespace"] = namespace
	}
	given, _ := e.Metadata["annotations"].(map[string]any)
	if annotations := kept(given, e.Metadata["name"] != name); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	given, _ = e.Metadata["labels"].(map[string]any)
	labels := kept(given, e.Metadata["name"] != name)
	if labels == nil {
		labels = map[string]any{}
	}
	labels[labelAccelerator] = accelerator
	metadata["labels"] = labels
	return metadata
}

// objectName is an accelerator as the name of an object may hold it.
func objectName(accelerator string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r == '-', r == '_', r == '.', r == '/', r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(accelerator))
	return strings.Trim(name, "-")
}
