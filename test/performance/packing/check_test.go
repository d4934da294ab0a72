package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVerify(t *testing.T) {
	for name, test := range map[string]struct {
		bestfit, gradient, ours float64
		good                    bool
	}{
		"as it is":         {92.8, 95.2, 96.3, true},
		"another best fit": {92.2, 95.2, 96.3, false},
		"another gradient": {92.8, 95.8, 96.9, false},
		"too little":       {92.8, 95.2, 96.1, false},
		"nothing ahead":    {92.8, 95.7, 96.0, false},
	} {
		t.Run(name, func(t *testing.T) {
			curves := make([][]Curve, len(policies))
			for p := range policies {
				curves[p] = make([]Curve, 3)
			}
			for seed := range 3 {
				curves[indexOf("bestfit")][seed][100] = test.bestfit
				curves[indexOf("gradient")][seed][100] = test.gradient
				curves[indexOf("ours")][seed][100] = test.ours + 0.4*float64(seed-1)
			}
			text, good := verify(curves)
			assert.Equal(t, test.good, good, text)
		})
	}
}
