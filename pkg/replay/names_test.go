package replay

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKindsOfPolicies(t *testing.T) {
	for name, want := range map[string]Kind{
		"capacity-only": KindOurs, "hybrid": KindOurs,
		"static:3": KindReference, "static:N": KindReference, "peak": KindReference,
		"hpa:queue": KindBaseline, "hpa:kv": KindBaseline, "keda": KindBaseline,
		"magic": KindBaseline,
	} {
		assert.Equal(t, want, KindOf(name), name)
	}
}
