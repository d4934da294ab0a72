package signal

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// Precision is that of a number which is looked for, as a share of it, and the share up to which
// two sums of rates are the same.
const Precision = 1e-5

const (
	// WrongPace is the factor beyond which a given profile is wrong: what a few requests took
	// is up to a third off.
	WrongPace = 1.5
	// SameServer is the factor of the time per token up to which a server is the same after a
	// rolling update: single points are a tenth off.
	SameServer = 1.15
)

// SameShape reports whether requests have lengths that show one state.
func SameShape(a, b capacity.TokenShape) bool {
	return Near(float64(a.Input), float64(b.Input), SettledWithin) && Near(float64(a.Output), float64(b.Output), SettledWithin)
}

// Near reports whether a number is so near another one, as a share of that.
func Near(a, b, share float64) bool { return math.Abs(a-b) <= share*b }

// LearnedModel is the latency model as it is believed now: what was learned, else what was given at the
// pace that was seen.
func LearnedModel(l *contract.LatencyMemory, given serving.Profile) serving.Profile {
	switch {
	case l.Estimate.Usable():
		return l.Estimate.Profile
	case l.Given == given && l.Pace > 0:
		return given.Paced(l.Pace)
	}
	return given
}

// Same reports whether a pace is 1 within a factor.
func Same(pace, factor float64) bool { return max(pace, 1/pace) <= factor }

// Again is how many times as long it is believed the next time that something was in vain.
const Again = 2

// NodesDown are the names of the nodes that are not ready.
func NodesDown(s *contract.Snapshot) map[string]bool {
	down := map[string]bool{}
	if s.Cluster == nil {
		return down
	}
	for i := range s.Cluster.Nodes {
		if n := &s.Cluster.Nodes[i]; n.Out == placement.NodeNotReady {
			down[n.Name] = true
		}
	}
	return down
}
