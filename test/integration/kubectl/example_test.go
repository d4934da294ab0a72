package kubectl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// people are the objects that the examples name.
const people = `
apiVersion: v1
kind: Namespace
metadata: {name: workload-variant-autoscaler-system}
---
# Not running: the commands read its settings.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: manager
  namespace: workload-variant-autoscaler-system
  labels: {app.kubernetes.io/name: workload-variant-autoscaler, app.kubernetes.io/component: manager}
spec:
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec:
      containers:
      - {name: manager, image: manager, args: ["--prometheus-base-url=PROMETHEUS", --prometheus-allow-http, --accelerator-cost-config-map-name=our-prices]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: our-prices, namespace: workload-variant-autoscaler-system}
data: {H100: '{"cost": "3"}'}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llama-8b, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama-8b}
  maxReplicas: 7
`

// served is a Deployment that serves a model.
func served(namespace, name, arguments string) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
      containers:
      - {name: server, image: vllm, args: [%[3]s], resources: {limits: {nvidia.com/gpu: "2"}}}
`, namespace, name, arguments)
}

// prepare makes what the examples name.
func prepare(t *testing.T, w *world) {
	t.Helper()
	all := strings.ReplaceAll(people, "PROMETHEUS", w.prometheus) +
		served("default", "llama-8b", "--model, meta/llama") + served("default", "my-server", "run.sh") +
		served("default", "llama-8b-server", "--model, meta/llama, --served-model-name, llama-8b") +
		served("chat", "llama-8b", "--model, meta/llama") + served("chat", "llama-70b", "--model, meta/llama-70b") +
		served("chat", "llama-8b-server", "--model, meta/llama, --served-model-name, llama-8b")
	path := filepath.Join(w.folder, "people.yaml")
	require.NoError(t, os.WriteFile(path, []byte(all), 0o600))
	require.NoError(t, w.cluster.Apply(t.Context(), path))
	for _, namespace := range []string{"default", "chat"} {
		w.variant(t, namespace, "llama-8b-h100")
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h100", Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}}
	require.NoError(t, w.api.Create(t.Context(), node))
	node.Status.Allocatable = corev1.ResourceList{
		"nvidia.com/gpu": resource.MustParse("8"), corev1.ResourceCPU: resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	require.NoError(t, w.api.Status().Update(t.Context(), node))
	w.past(t)
	for name, text := range map[string]string{
		"my-app/variant.yaml": "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: a}\nspec: {modelID: m, scaleTargetRef: {name: a}}\n",
		"hpa.yaml":            "# none\n",
		"deployment.yaml":     served("old", "llama", "--model, meta/llama"),
	} {
		path := filepath.Join(w.folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// variant makes an object with a status and samples of the last hours.
func (w *world) variant(t *testing.T, namespace, name string) {
	t.Helper()
	v := &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.VariantAutoscalingSpec{
			ModelID: "meta/llama", ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: name}, Actuation: v1alpha1.ActuationOff,
		},
	}
	require.NoError(t, w.api.Create(t.Context(), v))
	w.decide(t, v, 3)
}

// decide writes the status that a decision for so many replicas has.
func (w *world) decide(t *testing.T, v *v1alpha1.VariantAutoscaling, replicas int32) {
	t.Helper()
	now := metav1.Now()
	base := v.DeepCopy()
	v.Status = v1alpha1.VariantAutoscalingStatus{
		CurrentAlloc:          &v1alpha1.CurrentAlloc{Accelerator: "H100", NumReplicas: ptr.To[int32](2)},
		DesiredOptimizedAlloc: &v1alpha1.DesiredAlloc{Accelerator: "H100", NumReplicas: ptr.To(replicas), LastRunTime: &now},
		Actuation:             &v1alpha1.ActuationStatus{},
		Placement:             &v1alpha1.Placement{Shape: &v1alpha1.Shape{Accelerator: "H100", Devices: ptr.To[int32](2)}, Slots: ptr.To[int32](4)},
		Decision: &v1alpha1.Decision{Reason: "Saturated", Message: "replicas are 92 % full", Steps: []v1alpha1.DecisionStep{
			{Stage: "demand", Before: 2, After: 2, Reason: "MetricsFound", Detail: "6.00 req/s arrive"},
		}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, LastTransitionTime: now}},
	}
	require.NoError(t, w.api.Status().Patch(t.Context(), v, client.MergeFrom(base)))
}

// exampleLine is a line of the examples that runs a command, without what follows it.
var exampleLine = regexp.MustCompile(`(?m)^  (kubectl wva [^|\n]*)`)

// notHere says why an example is not run here.
func notHere(line string) string {
	switch {
	case strings.Contains(line, "--watch"):
		return "it does not end; the next test has it"
	case strings.Contains(line, "--rollback"):
		return "it needs the earlier CRD; the test before has it"
	case strings.Contains(line, "wva lint -"), strings.Contains(line, "-f -"):
		return "it reads what another program writes"
	case strings.Contains(line, "wva replay") && !strings.Contains(line, "--print-scenario") && !strings.Contains(line, "--from-prometheus"):
		return "it replays for minutes; the tests of the command read its flags"
	}
	return ""
}

// examples runs the examples of every command's help, as a user would in a folder that has
// the files which they name.
func examples(t *testing.T, w *world) {
	prepare(t, w)
	commands := []string{"", "completion", "help", "options", "version", "lint", "migrate", "replay", "capacity", "adopt", "status", "explain", "shadow"}
	for _, line := range strings.Split(w.must(t, "kubectl wva __complete ''"), "\n") {
		if name, _, ok := strings.Cut(line, "\t"); ok {
			assert.Contains(t, commands, name, "a command whose examples nobody runs")
		}
	}
	for _, name := range commands {
		help := w.must(t, "kubectl wva "+name+" --help")
		_, shown, _ := strings.Cut(help, "Examples:")
		ran := 0
		for _, found := range exampleLine.FindAllStringSubmatch(shown, -1) {
			line := strings.TrimSpace(found[1])
			if strings.HasPrefix(line, "kubectl wva [") || strings.HasPrefix(line, "kubectl wva options\" for") || notHere(line) != "" {
				continue
			}
			if name == "shadow" {
				w.sample(t)
			}
			line = strings.ReplaceAll(line, "http://localhost:9090", w.prometheus)
			out := w.must(t, line)
			if strings.Contains(line, "--from-prometheus") {
				assert.Regexp(t, `(?m)^hybrid +1m +0 +100\.00%`, out, "the Deployment that serves the model, and what it served")
				files, err := filepath.Glob(filepath.Join(w.folder, "llama-8b-*.csv"))
				require.NoError(t, err)
				assert.Len(t, files, 1)
			}
			ran++
		}
		assert.Positive(t, ran, "examples of %q", name)
	}
	saySomething(t, w)
}

// past keeps what a server of vLLM in each of two namespaces counted in the last ten minutes.
func (w *world) past(t *testing.T) {
	t.Helper()
	const minutes = 10
	for i := range 2 * (minutes + 1) {
		minute, namespace := i/2, []string{"default", "chat"}[i%2]
		labels := fmt.Sprintf(`{model_name="llama-8b",namespace=%q,pod="llama-8b-server-7d9f-x",instance="10.0.0.1:8000"}`, namespace)
		n := float64(30 * minute)
		w.samples.Append(time.Now().Add(time.Duration(minute-minutes)*time.Minute), map[string]float64{
			"vllm:request_success_total" + labels: n, "vllm:num_requests_running" + labels: 2, "vllm:num_requests_waiting" + labels: 0,
			"vllm:request_prompt_tokens_sum" + labels: 500 * n, "vllm:request_prompt_tokens_count" + labels: n,
			"vllm:request_generation_tokens_sum" + labels: 100 * n, "vllm:request_generation_tokens_count" + labels: n,
			"vllm:time_to_first_token_seconds_sum" + labels: 0.1 * n, "vllm:time_to_first_token_seconds_count" + labels: n,
			"vllm:inter_token_latency_seconds_sum" + labels: 1.5 * n, "vllm:inter_token_latency_seconds_count" + labels: 100 * n,
		})
	}
}

// sample keeps the metrics of what is there, from now on.
func (w *world) sample(t *testing.T) {
	t.Helper()
	at := time.Now()
	for _, namespace := range []string{"default", "chat"} {
		for _, name := range []string{"llama-8b", "llama-8b-h100"} {
			labels := fmt.Sprintf(`{variant_name=%q,namespace="monitoring",exported_namespace=%q}`, name, namespace)
			w.samples.Append(at, map[string]float64{
				"wva_desired_replicas" + labels: 3, "wva_current_replicas" + labels: 2, "inferno_current_load" + labels: 360,
			})
		}
	}
}

// saySomething looks at what the examples answer.
func saySomething(t *testing.T, w *world) {
	t.Helper()
	var adopted v1alpha1.VariantAutoscaling
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "llama-8b"}, &adopted))
	assert.Equal(t, v1alpha1.ActuationOff, adopted.Spec.Actuation)
	assert.Equal(t, "meta/llama", adopted.Spec.ModelID)
	assert.Equal(t, int32(7), *adopted.Spec.MaxReplicas)
	assert.Equal(t, int32(2), *adopted.Spec.AcceleratorCount)
	_, complaint, err := w.shell(context.WithoutCancel(t.Context()), "kubectl wva adopt llama-8b")
	require.NoError(t, err)
	assert.Contains(t, complaint, "note: Deployment llama-8b has VariantAutoscaling llama-8b already, and is passed over")

	assert.Regexp(t, `(?m)^chat +llama-8b-h100 +meta/llama +2xH100 +Off +- +2 +3 +- +4 +Ready +Saturated`, w.must(t, "kubectl wva status -A"))
	assert.NotContains(t, w.must(t, "kubectl wva status"), "chat", "one namespace, as for kubectl")
	assert.Regexp(t, `(?m)^llama-8b-h100 .* 6\.0 +- +-$`, w.must(t, "kubectl wva status -n chat -o wide"))
	assert.Contains(t, w.must(t, "kubectl wva explain llama-8b-h100"), "The last decision wants 3 replicas, and 2 are there. Actuation is Off, so nothing is written.")
	shadow := w.must(t, "kubectl wva shadow llama-8b-h100")
	assert.Contains(t, shadow, "at 6.00 an hour for a replica", "the manager's prices, of two devices")
	assert.Regexp(t, `(?m)^was there +\d+\.\d +2\.0 +2 `, shadow)
	assert.Regexp(t, `(?m)^this object +\d+\.\d +3\.0 +3 `, shadow)
}
