package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// fields is the page of one version of a custom resource.
func fields(path, version string) (string, error) {
	crd, err := definition(path)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if at < 0 {
		return "", fmt.Errorf("%s has no version %s", path, version)
	}
	root := crd.Spec.Versions[at].Schema.OpenAPIV3Schema
	var b strings.Builder
	fmt.Fprintf(&b, "# Fields of %s\n\n%s\n\n`apiVersion: %s/%s`, `kind: %s`, short name `%s`. %s\n",
		crd.Spec.Names.Kind, generated, crd.Spec.Group, version, crd.Spec.Names.Kind, strings.Join(crd.Spec.Names.ShortNames, "`, `"), cell(root.Description))
	for _, part := range []string{"spec", "status"} {
		schema, ok := root.Properties[part]
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| field | type | default | what it says |\n|---|---|---|---|\n", part, cell(schema.Description))
		rows(&b, part, schema)
		for _, rule := range schema.XValidations {
			fmt.Fprintf(&b, "\nRule: %s\n", cell(rule.Message))
		}
	}
	return b.String(), nil
}

// definition is the first CustomResourceDefinition of a file, which may start with comments.
func definition(path string) (*apiextensions.CustomResourceDefinition, error) {
	data, err := os.ReadFile(path) //nolint:gosec // a manifest of this repository
	if err != nil {
		return nil, err
	}
	for document := range strings.SplitSeq(string(data), "\n---") {
		crd := &apiextensions.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(document), crd); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if crd.Kind == "CustomResourceDefinition" {
			return crd, nil
		}
	}
	return nil, fmt.Errorf("%s has no CustomResourceDefinition", path)
}

// rows are the fields below a schema, by name, each before what is in it.
func rows(b *strings.Builder, prefix string, schema apiextensions.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field, path := schema.Properties[name], prefix+"."+name
		required := ""
		if slices.Contains(schema.Required, name) {
			required = ", required"
		}
		fmt.Fprintf(b, "| `%s` | %s%s | %s | %s |\n", path, kind(field), required, code(value(field.Default)), says(field))
		below(b, path, field)
	}
}

func below(b *strings.Builder, path string, field apiextensions.JSONSchemaProps) {
	switch {
	case field.Items != nil && field.Items.Schema != nil:
		below(b, path+"[]", *field.Items.Schema)
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		below(b, path+".*", *field.AdditionalProperties.Schema)
	case len(field.Properties) > 0:
		rows(b, path, field)
	}
}

// kind is the type of a field, as a person says it.
func kind(field apiextensions.JSONSchemaProps) string {
	switch {
	case field.XIntOrString:
		return "number or text"
	case field.Items != nil && field.Items.Schema != nil:
		return "list of " + kind(*field.Items.Schema)
	case field.AdditionalProperties != nil:
		return "map"
	case field.Type == "string" && field.Format == "date-time":
		return "time"
	case field.Type == "":
		return "any"
	}
	return field.Type
}

// says is a field's description, then its rules.
func says(field apiextensions.JSONSchemaProps) string {
	parts := []string{cell(field.Description)}
	if len(field.Enum) > 0 {
		var words []string
		for _, word := range field.Enum {
			words = append(words, code(value(&word)))
		}
		parts = append(parts, "One of "+strings.Join(words, ", ")+".")
	}
	switch {
	case field.Minimum != nil && field.Maximum != nil:
		parts = append(parts, fmt.Sprintf("From %g to %g.", *field.Minimum, *field.Maximum))
	case field.Minimum != nil:
		parts = append(parts, fmt.Sprintf("At least %g.", *field.Minimum))
	case field.Maximum != nil:
		parts = append(parts, fmt.Sprintf("At most %g.", *field.Maximum))
	}
	for _, rule := range field.XValidations {
		parts = append(parts, "Rule: "+cell(rule.Message)+".")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

func value(raw *apiextensions.JSON) string {
	if raw == nil {
		return ""
	}
	var text string
	if json.Unmarshal(raw.Raw, &text) == nil {
		return text
	}
	return string(raw.Raw)
}
