package serving

import (
	"math"
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

// What Exchange says of two models by name is what a lender's times have to foretell of
// them on devices that have no NVLink.
func TestBorrowingAddsWhatIsSentOverSlowLinks(t *testing.T) {
	link, known := LinkOf(capacity.Device{Accelerator: "L40S"})
	require.True(t, known)
	for name, lender := range map[string]Profile{
		// On one H100 and, the larger one in 8 bits, on one H200, whose arithmetic is the
		// same, as measured and published.
		"meta-llama/Llama-3.1-8B":  {Base: 6.64, PerRequest: 0.0269, PerResidentToken: 4.71e-5, PerPrefillToken: 0.0220},
		"meta-llama/Llama-3.1-70B": {Base: 20.56, PerRequest: 0.0526, PerResidentToken: 7.07e-5, PerPrefillToken: 0.1241},
	} {
		for _, devices := range []int{2, 4} {
			sent, ok := FiguresOf(name, Arguments{}).Exchange(link, devices)
			require.True(t, ok)
			one := []Lender{{"one", on("H100", 1), lender, 1}}
			loan, ok := Borrow(on("L40S", devices), one)
			require.True(t, ok)
			more := float64(loan.Profile.PerRequest - lender.PerRequest)
			assert.InDelta(t, 0, math.Log(more/float64(sent.PerToken)), math.Log(1.8), "%s on %d: %v and %v", name, devices, more, sent.PerToken)
			assert.Greater(t, float64(loan.Profile.PerPrefillToken), more)
			one[0].Profile.Form = Overlapped
			loan, ok = Borrow(on("L40S", devices), one)
			require.True(t, ok)
			assert.InDelta(t, more, float64(loan.Profile.PerExchanged), 1e-12, "the form that tells both apart")
			assert.Equal(t, lender.PerRequest, loan.Profile.PerRequest)

			back, ok := Borrow(on("H100", 1), []Lender{{"several", on("L40S", devices), loan.Profile, 1}})
			require.True(t, ok)
			assert.InDelta(t, float64(lender.PerPrefillToken), float64(back.Profile.PerPrefillToken), 1e-12, "and back")
			assert.Zero(t, back.Profile.PerExchanged)
		}
	}
}

func TestBorrowingOfTheSameDevicesChangesNothing(t *testing.T) {
	for _, form := range []Form{Linear, Overlapped, FourParameters} {
		p := Profile{Form: form, Base: 10, PerRequest: 0.05, PerResidentToken: 4e-5, PerResidentBeside: 9e-5, PerPrefillToken: 0.1, PerExchanged: 0.04, LongExchange: 1.3, Gamma: 2}
		loan, ok := Borrow(on("L40S", 2), []Lender{{"twin", on("L40S", 2), p, 1}})
		require.True(t, ok)
		assert.Equal(t, p, loan.Profile)
		faster, ok := Borrow(on("H100", 2), []Lender{{"card", on("L40S", 2), p, 1}})
		require.True(t, ok)
		assert.InEpsilon(t, 9.0/4, float64(faster.Profile.PerResidentBeside/faster.Profile.PerResidentToken), 1e-9, "both are read over the same memory")
	}
}

// Of several lenders the surest lends, in whatever order they stand, and of equally sure
// ones the first by name; who is not sure of anything lends nothing.
func TestBorrowTakesTheSurest(t *testing.T) {
	sure, less := Lender{"sure", on("H200", 2), h200x2, 0.9}, Lender{"less", on("H200", 2), h200x2, 0.5}
	for name, c := range map[string]struct {
		lenders []Lender
		want    string
	}{
		"the surer one first":       {[]Lender{sure, less}, "sure"},
		"the surer one last":        {[]Lender{less, sure}, "sure"},
		"equally sure, by name":     {[]Lender{{"b", on("H200", 2), h200x2, 0.5}, {"a", on("H200", 2), h200x2, 0.5}}, "a"},
		"by name, the other order":  {[]Lender{{"a", on("H200", 2), h200x2, 0.5}, {"b", on("H200", 2), h200x2, 0.5}}, "a"},
		"the name is only a tie":    {[]Lender{{"z", on("H200", 2), h200x2, 0.9}, less}, "z"},
		"the same name twice":       {[]Lender{{"a", on("H200", 2), h200x2, 0.5}, {"a", on("H200", 2), onDouble(h200x2), 0.5}}, "a"},
		"sure of nothing":           {[]Lender{{"a", on("H200", 2), h200x2, 0}}, ""},
		"that has no devices":       {[]Lender{{"a", on("H200", 0), h200x2, 1}}, ""},
		"that takes devices off":    {[]Lender{{"a", on("H200", -1), h200x2, 1}}, ""},
		"with one device, far away": {[]Lender{{"a", on("H200", 1), h200x2, 1}}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			loan, ok := Borrow(on("H200", 2), c.lenders)
			assert.Equal(t, c.want != "", ok)
			assert.Equal(t, c.want, loan.From)
			if ok && c.lenders[0].Name == "a" && c.lenders[0].Confidence == 0.5 {
				assert.InDelta(t, float64(h200x2.Base), float64(loan.Profile.Base), 1e-9, "the first of the same name")
			}
		})
	}
	for _, devices := range []int{0, -1} {
		_, ok := Borrow(on("H200", devices), []Lender{sure})
		assert.False(t, ok, "%d devices", devices)
	}
}

func onDouble(p Profile) Profile {
	p.Base *= 2
	return p
}

// What four cards send each other over PCIe they do not over NVLink: a Linear profile has it
// per request in service, an Overlapped one per token.
func TestTheLinkIsScaledByHand(t *testing.T) {
	card := on("H100", 4)
	card.Form = "PCIE"
	there, back := on("H100", 4), card
	s, ok := scaling(card, there)
	assert.True(t, ok)
	assert.Positive(t, s.lent)
	assert.Zero(t, s.lends)
	p := s.apply(Profile{Base: 10, PerRequest: 1, PerPrefillToken: 0.1})
	arithmetic := 0.1 / (1 + s.lent)
	assert.InEpsilon(t, arithmetic, float64(p.PerPrefillToken), 1e-9)
	assert.InEpsilon(t, 1-arithmetic*s.lent, float64(p.PerRequest), 1e-9)

	s, ok = scaling(there, back)
	assert.True(t, ok)
	p = s.apply(Profile{Base: 10, PerRequest: 1, PerPrefillToken: 0.1})
	assert.InEpsilon(t, 0.1*(1+s.lends), float64(p.PerPrefillToken), 1e-9)
	assert.InEpsilon(t, 1+0.1*s.lends, float64(p.PerRequest), 1e-9)
	p = s.apply(Profile{Form: Overlapped, Base: 10, PerPrefillToken: 0.1})
	assert.InEpsilon(t, 0.1, float64(p.PerPrefillToken), 1e-9)
	assert.InEpsilon(t, 0.1*s.lends, float64(p.PerExchanged), 1e-9)

	s, _ = scaling(card, on("A100", 4))
	p = s.apply(Profile{Form: Overlapped, Base: 10, PerPrefillToken: 0.1, PerExchanged: 0.02})
	assert.InEpsilon(t, 0.1*s.prefill, float64(p.PerPrefillToken), 1e-9, "what is sent is beside it")

	bridged := on("H100", 2)
	bridged.Form = "NVL"
	assert.Zero(t, beside(bridged), "nobody knows the link")
	assert.Zero(t, beside(on("H100", 1)))
}
