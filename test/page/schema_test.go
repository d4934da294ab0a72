package page_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// schemas are those of our custom resources, by version and kind.
type schemas map[string]*customResource

// customResource checks objects of one version as the API server does.
type customResource struct {
	structural *schema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

func readSchemas(t *testing.T) schemas {
	t.Helper()
	read := schemas{}
	for _, path := range []string{"manifests/crd/llmd.ai_variantautoscalings.yaml", "manifests/llamastack/crd.yaml"} {
		data, err := os.ReadFile(root + "/" + path)
		require.NoError(t, err)
		for document := range strings.SplitSeq(string(data), "\n---") {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			require.NoError(t, yaml.Unmarshal([]byte(document), crd))
			for _, version := range crd.Spec.Versions {
				props := &apiextensions.JSONSchemaProps{}
				require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil))
				structural, err := schema.NewStructural(props)
				require.NoError(t, err)
				openAPI, _, err := validation.NewSchemaValidator(props)
				require.NoError(t, err)
				read[crd.Spec.Group+"/"+version.Name+"/"+crd.Spec.Names.Kind] = &customResource{
					structural: structural, openAPI: openAPI,
					rules: cel.NewValidator(structural, true, celconfig.PerCallLimit),
				}
			}
		}
	}
	require.Len(t, read, 3, slices.Sorted(maps.Keys(read)))
	return read
}

// check says what the API server would refuse, and which fields it would drop.
func (c *customResource) check(ctx context.Context, object map[string]any) error {
	defaulting.Default(object, c.structural)
	all := validation.ValidateCustomResource(nil, object, c.openAPI)
	broken, _ := c.rules.Validate(ctx, nil, c.structural, object, nil, celconfig.RuntimeCELCostBudget)
	all = append(all, broken...)
	unknown := pruning.PruneWithOptions(object, c.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		all = append(all, field.Invalid(field.NewPath(path), "", "is no field"))
	}
	return all.ToAggregate()
}
