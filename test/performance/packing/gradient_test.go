package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// handStudy has 6 pods of one device, 3 of a half and 1 without: fragmentation by hand is
// easy on one node of two devices.
func handStudy(t *testing.T) *Study {
	t.Helper()
	var pods []Pod
	for i := range 10 {
		p := Pod{Name: string(rune('a' + i)), MilliCPU: 4000, Devices: 1, Share: whole}
		if i >= 6 {
			p.Share = 500
		}
		if i == 9 {
			p = Pod{Name: p.Name, MilliCPU: 4000}
		}
		pods = append(pods, p)
	}
	s, err := newStudy([]Node{{Name: "n", Model: "A", Devices: 2, MilliCPU: 10_000, MemoryMiB: 10}}, pods)
	require.NoError(t, err)
	return s
}

func TestFragmentationByHand(t *testing.T) {
	g := newGradient(handStudy(t))
	for _, test := range []struct {
		name  string
		state State
		want  float64
	}{
		// Only the pod without devices uses nothing of it: 0.1 of 2000.
		{"all is free", stateOf(0, 10_000, whole, whole), 200},
		// 0.6 cannot use the 500, 0.3 can use all, 0.1 none: 0.6 of 500 + 0.1 of 1500.
		{"one is half taken", stateOf(0, 10_000, 500, whole), 450},
		// Nobody can use 400, and whole ones and halves can use the rest: 0.9 of 400 + 0.1 of 1400.
		{"a gap that nobody can use", stateOf(0, 10_000, 400, whole), 500},
		// The CPU is short for all of them.
		{"the CPU is gone", stateOf(0, 3999, whole, whole), 2000},
		// 0.6 + 0.1 of 1000, as two halves fit on no whole one.
		{"two halves", stateOf(0, 10_000, 500, 500), 700},
		{"nothing is free", stateOf(0, 10_000, 0, 0), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.InDelta(t, test.want, g.fragmentation(&test.state), 1e-9)
		})
	}
}

func TestGradientCutsToWholePoints(t *testing.T) {
	s := handStudy(t)
	g := newGradient(s)
	half := &Class{MilliCPU: 4000, Devices: 1, Share: 500, Models: 1}
	all := stateOf(0, 10_000, whole, whole)
	// From 200 to 450: 100 / (1 + exp(0.25)) = 43.78.
	assert.Equal(t, int32(43), g.pointsOf(&all, half, 1, g.fragmentation(&all)))
	// A half on the half: from 450 to 100, 100 / (1 + exp(-0.35)) = 58.66.
	part := stateOf(0, 10_000, 500, whole)
	assert.Equal(t, int32(58), g.pointsOf(&part, half, 0, g.fragmentation(&part)))
}

func TestGradientTakesTheFirstDeviceOfEqualOnes(t *testing.T) {
	g := newGradient(handStudy(t))
	half := &Class{MilliCPU: 4000, Devices: 1, Share: 300, Models: 1}
	m := &Member{State: stateOf(0, 3999+4000, 400, 500), Order: [maxDevices]uint16{500, 400}}
	// No pod fits afterwards, so that both devices score the same.
	points, free := g.points(m, half, g.fragmentation(&m.State))
	assert.Equal(t, g.pointsOf(&m.State, half, 0, g.fragmentation(&m.State)), points)
	assert.Equal(t, uint16(500), free)
}

func TestGradientLooksAtThePopularClasses(t *testing.T) {
	var pods []Pod
	for i := range 100 {
		p := Pod{Name: string(rune('a'+i/10)) + string(rune('a'+i%10)), Devices: 1, Share: whole}
		if i >= 95 {
			p.Share = 100 + i
		}
		pods = append(pods, p)
	}
	s, err := newStudy([]Node{{Name: "n", Model: "A", Devices: 1}}, pods)
	require.NoError(t, err)
	g := newGradient(s)
	require.Len(t, g.typical, 1)
	assert.InDelta(t, 1, g.typical[0].Popularity, 1e-12, "scaled to sum to 1")
}
