package kubectl_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

const presentCRD = "../../../manifests/crd"

// world is the cluster and a folder to work in.
type world struct {
	cluster *localcluster.Cluster
	api     client.Client
	folder  string
	// prometheus is its address, and samples what it holds.
	prometheus string
	samples    *prometheustest.Prometheus
}

func TestCommands(t *testing.T) {
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{Manifests: []string{"testdata/earlier-crd.yaml", "../manager/testdata/kinds.yaml"}})
	require.NoError(t, err)
	t.Cleanup(cluster.Stop)
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	api, err := client.New(cluster.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	samples := prometheustest.New(t)
	server := httptest.NewServer(samples.Handler)
	t.Cleanup(server.Close)
	w := &world{cluster: cluster, api: api, folder: t.TempDir(), prometheus: server.URL, samples: samples}
	for _, namespace := range []string{"old", "chat"} {
		require.NoError(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	w.pretendKubectl(t)

	for _, step := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"an upgrade and its way back", migrate},
		{"examples of the help", examples},
		{"marked blocks of the pages", documented},
		{"targets of a kind of others", kinds},
		{"a watch", watch},
		{"an object of an earlier schema", hidesNone},
		{"what is wrong is said", mistakes},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, w) }) {
			return
		}
	}
}

// pretendKubectl puts a kubectl into the folder that runs the plugin and knows nothing else.
func (w *world) pretendKubectl(t *testing.T) {
	t.Helper()
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	plugin := filepath.Join(programs, "kubectl-wva")
	require.FileExists(t, plugin, "run `make build`")
	script := "#!/bin/sh\n[ \"$1\" = wva ] || exit 64\nshift\nexec " + plugin + " \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(w.folder, "kubectl"), []byte(script), 0o700)) //nolint:gosec // it is to be run
}

// shell runs a line in the folder.
func (w *world) shell(ctx context.Context, line string) (out, complaints string, err error) {
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir = w.folder
	command.Env = []string{"KUBECONFIG=" + w.cluster.Kubeconfig(), "PATH=" + w.folder + ":" + os.Getenv("PATH"), "HOME=" + w.folder}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

// must runs a line that succeeds, and returns its output.
func (w *world) must(t *testing.T, line string) string {
	t.Helper()
	out, complaints, err := w.shell(t.Context(), line)
	require.NoError(t, err, "%s\n%s", line, complaints)
	return out
}

// refused runs a line that fails, and returns the complaint.
func (w *world) refused(t *testing.T, line string) string {
	t.Helper()
	out, complaints, err := w.shell(t.Context(), line)
	require.Error(t, err, "%s\n%s", line, out)
	return strings.TrimSpace(complaints)
}
