package explain

import (
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/status"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// Account is what there is to say of a variant's last decision.
type Account struct {
	// Variant is the line that "kubectl wva status" has for it.
	Variant status.Row `json:"variant"`
	// Meaning says what the reason of the decision means.
	Meaning  string             `json:"meaning,omitempty"`
	Decision *v1alpha1.Decision `json:"decision,omitempty"`
	// Load and Supply are the sentences of the stages of those names.
	Load   string `json:"load,omitempty"`
	Supply string `json:"supply,omitempty"`
	// Applied says that the target asks for what the decision wants.
	Applied      bool         `json:"applied"`
	LastScale    *metav1.Time `json:"lastScaleTime,omitempty"`
	ServiceClass string       `json:"serviceClass,omitempty"`
	// SizedBy says what the last decision was sized by: latencies, or saturation alone, and why.
	SizedBy   string              `json:"sizedBy,omitempty"`
	Placement *v1alpha1.Placement `json:"placement,omitempty"`
	// Problems are the conditions that are not as they should be, or that are with a reason
	// that somebody should act on.
	Problems []metav1.Condition `json:"problems,omitempty"`
	Events   []Event            `json:"events,omitempty"`
}

// Event is something that was told of the object.
type Event struct {
	Time    metav1.Time `json:"time"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Count   int32       `json:"count,omitempty"`
}

// The stages of the decision whose details say what was seen.
const (
	stageDemand = "demand"
	stageSupply = "supply"
)

// sizing are the reasons of OptimizationReady whose message says what a decision was sized by.
var sizing = []string{v1alpha1.ReasonOptimizationSucceeded, v1alpha1.ReasonSaturationSafetyOverride, v1alpha1.ReasonSaturationOnlyMode}

// AccountOf is the account of an object and its events, with the modes of the managers.
func AccountOf(object *v1alpha1.VariantAutoscaling, modes *installation.Modes, events []Event) Account {
	s := &object.Status
	a := Account{
		Variant: status.RowOf(object, modes), Decision: s.Decision, ServiceClass: s.ServiceClass, Placement: s.Placement,
		Problems: status.Problems(s.Conditions), Events: events,
	}
	if c := apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionOptimizationReady); c != nil && slices.Contains(sizing, c.Reason) {
		a.SizedBy = c.Message
	}
	if s.Actuation != nil {
		a.Applied, a.LastScale = s.Actuation.Applied, s.Actuation.LastScaleTime
	}
	if s.Decision == nil {
		return a
	}
	a.Meaning = meaning(s.Decision.Reason)
	var supply []string
	for _, step := range s.Decision.Steps {
		switch step.Stage {
		case stageDemand:
			a.Load = step.Detail
		case stageSupply:
			supply = append(supply, step.Detail)
		}
	}
	a.Supply = strings.Join(supply, "; ")
	return a
}

// meaning is the sentence of a reason. Some are of a condition and of a decision; that of
// the decision comes first.
func meaning(reason string) string {
	found := ""
	for _, r := range v1alpha1.Reasons() {
		if r.Name == reason && (found == "" || r.Condition == "") {
			found = r.Meaning
		}
	}
	return found
}
