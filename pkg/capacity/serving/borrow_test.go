package serving

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func on(accelerator capacity.Accelerator, devices int) capacity.Shape {
	return capacity.Shape{Accelerator: accelerator, Devices: devices, Pods: 1}
}

// Llama-3.1-70B fp8 on H200, as measured and published.
var h200x2 = Profile{Base: 13.13, PerRequest: 0.0314, PerResidentToken: 3.97e-5, PerPrefillToken: 0.0719, KVTokens: 500000}

func TestBorrowingPredictsPublishedMeasurements(t *testing.T) {
	for devices, want := range map[int]Profile{
		4: {Base: 9.13, PerResidentToken: 2.21e-5, PerPrefillToken: 0.0438},
		8: {Base: 7.74, PerResidentToken: 9.45e-6, PerPrefillToken: 0.0270},
		1: {Base: 20.56, PerResidentToken: 7.07e-5, PerPrefillToken: 0.1241},
	} {
		loan, ok := Borrow(on("H200", devices), []Lender{{"pair", on("H200", 2), h200x2, 1}})
		require.True(t, ok)
		assert.InEpsilon(t, float64(want.Base), float64(loan.Profile.Base), 0.2, "base, %d", devices)
		assert.InEpsilon(t, float64(want.PerPrefillToken), float64(loan.Profile.PerPrefillToken), 0.2, "prefill, %d", devices)
		assert.InEpsilon(t, float64(want.PerResidentToken), float64(loan.Profile.PerResidentToken), 0.2, "resident, %d", devices)
		assert.Zero(t, loan.Profile.KVTokens, "another shape has another cache")
		assert.Contains(t, loan.Reason, "borrowed from pair on 2xH200")
	}
}

func TestBorrowTakesTheMostAlike(t *testing.T) {
	lenders := []Lender{
		{"far", on("L4", 1), h200x2, 1},
		{"near", on("H100", 2), h200x2, 1},
		{"unknown", on("Abacus", 2), h200x2, 1},
		{"empty", on("H200", 2), Profile{}, 1},
	}
	loan, ok := Borrow(on("H200", 2), lenders)
	require.True(t, ok)
	assert.Equal(t, "near", loan.From)
	assert.InEpsilon(t, 13.13*3.35/4.8, float64(loan.Profile.Base), 1e-9)
	assert.Less(t, loan.Confidence, 1.0)

	loan, ok = Borrow(on("Abacus", 2), lenders)
	require.True(t, ok)
	assert.Equal(t, "unknown", loan.From, "the same type needs no data sheet")
	assert.Equal(t, capacity.Tokens(500000), loan.Profile.KVTokens)
	assert.InDelta(t, 1, loan.Confidence, 1e-12)

	_, ok = Borrow(on("Orrery", 1), lenders)
	assert.False(t, ok)
	_, ok = Borrow(on("H200", 2), nil)
	assert.False(t, ok)
}
