package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/manifests/crd"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// definition is what the CRD says of objects of the present version. It is checked with the API
// server's own code, so that the words are the same.
type definition struct {
	structural *structural.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

// defined is read once: to compile the rules takes a moment.
var defined = sync.OnceValues(readDefinition)

func readDefinition() (*definition, error) {
	var object apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(crd.VariantAutoscaling, &object); err != nil {
		return nil, fmt.Errorf("reading the CRD of VariantAutoscaling: %w", err)
	}
	for _, version := range object.Spec.Versions {
		if version.Name != v1alpha1.GroupVersion.Version {
			continue
		}
		var props apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
			return nil, fmt.Errorf("reading the CRD of VariantAutoscaling: %w", err)
		}
		form, err := structural.NewStructural(&props)
		if err != nil {
			return nil, fmt.Errorf("reading the CRD of VariantAutoscaling: %w", err)
		}
		openAPI, _, err := validation.NewSchemaValidator(&props)
		if err != nil {
			return nil, fmt.Errorf("reading the CRD of VariantAutoscaling: %w", err)
		}
		return &definition{form, openAPI, cel.NewValidator(form, true, celconfig.PerCallLimit)}, nil
	}
	return nil, fmt.Errorf("the CRD of VariantAutoscaling has no version %s", v1alpha1.GroupVersion.Version)
}

// refusals are what the API server says of a new object, in its order: first unknown fields,
// then values, and rules between values only where the values themselves are fit for them. The
// object then has its defaults.
func (d *definition) refusals(object map[string]any, metadata header) (said []string) {
	delete(object, "status") // which a create drops
	unknown := pruning.PruneWithOptions(object, d.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		for i, path := range unknown {
			unknown[i] = fmt.Sprintf("unknown field %q", path)
		}
		return []string{"strict decoding error: " + strings.Join(unknown, ", ")}
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	defaulting.Default(object, d.structural)

	meta := metadata.Metadata
	if meta.Namespace == "" {
		meta.Namespace = "default" // kubectl names one
	}
	if meta.Name == "" && meta.GenerateName != "" {
		meta.Name = meta.GenerateName + "x" // as the API server fills it in
	}
	all := apivalidation.ValidateObjectMeta(&meta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	all = append(all, validation.ValidateCustomResource(nil, object, d.openAPI)...)
	all = append(all, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if !blocking(all) {
		broken, _ := d.rules.Validate(context.Background(), nil, d.structural, object, nil, celconfig.RuntimeCELCostBudget)
		all = append(all, broken...)
	}
	for _, err := range all {
		said = append(said, err.Error()+hint(err))
	}
	slices.Sort(said) // rules come in no order
	return said
}

// blocking reports whether an error keeps the rules from being looked at, as in the API server.
func blocking(all field.ErrorList) bool {
	for _, err := range all {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// hint says how a value became one of another type than the one that was meant.
func hint(err *field.Error) string {
	if err.Type == field.ErrorTypeTypeInvalid && err.BadValue == "boolean" {
		return `: YAML reads Off, On, Yes and No as booleans: write it in quotes, as in "Off"`
	}
	return ""
}

// refusalsOf are those of a document.
func refusalsOf(text []byte, h header) ([]string, error) {
	d, err := defined()
	if err != nil {
		return nil, err
	}
	object, err := valuesOf(text)
	if err != nil {
		return nil, err
	}
	return d.refusals(object, h), nil
}

// valuesOf are the values of a document, whole numbers apart from others.
func valuesOf(text []byte) (values map[string]any, err error) {
	if text, err = yaml.YAMLToJSON(text); err != nil {
		return nil, err
	}
	return values, utiljson.Unmarshal(text, &values)
}

// isOlder reports whether an object names no target, as those of older forms.
func isOlder(text []byte) bool {
	object, err := valuesOf(text)
	if err != nil {
		return false
	}
	spec, ok := object["spec"].(map[string]any)
	return ok && spec["scaleTargetRef"] == nil
}
