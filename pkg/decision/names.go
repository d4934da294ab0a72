package decision

import "llmd.ai/workload-variant-autoscaler/pkg/decision/contract"

// What goes into a decision and what comes out, by the names under which callers know it.
//
//nolint:revive // each is documented where it is declared
type (
	Attained       = contract.Attained
	Batch          = contract.Batch
	Cache          = contract.Cache
	Conflict       = contract.Conflict
	Change         = contract.Change
	Stuck          = contract.Stuck
	StuckQueue     = contract.StuckQueue
	ObservedLimit  = contract.ObservedLimit
	Memory         = contract.Memory
	VariantMemory  = contract.VariantMemory
	ModelMemory    = contract.ModelMemory
	HistoryEntry   = contract.HistoryEntry
	Lowered        = contract.Lowered
	TooFew         = contract.TooFew
	Switched       = contract.Switched
	Observation    = contract.Observation
	Gateway        = contract.Gateway
	StartupWait    = contract.StartupWait
	ReservedRoom   = contract.ReservedRoom
	Backoff        = contract.Backoff
	Odd            = contract.Odd
	Part           = contract.Part
	Balance        = contract.Balance
	Round          = contract.Round
	Plan           = contract.Plan
	ModelPlan      = contract.ModelPlan
	Demand         = contract.Demand
	VariantPlan    = contract.VariantPlan
	Fallback       = contract.Fallback
	FallbackSource = contract.FallbackSource
	Slots          = contract.Slots
	Step           = contract.Step
	Fact           = contract.Fact
	Finding        = contract.Finding
	Stage          = contract.Stage
	Reason         = contract.Reason
	Policy         = contract.Policy
	ModelKey       = contract.ModelKey
	Freshness      = contract.Freshness
	Growth         = contract.Growth
	Saturation     = contract.Saturation
	Promise        = contract.Promise
	Idle           = contract.Idle
	VariantPolicy  = contract.VariantPolicy
	OnUnknown      = contract.OnUnknown
	Actuation      = contract.Actuation
	Behavior       = contract.Behavior
	Select         = contract.Select
	RatePolicy     = contract.RatePolicy
	LatencyMemory  = contract.LatencyMemory
	Sizing         = contract.Sizing
	Snapshot       = contract.Snapshot
	Sample         = contract.Sample
	Kept           = contract.Kept
	Bucket         = contract.Bucket
	Model          = contract.Model
	Variant        = contract.Variant
	Key            = contract.Key
	TargetState    = contract.TargetState
	Starting       = contract.Starting
	Replica        = contract.Replica
	Pace           = contract.Pace
)

// The words of the contract.
const (
	PartNone                  = contract.PartNone
	PartGateway               = contract.PartGateway
	PartReplicas              = contract.PartReplicas
	FastInterval              = contract.FastInterval
	RoundFull                 = contract.RoundFull
	RoundFast                 = contract.RoundFast
	RoundEvent                = contract.RoundEvent
	FallbackPrevious          = contract.FallbackPrevious
	FallbackCurrent           = contract.FallbackCurrent
	StageFreshness            = contract.StageFreshness
	StageDemand               = contract.StageDemand
	StageSupply               = contract.StageSupply
	StageRequirement          = contract.StageRequirement
	StageAllocation           = contract.StageAllocation
	StageLimits               = contract.StageLimits
	StageZero                 = contract.StageZero
	StageBounds               = contract.StageBounds
	StageBehavior             = contract.StageBehavior
	ReasonSteady              = contract.ReasonSteady
	ReasonBelowThresholds     = contract.ReasonBelowThresholds
	ReasonSaturated           = contract.ReasonSaturated
	ReasonStartingSuffices    = contract.ReasonStartingSuffices
	ReasonSpareCapacity       = contract.ReasonSpareCapacity
	ReasonBorrowed            = contract.ReasonBorrowed
	ReasonWake                = contract.ReasonWake
	ReasonKeepOne             = contract.ReasonKeepOne
	ReasonNoSlots             = contract.ReasonNoSlots
	ReasonCheaperVariant      = contract.ReasonCheaperVariant
	ReasonSLO                 = contract.ReasonSLO
	ReasonBacklog             = contract.ReasonBacklog
	ReasonIdle                = contract.ReasonIdle
	ReasonPreempted           = contract.ReasonPreempted
	ReasonRollingUpdate       = contract.ReasonRollingUpdate
	ReasonReplicasOverwritten = contract.ReasonReplicasOverwritten
	ReasonBackingOff          = contract.ReasonBackingOff
	ReasonStartupOverdue      = contract.ReasonStartupOverdue
	ReasonRolloutPaused       = contract.ReasonRolloutPaused
	ReasonMinReplicas         = contract.ReasonMinReplicas
	ReasonMaxReplicas         = contract.ReasonMaxReplicas
	ReasonStabilized          = contract.ReasonStabilized
	ReasonRateLimited         = contract.ReasonRateLimited
	ReasonWithinTolerance     = contract.ReasonWithinTolerance
	ReasonRoundMayNotLower    = contract.ReasonRoundMayNotLower
	ReasonMetricsMissing      = contract.ReasonMetricsMissing
	ReasonMetricsStale        = contract.ReasonMetricsStale
	ReasonMetricsPartial      = contract.ReasonMetricsPartial
	ReasonRateUnknown         = contract.ReasonRateUnknown
	ReasonReplicaDiffers      = contract.ReasonReplicaDiffers
	ReasonGatewayCountsPart   = contract.ReasonGatewayCountsPart
	ReasonReplicasCountPart   = contract.ReasonReplicasCountPart
	ReasonQueueDead           = contract.ReasonQueueDead
	ReasonMetricsFound        = contract.ReasonMetricsFound
	ReasonTargetMissing       = contract.ReasonTargetMissing
	ReasonTargetForbidden     = contract.ReasonTargetForbidden
	ReasonConflict            = contract.ReasonConflict
	ReasonReplicasChanged     = contract.ReasonReplicasChanged
	ReasonShapeUnknown        = contract.ReasonShapeUnknown
	ReasonCapacityUnknown     = contract.ReasonCapacityUnknown
	DefaultRisk               = contract.DefaultRisk
	LeastPriority             = contract.LeastPriority
	OnUnknownAllow            = contract.OnUnknownAllow
	OnUnknownHold             = contract.OnUnknownHold
	ActuationScale            = contract.ActuationScale
	ActuationMetric           = contract.ActuationMetric
	ActuationOff              = contract.ActuationOff
	SelectMax                 = contract.SelectMax
	SelectMin                 = contract.SelectMin
	SelectDisabled            = contract.SelectDisabled
	TargetFound               = contract.TargetFound
	TargetMissing             = contract.TargetMissing
	TargetForbidden           = contract.TargetForbidden
	TargetConflict            = contract.TargetConflict
	TargetShared              = contract.TargetShared
)

// DefaultSaturation is contract.DefaultSaturation.
func DefaultSaturation() Saturation { return contract.DefaultSaturation() }

// DefaultVariantPolicy is contract.DefaultVariantPolicy.
func DefaultVariantPolicy() VariantPolicy { return contract.DefaultVariantPolicy() }

// DefaultPolicy is contract.DefaultPolicy.
func DefaultPolicy() Policy { return contract.DefaultPolicy() }

// Exactly is contract.Exactly.
func Exactly(s Sample) Kept { return contract.Exactly(s) }

// Words is contract.Words.
func Words(text string) Finding { return contract.Words(text) }

// Clauses is contract.Clauses.
func Clauses(all ...Finding) Finding { return contract.Clauses(all...) }

// Because is contract.Because.
func Because(what, why Finding) Finding { return contract.Because(what, why) }
