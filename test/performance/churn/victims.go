package churn

import (
	"math/rand/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// randomVictims draws them: what a ReplicaSet does as far as nodes are concerned.
type randomVictims struct{ chance *rand.Rand }

func (c randomVictims) victims(w *world) [][]int {
	all := make([][]int, len(w.variants))
	for i, v := range w.variants {
		if surplus := v.surplus(); surplus > 0 {
			all[i] = c.chance.Perm(len(v.nodes))[:surplus]
		}
	}
	return all
}

// modelVictims are those of the capacity model, chosen together by all variants that
// shrink in the same step.
type modelVictims struct{}

func (modelVictims) victims(w *world) [][]int {
	all := make([][]int, len(w.variants))
	var shrinking []int
	var leaving []placement.Leaving
	for i, v := range w.variants {
		surplus := v.surplus()
		if surplus == 0 {
			continue
		}
		l := placement.Leaving{Request: &v.requests[0], Count: surplus}
		for _, node := range v.nodes {
			l.Replicas = append(l.Replicas, placement.Replica{Node: node, State: placement.Ready})
		}
		shrinking, leaving = append(shrinking, i), append(leaving, l)
	}
	if len(leaving) == 0 {
		return all
	}
	w.cluster.Table = placement.NewTable(outlook(w), w.cluster)
	for i, victims := range w.cluster.VictimsTogether(leaving) {
		all[shrinking[i]] = victims
	}
	return all
}
