package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// publishedCosts are those of the published samples.
var publishedCosts = map[string]string{
	"A100":   `{"device": "NVIDIA-A100-PCIE-80GB", "cost": "40.00"}`,
	"MI300X": `{"device": "AMD-MI300X-192GB", "cost": "65.00"}`,
	"G2":     `{"device": "Intel-Gaudi-2-96GB", "cost": "23.00"}`,
	"H100":   `{"device": "NVIDIA-H100-80GB-HBM3", "cost": "100.0"}`,
	"L40S":   `{"device": "NVIDIA-L40S", "cost": "32.00"}`,
}

func TestUnitCosts(t *testing.T) {
	with := func(key, value string) map[string]string {
		data := map[string]string{key: value}
		for k, v := range publishedCosts {
			data[k] = v
		}
		return data
	}
	h100 := capacity.Device{Accelerator: "H100", MemoryGiB: 80, Form: "SXM5"}
	tests := map[string]struct {
		data     map[string]string
		device   capacity.Device
		want     capacity.Cost
		known    bool
		warnings []string
	}{
		"no data at all":                      {device: h100},
		"by the type":                         {data: publishedCosts, device: h100, want: 100, known: true},
		"by another name of the type":         {data: publishedCosts, device: capacity.Device{Accelerator: "Gaudi2"}, want: 23, known: true},
		"a type without a price":              {data: publishedCosts, device: capacity.Device{Accelerator: "B200"}},
		"no type at all":                      {data: publishedCosts, device: capacity.Device{}},
		"a slice is no whole device":          {data: publishedCosts, device: capacity.Device{Accelerator: "A100-MIG-1g.10gb"}},
		"the narrower price counts":           {data: with("H100-80GB", `{"cost": 90}`), device: h100, want: 90, known: true},
		"the narrower price is for others":    {data: with("H100-94GB", `{"cost": 120}`), device: h100, want: 100, known: true},
		"a narrow price alone is not for all": {data: map[string]string{"A100-80GB": `{"cost": 50}`}, device: capacity.Device{Accelerator: "A100"}},
		"a name of one's own, by the device":  {data: map[string]string{"our-card": `{"device": "NVIDIA-B200", "cost": 7}`}, device: capacity.Device{Accelerator: "B200"}, want: 7, known: true},
		"a name of one's own, by the name":    {data: map[string]string{"our-card": `{"device": "NVIDIA-B200", "cost": 7}`}, device: capacity.Device{Accelerator: "OUR-CARD"}, want: 7, known: true},
		"free of charge":                      {data: map[string]string{"H100": "cost: 0"}, device: h100, want: 0, known: true},
		"a device that contradicts the name": {data: map[string]string{"H100": `{"device": "NVIDIA-A100-PCIE-80GB", "cost": 7}`}, device: h100, want: 7, known: true,
			warnings: []string{`entry "H100": its device is a A100-80GB-PCIE, and its name counts: correct one of them`}},
		"a field without effect": {data: map[string]string{"H100": `{"price": 5, "cost": 7}`}, device: h100, want: 7, known: true,
			warnings: []string{`entry "H100": price has no effect: correct its name or remove it`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			costs, warnings, err := config.ParseUnitCosts(test.data)
			require.NoError(t, err)
			assert.Equal(t, test.warnings, warnings)
			got, known := costs.Of(test.device)
			assert.Equal(t, test.known, known)
			assert.InDelta(t, float64(test.want), float64(got), 1e-9)
		})
	}
}

func TestParseUnitCostsErrors(t *testing.T) {
	tests := map[string]struct {
		data map[string]string
		want []string
	}{
		"no map":                    {map[string]string{"H100": "100"}, []string{`accelerator prices: entry "H100": `}},
		"no price":                  {map[string]string{"H100": `{"device": "x"}`}, []string{`entry "H100": cost is missing: write the price of one device per hour`}},
		"a price below zero":        {map[string]string{"H100": `{"cost": -1}`}, []string{`entry "H100": cost is -1: write a number of at least 0`}},
		"a price that is no number": {map[string]string{"H100": `{"cost": "NaN"}`}, []string{`entry "H100": cost is NaN: write a number of at least 0`}},
		"a price with its currency": {map[string]string{"H100": `{"cost": "5 EUR"}`}, []string{`entry "H100": cost is 5 EUR: write a number of at least 0`}},
		"a device that is no text":  {map[string]string{"H100": `{"device": 5, "cost": 5}`}, []string{`entry "H100": device is 5: write a text, in quotes`}},
		"a name of no accelerator":  {map[string]string{"NVIDIA": `{"cost": 5}`}, []string{`entry "NVIDIA": its name is that of no accelerator: use a name such as H100 or A100-80GB`}},
		"two prices of one device":  {map[string]string{"G2": `{"cost": 5}`, "Gaudi2": `{"cost": 6}`}, []string{`entry "Gaudi2": is for Gaudi2, as entry "G2" is: remove one`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := config.ParseUnitCosts(test.data)
			require.Error(t, err)
			assert.Zero(t, got)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestCostOfAReplica(t *testing.T) {
	costs, _, err := config.ParseUnitCosts(publishedCosts)
	require.NoError(t, err)
	h100, b200 := capacity.Device{Accelerator: "H100"}, capacity.Device{Accelerator: "B200"}
	tests := map[string]struct {
		given  string
		device capacity.Device
		count  int
		want   capacity.Cost
		none   bool
	}{
		"what the variant says":   {"4.5", h100, 8, 4.5, false},
		"nothing is a price too":  {"0", h100, 8, 0, false},
		"its devices":             {"", h100, 8, 800, false},
		"devices without a price": {"", b200, 8, 10 * 8 * 179.0 / 80, true},
		"of a known memory":       {"", capacity.Device{Accelerator: "V100", MemoryGiB: 40}, 2, 10, true},
		"of an unknown memory":    {"", capacity.Device{Accelerator: "GH200"}, 2, 20, true},
		"of an unknown type":      {"", capacity.Device{Accelerator: "X1"}, 3, 30, true},
		"no devices":              {"", h100, 0, 10, true},
		"nothing known":           {"", capacity.Device{}, 0, 10, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, given, err := costs.Replica(&v1alpha1.VariantAutoscalingSpec{VariantCost: test.given}, test.device, test.count)
			require.NoError(t, err)
			assert.Equal(t, test.none, !given)
			assert.InDelta(t, float64(test.want), float64(got), 1e-9)
		})
	}
	got, _, err := costs.Replica(&v1alpha1.VariantAutoscalingSpec{VariantCost: "cheap"}, h100, 2)
	require.ErrorContains(t, err, "spec.variantCost")
	assert.InDelta(t, 200, float64(got), 0)
}

func FuzzParseUnitCosts(f *testing.F) {
	f.Add("H100", `{"device": "NVIDIA-H100-80GB-HBM3", "cost": "100.0"}`)
	f.Add("our card", "device: [x]\ncost: 1e400\n")
	f.Add("", "cost: 0x1p-2")
	f.Fuzz(func(t *testing.T, key, value string) {
		costs, _, err := config.ParseUnitCosts(map[string]string{key: value, "L40S": `{"cost": 1}`})
		if err != nil {
			assert.Empty(t, costs.Prices)
			return
		}
		for _, price := range costs.Prices {
			assert.GreaterOrEqual(t, float64(price.Cost), 0.0)
			_, known := costs.Of(price.Device)
			assert.True(t, known)
		}
	})
}
