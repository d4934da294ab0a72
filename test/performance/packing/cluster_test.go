package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stateOf is a state with those free thousandths, which must ascend.
func stateOf(model uint8, milliCPU int32, free ...uint16) State {
	s := State{Model: model, Count: uint8(len(free)), MilliCPU: milliCPU}
	copy(s.Free[:], free)
	return s
}

func TestFits(t *testing.T) {
	s := stateOf(1, 4000, 0, 190, 530, whole, whole)
	both := models(0b11)
	for _, test := range []struct {
		name  string
		class Class
		want  bool
	}{
		{"no device, CPU just suffices", Class{MilliCPU: 4000}, true},
		{"no device, too much CPU", Class{MilliCPU: 4001}, false},
		{"no device, no model", Class{MilliCPU: 1, Models: 0}, true},
		{"as many whole devices as there are", Class{Devices: 2, Share: whole, Models: both}, true},
		{"more whole devices than there are", Class{Devices: 3, Share: whole, Models: both}, false},
		{"a share of an empty device", Class{Devices: 1, Share: 999, Models: both}, true},
		{"the model is one of several", Class{Devices: 1, Share: whole, Models: 0b10}, true},
		{"the model is another", Class{Devices: 1, Share: whole, Models: 0b01}, false},
		{"no model of the cluster does", Class{Devices: 1, Share: whole, Models: 0}, false},
		{"devices, but too much CPU", Class{MilliCPU: 4001, Devices: 1, Share: 10, Models: both}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, s.fits(&test.class))
		})
	}
	parts := stateOf(0, 4000, 190, 530)
	assert.True(t, parts.fits(&Class{Devices: 1, Share: 530, Models: both}))
	assert.False(t, parts.fits(&Class{Devices: 1, Share: 531, Models: both}), "the rest of two devices is not one")
	m := Member{State: s, MemoryMiB: 100}
	assert.True(t, m.fits(&Class{}, &Pod{MemoryMiB: 100}))
	assert.False(t, m.fits(&Class{}, &Pod{MemoryMiB: 101}), "memory")
}

func TestTakeKeepsTheOrder(t *testing.T) {
	s := stateOf(0, 9000, 0, 190, 530, whole, whole, whole)
	s.take(&Class{MilliCPU: 1000, Devices: 2, Share: whole}, 0)
	assert.Equal(t, stateOf(0, 8000, 0, 0, 0, 190, 530, whole), s)
	s.take(&Class{MilliCPU: 1000, Devices: 1, Share: 470}, 4)
	assert.Equal(t, stateOf(0, 7000, 0, 0, 0, 60, 190, whole), s)
	s.take(&Class{MilliCPU: 1000, Devices: 1, Share: 900}, 5)
	assert.Equal(t, stateOf(0, 6000, 0, 0, 0, 60, 100, 190), s)
	s.take(&Class{MilliCPU: 6000}, 0)
	assert.Equal(t, stateOf(0, 0, 0, 0, 0, 60, 100, 190), s)
}

func TestOptionsAreTheDifferentOutcomes(t *testing.T) {
	s := stateOf(0, 0, 190, 530, 530, whole, whole)
	assert.Equal(t, []int{1, 3}, s.options(&Class{Devices: 1, Share: 500}, nil))
	assert.Equal(t, []int{0, 1, 3}, s.options(&Class{Devices: 1, Share: 190}, nil))
	assert.Equal(t, []int{0}, s.options(&Class{Devices: 2, Share: whole}, nil))
}

func TestPlaceAccountsForEverything(t *testing.T) {
	s, err := newStudy([]Node{{Name: "a", Devices: 2, Model: "A", MilliCPU: 9000, MemoryMiB: 50}}, []Pod{{Name: "p", MilliCPU: 1000, MemoryMiB: 7, Devices: 1, Share: 300}})
	require.NoError(t, err)
	c := newCluster(s, []int{0})
	c.place(&s.Pods[0], &s.Classes[0], Choice{Free: whole})
	c.place(&s.Pods[0], &s.Classes[0], Choice{Free: 700})
	assert.Equal(t, int64(600), c.Allocated)
	assert.Equal(t, int64(2000), c.Capacity)
	m := c.Members[0]
	assert.Equal(t, stateOf(0, 7000, 400, whole), m.State)
	assert.Equal(t, []uint16{400, whole}, m.Order[:2], "the first device of those that are alike")
	assert.Equal(t, int64(36), m.MemoryMiB)
	one := Pod{MilliCPU: 1, Devices: 1, Share: whole}
	c.place(&one, &Class{MilliCPU: 1, Devices: 1, Share: whole}, Choice{})
	assert.Equal(t, []uint16{400, 0}, c.Members[0].Order[:2])
	assert.Equal(t, int64(1600), c.Allocated)
	assert.Equal(t, int32(4), c.Members[0].Version)
}
