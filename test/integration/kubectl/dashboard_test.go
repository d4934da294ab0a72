package kubectl_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// onlooker may read what a dashboard shows and write nothing; neighbour may read the variants
// of one namespace.
const onlookers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: onlooker}
rules:
- {apiGroups: [llmd.ai], resources: [variantautoscalings], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [nodes, pods], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [events, configmaps], verbs: [get, list]}
- {apiGroups: [apps], resources: [deployments], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: onlooker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: onlooker}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: onlooker}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: neighbour, namespace: default}
rules:
- {apiGroups: [llmd.ai], resources: [variantautoscalings], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: neighbour, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: neighbour}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: neighbour}]
---
apiVersion: v1
kind: Node
metadata:
  name: h100-0
  labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
status:
  capacity: {nvidia.com/gpu: "8", cpu: "64", memory: 512Gi, pods: "110"}
  allocatable: {nvidia.com/gpu: "8", cpu: "64", memory: 512Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: default}
---
# Nobody runs it; it holds its devices all the same.
apiVersion: v1
kind: Pod
metadata:
  name: llama-8b-h100-5f7c-x
  namespace: default
  labels: {pod-template-hash: 5f7c}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: llama-8b-h100-5f7c, uid: 00000000-0000-0000-0000-000000000001, controller: true}]
spec:
  nodeName: h100-0
  tolerations: [{operator: Exists}]
  containers:
  - {name: server, image: vllm, resources: {limits: {nvidia.com/gpu: "2"}}}
`

// shown is a dashboard that is served.
type shown struct {
	t       *testing.T
	command *exec.Cmd
	out     *kept
	url     string
}

var servedAt = regexp.MustCompile(`is served at (http://127\.0\.0\.1:\d+/)\n`)

// open starts a dashboard and waits for its address.
func (w *world) open(t *testing.T, arguments ...string) *shown {
	t.Helper()
	p := &shown{t: t, out: &kept{}}
	p.command = exec.CommandContext(t.Context(), filepath.Join(w.folder, "kubectl"), append([]string{"wva", "dashboard"}, arguments...)...) //nolint:gosec // our own program
	p.command.Env = []string{"KUBECONFIG=" + w.cluster.Kubeconfig(), "HOME=" + w.folder}
	p.command.Stdout, p.command.Stderr = p.out, p.out
	require.NoError(t, p.command.Start())
	conditiontest.Eventually(t, patience, "the address of the page", func() (string, bool) {
		match := servedAt.FindStringSubmatch(p.out.String())
		if match != nil {
			p.url = match[1]
		}
		return p.out.String(), match != nil
	})
	return p
}

func (p *shown) get(path string) string {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+path, http.NoBody)
	require.NoError(p.t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(p.t, err)
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, answer.StatusCode, "%s", body)
	return string(body)
}

// shows waits until the state has all parts.
func (p *shown) shows(what string, parts ...string) {
	p.t.Helper()
	conditiontest.Eventually(p.t, patience, what, func() (string, bool) {
		state := p.get("state.json")
		for _, part := range parts {
			if !strings.Contains(state, part) {
				return fmt.Sprintf("no %s in %s", part, state), false
			}
		}
		return state, true
	})
}

// end interrupts the dashboard, which is no mistake.
func (p *shown) end() {
	p.t.Helper()
	require.NoError(p.t, p.command.Process.Signal(os.Interrupt))
	require.NoError(p.t, p.command.Wait(), p.out)
}

// example runs an example of the help until its page is there.
func (w *world) example(t *testing.T, line string) {
	t.Helper()
	line = strings.ReplaceAll(line, "--port 8090", "--port 0")
	p := w.open(t, strings.Fields(strings.TrimPrefix(line, "kubectl wva dashboard"))...)
	assert.Contains(t, p.get(""), "Variants, live")
	p.end()
}

// dashboard shows a cluster to somebody who may only read, and says to others what they may
// not see.
func dashboard(t *testing.T, w *world) {
	path := filepath.Join(w.folder, "onlookers.yaml")
	require.NoError(t, os.WriteFile(path, []byte(onlookers), 0o600))
	require.NoError(t, w.cluster.Apply(t.Context(), path))
	now := time.Now()
	for i := range 5 {
		labels := `{namespace="default",pod="llama-8b-h100-5f7c-x",instance="a",model_name="meta/llama"}`
		w.samples.Append(now.Add(time.Duration(15*(i-4))*time.Second), map[string]float64{
			"vllm:request_success_total" + labels: float64(90 * i), "vllm:kv_cache_usage_perc" + labels: 0.5, "vllm:num_requests_waiting" + labels: 3,
		})
	}
	require.NoError(t, w.api.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "earlier"},
		InvolvedObject: corev1.ObjectReference{Kind: v1alpha1.Kind, Namespace: "default", Name: "llama-8b-h100"},
		Type:           corev1.EventTypeNormal, Reason: "ScaledUp", Message: "replicas from 7 to 8: 1 more replica serves 6 req/s", LastTimestamp: metav1.NewTime(now),
	}))
	p := w.open(t, "-A", "--as", "onlooker")
	assert.Contains(t, p.get(""), "all namespaces")
	p.shows("variants, prices, nodes and devices",
		`"key":"default/llama-8b-h100"`, `["2xH100",0]`, `["$6.00",6]`, `"name":"h100-0","accelerator":"H100","devices":8}`, `,"5f7c-x"]`, `["50%",0.5]`,
		`"from":7,"to":8,"reason":"ScaledUp","message":"1 more replica serves 6 req/s"`)
	var v v1alpha1.VariantAutoscaling
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "llama-8b-h100"}, &v))
	w.decide(t, &v, 42)
	p.shows("a decision as it comes", `"to":42,"reason":"Saturated","message":"replicas are 92 % full","steps":[["demand",`)
	assert.NotContains(t, p.get("state.json"), "may not be", "everything could be read")
	p.end()

	p = w.open(t, "--as", "neighbour")
	p.shows("what may be seen, and what may not", `"key":"llama-8b"`, "nodes may not be read", `kubectl auth can-i watch pods --namespace default`, "load and latencies are not known")
	p.end()
}
