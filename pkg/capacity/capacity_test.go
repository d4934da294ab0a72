package capacity

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCovers(t *testing.T) {
	cases := []struct {
		name       string
		want, have Device
		covers     bool
	}{
		{"the type covers its narrower forms", Device{Accelerator: "A100"}, Device{Accelerator: "A100", MemoryGiB: 80, Form: "SXM4"}, true},
		{"the same", Device{"A100", 80, "SXM4"}, Device{"A100", 80, "SXM4"}, true},
		{"another type", Device{Accelerator: "A100"}, Device{Accelerator: "H100"}, false},
		{"another memory", Device{Accelerator: "A100", MemoryGiB: 80}, Device{Accelerator: "A100", MemoryGiB: 40}, false},
		{"memory that is not known", Device{Accelerator: "A100", MemoryGiB: 80}, Device{Accelerator: "A100"}, false},
		{"what the device keeps for itself is allowed for", Device{Accelerator: "L40S", MemoryGiB: 48}, Device{Accelerator: "L40S", MemoryGiB: 45}, true},
		{"a tenth less", Device{Accelerator: "X", MemoryGiB: 50}, Device{Accelerator: "X", MemoryGiB: 45}, true},
		{"more than a tenth less", Device{Accelerator: "X", MemoryGiB: 50}, Device{Accelerator: "X", MemoryGiB: 44}, false},
		{"the module by what others call it", Device{Accelerator: "H100", Form: "SXM5"}, Device{Accelerator: "H100", Form: "HBM3"}, true},
		{"another module", Device{Accelerator: "H100", Form: "SXM4"}, Device{Accelerator: "H100", Form: "SXM5"}, false},
		{"a card by the module's memory", Device{Accelerator: "H100", Form: "PCIE"}, Device{Accelerator: "H100", Form: "HBM3"}, false},
		{"another form", Device{Accelerator: "H100", Form: "PCIE"}, Device{Accelerator: "H100", Form: "SXM5"}, false},
		{"a form that is not known", Device{Accelerator: "H100", Form: "PCIE"}, Device{Accelerator: "H100"}, false},
		{"the module by its memory", Device{Accelerator: "H100", Form: "HBM3"}, Device{Accelerator: "H100", Form: "SXM5"}, true},
		{"any module", Device{Accelerator: "H100", Form: "SXM"}, Device{Accelerator: "H100", Form: "SXM5"}, true},
		{"the empty type covers none", Device{}, Device{}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.covers, c.want.Covers(c.have))
		})
	}
}

func TestShapesReadTheWayPeopleWriteThem(t *testing.T) {
	for want, shape := range map[string]Shape{
		"4xH100":             {Accelerator: "H100", Devices: 4, Pods: 1},
		"2xA100-80GB-SXM4":   {Accelerator: "A100", MemoryGiB: 80, Form: "SXM4", Devices: 2},
		"2 pods of 8xMI300X": {Accelerator: "MI300X", Devices: 8, Pods: 2},
		"1xunknown":          {Devices: 1},
		"no devices":         {Accelerator: "H100"},
	} {
		assert.Equal(t, want, shape.String())
	}
}

func TestLengthsThatAreKnown(t *testing.T) {
	for shape, known := range map[TokenShape]bool{{1, 1}: true, {0, 1}: false, {1, 0}: false, {}: false, {-1, 2}: false, {2, -1}: false, {0.5, 0.5}: true} {
		assert.Equal(t, known, shape.Known(), "%+v", shape)
	}
}
