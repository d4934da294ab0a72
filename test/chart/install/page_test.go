package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
	"llmd.ai/workload-variant-autoscaler/test/page"
)

// reader is somebody who has the repository, kubectl, helm and what the pages name: a
// folder to work in, namespaces, Deployments, objects and a node.
type reader struct {
	*site
	folder string
}

// newReader builds the two programs, as go run would, and prepares the folder.
func newReader(t *testing.T, s *site) *reader {
	t.Helper()
	r := &reader{s, t.TempDir()}
	top, err := filepath.Abs("../../..")
	require.NoError(t, err)
	for _, name := range []string{"manifests", "charts", "docs", "hack"} {
		require.NoError(t, os.Symlink(filepath.Join(top, name), filepath.Join(r.folder, name)))
	}
	plugin, err := filepath.Abs(filepath.Join(programs, "kubectl-wva"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(r.folder, "bin"), 0o700))
	require.NoError(t, os.Symlink(plugin, filepath.Join(r.folder, "bin", "kubectl-wva")))
	for _, program := range []string{"llmd.ai/workload-variant-autoscaler/test/chart/kubectl", "helm.sh/helm/v3/cmd/helm"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(r.folder, "bin"), program).CombinedOutput() //nolint:gosec // pinned in go.mod
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.WriteFile(filepath.Join(r.folder, "there.yaml"), []byte(there()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(r.folder, "my-variant.yaml"), []byte(variantOf("chat", "mine", "Off")), 0o600))
	return r
}

// variantOf is an object for the Deployment of its name.
func variantOf(namespace, name, actuation string) string {
	return fmt.Sprintf(`---
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata: {name: %[2]s, namespace: %[1]s}
spec: {modelID: meta-llama/Llama-3.1-8B-Instruct, scaleTargetRef: {name: %[2]s}, actuation: "%[3]s"}
`, namespace, name, actuation)
}

// there is what the pages take to be there.
func there() string {
	var text strings.Builder
	for _, namespace := range []string{"my-namespace", "chat", "models", "team-a", "demo"} {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
	}
	text.WriteString("---\napiVersion: v1\nkind: Node\nmetadata: {name: my-gpu-node}\n")
	for _, one := range []struct{ namespace, name string }{
		{"my-namespace", "my-model"}, {"chat", "llama-8b"}, {"chat", "llama-8b-h100"}, {"models", "my-old-one"}, {"demo", "llama-8b-h100"},
	} {
		text.WriteString(variantOf(one.namespace, one.name, "Off"))
		fmt.Fprintf(&text, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: vllm, image: vllm, resources: {limits: {nvidia.com/gpu: "1"}}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %[2]s, namespace: %[1]s}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %[2]s}, maxReplicas: 3}
`, one.namespace, one.name)
	}
	text.WriteString("---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: my-old-one, namespace: models}\n")
	return text.String()
}

// shell runs lines as a reader would, and says what they print.
func (r *reader) shell(ctx context.Context, lines string) (out string, err error) {
	command := exec.CommandContext(ctx, "bash", "-ec", lines) //nolint:gosec // a page of this repository
	command.Dir = r.folder
	command.Env = []string{"KUBECONFIG=" + r.Kubeconfig(), "PATH=" + filepath.Join(r.folder, "bin") + ":" + os.Getenv("PATH"), "HOME=" + r.folder}
	text, err := command.CombinedOutput()
	return string(text), err
}

// pagesRun runs the blocks after the comment <!-- run with kubectl and helm --> as they
// stand, page by page, in their order. What a page names is there before it, and a release
// that it leaves is gone after it.
func (s *site) pagesRun(t *testing.T) {
	s.uninstall(t)
	r := newReader(t, s)
	pages, err := page.Pages("../../..")
	require.NoError(t, err)
	ran := 0
	for _, p := range pages {
		var blocks []page.Block
		for _, block := range p.Blocks {
			if block.Tools {
				blocks = append(blocks, block)
			}
		}
		if len(blocks) == 0 {
			continue
		}
		ran += len(blocks)
		t.Run(p.Path, func(t *testing.T) { r.page(t, blocks) })
	}
	require.Positive(t, ran)
}

func (r *reader) page(t *testing.T, blocks []page.Block) {
	require.NoError(t, r.Apply(t.Context(), "../../../manifests/crd", "../../integration/admission/testdata/scaledobject.yaml", filepath.Join(r.folder, "there.yaml")))
	for _, block := range blocks {
		out, err := r.shell(t.Context(), block.Text)
		require.NoError(t, err, "%s\n%s", block.Place, out)
		require.NotEmpty(t, out, block.Place)
		// Helm does not wait until a kind that it has made is served.
		conditiontest.Eventually(t, patience, "the kind is served, or is gone", func() (string, bool) {
			if !r.exists(t, definitions, "", "variantautoscalings.llmd.ai") {
				return "", true
			}
			out, err := r.shell(t.Context(), "kubectl get va -A")
			return out, err == nil
		})
	}
	r.leave(t)
}

// leave uninstalls every release.
func (r *reader) leave(t *testing.T) {
	t.Helper()
	out, err := r.shell(t.Context(), "helm list -A -o json")
	require.NoError(t, err, out)
	var releases []struct{ Name, Namespace string }
	require.NoError(t, json.Unmarshal([]byte(out), &releases), out)
	for _, one := range releases {
		out, err := r.shell(t.Context(), "helm uninstall "+one.Name+" -n "+one.Namespace)
		require.NoError(t, err, out)
	}
}
