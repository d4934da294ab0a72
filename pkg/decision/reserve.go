package decision

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// Reserve is the cluster of a snapshot less the room that is spoken for: that of
// replicas which were asked for and hold no node, and of rolling updates. It is what
// a round without memory counts slots on, so that other views of a cluster show the
// same number. Of each variant only Name, Target, Current, Ready, Starting, Request
// and Surge count; nil means that the cluster is unknown.
func Reserve(snapshot contract.Snapshot, policy contract.Policy) *placement.Cluster {
	r := newRound(&snapshot, &policy, &contract.Memory{}, contract.RoundFull)
	r.Reserve()
	if r.Trial == nil {
		return nil
	}
	return r.Trial.Cluster()
}
