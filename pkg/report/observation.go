package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// Observation is what one run saw. All instants are counted from the start of the
// traffic; what happened before it is negative.
type Observation struct {
	Trace             string
	Rate              float64
	KubernetesVersion string
	// Mode is how the autoscaler sized, and Aim the share of the requests, 0 to 1, that was to meet
	// the SLO; 0 where saturation alone sized. Profiles says that latency profiles were given.
	Mode     string
	Aim      float64
	Profiles bool
	// Traffic is how long there was traffic, End when the observation ended.
	Traffic, End time.Duration
	Models       []ObservedModel
	Variants     []ObservedVariant
	Outcomes     []Outcome
	Placements   []Placement
	// Decisions are in any order.
	Decisions []Decision
	// Nodes are the nodes of the cluster, and Moves the steps in the lives of the pods,
	// in the order of time; both are for the pictures.
	Nodes []ObservedNode
	Moves []ObservedMove
}

// ObservedNode is one node and its devices.
type ObservedNode struct {
	Name        string
	Accelerator capacity.Accelerator
	Devices     int
}

// ObservedMove is one step in the life of a pod.
type ObservedMove struct {
	At           time.Duration
	Pod, Variant string
	Stage        simulation.Stage
	// Node is the name of the node that holds it; empty without one.
	Node string
}

// ObservedModel is one model and its promise.
type ObservedModel struct {
	ID  string
	SLO capacity.SLO
	// Arrivals are those of all requests that were sent, where some are still on their way;
	// nil where each one has its outcome.
	Arrivals []time.Duration
	// Bound is the least price per hour of the load in each minute of the traffic,
	// and then in all after it; empty without one.
	Bound []capacity.Cost
	// Comparison is of the same traffic in virtual time; nil without one.
	Comparison *Comparison
}

// ObservedVariant is what was seen of one variant.
type ObservedVariant struct {
	Name, Model string
	Accelerator capacity.Accelerator
	// Devices is the number of devices per replica.
	Devices int
	// Cost of one replica per hour.
	Cost capacity.Cost
	// Replicas are in the order of time.
	Replicas []ReplicaState
	// Held has one span per pod that a node held.
	Held []Span
}

// ReplicaState is the state of a variant's target from At on.
type ReplicaState struct {
	At             time.Duration
	Desired, Ready int
}

// Span is a stretch of time. One that is Open has not ended.
type Span struct {
	From, To time.Duration
	Open     bool
}

// Outcome is what became of one request.
type Outcome struct {
	Model   string
	Arrived time.Duration
	// Completed is unset for a request that failed; it has no latencies.
	Completed bool
	// TTFT is from the arrival to the first token, EndToEnd to the last one.
	TTFT, EndToEnd capacity.Milliseconds
	// OutputTokens is the number of tokens that were generated.
	OutputTokens int
}

// ITL is the mean time per further token; false when there was no further token.
func (o Outcome) ITL() (capacity.Milliseconds, bool) {
	if o.OutputTokens < 2 {
		return 0, false
	}
	return (o.EndToEnd - o.TTFT) / capacity.Milliseconds(o.OutputTokens-1), true
}

// Meets reports whether the request met the SLO. A failed request has not; a
// request of a single token has no ITL to miss.
func (o Outcome) Meets(slo capacity.SLO) bool {
	if !o.Completed || slo.TTFT > 0 && o.TTFT > slo.TTFT {
		return false
	}
	itl, further := o.ITL()
	return !further || slo.ITL <= 0 || itl <= slo.ITL
}

// New computes the report of a run.
func New(o Observation) Demo {
	demo := Demo{
		Trace:             o.Trace,
		Rate:              o.Rate,
		DurationSeconds:   seconds(o.Traffic),
		KubernetesVersion: o.KubernetesVersion,
		Mode:              o.Mode,
		Aim:               o.Aim,
		Profiles:          o.Profiles,
		Requests:          count(o.Outcomes),
		Models:            []Model{},
		Variants:          []Variant{},
		Placements:        slices.Clone(o.Placements),
		Decisions:         slices.Clone(o.Decisions),
	}
	for _, m := range o.Models {
		demo.Models = append(demo.Models, modelResult(o, m))
	}
	for _, v := range o.Variants {
		demo.Variants = append(demo.Variants, variantResult(v, o.End))
	}
	slices.SortFunc(demo.Placements, func(a, b Placement) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Pod, b.Pod))
	})
	slices.SortStableFunc(demo.Decisions, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(a.T, b.T), cmp.Compare(a.Variant, b.Variant))
	})
	if demo.Placements == nil {
		demo.Placements = []Placement{}
	}
	if demo.Decisions == nil {
		demo.Decisions = []Decision{}
	}
	return demo
}

func count(outcomes []Outcome) Requests {
	r := Requests{Total: len(outcomes)}
	for _, o := range outcomes {
		if o.Completed {
			r.Completed++
		}
	}
	r.Failed = r.Total - r.Completed
	return r
}

func modelResult(o Observation, m ObservedModel) Model {
	var all, warm []Outcome
	since, isWarm := WarmSince(o.Variants, m.ID)
	var ttft, itl []float64
	for _, outcome := range o.Outcomes {
		if outcome.Model != m.ID {
			continue
		}
		all = append(all, outcome)
		if isWarm && outcome.Arrived >= since {
			warm = append(warm, outcome)
		}
		if !outcome.Completed {
			continue
		}
		ttft = append(ttft, float64(outcome.TTFT))
		if each, further := outcome.ITL(); further {
			itl = append(itl, float64(each))
		}
	}
	return Model{
		Model:          m.ID,
		SLO:            SLO{TTFT: float64(m.SLO.TTFT), ITL: float64(m.SLO.ITL)},
		Attainment:     Attainment(all, m.SLO),
		AttainmentWarm: Attainment(warm, m.SLO),
		TTFT:           percentiles(ttft),
		ITL:            percentiles(itl),
		Comparison:     m.Comparison,
	}
}

// Attainment is the share of the outcomes that met the SLO; nil without outcomes.
func Attainment(outcomes []Outcome, slo capacity.SLO) *float64 {
	if len(outcomes) == 0 {
		return nil
	}
	met := 0
	for _, o := range outcomes {
		if o.Meets(slo) {
			met++
		}
	}
	return new(rounded(float64(met)/float64(len(outcomes)), 4))
}

// oneScaleUp is how far apart the writes of one decision may be seen.
const oneScaleUp = time.Second

// WarmSince is when the replicas of a model's first scale-up were Ready: the first
// instant after the first rise of a variant's wanted replicas at which that
// variant has the risen number Ready, or what was left of it by then. Variants
// that rise within oneScaleUp of each other are one scale-up. Without a scale-up a model
// is warm from the beginning; false means that the first scale-up's replicas never
// became Ready.
func WarmSince(variants []ObservedVariant, model string) (time.Duration, bool) {
	first := time.Duration(math.MaxInt64)
	for _, v := range variants {
		if rise := firstRise(v); v.Model == model && rise >= 0 {
			first = min(first, v.Replicas[rise].At)
		}
	}
	if first == math.MaxInt64 {
		return math.MinInt64, true
	}
	since := first
	for _, v := range variants {
		rise := firstRise(v)
		if v.Model != model || rise < 0 || v.Replicas[rise].At-first > oneScaleUp {
			continue
		}
		ready, ok := readyAfter(v.Replicas[rise:])
		if !ok {
			return 0, false
		}
		since = max(since, ready)
	}
	return since, true
}

// firstRise is the index of the first state that wants more than the one before
// it, after the start of the traffic; -1 when there is none.
func firstRise(v ObservedVariant) int {
	for i := 1; i < len(v.Replicas); i++ {
		if v.Replicas[i].At > 0 && v.Replicas[i].Desired > v.Replicas[i-1].Desired {
			return i
		}
	}
	return -1
}

func readyAfter(states []ReplicaState) (time.Duration, bool) {
	wanted := states[0].Desired
	for _, s := range states {
		wanted = min(wanted, s.Desired)
		if s.Ready >= wanted {
			return s.At, true
		}
	}
	return 0, false
}

func variantResult(v ObservedVariant, end time.Duration) Variant {
	result := Variant{
		Name:               v.Name,
		Model:              v.Model,
		Accelerator:        string(v.Accelerator),
		AcceleratorCount:   v.Devices,
		CostPerReplicaHour: float64(v.Cost),
		Replicas:           points(v.Replicas, end),
	}
	for i := 1; i < len(result.Replicas); i++ {
		if result.Replicas[i].Desired != result.Replicas[i-1].Desired {
			result.ScaleWrites++
		}
	}
	held := replicaHours(v.Held, end)
	result.GPUHours = rounded(held*float64(v.Devices), 6)
	result.Cost = rounded(held*float64(v.Cost), 6)
	return result
}

// points are the states from 0 to the end. What was before 0 is the state at 0.
func points(states []ReplicaState, end time.Duration) []ReplicaPoint {
	out := []ReplicaPoint{}
	for _, s := range states {
		if s.At > end {
			break
		}
		point := ReplicaPoint{T: max(0, seconds(s.At)), Desired: s.Desired, Ready: s.Ready}
		if s.At <= 0 && len(out) == 1 {
			out[0] = point
			continue
		}
		out = append(out, point)
	}
	if n := len(out); n > 0 && out[n-1].T < seconds(end) {
		out = append(out, ReplicaPoint{T: seconds(end), Desired: out[n-1].Desired, Ready: out[n-1].Ready})
	}
	return out
}

// replicaHours adds the spans up between 0 and the end.
func replicaHours(spans []Span, end time.Duration) float64 {
	var total time.Duration
	for _, s := range spans {
		to := s.To
		if s.Open {
			to = end
		}
		total += max(0, min(to, end)-max(s.From, 0))
	}
	return total.Hours()
}

// percentiles are by nearest rank: the smallest value that at least p per cent of
// the values do not exceed.
func percentiles(values []float64) Percentiles {
	if len(values) == 0 {
		return Percentiles{}
	}
	slices.Sort(values)
	rank := func(p float64) *float64 {
		i := int(math.Ceil(p/100*float64(len(values)))) - 1
		return new(rounded(values[max(0, i)], 3))
	}
	return Percentiles{P50: rank(50), P95: rank(95), P99: rank(99)}
}

// seconds keeps milliseconds; more is noise in a file that people read.
func seconds(d time.Duration) float64 { return rounded(d.Seconds(), 3) }

func rounded(value float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(value*scale) / scale
}
