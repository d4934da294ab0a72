package status

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestARoundThatMayNotLowerLeavesTheDecisionAlone(t *testing.T) {
	v := &Variant{}
	first := Render(&v1alpha1.VariantAutoscalingStatus{}, settled(func(p *decision.VariantPlan) { p.Desired = ptr.To(2) }, because(decision.ReasonStabilized)), v, noon, false)
	second := Render(&first, settled(func(p *decision.VariantPlan) { p.Desired = ptr.To(2) }, because(decision.ReasonRoundMayNotLower)), v, noon.Add(time.Minute), false)
	assert.True(t, Same(&first, &second, decision.RoundFull), "full and fast rounds take turns")
	assert.Equal(t, "Stabilized", second.Decision.Reason)
}

func TestStatus(t *testing.T) {
	shape := capacity.Shape{Accelerator: "H100", MemoryGiB: 80, Form: "SXM5", Devices: 1, Pods: 1, MilliCPU: 500, MemoryBytes: 1 << 30}
	v := &Variant{Generation: 7, ID: "m-H100-1", Accelerator: "H100", Shape: &shape}
	status := Render(&v1alpha1.VariantAutoscalingStatus{}, settled(func(p *decision.VariantPlan) { p.Starting, p.Unschedulable, p.Unplaced = 2, 1, 3 }), v, noon, true)
	assert.Equal(t, &v1alpha1.CurrentAlloc{VariantID: "m-H100-1", Accelerator: "H100", NumReplicas: ptr.To[int32](3)}, status.CurrentAlloc, "what the target asks for since the write")
	assert.Equal(t, &v1alpha1.ActuationStatus{Applied: true, LastScaleTime: ptr.To(metav1.NewTime(noon))}, status.Actuation)
	assert.Equal(t, "500m", status.Placement.Shape.CPU.String())
	assert.Equal(t, "1Gi", status.Placement.Shape.Memory.String())
	assert.EqualValues(t, 7, status.Placement.ObservedGeneration, "the shape is that of this generation")
	assert.Equal(t, "SXM5", status.Placement.Shape.Form)
	assert.EqualValues(t, 80, status.Placement.Shape.DeviceMemoryGiB)
	assert.Equal(t, []int32{4, 2, 1, 3}, []int32{*status.Placement.Slots, *status.Placement.Pending, *status.Placement.Unschedulable, *status.Placement.Unplaced})

	later := Render(&status, settled(func(p *decision.VariantPlan) { p.Desired = ptr.To(9) }), v, noon.Add(time.Minute), false)
	assert.Equal(t, &v1alpha1.ActuationStatus{LastScaleTime: ptr.To(metav1.NewTime(noon))}, later.Actuation, "not applied yet")

	gone := Render(&status, unsettled(decision.ReasonTargetMissing, decision.ReasonTargetMissing), &Variant{Generation: 7, ID: v.ID, Accelerator: "H100"}, noon, false)
	assert.Nil(t, gone.DesiredOptimizedAlloc)
	assert.Equal(t, &v1alpha1.CurrentAlloc{VariantID: "m-H100-1", Accelerator: "H100"}, gone.CurrentAlloc, "the columns keep saying which variant it is")
	assert.Nil(t, gone.Placement)
}

func TestNumbersThatNoStatusHoldsAreTheLargestThatOneDoes(t *testing.T) {
	const many = 3_000_000_000
	shape := capacity.Shape{Accelerator: "H100", MemoryGiB: many, Devices: many, Pods: many}
	p := settled(func(p *decision.VariantPlan) {
		p.Current, p.Desired, p.Starting, p.Unschedulable, p.Unplaced = many, ptr.To(many), many, many, many
		p.Slots.Count, p.Steps[0].Before, p.Steps[0].After = many, many, -many
	})
	status := Render(&v1alpha1.VariantAutoscalingStatus{}, p, &Variant{Generation: 7, Shape: &shape}, noon, false)
	s, d := status.Placement, status.Decision.Steps[0]
	for name, got := range map[string]*int32{
		"devices": s.Shape.Devices, "pods": s.Shape.Pods, "device memory": &s.Shape.DeviceMemoryGiB, "slots": s.Slots, "pending": s.Pending,
		"unschedulable": s.Unschedulable, "unplaced": s.Unplaced, "before": &d.Before,
		"current": status.CurrentAlloc.NumReplicas, "desired": status.DesiredOptimizedAlloc.NumReplicas,
	} {
		assert.EqualValues(t, math.MaxInt32, *got, name)
	}
	assert.Zero(t, d.After)
	assert.True(t, status.Actuation.Applied)
}

func TestWhatIsWorthAWrite(t *testing.T) {
	v := &Variant{}
	base := Render(&v1alpha1.VariantAutoscalingStatus{}, settled(), v, noon, false)
	cases := []struct {
		name   string
		change func(*decision.VariantPlan)
		same   bool
	}{
		{"time alone", func(*decision.VariantPlan) {}, true},
		{"a message", func(p *decision.VariantPlan) { p.Message = decision.Words("81 % full") }, true},
		{"a step in between", func(p *decision.VariantPlan) { p.Steps[0].After = 5 }, true},
		{"one slot less", func(p *decision.VariantPlan) { p.Slots.Count = 3 }, true},
		{"half of the slots", func(p *decision.VariantPlan) { p.Slots.Count = 2 }, false},
		{"half as many slots again", func(p *decision.VariantPlan) { p.Slots.Count = 6 }, false},
		{"slots are not known any more", func(p *decision.VariantPlan) { p.Slots = nil }, false},
		{"one more without a place", func(p *decision.VariantPlan) { p.Unplaced = 1 }, false},
		{"no slot left", func(p *decision.VariantPlan) { p.Slots.Count = 0 }, false},
		{"the wanted replicas", func(p *decision.VariantPlan) { p.Desired = ptr.To(4) }, false},
		{"the current replicas", func(p *decision.VariantPlan) { p.Current = 3 }, false},
		{"a starting replica", func(p *decision.VariantPlan) { p.Starting = 1 }, false},
		{"the reason", because(decision.ReasonSpareCapacity), false},
		{"a condition", facts(decision.ReasonMetricsPartial), false},
		{"the accelerator", func(p *decision.VariantPlan) { p.Accelerator = "H200" }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			next := Render(&base, settled(c.change), v, noon.Add(time.Minute), false)
			assert.Equal(t, c.same, Same(&base, &next, decision.RoundFast))
		})
	}
	fewer := Render(&base, settled(func(p *decision.VariantPlan) { p.Slots.Count = 3 }), v, noon.Add(time.Minute), false)
	assert.False(t, Same(&base, &fewer, decision.RoundFull), "a full round writes every number")
	for _, kind := range []string{v1alpha1.ConditionCapacityKnown, v1alpha1.ConditionScalingLimited, v1alpha1.ConditionReady} {
		told := *base.DeepCopy()
		apimeta.FindStatusCondition(told.Conditions, kind).Message = "other numbers"
		assert.True(t, Same(&base, &told, decision.RoundFast), kind)
		assert.Equal(t, kind == v1alpha1.ConditionReady, Same(&base, &told, decision.RoundFull), "a full round brings the room in %s up to date", kind)
	}
	again := Render(&base, settled(), &Variant{Generation: 2}, noon, false)
	assert.False(t, Same(&base, &again, decision.RoundFast), "a new generation was observed")
}
