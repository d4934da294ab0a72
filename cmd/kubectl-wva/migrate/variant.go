package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// earlierVariant is an object that lists the accelerators of a model. Its Deployment has its
// own name and namespace. What it does not name is refused, so that nothing is lost.
type earlierVariant struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		ModelID      string         `json:"modelID"`
		SLOClassRef  map[string]any `json:"sloClassRef"`
		ModelProfile struct {
			Accelerators []earlierAccelerator `json:"accelerators"`
		} `json:"modelProfile"`
	} `json:"spec"`
	// Status is made anew by the controller.
	Status any `json:"status"`
}

type earlierAccelerator struct {
	Acc          string         `json:"acc"`
	AccCount     int            `json:"accCount"`
	PerfParms    map[string]any `json:"perfParms"`
	MaxBatchSize int            `json:"maxBatchSize"`
}

// variants are one object for each accelerator of an object of the earlier form. One of the
// present form stays as it is.
func variants(text []byte) ([]byte, error) {
	var present struct {
		Spec struct {
			ScaleTargetRef map[string]any `json:"scaleTargetRef"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &present); err != nil {
		return nil, err
	}
	if present.Spec.ScaleTargetRef != nil {
		return bytes.TrimPrefix(text, []byte("---\n")), nil
	}
	var e earlierVariant
	if err := yaml.UnmarshalStrict(text, &e); err != nil {
		return nil, fmt.Errorf("it is of no form that is known: %w", err)
	}
	name, _ := e.Metadata["name"].(string)
	switch {
	case name == "" || e.Spec.ModelID == "":
		return nil, errors.New("metadata.name and spec.modelID are needed: give both")
	case len(e.Spec.ModelProfile.Accelerators) == 0:
		return nil, errors.New("spec.modelProfile.accelerators is empty, so there is no variant: list one")
	}
	current := e.current()
	objects := make([][]byte, 0, len(e.Spec.ModelProfile.Accelerators))
	for i := range e.Spec.ModelProfile.Accelerators {
		object, err := e.variant(i, i == current)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return bytes.Join(objects, []byte("---\n")), nil
}

// current is the accelerator that the Deployment runs on: that of the object's label, else
// the first.
func (e *earlierVariant) current() int {
	labels, _ := e.Metadata["labels"].(map[string]any)
	for i, a := range e.Spec.ModelProfile.Accelerators {
		if a.Acc == labels[v1alpha1.LabelAcceleratorName] {
			return i
		}
	}
	return 0
}

// variant is the object of one accelerator, with comments before it. That of the current
// one keeps the name.
func (e *earlierVariant) variant(i int, current bool) ([]byte, error) {
	a := &e.Spec.ModelProfile.Accelerators[i]
	if a.Acc == "" || a.AccCount < 1 {
		return nil, fmt.Errorf("spec.modelProfile.accelerators[%d]: acc is %q and accCount is %d: name the accelerator and at least 1", i, a.Acc, a.AccCount)
	}
	name := fmt.Sprint(e.Metadata["name"])
	var all bytes.Buffer
	if !current {
		name = fmt.Sprintf("%s-%s", name, objectName(a.Acc))
	}
	fmt.Fprintf(&all, "# spec.modelProfile.accelerators[%d] -> VariantAutoscaling %s\n", i, name)
	if !current {
		fmt.Fprintf(&all, "# Deployment %s is to be made, with %d x %s for a replica: one object scales one Deployment now\n", name, a.AccCount, a.Acc)
	}
	spec := map[string]any{
		"scaleTargetRef": map[string]any{"apiVersion": v1alpha1.DefaultTargetAPIVersion, "kind": v1alpha1.DefaultTargetKind, "name": name},
		"modelID":        e.Spec.ModelID,
		"variantID":      fmt.Sprintf("%s-%s-%d", e.Spec.ModelID, a.Acc, a.AccCount),
		"accelerator":    a.Acc, "acceleratorCount": a.AccCount,
	}
	if e.Spec.SLOClassRef != nil {
		spec["sloClassRef"] = e.Spec.SLOClassRef
	}
	profile := map[string]any{}
	if a.PerfParms != nil {
		profile["perfParms"] = a.PerfParms
	}
	if a.MaxBatchSize > 0 {
		profile["maxBatchSize"] = a.MaxBatchSize
	}
	if len(profile) > 0 {
		spec["variantProfile"] = profile
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": e.APIVersion, "kind": e.Kind, "metadata": e.metadata(name, a.Acc), "spec": spec,
	})
	all.Write(text)
	return all.Bytes(), err
}

// metadata is what users write of it. Without the reference to its Deployment the object
// stays when that is deleted.
func (e *earlierVariant) metadata(name, accelerator string) map[string]any {
	metadata := map[string]any{"name": name}
	for _, field := range []string{"namespace", "annotations"} {
		if value, ok := e.Metadata[field]; ok {
			metadata[field] = value
		}
	}
	given, _ := e.Metadata["labels"].(map[string]any)
	labels := maps.Clone(given)
	if _, ok := labels[v1alpha1.LabelAcceleratorName]; ok {
		labels[v1alpha1.LabelAcceleratorName] = accelerator
	}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
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
