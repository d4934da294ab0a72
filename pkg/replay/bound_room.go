package replay

import (
	"encoding/binary"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/feasibility"
)

// room says which vectors fit on the cluster. What cannot be counted limits nothing,
// and what nobody can rule out counts as fitting.
type room struct {
	cluster  *placement.Cluster
	requests []*placement.Request
	// known are the answers of most, by the vector's beginning.
	known map[string]int
}

func newRoom(cluster *placement.Cluster, requests []*placement.Request) *room {
	return &room{cluster: cluster, requests: requests, known: map[string]int{}}
}

// only is the room of some of the requests alone.
func (r *room) only(from, to int) *room { return newRoom(r.cluster, r.requests[from:to]) }

// holds reports whether the replicas of a vector fit together.
func (r *room) holds(vector []int) bool {
	if r.cluster == nil {
		return true
	}
	var wants []feasibility.Want
	for i, n := range vector {
		if n > 0 && r.requests[i].Countable() == nil {
			wants = append(wants, feasibility.Want{Request: r.requests[i], Count: n})
		}
	}
	if len(wants) == 0 {
		return true
	}
	f := feasibility.Of(r.cluster, wants)
	return f.OK || !f.Exact
}

// most is the greatest number, up to a limit that is always the same, of the last
// request that fits beside those of a vector's beginning; -1 where these do not fit
// themselves.
func (r *room) most(beginning []int, limit int) int {
	key := make([]byte, 0, 2*len(beginning))
	for _, n := range beginning {
		key = binary.AppendUvarint(key, uint64(n))
	}
	if most, found := r.known[string(key)]; found {
		return most
	}
	vector := append(append(make([]int, 0, len(beginning)+1), beginning...), 0)
	fits := func(n int) bool {
		vector[len(beginning)] = n
		return r.holds(vector)
	}
	low, high := -1, limit+1
	for high-low > 1 {
		if mid := (low + high) / 2; fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	r.known[string(key)] = low
	return low
}
