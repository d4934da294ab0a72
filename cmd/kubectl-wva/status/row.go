package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Row is one variant. What is unknown is absent.
type Row struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Model       string `json:"model"`
	Accelerator string `json:"accelerator,omitempty"`
	// Devices is how many devices one replica takes; of one of several Pods, each pod of it.
	Devices *int32 `json:"devices,omitempty"`
	// Pods is how many pods one replica has; absent where it is one.
	Pods      *int32             `json:"pods,omitempty"`
	Target    string             `json:"target"`
	Actuation v1alpha1.Actuation `json:"actuation"`
	// Mode is that of the manager which decides about the variant.
	Mode installation.Mode `json:"mode,omitempty"`
	// Current and Desired are replicas: those that the target asks for, and those that the
	// last decision wants.
	Current *int32 `json:"current,omitempty"`
	Desired *int32 `json:"desired,omitempty"`
	Pending *int32 `json:"pending,omitempty"`
	// Fit is how many more replicas fit; FitIsBound says that it is an upper bound.
	Fit        *int32 `json:"fit,omitempty"`
	FitIsBound bool   `json:"fitIsBound,omitempty"`
	// State is Ready, or the reason of the condition that somebody should act on first, and
	// Message its text.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Reason is that of the last decision.
	Reason  string       `json:"reason,omitempty"`
	Decided *metav1.Time `json:"decided,omitempty"`
	// Measured is what Prometheus knows; nil while it is not asked.
	Measured *Measured `json:"measured,omitempty"`
	// device is the accelerator with what more is known of it, as messages have it.
	device string
}

// Measured is what no status holds.
type Measured struct {
	// Load is in requests per second, TTFT and ITL are means in milliseconds.
	Load *float64 `json:"load,omitempty"`
	TTFT *float64 `json:"ttftMilliseconds,omitempty"`
	ITL  *float64 `json:"itlMilliseconds,omitempty"`
}

// Unseen is the state of an object that no autoscaler has written a status to.
const Unseen = "NotSeenYet"

// Unreadable is the state of an object that does not fit the present kind.
const Unreadable = "Unreadable"

// RowOf is the row of an object; with the modes of the managers, its mode is in it.
func RowOf(object *v1alpha1.VariantAutoscaling, modes *installation.Modes) Row {
	if err := cluster.Unreadable(object); err != nil {
		return Row{Namespace: object.Namespace, Name: object.Name, State: Unreadable, Message: err.Error()}
	}
	spec, status := &object.Spec, &object.Status
	r := Row{
		Namespace: object.Namespace, Name: object.Name, Model: spec.ModelID, Accelerator: spec.Accelerator, Devices: spec.AcceleratorCount,
		Target:    cmp.Or(spec.ScaleTargetRef.Kind, v1alpha1.DefaultTargetKind) + "/" + spec.ScaleTargetRef.Name,
		Actuation: cmp.Or(spec.Actuation, v1alpha1.ActuationScale),
	}
	if c := status.CurrentAlloc; c != nil {
		r.Accelerator, r.Current = cmp.Or(c.Accelerator, r.Accelerator), c.NumReplicas
	}
	if d := status.DesiredOptimizedAlloc; d != nil {
		r.Desired, r.Decided = d.NumReplicas, d.LastRunTime
	}
	if p := status.Placement; p != nil {
		r.Pending, r.Fit, r.FitIsBound = p.Pending, p.Slots, p.SlotsBound != ""
		if p.Shape != nil && p.Shape.Devices != nil {
			r.Devices = p.Shape.Devices
		}
		if p.Shape != nil && ptr.Deref(p.Shape.Pods, 1) > 1 {
			r.Pods = p.Shape.Pods
		}
		if p.Shape != nil && p.Shape.Accelerator == r.Accelerator {
			r.device = p.Shape.Device().String()
		}
	}
	if status.Decision != nil {
		r.Reason = status.Decision.Reason
	}
	r.State, r.Message = state(status.Conditions)
	if modes != nil {
		r.Mode = modes.Of(object)
	}
	return r
}

// state is the condition that matters most: the first one that somebody should act on.
func state(conditions []metav1.Condition) (reason, message string) {
	problems := Problems(conditions)
	switch {
	case len(problems) > 0:
		return problems[0].Reason, problems[0].Message
	case apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady):
		return v1alpha1.ReasonReady, ""
	}
	return Unseen, ""
}

// weight orders conditions by how much they matter, and says which status is bad news.
var weight = []struct {
	kind string
	bad  metav1.ConditionStatus
}{
	{v1alpha1.ConditionReady, metav1.ConditionFalse},
	{v1alpha1.ConditionConflict, metav1.ConditionTrue},
	{v1alpha1.ConditionTargetResolved, metav1.ConditionFalse},
	{v1alpha1.ConditionMetricsAvailable, metav1.ConditionFalse},
	{v1alpha1.ConditionOptimizationReady, metav1.ConditionFalse},
	{v1alpha1.ConditionCapacityKnown, metav1.ConditionFalse},
	{v1alpha1.ConditionScalingLimited, metav1.ConditionTrue},
}

// routine are the reasons for which scaling is limited as it was asked to be: nobody has to act.
// The last decision shows them.
var routine = []string{
	string(decision.ReasonMinReplicas), string(decision.ReasonStabilized), string(decision.ReasonRateLimited),
	string(decision.ReasonWithinTolerance), string(decision.ReasonRollingUpdate),
}

// doubtful are the reasons that somebody should act on although the condition is good.
var doubtful = []string{
	v1alpha1.ReasonServiceClassUnclear, v1alpha1.ReasonNamespaceConfigUnread, v1alpha1.ReasonModelNameDiffers, v1alpha1.ReasonNameTaken, v1alpha1.ReasonWakesTooLate, string(decision.ReasonReplicaDiffers),
	v1alpha1.ReasonAcceleratorNotSelected, v1alpha1.ReasonAcceleratorCountDiffers,
	string(decision.ReasonQueueDead), string(decision.ReasonGatewayCountsPart), string(decision.ReasonReplicasCountPart), v1alpha1.ReasonPriceUnknown, v1alpha1.ReasonGatewayNotTrusted,
}

// Problems are the conditions that somebody should act on: first those that are bad news,
// then those that are good and doubtful, and of each those first that matter most.
func Problems(conditions []metav1.Condition) []metav1.Condition {
	var bad, good []metav1.Condition
	for _, w := range weight {
		c := apimeta.FindStatusCondition(conditions, w.kind)
		switch {
		case c == nil || slices.Contains(routine, c.Reason):
		case c.Status == w.bad:
			bad = append(bad, *c)
		case slices.Contains(doubtful, c.Reason):
			good = append(good, *c)
		}
	}
	return append(bad, good...)
}

// Shape is what a replica takes, such as 2xH100, in the words of the messages; empty while
// nothing is known.
func (r *Row) Shape() string {
	device := cmp.Or(r.device, r.Accelerator)
	switch {
	case device == "":
		return ""
	case r.Devices == nil:
		return device
	}
	if r.Pods != nil {
		return fmt.Sprintf("%d pods of %dx%s", *r.Pods, *r.Devices, device)
	}
	return fmt.Sprintf("%dx%s", *r.Devices, device)
}

// header are the names of the columns. What kubectl get va shows too has its name there.
func header(all, wide bool) []string {
	names := []string{"NAME", "MODEL", "SHAPE", "ACTUATION", "MODE", "CURRENTREPLICAS", "OPTIMIZED", "PENDING", "FIT", "STATE", "REASON", "DECIDED"}
	if wide {
		names = append(names, "TARGET", "LOAD/S", "TTFT MS", "ITL MS")
	}
	if all {
		names = slices.Insert(names, 0, "NAMESPACE")
	}
	return names
}

func (r *Row) cells(all, wide bool, now time.Time) []string {
	decided := ""
	if r.Decided != nil {
		decided = output.Ago(r.Decided.Time, now)
	}
	fit := output.Number(r.Fit)
	if fit != "" && r.FitIsBound {
		fit = "<=" + fit
	}
	cells := []string{
		r.Name, r.Model, r.Shape(), string(r.Actuation), string(r.Mode), output.Number(r.Current), output.Number(r.Desired), output.Number(r.Pending), fit,
		r.State, r.Reason, decided,
	}
	if wide {
		cells = append(cells, r.Target)
		m := cmp.Or(r.Measured, &Measured{})
		for _, value := range []*float64{m.Load, m.TTFT, m.ITL} {
			cells = append(cells, measure(value))
		}
	}
	if all {
		cells = slices.Insert(cells, 0, r.Namespace)
	}
	return cells
}

func measure(value *float64) string {
	if value == nil {
		return ""
	}
	return fmt.Sprintf("%.1f", *value)
}
