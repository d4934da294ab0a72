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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
	"llmd.ai/workload-variant-autoscaler/test/page"
)

// reader is somebody who has the repository, kubectl, helm and what the pages name: a
// folder to work in, namespaces, Deployments, objects and a node.
type reader struct {
	*site
	folder string
	// env are the variables that the last block left.
	env []string
}

// newReader builds the two programs, as go run would, and prepares the folder. Its make
// leaves out the build, which was before the tests.
func newReader(t *testing.T, s *site) *reader {
	t.Helper()
	r := &reader{site: s, folder: t.TempDir()}
	top, err := filepath.Abs("../../..")
	require.NoError(t, err)
	bin := filepath.Join(r.folder, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	for _, name := range []string{
		"manifests", "charts", "docs", "hack", "test", "Makefile", "bin/kubectl-wva", "bin/manager", "bin/playground", "bin/render",
	} {
		require.NoError(t, os.Symlink(filepath.Join(top, name), filepath.Join(r.folder, name)))
	}
	for _, program := range []string{"llmd.ai/workload-variant-autoscaler/test/chart/kubectl", "helm.sh/helm/v3/cmd/helm"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, program).CombinedOutput() //nolint:gosec // pinned in go.mod
		require.NoError(t, err, "%s", out)
	}
	maker, err := exec.LookPath("make")
	require.NoError(t, err)
	for name, text := range map[string]string{
		"bin/make":        "#!/bin/sh\nexec " + maker + " -o build \"$@\"\n",
		"there.yaml":      there(),
		"my-variant.yaml": variantOf("chat", "mine", "Off"),
		"my-values.yaml":  "wva: {image: {repository: mine/manager, tag: mine}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(r.folder, name), []byte(text), 0o700)) //nolint:gosec // one is to be run
	}
	r.env = []string{"KUBECONFIG=" + r.Kubeconfig(), "PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + r.folder}
	// Go's own folders are in the home otherwise, and all would be built again.
	for _, name := range []string{"GOPATH", "GOCACHE", "GOMODCACHE"} {
		folder, err := exec.CommandContext(t.Context(), "go", "env", name).Output() //nolint:gosec // one of three names
		require.NoError(t, err)
		r.env = append(r.env, name+"="+strings.TrimSpace(string(folder)))
	}
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
	command.Env = r.env
	text, err := command.CombinedOutput()
	return string(text), err
}

// pagesRun runs the marked blocks as they stand, page by page, in their order. What a page
// names is there before it, and a release that it leaves is gone after it.
func (s *site) pagesRun(t *testing.T) {
	s.uninstall(t)
	r := newReader(t, s)
	pages, err := page.Pages("../../..")
	require.NoError(t, err)
	for _, kind := range []struct {
		mark string
		run  func(*testing.T, []page.Block)
	}{{page.WithTools, r.page}, {page.OnEarlierKind, r.upgrade}, {page.OnEmptyCluster, r.walk}} {
		ran := 0
		for _, p := range pages {
			var blocks []page.Block
			for _, block := range p.Blocks {
				if mark, _, _ := strings.Cut(block.Mark, " until "); mark == kind.mark {
					blocks = append(blocks, block)
				}
			}
			if len(blocks) == 0 {
				continue
			}
			ran++
			t.Run(p.Path, func(t *testing.T) { kind.run(t, blocks) })
		}
		require.Positive(t, ran, kind.mark)
	}
}

// page runs blocks on a cluster that has what they name. Where the first release of them takes nothing
// over, it is the first one of the cluster.
func (r *reader) page(t *testing.T, blocks []page.Block) {
	require.NoError(t, r.Apply(t.Context(), "../../../manifests/crd", "../../integration/admission/testdata/scaledobject.yaml", filepath.Join(r.folder, "there.yaml")))
	for _, block := range blocks {
		if strings.Contains(block.Text, "helm install") || strings.Contains(block.Text, "helm upgrade") {
			if !strings.Contains(block.Text, "--take-ownership") {
				r.forget(t)
			}
			break
		}
	}
	r.run(t, blocks)
	r.leave(t)
}

// forget removes the kind with all of its objects.
func (r *reader) forget(t *testing.T) {
	t.Helper()
	require.NoError(t, r.dynamic.Resource(definitions).Delete(t.Context(), "variantautoscalings.llmd.ai", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return !r.exists(t, definitions, "", "variantautoscalings.llmd.ai") }, patience, 200*time.Millisecond)
}

// upgrade runs blocks on a cluster that has the kind and objects of an earlier form.
func (r *reader) upgrade(t *testing.T, blocks []page.Block) {
	r.forget(t)
	prices := filepath.Join(r.folder, "prices-there.yaml")
	require.NoError(t, os.WriteFile(prices, []byte(earlier), 0o600))
	require.NoError(t, r.Apply(t.Context(), "../../integration/kubectl/testdata/earlier-crd.yaml", prices, "../../integration/kubectl/testdata/earlier.yaml"))
	r.run(t, blocks)
}

// earlier are the namespace of the objects of the earlier form, and prices.
const earlier = `apiVersion: v1
kind: Namespace
metadata: {name: old}
---
apiVersion: v1
kind: Namespace
metadata: {name: workload-variant-autoscaler-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: accelerator-unit-costs, namespace: workload-variant-autoscaler-system}
data: {A100: '{"cost": "3.43"}', H100: '{"cost": "6.88"}'}
`

func (r *reader) run(t *testing.T, blocks []page.Block) {
	t.Helper()
	for _, block := range blocks {
		out, err := r.shell(t.Context(), block.Text)
		require.NoError(t, err, "%s\n%s", block.Place, out)
		silent := strings.Contains(block.Text, " > ") || strings.Contains(block.Text, "--ignore-not-found")
		assert.True(t, out != "" || silent, "%s prints nothing", block.Place)
		// Neither Helm nor kubectl waits until a kind that it has made is served.
		conditiontest.Eventually(t, patience, "the kind is served, or is gone", func() (string, bool) {
			if !r.exists(t, definitions, "", "variantautoscalings.llmd.ai") {
				return "", true
			}
			out, err := r.shell(t.Context(), "kubectl get va -A")
			return out, err == nil
		})
	}
}

// leave uninstalls every release, and every manager without one.
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
	// Objects that were applied without helm are of no release.
	managers := r.dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	left, err := managers.List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=workload-variant-autoscaler,app.kubernetes.io/component=manager"})
	require.NoError(t, err)
	for i := range left.Items {
		require.NoError(t, managers.Namespace(left.Items[i].GetNamespace()).Delete(t.Context(), left.Items[i].GetName(), metav1.DeleteOptions{}))
	}
}
