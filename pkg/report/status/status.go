package status

import (
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// Variant is what of an object stands in its status beside the plan.
type Variant struct {
	// Generation is that of the object.
	Generation int64
	// ID, Accelerator and Shape are what was resolved, also while the target is missing; a nil
	// Shape is not known. Other is what a replica takes of extended resources beside it.
	ID          string
	Accelerator capacity.Accelerator
	Shape       *capacity.Shape
	Other       []placement.Amount
	// Class is the service class whose promise counts for the model.
	Class string
	// Deleted is set where the target was there before.
	Deleted bool
}

// Render is the status that shows the plan, given the one that stands.
// Written says that this round changed the target's replicas.
func Render(old *v1alpha1.VariantAutoscalingStatus, p *decision.VariantPlan, v *Variant, at time.Time, written bool) v1alpha1.VariantAutoscalingStatus {
	status := v1alpha1.VariantAutoscalingStatus{
		CurrentAlloc: &v1alpha1.CurrentAlloc{VariantID: v.ID, Accelerator: string(v.Accelerator)},
		Placement:    renderPlacement(p, v),
		Decision:     renderDecision(p),
		Actuation:    &v1alpha1.ActuationStatus{},
		ServiceClass: className(v.Class),
		Conditions:   Conditions(old.Conditions, p, v),
	}
	if old.Actuation != nil {
		status.Actuation.LastScaleTime = old.Actuation.LastScaleTime
	}
	if p.Desired == nil {
		if v.Deleted {
			// Shown as empty, and not left out, to whoever looks for it.
			status.DesiredOptimizedAlloc = &v1alpha1.DesiredAlloc{}
		}
		return status
	}
	current := p.Current
	if written {
		current = *p.Desired
		status.Actuation.LastScaleTime = ptr.To(metav1.NewTime(at))
	}
	status.CurrentAlloc.NumReplicas = Number(current)
	status.Actuation.Applied = current == p.Shown()
	status.DesiredOptimizedAlloc = &v1alpha1.DesiredAlloc{
		LastRunTime: ptr.To(metav1.NewTime(at)),
		Accelerator: string(p.Accelerator),
		NumReplicas: Number(p.Shown()),
	}
	if withheld(p, old) {
		status.Decision = old.Decision
	}
	return status
}

// Undecided is the status of a variant that could not be decided about: of the one that
// stands only the conditions change that say so.
func Undecided(old *v1alpha1.VariantAutoscalingStatus, p *decision.VariantPlan, v *Variant) v1alpha1.VariantAutoscalingStatus {
	status := *old.DeepCopy()
	status.Conditions = setConditions(status.Conditions, v, []claim{
		{v1alpha1.ConditionReady, ready(p, v)}, {v1alpha1.ConditionOptimizationReady, optimizationReady(p)},
	})
	return status
}

// className is a name of a service class as a status holds it.
func className(name string) string {
	const longest = 253
	if len(name) > longest {
		return strings.ToValidUTF8(name[:longest], "")
	}
	return name
}

// withheld reports whether a round that may not lower would have lowered. What it
// found is not the decision: the last one stands until the next full round.
func withheld(p *decision.VariantPlan, old *v1alpha1.VariantAutoscalingStatus) bool {
	return p.Reason == decision.ReasonRoundMayNotLower && old.Decision != nil
}

func renderPlacement(p *decision.VariantPlan, v *Variant) *v1alpha1.Placement {
	if v.Shape == nil && p.Desired == nil {
		return nil
	}
	shown := &v1alpha1.Placement{
		Pending:       Number(p.Starting),
		Unschedulable: Number(p.Unschedulable),
	}
	if v.Shape != nil {
		shown.Shape, shown.ObservedGeneration = renderShape(v.Shape), v.Generation
	}
	if p.Slots == nil {
		return shown
	}
	shown.Slots, shown.SlotsBound = Number(p.Slots.Count), p.Slots.Bound
	shown.Unplaced = Number(p.Unplaced)
	shown.Bound()
	return shown
}

func renderShape(shape *capacity.Shape) *v1alpha1.Shape {
	s := &v1alpha1.Shape{
		Accelerator:     string(shape.Accelerator),
		DeviceMemoryGiB: *Number(shape.MemoryGiB),
		Form:            shape.Form,
		Devices:         Number(shape.Devices),
		Pods:            Number(shape.Pods),
	}
	if shape.MilliCPU > 0 {
		s.CPU = resource.NewMilliQuantity(shape.MilliCPU, resource.DecimalSI)
	}
	if shape.MemoryBytes > 0 {
		s.Memory = resource.NewQuantity(shape.MemoryBytes, resource.BinarySI)
	}
	return s
}

// Number is n as a status holds it. What users write may be larger than any number of
// the schema; the largest or the least one stands for it, so that the status can be
// written and its conditions say what is wrong.
func Number(n int) *int32 {
	return ptr.To(int32(min(max(n, 0), math.MaxInt32)))
}

func renderDecision(p *decision.VariantPlan) *v1alpha1.Decision {
	d := &v1alpha1.Decision{Reason: string(p.Reason), Message: sentence.Of(p.Message), Binds: sentence.Of(p.BoundBy), Alternative: sentence.Of(p.Alternative)}
	for _, step := range p.Steps {
		d.Steps = append(d.Steps, v1alpha1.DecisionStep{
			Stage: string(step.Stage), Before: *Number(step.Before), After: *Number(step.After), Reason: string(step.Reason), Detail: sentence.Of(step.Detail),
		})
	}
	d.Bound()
	return d
}

// Same reports whether two statuses say the same: every number of replicas,
// reason and condition. Texts and times alone are not worth a write, and neither
// are the steps in between; but a full round brings the numbers that people read in
// conditions up to date.
func Same(a, b *v1alpha1.VariantAutoscalingStatus, round decision.Round) bool {
	return sameSlots(a.Placement, b.Placement, round) && (round != decision.RoundFull || sameMessages(a, b)) &&
		equality.Semantic.DeepEqual(essence(a), essence(b))
}

// sameMessages compares the conditions whose messages say what became of the target, how much
// room there is, and what should be corrected. Why there are no metrics may be said anew in every round.
func sameMessages(a, b *v1alpha1.VariantAutoscalingStatus) bool {
	for _, kind := range [...]string{v1alpha1.ConditionTargetResolved, v1alpha1.ConditionCapacityKnown, v1alpha1.ConditionScalingLimited, v1alpha1.ConditionOptimizationReady} {
		was, is := apimeta.FindStatusCondition(a.Conditions, kind), apimeta.FindStatusCondition(b.Conditions, kind)
		if was == nil || is == nil || kind == v1alpha1.ConditionOptimizationReady && is.Status != metav1.ConditionTrue {
			continue
		}
		if was.Message != is.Message {
			return false
		}
	}
	return true
}

// sameSlots reports whether the slots that were written still say how much room there
// is. How many more replicas fit changes with every pod of the cluster, for all
// variants at once, so between full rounds only that counts which a user waits for:
// whether any does, and a change by more than a quarter.
func sameSlots(a, b *v1alpha1.Placement, round decision.Round) bool {
	if a == nil || b == nil || a.Slots == nil || b.Slots == nil {
		return slots(a) == slots(b)
	}
	written, now := int64(*a.Slots), int64(*b.Slots)
	if round == decision.RoundFull {
		return written == now
	}
	return (written == 0) == (now == 0) && 4*max(written-now, now-written) <= written
}

func slots(p *v1alpha1.Placement) *int32 {
	if p == nil {
		return nil
	}
	return p.Slots
}

func essence(s *v1alpha1.VariantAutoscalingStatus) *v1alpha1.VariantAutoscalingStatus {
	e := s.DeepCopy()
	if e.DesiredOptimizedAlloc != nil {
		e.DesiredOptimizedAlloc.LastRunTime = nil
	}
	if e.Decision != nil {
		e.Decision = &v1alpha1.Decision{Reason: e.Decision.Reason}
	}
	if e.Placement != nil {
		e.Placement.Slots = nil
	}
	for i := range e.Conditions {
		c := &e.Conditions[i]
		c.Message, c.LastTransitionTime = "", metav1.Time{}
	}
	return e
}
