package status

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const objects = `
items:
- metadata: {name: b, namespace: chat}
  spec: {modelID: llama, scaleTargetRef: {name: b}, accelerator: L40S, acceleratorCount: 2}
- metadata: {name: a, namespace: chat}
  spec: {modelID: llama, scaleTargetRef: {name: a}, actuation: "Off"}
  status:
    currentAlloc: {accelerator: H100, numReplicas: 1}
    desiredOptimizedAlloc: {lastRunTime: "2026-01-01T12:00:00Z", numReplicas: 3}
    placement: {shape: {devices: 2}, slots: 4, slotsBound: pod affinity, pending: 0}
    decision: {reason: Saturated}
    conditions:
    - {type: ScalingLimited, status: "True", reason: NoSlots, message: 4 more fit}
    - {type: Conflict, status: "True", reason: TargetShared, message: c has it too}
    - {type: Ready, status: "True", reason: Ready}
- metadata: {name: c, namespace: chat}
  spec: {modelID: llama, scaleTargetRef: {name: c, kind: LeaderWorkerSet}}
  status: {conditions: [{type: Ready, status: "True", reason: Ready}, {type: Conflict, status: "False", reason: NoConflict}]}
`

func list(t *testing.T, text string) *v1alpha1.VariantAutoscalingList {
	t.Helper()
	var l v1alpha1.VariantAutoscalingList
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &l))
	return &l
}

// screenOf is a screen with the output in that form.
func screenOf(t *testing.T, form string) (*screen, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	s := &screen{form: &output.Form{}, out: &out}
	s.form.Add(&cobra.Command{}, output.Table, wide, output.JSON, output.YAML)
	require.NoError(t, s.form.Set(form))
	return s, &out
}

func TestAllAtAGlance(t *testing.T) {
	t.Parallel()
	rows := rowsOf(list(t, objects), nil)
	rows[0].Decided, rows[1].Mode = nil, installation.CapacityOnly
	s, out := screenOf(t, output.Table)
	require.NoError(t, s.show(rows))
	assert.Equal(t, `NAME  MODEL  SHAPE   ACTUATION  MODE           CURRENTREPLICAS  OPTIMIZED  PENDING  FIT  STATE         REASON     DECIDED
a     llama  2xH100  Off        -              1                3          0        <=4  TargetShared  Saturated  -
b     llama  2xL40S  Scale      capacity-only  -                -          -        -    NotSeenYet    -          -
c     llama  -       Scale      -              -                -          -        -    Ready         -          -
chat/a: TargetShared: c has it too
`, out.String())

	s, out = screenOf(t, output.JSON)
	require.NoError(t, s.show(rows[2:]))
	assert.JSONEq(t, `[{"namespace":"chat","name":"c","model":"llama","target":"LeaderWorkerSet/c","actuation":"Scale","state":"Ready"}]`, out.String())
}

func TestWhatPrometheusKnows(t *testing.T) {
	t.Parallel()
	rows := rowsOf(list(t, objects), nil)[:1]
	load, ttft := 1.25, 300.0
	rows[0].Measured = &Measured{Load: &load, TTFT: &ttft}
	s, out := screenOf(t, wide)
	s.all = true
	require.NoError(t, s.show(rows))
	assert.Regexp(t, `(?m)^NAMESPACE .* TARGET +LOAD/S +TTFT MS +ITL MS$`, out.String())
	assert.Regexp(t, `(?m)^chat .* Deployment/a +1\.2 +300\.0 +-$`, out.String())
}

// A watch shows a row when it changes, and nothing twice.
func TestChangesAreShownOnce(t *testing.T) {
	t.Parallel()
	s, out := screenOf(t, output.Table)
	f := &follower{screen: s, shown: map[nameOf]Row{}}
	all := list(t, objects)
	require.NoError(t, f.begin(all))
	require.NoError(t, f.catchUp(all))
	assert.Equal(t, 4, bytes.Count(out.Bytes(), []byte("\n")), "the header and three rows")
	five := int32(5)
	all.Items[1].Status.DesiredOptimizedAlloc.NumReplicas = &five
	all.Items = all.Items[:2]
	out.Reset()
	require.NoError(t, f.catchUp(all))
	assert.Regexp(t, `(?s)^a     llama  2xH100  Off        -     1                5 .*\nc .*Deleted .*\n$`, out.String())

	out.Reset()
	all.Items[0].Name = "a-much-longer-name"
	require.NoError(t, f.catchUp(all))
	assert.Regexp(t, `(?m)^NAME                MODEL `, out.String(), "a row that needs more room has its own header")
	assert.Equal(t, 1, strings.Count(out.String(), "MODEL"))

	s, out = screenOf(t, output.YAML)
	f = &follower{screen: s, shown: map[nameOf]Row{}}
	require.NoError(t, f.row(Row{Name: "a", State: "Ready", Decided: nil}))
	require.NoError(t, f.gone(Row{Name: "a"}))
	assert.Contains(t, out.String(), "---\nactuation: \"\"\n")
	assert.Contains(t, out.String(), "state: Deleted\n")
	assert.Empty(t, f.shown)
}

func TestAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	assert.Empty(t, output.Ago(time.Time{}, now))
	assert.Equal(t, "90s", output.Ago(now.Add(-90*time.Second), now))
}

// The state is what somebody should act on: a limit that was asked for is none, and a
// condition may be good and hold a mistake all the same.
func TestTheStateIsWhatToActOn(t *testing.T) {
	t.Parallel()
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because of " + reason}
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	ready := condition(v1alpha1.ConditionReady, yes, "Ready")
	waits := condition(v1alpha1.ConditionScalingLimited, yes, "Stabilized")
	unclear := condition(v1alpha1.ConditionOptimizationReady, yes, v1alpha1.ReasonServiceClassUnclear)
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"all is well":             {[]metav1.Condition{ready, condition(v1alpha1.ConditionScalingLimited, no, "NotLimited")}, "Ready"},
		"it waits, as asked":      {[]metav1.Condition{ready, waits}, "Ready"},
		"a class that is unclear": {[]metav1.Condition{ready, unclear, waits}, "ServiceClassUnclear"},
		"bad news come first":     {[]metav1.Condition{ready, unclear, condition(v1alpha1.ConditionScalingLimited, yes, "NoSlots")}, "NoSlots"},
		"not ready":               {[]metav1.Condition{condition(v1alpha1.ConditionReady, no, "TargetNotScalable"), unclear}, "TargetNotScalable"},
		"no conditions":           {nil, Unseen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, message := state(c.conditions)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.want != "Ready" && c.want != Unseen, message != "")
		})
	}
}

// A reason that is listed wrongly would hide what to act on.
func TestTheListedReasonsAreOnesOfConditions(t *testing.T) {
	t.Parallel()
	for _, reason := range append(slices.Clone(routine), doubtful...) {
		assert.True(t, slices.ContainsFunc(v1alpha1.Reasons(), func(r v1alpha1.Reason) bool {
			return r.Name == reason && r.Condition != "" && r.Status == metav1.ConditionTrue
		}), reason)
	}
}

// A replica of several pods is no replica of one of them.
func TestAReplicaOfSeveralPods(t *testing.T) {
	t.Parallel()
	rows := rowsOf(list(t, `
items:
- metadata: {name: a, namespace: chat}
  spec: {modelID: llama, scaleTargetRef: {name: a, kind: LeaderWorkerSet, apiVersion: leaderworkerset.x-k8s.io/v1}}
  status:
    currentAlloc: {accelerator: H100, numReplicas: 1}
    placement: {shape: {devices: 8, pods: 2}}
`), nil)
	assert.Equal(t, "2 pods of 8xH100", rows[0].Shape())
	s, out := screenOf(t, output.JSON)
	require.NoError(t, s.show(rows))
	assert.Contains(t, out.String(), `"pods": 2`)
}

// The column says what the messages of the conditions say: 1xA100-80GB, and not 1xA100.
func TestTheShapeIsThatOfTheMessages(t *testing.T) {
	row := rowsOf(list(t, `
items:
- metadata: {name: a, namespace: chat}
  spec: {modelID: llama, accelerator: NVIDIA-A100-SXM4-80GB, scaleTargetRef: {name: a}}
  status:
    currentAlloc: {accelerator: A100}
    placement: {shape: {accelerator: A100, deviceMemoryGiB: 80, form: SXM4, devices: 1, pods: 1}}`), nil)[0]
	assert.Equal(t, "1xA100-80GB-SXM4", row.Shape())
	assert.Equal(t, "A100", row.Accelerator)
}

// What kubectl get va shows too has the same name here.
func TestTheColumnsAreCalledLikeThoseOfKubectlGet(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../manifests/crd/llmd.ai_variantautoscalings.yaml")
	require.NoError(t, err)
	var crd struct {
		Spec struct {
			Versions []struct {
				AdditionalPrinterColumns []struct{ Name, JSONPath string }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &crd))
	shared := 0
	for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		switch column.JSONPath {
		case ".spec.modelID", ".status.currentAlloc.numReplicas", ".status.desiredOptimizedAlloc.numReplicas":
			shared++
			assert.Contains(t, header(false, false), strings.ToUpper(column.Name))
		}
	}
	assert.Equal(t, 3, shared)
}

// The mode is in the row where it is known, and absent where it is not.
func TestTheModeOfARow(t *testing.T) {
	t.Parallel()
	sized := `
items:
- metadata: {name: a, namespace: chat}
  spec: {modelID: llama, scaleTargetRef: {name: a}}
  status: {conditions: [{type: OptimizationReady, status: "True", reason: OptimizationSucceeded}]}
- metadata: {name: b, namespace: chat}
  spec: {modelID: llama, scaleTargetRef: {name: b}}
`
	rows := rowsOf(list(t, sized), &installation.Modes{})
	assert.Equal(t, installation.Hybrid, rows[0].Mode, "no other mode decides so")
	assert.Empty(t, rows[1].Mode, "no manager is known")
	s, out := screenOf(t, output.JSON)
	require.NoError(t, s.show(rows))
	assert.Equal(t, 1, strings.Count(out.String(), `"mode": "hybrid"`))
	assert.Equal(t, 1, strings.Count(out.String(), `"mode"`))
}
