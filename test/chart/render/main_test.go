package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const chart = "../../../charts/workload-variant-autoscaler"

func TestItPrintsTheObjectsInTheOrderOfHelm(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, request{chart: chart, name: "wva", namespace: "serving", kubernetes: "v1.36.0", files: []string{chart + "/values-llm-d.yaml"}}.write(&out))
	assert.Regexp(t, `(?s)kind: ServiceAccount\n.*kind: CustomResourceDefinition\n.*kind: Deployment\n.*kind: VariantAutoscaling\n`, out.String())
	assert.Contains(t, out.String(), "name: wva-workload-variant-autoscaler-hpa\n  namespace: \"llm-d-autoscaler\"\n")
	assert.NotContains(t, out.String(), "kubectl get va", "the notes are no objects")
}

func TestItNamesWhatIsWrong(t *testing.T) {
	for want, r := range map[string]request{
		"load the chart nowhere":            {chart: "nowhere", kubernetes: "v1.36.0"},
		"no-values.yaml":                    {chart: chart, kubernetes: "v1.36.0", files: []string{"no-values.yaml"}},
		`-kubernetes "new" is no version`:   {chart: chart, kubernetes: "new"},
		"the chart needs Kubernetes >=1.29": {chart: chart, kubernetes: "v1.20.0"},
	} {
		assert.ErrorContains(t, r.write(&bytes.Buffer{}), want)
	}
}
