package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func TestTheBoundsOfTheVariantAreThoseOfItsHPA(t *testing.T) {
	for _, c := range []struct{ least, most, min, max int }{{0, -1, 1, 1000}, {3, -1, 3, 1000}, {0, 7, 1, 7}, {0, 0, 1, 1}} {
		got := newHorizontal(&Variant{Policy: decision.VariantPolicy{Min: c.least, Max: c.most}}, horizontal.Period)
		assert.Equal(t, []int{c.min, c.max}, []int{got.Min, got.Max})
	}
}

// An object whose behavior says something has Kubernetes' defaults for the rest; one without
// has none of it.
func TestOnlyWhatStandsInBehaviorMakesOne(t *testing.T) {
	for text, want := range map[string]*horizontal.Behavior{
		"hpa:queue":               nil,
		"hpa:queue=3":             nil,
		"hpa:queue,down=300s":     new(horizontal.Defaults()),
		"hpa:queue,up=0s":         new(horizontal.Defaults()),
		"hpa:queue,tolerance=0.1": new(horizontal.Defaults()),
	} {
		spec, err := ParseSpec(text)
		if assert.NoError(t, err, text) {
			assert.Equal(t, want, behaviorOf(spec), text)
		}
	}
}
