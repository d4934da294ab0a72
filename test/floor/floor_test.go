package floor

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// TestTheRulesNeedTheVersionThatTheChartAsksFor compiles every rule of the kind with what
// an API server takes in a new kind, of the version in Chart.yaml and of the one before. It
// takes only what the version before its own has too, so that it can be rolled back.
func TestTheRulesNeedTheVersionThatTheChartAsksFor(t *testing.T) {
	text, err := os.ReadFile("../../charts/workload-variant-autoscaler/Chart.yaml")
	require.NoError(t, err)
	floor := version.MajorMinor(1, 29)
	assert.Contains(t, string(text), `kubeVersion: ">=`+floor.String()+`.0-0"`)

	assert.Empty(t, refused(t, floor.SubtractMinor(1)))
	assert.NotEmpty(t, refused(t, floor.SubtractMinor(2)), "the floor of the chart could be lower")
}

// refused are the errors of all rules.
func refused(t *testing.T, of *version.Version) (found []string) {
	t.Helper()
	text, err := os.ReadFile("../../manifests/crd/llmd.ai_variantautoscalings.yaml")
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(text, &crd))
	var properties apiextensions.JSONSchemaProps
	require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &properties, nil))
	structural, err := schema.NewStructural(&properties)
	require.NoError(t, err)

	offered := environment.MustBaseEnvSet(of)
	rules := 0
	visit := schema.Visitor{Structural: func(s *schema.Structural) bool {
		if len(s.XValidations) == 0 {
			return false
		}
		results, err := cel.Compile(s, model.SchemaDeclType(s, false), 1<<40, offered, cel.NewExpressionsEnvLoader())
		require.NoError(t, err)
		for _, result := range results {
			rules++
			if result.Error != nil {
				found = append(found, result.Error.Error())
			}
		}
		return false
	}}
	visit.Visit(structural)
	require.GreaterOrEqual(t, rules, 8, "the rules of the kind were found")
	return found
}
