package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// synthetic is a small study of three models, with shares, several devices, pods that
// name models and pods without devices.
func synthetic(t *testing.T, nodes, pods int) *Study {
	t.Helper()
	random := rand.New(rand.NewPCG(5, 6))
	return syntheticOf(t, random, nodes, pods, []int{200, 350, 500, 650, 800, whole, whole, whole})
}

func syntheticOf(t *testing.T, random *rand.Rand, nodes, pods int, shares []int) *Study {
	t.Helper()
	var n []Node
	for i := range nodes {
		k := i % 3
		n = append(n, Node{Name: fmt.Sprint("n", i), Model: []string{"A", "B", "C"}[k], Devices: []int{8, 4, 2}[k],
			MilliCPU: []int64{64000, 48000, 16000}[k], MemoryMiB: 1 << 20})
	}
	var p []Pod
	for i := range pods {
		pod := Pod{Name: fmt.Sprintf("p%04d", i), MilliCPU: int64(1+random.IntN(5)) * 2000, MemoryMiB: 1 << 10}
		if random.IntN(6) > 0 {
			pod.Devices, pod.Share = 1, shares[random.IntN(len(shares))]
			if pod.Share == whole {
				pod.Devices = []int{1, 1, 2, 4, 8}[random.IntN(5)]
			}
			pod.Models = []string{"", "", "", "A", "B", "A|C", "B|C"}[random.IntN(7)]
		}
		p = append(p, pod)
	}
	s, err := newStudy(n, p)
	require.NoError(t, err)
	return s
}
