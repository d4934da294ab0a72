package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const decided = `
metadata: {name: a, namespace: chat}
spec: {modelID: llama, scaleTargetRef: {name: a}, actuation: "Off"}
status:
  currentAlloc: {variantID: llama-H100-2, accelerator: H100, numReplicas: 1}
  desiredOptimizedAlloc: {lastRunTime: "2026-01-01T12:00:00Z", accelerator: H100, numReplicas: 3}
  actuation: {applied: false}
  serviceClass: Premium
  placement: {shape: {accelerator: H100, devices: 2, pods: 1, cpu: "8", memory: 64Gi}, slots: 2, slotsBound: pod affinity, pending: 1, unschedulable: 0, unplaced: 1}
  decision:
    reason: Saturated
    message: "replicas are 92 % full: +2 for 6.20 req/s, a replica serves 2.10"
    binds: ""
    alternative: "b: 2 replicas for 9.00/h"
    steps:
    - {stage: demand, before: 1, after: 1, reason: MetricsFound, detail: "6.00 req/s arrive, 6.20 req/s forecast, 0 requests wait"}
    - {stage: supply, before: 1, after: 1, reason: MetricsFound, detail: "a replica serves 2.10 req/s; 1 replica counts as supply"}
    - {stage: allocation, before: 1, after: 3, reason: Saturated, detail: "+2 for 6.20 req/s"}
  conditions:
  - {type: Ready, status: "True", reason: Ready, message: ""}
  - {type: OptimizationReady, status: "True", reason: SaturationOnlyMode, message: decided by saturation and observed rates}
  - {type: ScalingLimited, status: "True", reason: NoSlots, message: 2 more fit}
`

const told = `chat/a: llama on 2xH100, behind Deployment/a, actuation Off
The last decision wants 3 replicas, and 1 is there. Actuation is Off, so nothing is written.
It is from 2m ago; the autoscaler writes a later one when it differs.

Why         Saturated: replicas are 92 % full: +2 for 6.20 req/s, a replica serves 2.10. A saturation threshold was passed, and replicas are added.
Load        6.00 req/s arrive, 6.20 req/s forecast, 0 requests wait (2m ago)
Supply      a replica serves 2.10 req/s; 1 replica counts as supply (2m ago)
Settled by  not known
Next best   b: 2 replicas for 9.00/h
Placement   a replica takes 2xH100, 8 CPU, 64Gi memory; at most 2 more fit (pod affinity); 1 not serving yet; 1 that fit nowhere now
Mode        not known; decided by saturation and observed rates
SLO         that of service class Premium

STAGE       BEFORE  AFTER  REASON        DETAIL
demand      1       1      MetricsFound  6.00 req/s arrive, 6.20 req/s forecast, 0 requests wait
supply      1       1      MetricsFound  a replica serves 2.10 req/s; 1 replica counts as supply
allocation  1       3      Saturated     +2 for 6.20 req/s

Not as it should be:
  ScalingLimited is True (NoSlots): 2 more fit
What to do:
  kubectl wva explain --reason NoSlots

Recent events:
AGO      TYPE     REASON   MESSAGE
5m (x3)  Warning  NoSlots  2 more fit
`

var noon = time.Date(2026, 1, 1, 12, 2, 0, 0, time.UTC)

func object(t *testing.T, text string) *v1alpha1.VariantAutoscaling {
	t.Helper()
	var v v1alpha1.VariantAutoscaling
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &v))
	return &v
}

func text(t *testing.T, a Account) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, a.Text(&out, noon))
	return out.String()
}

func TestAnAccount(t *testing.T) {
	t.Parallel()
	events := []Event{{Time: metav1.NewTime(noon.Add(-5 * time.Minute)), Type: "Warning", Reason: "NoSlots", Message: "2 more fit", Count: 3}}
	assert.Equal(t, told, text(t, AccountOf(object(t, decided), nil, events)))
}

// A service class that does not exist leaves every condition good, and is said.
func TestAGoodConditionWithAReasonToActOnIsSaid(t *testing.T) {
	t.Parallel()
	got := text(t, AccountOf(object(t, `
metadata: {name: a}
spec: {modelID: llama, scaleTargetRef: {name: a}}
status:
  decision: {reason: Steady}
  conditions:
  - {type: Ready, status: "True", reason: Ready, message: ""}
  - {type: OptimizationReady, status: "True", reason: ServiceClassUnclear, message: no class Gold}
  - {type: CapacityKnown, status: "True", reason: CapacityExact, message: 4 more fit}`), nil, nil))
	assert.Contains(t, got, "Not as it should be:\n  OptimizationReady is True (ServiceClassUnclear): no class Gold\nWhat to do:\n  kubectl wva explain --reason ServiceClassUnclear\n")
}

func TestWhatIsNotKnownIsSaid(t *testing.T) {
	t.Parallel()
	got := text(t, AccountOf(object(t, "metadata: {name: a, namespace: chat}\nspec: {modelID: llama, scaleTargetRef: {name: a}}"), nil, nil))
	assert.Equal(t, `chat/a: llama on an accelerator that is not known, behind Deployment/a, actuation Scale
Nothing was decided yet.
No autoscaler has looked at it: does one run, and is it the instance of the object's label wva.llmd.ai/controller-instance?

No recent events.
`, got)
	got = text(t, AccountOf(object(t, `
metadata: {name: a}
spec: {modelID: llama, scaleTargetRef: {name: a}}
status: {desiredOptimizedAlloc: {lastRunTime: "2026-01-01T12:00:00Z"}, decision: {reason: Steady}, placement: {}}`), nil, nil))
	for _, want := range []string{
		"wants a number of replicas that is not known, and it is not known how many are there", "Load        not known\n", "Next best   none\n", "Mode        not known\n",
		"how many more fit is not known", "no service class counts", "Settled by  the variant took no part in the last decision\n",
	} {
		assert.Contains(t, got, want)
	}
	assert.NotContains(t, got, "STAGE", "no table without a step")
}

// A fault that shows in several conditions is told once.
func TestConditionsWithOneMessageAreOneLine(t *testing.T) {
	t.Parallel()
	got := text(t, AccountOf(object(t, `
metadata: {name: a, namespace: chat}
spec: {modelID: llama, scaleTargetRef: {name: a}}
status:
  placement: {shape: {devices: 0}}
  decision: {reason: TargetMissing, message: no a in chat, steps: [{stage: supply, before: 1, after: 1, detail: "1 serves"}]}
  conditions:
  - {type: Ready, status: "False", reason: DeploymentNotFound, message: no a in chat}
  - {type: TargetResolved, status: "False", reason: TargetNotFound, message: no a in chat}
  - {type: CapacityKnown, status: "False", reason: CapacityUnknown, message: no nodes}`), nil, nil))
	assert.Contains(t, got, `
Not as it should be:
  Ready is False (DeploymentNotFound), TargetResolved is False (TargetNotFound): no a in chat
  CapacityKnown is False (CapacityUnknown): no nodes
What to do:
  kubectl wva explain --reason DeploymentNotFound
  kubectl wva explain --reason TargetNotFound
  kubectl wva explain --reason CapacityUnknown
`)
	assert.Contains(t, got, "a replica takes no accelerator;")
	assert.Contains(t, got, "Settled by  not known\n")
}

// Events of the older and of the present API keep the time and the count in other fields.
func TestEventsOfBothAPIs(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(noon)
	older := corev1.Event{Type: "Normal", Reason: "ScaledUp", Message: "m", Count: 2, LastTimestamp: at}
	assert.Equal(t, Event{Time: at, Type: "Normal", Reason: "ScaledUp", Message: "m", Count: 2}, eventOf(&older))
	present := corev1.Event{Reason: "ScaledUp", EventTime: metav1.NewMicroTime(noon)}
	assert.Equal(t, Event{Time: at, Reason: "ScaledUp"}, eventOf(&present))
	present.Series = &corev1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(noon.Add(time.Minute))}
	assert.Equal(t, Event{Time: metav1.NewTime(noon.Add(time.Minute)), Reason: "ScaledUp", Count: 4}, eventOf(&present))
}

// Every reason that a decision can give has a sentence.
func TestEveryReasonHasAMeaning(t *testing.T) {
	t.Parallel()
	for _, r := range v1alpha1.Reasons() {
		assert.NotEmpty(t, meaning(r.Name), r.Name)
		if r.Condition == "" {
			assert.Equal(t, r.Meaning, meaning(r.Name), "that of the decision comes first")
		}
	}
	assert.Empty(t, meaning("NoSuchReason"))
}

// One replica takes the same on every line, as the messages of the conditions have it.
func TestAnAcceleratorHasOneName(t *testing.T) {
	t.Parallel()
	got := text(t, AccountOf(object(t, `
metadata: {name: a, namespace: chat}
spec: {modelID: llama, accelerator: NVIDIA-A100-SXM4-80GB, scaleTargetRef: {name: a}}
status:
  currentAlloc: {accelerator: A100}
  placement: {shape: {accelerator: A100, deviceMemoryGiB: 80, form: SXM4, devices: 2, pods: 1}, slots: 0}
  decision: {reason: Steady, steps: [{stage: limits, reason: NoSlots, detail: "wants 2xA100-80GB-SXM4"}]}
  conditions:
  - {type: CapacityKnown, status: "True", reason: AcceleratorNotSelected, message: "2xA100-80GB-SXM4: 0 more fit"}`), nil, nil))
	assert.Contains(t, got, "chat/a: llama on 2xA100-80GB-SXM4, behind")
	assert.Contains(t, got, "Placement   a replica takes 2xA100-80GB-SXM4; 0 more fit")
}

// Many a decision has one cause, which every part of the account would say again.
func TestTheSameIsSaidOnce(t *testing.T) {
	t.Parallel()
	got := text(t, AccountOf(object(t, `
metadata: {name: a, namespace: chat}
spec: {modelID: llama, scaleTargetRef: {name: a}}
status:
  desiredOptimizedAlloc: {lastRunTime: "2026-01-01T12:00:00Z", numReplicas: 1}
  decision:
    reason: TargetMissing
    message: The scale target does not exist or cannot be scaled; the condition TargetResolved says which.
  conditions: []`), nil, nil))
	assert.Equal(t, 1, strings.Count(got, "The scale target does not exist"), got)
	got = text(t, AccountOf(object(t, `
metadata: {name: a, namespace: chat}
spec: {modelID: llama, scaleTargetRef: {name: a}}
status:
  decision:
    reason: Stabilized
    message: 4 within the last 5m0s
    binds: "behavior: 4 within the last 5m0s"
    steps: [{stage: demand}]`), nil, nil))
	assert.Equal(t, 1, strings.Count(got, "4 within the last 5m0s"), got)
	assert.Contains(t, got, "Settled by  behavior, as above\n")
}

// The SLO of a class counts in hybrid mode alone, which is said where the mode is known.
func TestTheModeAndTheSLO(t *testing.T) {
	t.Parallel()
	for mode, want := range map[installation.Mode]string{
		installation.Hybrid:       "Mode        hybrid; decided by saturation and observed rates\nSLO         that of service class Premium\n",
		installation.CapacityOnly: "Mode        capacity-only; decided by saturation and observed rates\nSLO         that of service class Premium, which counts in hybrid mode alone\n",
	} {
		a := AccountOf(object(t, decided), &installation.Modes{}, nil)
		assert.Empty(t, a.Variant.Mode, "no manager is known")
		a.Variant.Mode = mode
		assert.Contains(t, text(t, a), want)
	}
	sized := AccountOf(object(t, strings.ReplaceAll(decided, "SaturationOnlyMode", "OptimizationSucceeded")), &installation.Modes{}, nil)
	assert.Equal(t, installation.Hybrid, sized.Variant.Mode, "the decision shows it")
}
