package acceleratorplacement

import (
	fwk "k8s.io/kube-scheduler/framework"
)

// A rank is worth step points, so that the best ranks of the scale from 0 to 100
// are told apart; every worse node has 0. With the weight of the shipped profile
// one step outweighs all other plugins together.
const (
	step  = 5
	ranks = int(fwk.MaxScore/step) + 1
)

// rank replaces each key by the points of its rank: equal keys have equal points,
// so that other plugins can choose among them, and the best has the most. It goes
// through the list twice and allocates nothing.
func rank(scores fwk.NodeScoreList) {
	var best [ranks]int64
	known := 0
	for i := range scores {
		known = insert(&best, known, scores[i].Score)
	}
	for i := range scores {
		scores[i].Score = points(&best, known, scores[i].Score)
	}
}

// insert keeps the largest different keys, in descending order.
func insert(best *[ranks]int64, known int, key int64) int {
	if known == ranks && key <= best[ranks-1] {
		return known
	}
	at := 0
	for at < known && best[at] > key {
		at++
	}
	if at < known && best[at] == key {
		return known
	}
	if known < ranks {
		known++
	}
	copy(best[at+1:known], best[at:known-1])
	best[at] = key
	return known
}

func points(best *[ranks]int64, known int, key int64) int64 {
	for at := range known {
		if best[at] == key {
			return fwk.MaxScore - int64(at)*step
		}
	}
	return fwk.MinScore
}
