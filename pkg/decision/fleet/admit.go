package fleet

import (
	"errors"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// Admit decides whether the variant takes part, and says why when it does not. It reports whether
// its room is looked at.
func (v *Variant) Admit() (looked bool) {
	switch v.In.Target {
	case contract.TargetFound:
	case contract.TargetMissing:
		v.refuse(contract.ReasonTargetMissing, contract.SaysTargetMissing.With())
	case contract.TargetForbidden:
		v.refuse(contract.ReasonTargetForbidden, contract.SaysTargetForbidden.With())
	case contract.TargetShared:
		v.refuse(contract.ReasonConflict, contract.SaysTargetShared.With())
	case contract.TargetConflict:
		v.refuse(contract.ReasonConflict, contract.SaysTargetRivaled.With())
	}
	if err := v.Unknown(); v.Managed && err != nil && !v.Guesses() {
		v.freeze(err)
	}
	v.Next.Conflict, v.Anew = v.conflictOf()
	last, known := v.Old.Before()
	v.Anew = v.Anew || known && v.Round.Snapshot.Time.Sub(last.Until) >= max(v.Round.Policy.Freshness.Ageing, v.Round.Policy.Interval)
	return v.Managed || v.In.Exists() && v.Policy.Actuation == contract.ActuationOff
}

// refuse keeps the variant as it is.
func (v *Variant) refuse(reason contract.Reason, detail contract.Finding) {
	v.Managed = false
	v.Settle(reason, detail)
}

// freeze keeps the replicas as they are, within maxReplicas, while nobody knows how many
// fit: those that went could not come back.
func (v *Variant) freeze(unknown error) {
	reason := contract.ReasonShapeUnknown
	if errors.Is(unknown, errNodesUnknown) {
		reason = contract.ReasonCapacityUnknown
	}
	v.refuse(reason, contract.SaysReplicasHeld.With(unknown.Error()))
	if most := v.Bounded(v.Target); most < v.Target && v.Round.Kind == contract.RoundFull && !v.In.Rolling {
		v.Step(contract.StageBounds, most, contract.ReasonMaxReplicas, v.Maximum())
	}
}

// AsShown is the variant with what mode Metric shows for its target's own number, as long as
// whoever follows it is taken to get there: others would be given the same room else.
func (v *Variant) AsShown() *contract.Variant {
	last, known := v.Old.Before()
	most := v.Bounded(last.Desired)
	if !known || v.Policy.Actuation != contract.ActuationMetric || !v.In.Exists() || most <= v.In.Current {
		return v.In
	}
	since := v.Round.Snapshot.Time
	for _, s := range slices.Backward(v.Old.History) {
		if s.Replicas != v.In.Current || s.Desired <= v.In.Current {
			break
		}
		since = s.From
	}
	if v.Unfollowed = v.Round.Snapshot.Time.Sub(since) > PodPatience; v.Unfollowed {
		return v.In
	}
	shown := *v.In
	shown.Current = most
	return &shown
}

// errNodesUnknown says that the cluster could not be read.
var errNodesUnknown = errors.New("nodes, or the pods of all namespaces, may not be read")

// Unknown says why nobody knows how many more replicas of the variant fit; nil means
// that it is known.
func (v *Variant) Unknown() error {
	if err := v.In.Request.Countable(); err != nil {
		return err
	}
	if v.Round.Snapshot.Cluster == nil {
		return errNodesUnknown
	}
	return nil
}

// Guesses reports whether the variant is decided about as if its replicas fitted while
// nobody knows; else they are held, and it is not managed.
func (v *Variant) Guesses() bool {
	switch v.Policy.OnUnknown {
	case contract.OnUnknownAllow:
		return true
	case contract.OnUnknownHold:
		return false
	default:
		return v.In.Request.Countable() == nil && !v.Round.Policy.Limited
	}
}

// ChoosesVictims reports whether it is ours to choose which replicas of the variant go.
func (v *Variant) ChoosesVictims() bool {
	return v.In.ChoosesVictims && !v.In.Rolling && v.Unknown() == nil
}
