package contract

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Round says why the brain is asked. Only a full round may lower a count.
type Round string

// The rounds.
const (
	RoundFull  Round = "Full"
	RoundFast  Round = "Fast"
	RoundEvent Round = "Event"
)

// FastInterval is the time between two fast rounds.
const FastInterval = 10 * time.Second

// Plan is the answer for one round. Status, conditions, events, log lines and
// metrics are all rendered from it.
type Plan struct {
	Time   time.Time
	Round  Round
	Models []ModelPlan
}

// ModelPlan is the plan for one model: what was seen and asked, and its variants.
type ModelPlan struct {
	Namespace string
	ID        string
	// Demand is what the model must serve; nil means unknown.
	Demand *Demand
	// Promise is the model's service class.
	Promise Promise
	// Sized says that the promised latency took part in sizing.
	Sized bool
	// Triggered says that a saturation trigger fired.
	Triggered bool
	Variants  []VariantPlan
}

// Demand is what is asked of a model.
type Demand struct {
	// Arrival is the present arrival rate.
	Arrival capacity.Rate
	// Forecast is the arrival rate expected when a replica that is started now
	// serves; never below Arrival.
	Forecast capacity.Rate
	// Backlog is the number of waiting requests.
	Backlog float64
	// BacklogAtReady is the number of waiting requests that the replicas which start will
	// meet.
	BacklogAtReady float64
	// Tokens is the mean shape of the requests; unknown lengths are zero.
	Tokens capacity.TokenShape
}

// VariantPlan is the plan for one variant.
type VariantPlan struct {
	Key         Key
	Accelerator capacity.Accelerator
	// Current is the target's replicas when the round began.
	Current int
	// Ready, Starting and Unschedulable are the replicas by state.
	Ready, Starting, Unschedulable int
	// Desired is the answer. It is nil while the variant's target is not there.
	Desired *int
	// Fallback is set while the data do not allow a decision: Desired is then Current,
	// so that nothing is written, unless a bound of the user's says otherwise; and who
	// follows the metric is shown Fallback.
	Fallback *Fallback
	// ServesEach is the rate that one replica serves at the load that the triggers allow
	// and, where sizing takes part, within the promised latency; 0 means unknown.
	ServesEach capacity.Rate
	// Cost of one replica per hour.
	Cost capacity.Cost
	// Slots is how many more replicas fit now; nil means unknown.
	Slots *Slots
	// LargestHole is the largest number of free devices on a node of the right type;
	// it says why Slots is none. Nil means unknown.
	LargestHole *int
	// Unplaced is how many replicas that are asked for hold no node, and would fit on
	// none now.
	Unplaced int
	// Victims are the names of the replicas that should go, the first one first, when
	// Desired is below Current and the choice is ours; else empty.
	Victims []string
	// Steps are the stages that led to Desired, in order.
	Steps []Step
	// Reason is the reason of the step that settled Desired.
	Reason Reason
	// Message says the same for people, in one sentence.
	Message Finding
	// BoundBy says what keeps Desired from being another number, Alternative which
	// variant would have been the next best answer; it says nothing when there is none.
	BoundBy, Alternative Finding
	// Conditions that hold for the variant now, in the order of the stages that
	// found them. What is not listed is not the case.
	Facts []Fact
}

// Fallback is what is shown in the place of a decision that could not be made.
type Fallback struct {
	// Replicas is what was wanted before, or Current when that is higher or nothing is
	// known of before.
	Replicas int
	// Source says which of them it is.
	Source FallbackSource
	// Why says why there is no decision, in one clause.
	Why Finding
}

// FallbackSource says where a Fallback is from.
type FallbackSource string

// The sources of a Fallback.
const (
	FallbackPrevious FallbackSource = "previous-desired"
	FallbackCurrent  FallbackSource = "current-replicas"
)

// Slots is a count of replicas that still fit.
type Slots struct {
	Count int
	// Bound names the constraint that was not modelled and makes Count an upper
	// bound; empty means that Count is exact.
	Bound string
}

// Step is what one stage made of a variant's replicas.
type Step struct {
	Stage  Stage
	Before int
	After  int
	Reason Reason
	// Detail says with numbers why, in one clause.
	Detail Finding
}

// Fact is something that the plan found out and that a condition reports.
type Fact struct {
	Reason Reason
	Detail Finding
}

// Stage names a stage of Decide.
type Stage string

// The stages in their order.
const (
	StageFreshness   Stage = "freshness"
	StageSupply      Stage = "supply"
	StageDemand      Stage = "demand"
	StageRequirement Stage = "requirement"
	StageAllocation  Stage = "allocation"
	StageLimits      Stage = "limits"
	StageZero        Stage = "zero"
	StageBounds      Stage = "bounds"
	StageBehavior    Stage = "behavior"
)

// Reason is one of a closed set of reasons. It is CamelCase, so that it can be the
// reason of a condition or an event as it stands.
type Reason string

// The reasons of steps.
const (
	// ReasonSteady: the load needs what there is.
	ReasonSteady Reason = "Steady"
	// ReasonBelowThresholds: more is expected than the replicas are taken to serve, and where
	// saturation alone decides none is added before a trigger fires.
	ReasonBelowThresholds Reason = "BelowThresholds"
	// ReasonSaturated: a saturation trigger fired and replicas are added.
	ReasonSaturated Reason = "Saturated"
	// ReasonStartingSuffices: a trigger fired, and the replicas that start already
	// will carry the demand.
	ReasonStartingSuffices Reason = "StartingSuffices"
	// ReasonSpareCapacity: fewer replicas carry the demand.
	ReasonSpareCapacity Reason = "SpareCapacity"
	// ReasonBorrowed: nothing is known of the variant and another one of its model
	// stands in.
	ReasonBorrowed Reason = "Borrowed"
	// ReasonWake: requests wait and nothing serves.
	ReasonWake Reason = "Wake"
	// ReasonKeepOne: a model keeps one replica on its cheapest variant that fits.
	ReasonKeepOne Reason = "KeepOne"
	// ReasonNoSlots: fewer fit than are wanted.
	ReasonNoSlots Reason = "NoSlots"
	// ReasonCheaperVariant: the variant replaces replicas of another one: it serves the same for
	// so much less that its start-up pays, or another model needs the room of those replicas.
	ReasonCheaperVariant Reason = "CheaperVariant"
	// ReasonSLO: the promised latency needs more replicas than saturation asks for.
	ReasonSLO Reason = "SLO"
	// ReasonBacklog: no replica goes while requests wait, or shortly after they did or after
	// replicas began to serve.
	ReasonBacklog Reason = "Backlog"
	// ReasonIdle: nothing was asked of the model for its retention period, so it may
	// sleep.
	ReasonIdle Reason = "Idle"
	// ReasonPreempted: a more important model needs the room, or an equally important one that
	// has less of what it needs.
	ReasonPreempted Reason = "Preempted"
	// ReasonRollingUpdate: no replica goes while pods are replaced by newer ones.
	ReasonRollingUpdate Reason = "RollingUpdate"
	// ReasonReplicasOverwritten: something else changes the replicas again and again,
	// so nothing is written for a while.
	ReasonReplicasOverwritten Reason = "ReplicasOverwritten"
	// ReasonBackingOff: the variant's replicas found no node lately, so it is left
	// alone for a while.
	ReasonBackingOff Reason = "BackingOff"
	// ReasonStartupOverdue: a starting replica passed its deadline and no longer
	// counts as supply.
	ReasonStartupOverdue Reason = "StartupOverdue"
	// ReasonRolloutPaused: replicas have no pod because their rollout is paused.
	ReasonRolloutPaused Reason = "RolloutPaused"
	// ReasonMinReplicas and ReasonMaxReplicas: a bound of the object.
	ReasonMinReplicas Reason = "MinReplicas"
	ReasonMaxReplicas Reason = "MaxReplicas"
	// ReasonStabilized: a higher (or, on the way up, lower) recommendation within
	// the window holds.
	ReasonStabilized Reason = "Stabilized"
	// ReasonRateLimited: a rate policy of the behaviour.
	ReasonRateLimited Reason = "RateLimited"
	// ReasonWithinTolerance: the change is within the tolerance.
	ReasonWithinTolerance Reason = "WithinTolerance"
	// ReasonRoundMayNotLower: only a full round may lower a count.
	ReasonRoundMayNotLower Reason = "RoundMayNotLower"
	// ReasonMetricsMissing, ReasonMetricsStale, ReasonMetricsPartial: the data do
	// not allow a change.
	ReasonMetricsMissing Reason = "MetricsMissing"
	ReasonMetricsStale   Reason = "MetricsStale"
	ReasonMetricsPartial Reason = "MetricsPartial"
	// ReasonRateUnknown: what a replica serves was not seen yet.
	ReasonRateUnknown Reason = "RateUnknown"
	// ReasonReplicaDiffers: a replica does something else with its requests than the others of
	// its variant.
	ReasonReplicaDiffers Reason = "ReplicaDiffers"
	// ReasonGatewayCountsPart: more requests reach the replicas than the gateway counts for the
	// model. ReasonReplicasCountPart: the replicas show fewer than the gateway counts, and none
	// is full.
	ReasonGatewayCountsPart Reason = "GatewayCountsPart"
	ReasonReplicasCountPart Reason = "ReplicasCountPart"
	// ReasonQueueDead: replicas have requests, and nothing happens to them.
	ReasonQueueDead Reason = "QueueDead"
	// ReasonMetricsFound: the data suffice.
	ReasonMetricsFound Reason = "MetricsFound"
	// ReasonTargetMissing, ReasonTargetForbidden, ReasonConflict: the target may
	// not be changed.
	ReasonTargetMissing   Reason = "TargetMissing"
	ReasonTargetForbidden Reason = "TargetForbidden"
	ReasonConflict        Reason = "Conflict"
	// ReasonReplicasChanged: something else changed the replicas once; that is the
	// new starting point.
	ReasonReplicasChanged Reason = "ReplicasChanged"
	// ReasonShapeUnknown: the accelerator or the device count is unknown.
	ReasonShapeUnknown Reason = "ShapeUnknown"
	// ReasonCapacityUnknown: the nodes could not be read.
	ReasonCapacityUnknown Reason = "CapacityUnknown"
)

// Each calls f for every variant of the plan.
func (p *Plan) Each(f func(*VariantPlan)) {
	for i := range p.Models {
		for j := range p.Models[i].Variants {
			f(&p.Models[i].Variants[j])
		}
	}
}

// Fact is the fact with the first of the reasons for which there is one.
func (p *VariantPlan) Fact(reasons ...Reason) (Fact, bool) {
	for _, reason := range reasons {
		if i := slices.IndexFunc(p.Facts, func(f Fact) bool { return f.Reason == reason }); i >= 0 {
			return p.Facts[i], true
		}
	}
	return Fact{}, false
}

// Has reports whether there is a fact with any of the reasons.
func (p *VariantPlan) Has(reasons ...Reason) bool {
	_, ok := p.Fact(reasons...)
	return ok
}

// Shown is the number that whoever follows the metric is shown, of a plan that has one.
func (p *VariantPlan) Shown() int {
	if p.Fallback != nil {
		return p.Fallback.Replicas
	}
	return *p.Desired
}
