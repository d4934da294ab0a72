package validation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/config/validation"
)

func TestWhatIsWrongWithTheArgumentsIsSaidFieldByField(t *testing.T) {
	cases := []struct {
		name  string
		names *config.ConfigMapReference
		want  []string
	}{
		{name: "no ConfigMap"},
		{name: "a ConfigMap", names: &config.ConfigMapReference{Namespace: "system", Name: "accelerator.names"}},
		{name: "neither namespace nor name", names: &config.ConfigMapReference{}, want: []string{
			"args.acceleratorNames.namespace: Required value", "args.acceleratorNames.name: Required value"}},
		{name: "no such names", names: &config.ConfigMapReference{Namespace: "my.system", Name: "Names"}, want: []string{
			`args.acceleratorNames.namespace: Invalid value: "my.system"`, `args.acceleratorNames.name: Invalid value: "Names"`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := validation.AcceleratorPlacementArgs(field.NewPath("args"), &config.AcceleratorPlacementArgs{AcceleratorNames: c.names})
			if c.want == nil {
				require.NoError(t, err)
			}
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}
