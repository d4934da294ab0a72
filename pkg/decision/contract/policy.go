package contract

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Policy is what the users allow. The zero Policy is not usable; DefaultPolicy is
// where to start.
type Policy struct {
	// Limited is set for clusters that do not grow: never ask for more than fits.
	Limited bool
	// Hybrid adds sizing for the promised latency at the expected load to what saturation asks for, for
	// each model that has an SLO.
	Hybrid bool
	// Share is the share of requests, 0 to 1, that is to keep the promised latency.
	Share float64
	// Risk is the quantile, 0.5 to below 1, of the forecast demand that is sized
	// for in hybrid mode: the larger, the surer and the dearer.
	Risk float64
	// History lets the forecast know how the load went on earlier days, where that is known.
	History bool
	// Growth bounds how fast a variant without scaleUp policies grows; the zero value does
	// not.
	Growth Growth
	// ConflictWindow is the time within which the same writer who sets the same number of
	// replicas again is in conflict with this program.
	ConflictWindow time.Duration
	// Horizon is the time within which a switch to another variant must pay for the
	// start-up of its replicas.
	Horizon time.Duration
	// Drain is the time in which a backlog is to be served.
	Drain time.Duration
	// StartupDeadline is how long a starting replica counts as supply when no
	// start-up was seen yet; once seen, it is three times what was seen, but not
	// less than a minute.
	StartupDeadline time.Duration
	// Interval is the time between two full rounds.
	Interval time.Duration
	// Window is the time over which rates and means are taken; they lag by half of
	// it, and their scatter follows from it.
	Window time.Duration
	// Freshness is the age limits of samples.
	Freshness Freshness
	// Saturation are the thresholds of models without an entry in Models.
	Saturation Saturation
	// SaturationByModel overrides Saturation by namespace and model ID.
	SaturationByModel map[ModelKey]Saturation
	// Promises are what was promised to the models' clients; a model that is missing
	// here has no promise and the least priority.
	Promises map[ModelKey]Promise
	// Idle says which models may scale to zero; IdleByModel overrides it by namespace
	// and model ID.
	Idle        Idle
	IdleByModel map[ModelKey]Idle
	// Variants holds each variant's own policy; a variant that is missing here has
	// DefaultVariantPolicy.
	Variants map[Key]VariantPolicy
}

// ModelKey names a model.
type ModelKey struct {
	Namespace string
	ID        string
}

// As is the model's name in what is told in a namespace: nobody is told names of another one.
func (k ModelKey) As(namespace string) Finding {
	if k.Namespace == namespace {
		return SaysName.With(k.ID)
	}
	return SaysModelElsewhere.With()
}

// Freshness are the age limits of samples: fresh below Fresh; ageing below Ageing
// (may raise, not lower); stale below Stale (hold); absent above.
type Freshness struct {
	Fresh, Ageing, Stale time.Duration
}

// Growth is the most that a variant may ask for beyond the replicas of it that serve: the
// larger of Pods and Percent of them.
type Growth struct {
	Pods, Percent int
}

// Saturation are the published thresholds that decide whether to act.
type Saturation struct {
	// KVCacheThreshold is the used share of the KV cache, 0 to 1, at which a
	// replica is saturated.
	KVCacheThreshold float64
	// QueueLengthThreshold is the number of waiting requests at which a replica is
	// saturated.
	QueueLengthThreshold float64
	// KVSpareTrigger is the mean spare share of the KV cache below which replicas
	// are added.
	KVSpareTrigger float64
	// QueueSpareTrigger is the mean spare queue length below which replicas are
	// added.
	QueueSpareTrigger float64
}

// DefaultRisk is the quantile of the forecast demand that is sized for where nothing else
// is said: a missing replica costs nine times what an idle one does, 9/(9+1).
const DefaultRisk = 0.9

// LeastPriority is the priority of a model in no service class.
const LeastPriority = 100

// Promise is the service class of one model.
type Promise struct {
	// Class is the name of the service class.
	Class string
	// Priority is from 1, the most important, to LeastPriority.
	Priority int
	// Weight is what the model's share of scarce devices counts among those of its
	// priority; 0 counts as 1.
	Weight float64
	// SLO is the promised latency; the zero SLO promises none.
	SLO capacity.SLO
	// CapacityOnly is set where saturation alone is to size all the same.
	CapacityOnly bool
	// Problem says why no latency can be promised although one was asked for; then SLO
	// is zero and saturation alone decides.
	Problem string
}

// Idle says whether and when a model may scale to zero. It never does while no gateway is
// seen that would wake it.
type Idle struct {
	// Enabled permits it.
	Enabled bool
	// Retention is how long nothing must have been asked of the model.
	Retention time.Duration
}

// VariantPolicy is one variant's bounds and behaviour.
type VariantPolicy struct {
	// Min is the least number of replicas.
	Min int
	// Max is the greatest number of replicas; negative means no bound. MaxOf names who set it,
	// and is empty where the object itself did.
	Max   int
	MaxOf string
	// Up and Down limit the speed of changes.
	Up, Down Behavior
	// Actuation says what is done with the plan; the decision itself is the same
	// for all of them but for Off, which takes no capacity from others.
	Actuation Actuation
	// OnUnknown says what to do while nobody knows how many more replicas fit; empty
	// means hold in limited mode and where the shape is unknown, else allow.
	OnUnknown OnUnknown
}

// OnUnknown says what to do while nobody knows how many more replicas fit.
type OnUnknown string

// The answers to unknown capacity.
const (
	OnUnknownAllow OnUnknown = "Allow"
	OnUnknownHold  OnUnknown = "Hold"
)

// Actuation says what is done with a variant's plan.
type Actuation string

// The ways to act on a plan.
const (
	ActuationScale  Actuation = "Scale"
	ActuationMetric Actuation = "Metric"
	ActuationOff    Actuation = "Off"
)

// Weighs is what the share of the model counts among those of its priority.
func (p *Promise) Weighs() float64 {
	if p.Weight > 0 {
		return p.Weight
	}
	return 1
}

// Behavior has the meaning of the HorizontalPodAutoscaler's scaling rules.
type Behavior struct {
	// Window is the stabilisation window.
	Window time.Duration
	// Adaptive is set where nobody chose the window: where latency sizes, it then holds on
	// the way down for one start-up, as long as the load is not likely to jump back to where it
	// was.
	Adaptive bool
	// Policies bound the change within a period; none means no bound.
	Policies []RatePolicy
	// Select says which policy counts when several apply.
	Select Select
	// Tolerance is the relative difference between the current and the wanted
	// replicas below which nothing changes.
	Tolerance float64
}

// Select says which of several rate policies counts.
type Select string

// The ways to select a rate policy.
const (
	SelectMax      Select = "Max"
	SelectMin      Select = "Min"
	SelectDisabled Select = "Disabled"
)

// RatePolicy bounds a change within a period.
type RatePolicy struct {
	// Pods is the number of replicas, or 0 when Percent counts.
	Pods int
	// Percent of the replicas at the start of the period, or 0 when Pods counts.
	Percent int
	Period  time.Duration
}

// DefaultSaturation are the published thresholds.
func DefaultSaturation() Saturation {
	return Saturation{KVCacheThreshold: 0.80, QueueLengthThreshold: 5, KVSpareTrigger: 0.10, QueueSpareTrigger: 3}
}

// DefaultVariantPolicy has no bounds, scales up at once and scales down after five
// minutes.
func DefaultVariantPolicy() VariantPolicy {
	return VariantPolicy{
		Max:       -1,
		Up:        Behavior{Select: SelectMax},
		Down:      Behavior{Window: 5 * time.Minute, Adaptive: true, Select: SelectMax},
		Actuation: ActuationScale,
	}
}

// DefaultPolicy is the policy of a manager without configuration.
func DefaultPolicy() Policy {
	return Policy{
		Hybrid:          true,
		Share:           0.99,
		Risk:            DefaultRisk,
		History:         true,
		Growth:          Growth{Pods: 40, Percent: 300},
		ConflictWindow:  time.Hour,
		Horizon:         30 * time.Minute,
		Idle:            Idle{Retention: 10 * time.Minute},
		Drain:           2 * time.Minute,
		StartupDeadline: 10 * time.Minute,
		Interval:        time.Minute,
		Window:          time.Minute,
		Freshness:       Freshness{Fresh: time.Minute, Ageing: 2 * time.Minute, Stale: 5 * time.Minute},
		Saturation:      DefaultSaturation(),
	}
}

// Variant is the policy of one variant.
func (p Policy) Variant(key Key) VariantPolicy { return ownOr(p.Variants, key, DefaultVariantPolicy()) }

// SaturationOf are the thresholds of one model.
func (p Policy) SaturationOf(key ModelKey) Saturation {
	return ownOr(p.SaturationByModel, key, p.Saturation)
}

// PromiseTo is what was promised to the clients of one model.
func (p Policy) PromiseTo(key ModelKey) Promise {
	return ownOr(p.Promises, key, Promise{Priority: LeastPriority})
}

// Sizes reports whether what is promised sizes, too.
func (p *Policy) Sizes(promise *Promise) bool {
	return p.Hybrid && !promise.CapacityOnly && promise.SLO != capacity.SLO{}
}

// IdleOf says whether and when one model may scale to zero.
func (p Policy) IdleOf(key ModelKey) Idle { return ownOr(p.IdleByModel, key, p.Idle) }

// ownOr is what a map holds of its own for a key, else what holds for all.
func ownOr[K comparable, V any](own map[K]V, key K, all V) V {
	if v, ok := own[key]; ok {
		return v
	}
	return all
}
