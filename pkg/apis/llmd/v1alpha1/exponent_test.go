package v1alpha1

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reading one of these would take hours: the test ends only where nobody does.
func TestNumbersThatNobodyReads(t *testing.T) {
	type object = map[string]any
	for text, long := range map[string]bool{
		"1e-900000000": true, "1E-900000000": true, "-1.5e+99999": true, ".1e-0009": true,
		"0.1": false, "100m": false, "1e3": false, "1e-100": false, "64Gi": false, "since 1e-900000000": false, "3e": false,
	} {
		for at, o := range map[string]object{
			"spec.behavior.scaleUp.tolerance":   {"spec": object{"behavior": object{"scaleUp": object{"tolerance": text}}}},
			"spec.behavior.scaleDown.tolerance": {"spec": object{"behavior": object{"scaleDown": object{"tolerance": text}, "scaleUp": object{"tolerance": "0.1"}}}},
			"status.placement.shape.memory":     {"status": object{"placement": object{"shape": object{"memory": text}}}},
			"status.list[1].cpu":                {"status": object{"list": []any{"a", object{"cpu": text}}}},
		} {
			want := ""
			if long {
				want = at
			}
			assert.Equal(t, want, LongExponent(o), text)
		}
	}
	assert.Empty(t, LongExponent(object{"spec": "none", "status": nil}))

	v := Decode(&unstructured.Unstructured{Object: object{
		"metadata": object{"name": "v", "namespace": "chat"},
		"status":   object{"placement": object{"shape": object{"cpu": "1e-900000000"}}},
	}})
	assert.Equal(t, "v", v.Name)
	assert.Equal(t, "status.placement.shape.cpu is a number with an exponent that takes too long to read", v.Annotations[AnnotationUndecodable])
}
