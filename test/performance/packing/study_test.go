package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClasses(t *testing.T) {
	nodes := []Node{{Name: "a", Devices: 8, Model: "G2"}, {Name: "b", Devices: 2, Model: "T4"}}
	pods := []Pod{
		{Name: "a", MilliCPU: 4000, Devices: 1, Share: 500},
		{Name: "b", MilliCPU: 4000, Devices: 1, Share: 500, Models: "G2|T4", MemoryMiB: 5},
		{Name: "c", MilliCPU: 4000, Devices: 1, Share: 500, Models: "T4"},
		{Name: "d", MilliCPU: 4000, Devices: 1, Share: 500, Models: "A100"},
		{Name: "e", MilliCPU: 8000},
	}
	s, err := newStudy(nodes, pods)
	require.NoError(t, err)
	require.Len(t, s.Classes, 4, "any model and all models are one class, memory makes none")
	first := s.Classes[0]
	assert.Equal(t, int64(2), first.Count)
	assert.InDelta(t, 0.4, first.Popularity, 1e-12)
	assert.Equal(t, models(0b11), first.Models)
	assert.Equal(t, []int{0, 0}, s.classOf[:2])
	assert.Zero(t, s.Classes[s.classOf[3]].Models, "a model that the cluster lacks")
	assert.Equal(t, int64(10_000), s.capacity)
}

func TestTooManyModels(t *testing.T) {
	var nodes []Node
	for i := range maxModels + 1 {
		nodes = append(nodes, Node{Name: fmt.Sprint("n", i), Devices: 1, Model: fmt.Sprint("m", i)})
	}
	_, err := newStudy(nodes, nil)
	assert.ErrorContains(t, err, "m64 on node n64")
}

func TestStreamDrawsMoreUntilTheNextWouldPass(t *testing.T) {
	s := synthetic(t, 10, 40)
	for seed := range uint64(20) {
		stream := s.stream(seed)
		require.Equal(t, stream, s.stream(seed), "everything follows from the seed")
		firsts := slices.Sorted(slices.Values(stream.Pods[:len(s.Pods)]))
		for i, p := range firsts {
			require.Equal(t, i, p, "the list comes first, each pod once")
		}
		sum := int64(0)
		for _, p := range stream.Pods {
			sum += s.Pods[p].Demand()
		}
		require.LessOrEqual(t, sum, s.capacity*13/10)
		require.Greater(t, sum, s.capacity*13/10-8*whole, "the next pod would have passed")
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(stream.Nodes))), len(s.Nodes), "the nodes are permuted")
	}
	assert.NotEqual(t, s.stream(1), s.stream(2))
}

func TestStreamOfAListThatAsksForMore(t *testing.T) {
	s := synthetic(t, 4, 400)
	stream := s.stream(3)
	assert.Less(t, len(stream.Pods), len(s.Pods))
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(stream.Pods))), len(stream.Pods), "none twice")
	sum := int64(0)
	for _, p := range stream.Pods {
		sum += s.Pods[p].Demand()
	}
	assert.LessOrEqual(t, sum, s.capacity*13/10)
}

func TestPodsArriveInAnOrderThatTheFileHasNoPartIn(t *testing.T) {
	s := synthetic(t, 5, 30)
	backwards := slices.Clone(s.Pods)
	slices.Reverse(backwards)
	other, err := newStudy(s.Nodes, backwards)
	require.NoError(t, err)
	assert.Equal(t, s.Pods, other.Pods)
	assert.Equal(t, s.Classes, other.Classes)
}
