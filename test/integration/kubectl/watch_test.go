package kubectl_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// patience is how long a test waits for what must come.
const patience = 40 * time.Second

// kept is what a program wrote so far.
type kept struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	return k.text.Write(p)
}

func (k *kept) String() string {
	k.lock.Lock()
	defer k.lock.Unlock()
	return k.text.String()
}

// watch follows changes until somebody interrupts it.
func watch(t *testing.T, w *world) {
	var out kept
	command := exec.CommandContext(t.Context(), filepath.Join(w.folder, "kubectl"), "wva", "status", "-n", "chat", "--watch") //nolint:gosec // our own program
	command.Env = []string{"KUBECONFIG=" + w.cluster.Kubeconfig(), "HOME=" + w.folder}
	command.Stdout, command.Stderr = &out, &out
	require.NoError(t, command.Start())
	shows := func(what, text string) {
		conditiontest.Eventually(t, patience, what, func() (string, bool) { return out.String(), strings.Contains(out.String(), text) })
	}
	shows("the variant", "llama-8b-h100")

	var v v1alpha1.VariantAutoscaling
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: "chat", Name: "llama-8b-h100"}, &v))
	w.decide(t, &v, 4711)
	shows("the change", "4711")
	require.NoError(t, w.api.Delete(t.Context(), &v))
	shows("the end", "Deleted")
	require.NoError(t, command.Process.Signal(os.Interrupt))
	require.NoError(t, command.Wait(), "whoever ends a watch made no mistake")
	assert.Equal(t, 1, strings.Count(out.String(), "NAME "), "one header")
}

// mistakes are told of with what to do.
func mistakes(t *testing.T, w *world) {
	for line, want := range map[string]string{
		"explain nobody":                      `there is no VariantAutoscaling nobody in namespace default: "kubectl wva status -A" shows which there are`,
		"adopt nobody":                        `there is no Deployment nobody in namespace default: "kubectl get deployments -A" shows which there are`,
		"adopt my-server":                     "in Deployment my-server: container server does not name its model in its arguments: give it with --model",
		"shadow llama-8b --prometheus here":   `--prometheus is "here": expected an address such as http://localhost:9090`,
		"shadow llama-8b --since -1h":         "--since is -1h0m0s: expected a duration above 0",
		"status --as nobody":                  "`kubectl auth can-i list variantautoscalings --namespace default` tells when it is there",
		"status --watch -o wide":              "--watch does not go with -o wide",
		"status --server https://127.0.0.1:1": "no answer from the cluster",
		"migrate --rollback nowhere":          "nowhere is no backup, because it has no file before.yaml: give --rollback the folder that --apply named",
	} {
		assert.Contains(t, w.refused(t, "kubectl wva "+line), want, line)
	}
	out, _, err := w.shell(t.Context(), "kubectl wva __complete explain ''")
	require.NoError(t, err)
	assert.Contains(t, out, "llama-8b-h100\n")
	out, _, err = w.shell(t.Context(), "kubectl wva __complete adopt ''")
	require.NoError(t, err)
	assert.Contains(t, out, "my-server\n")
}
