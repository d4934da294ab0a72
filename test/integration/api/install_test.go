package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// annotationLimit is how many bytes kubectl apply can keep of an object in its
// annotation.
const annotationLimit = 256 << 10

// TestAFreshClusterTakesTheManifestsInTheirOrder installs as
//
//	kubectl apply -R -f manifests/crd -f manifests/rbac -f manifests/manager -f manifests/scheduler
//
// does: folder by folder, file by file in the order of the names, object by object.
// Nothing is put into a better order, so a namespace has to come before what is in it.
func TestAFreshClusterTakesTheManifestsInTheirOrder(t *testing.T) {
	fresh, err := localcluster.Start(t.Context(), localcluster.Options{})
	require.NoError(t, err)
	t.Cleanup(fresh.Stop)
	theManagerSaysWhatIsMissing(t, fresh)
	for _, folder := range []string{"crd", "rbac", "manager", "scheduler"} {
		for _, object := range documents(t, filepath.Join(manifests, folder)) {
			require.NoError(t, fresh.Apply(t.Context(), object))
		}
	}

	client, err := kubernetes.NewForConfig(fresh.Config())
	require.NoError(t, err)
	deployments, err := client.AppsV1().Deployments(home).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, deployments.Items, 2, "the manager and the scheduler")
	for _, deployment := range deployments.Items {
		pod := deployment.Spec.Template.Spec
		_, err := client.CoreV1().ServiceAccounts(home).Get(t.Context(), pod.ServiceAccountName, metav1.GetOptions{})
		require.NoError(t, err, "%s runs as somebody who exists", deployment.Name)
		for _, volume := range pod.Volumes {
			if volume.Secret != nil && ptr.Deref(volume.Secret.Optional, false) {
				continue
			}
			require.NotNil(t, volume.ConfigMap, "%s: volume %s", deployment.Name, volume.Name)
			_, err := client.CoreV1().ConfigMaps(home).Get(t.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
			require.NoError(t, err, "%s finds what it mounts", deployment.Name)
		}
	}
	_, err = client.RbacV1().ClusterRoles().Get(t.Context(), "variant-scheduler-gang", metav1.GetOptions{})
	require.Error(t, err, "rights for gang scheduling are granted to those who ask for it")

	for _, object := range documents(t, filepath.Join(manifests, "scheduler-gang")) {
		require.NoError(t, fresh.Apply(t.Context(), object), "gang scheduling is one more folder")
	}
}

// documents writes each object of a folder into a file of its own, in the order in
// which kubectl reads them.
func documents(t *testing.T, folder string) []string {
	t.Helper()
	into := t.TempDir()
	var paths []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		// kubectl apply -f takes no other files of a folder.
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		for reader := yaml.NewYAMLReader(bufio.NewReader(file)); ; {
			text, err := reader.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			assert.Less(t, len(text), annotationLimit, path)
			object := filepath.Join(into, fmt.Sprintf("%02d-%s", len(paths), entry.Name()))
			if err := os.WriteFile(object, text, 0o600); err != nil {
				return err
			}
			paths = append(paths, object)
		}
	})
	require.NoError(t, err)
	require.NotEmpty(t, paths, folder)
	return paths
}

// theManagerSaysWhatIsMissing starts the manager before the kind that it is for is there.
func theManagerSaysWhatIsMissing(t *testing.T, fresh *localcluster.Cluster) {
	t.Helper()
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(programs, "manager"), //nolint:gosec // our own program
		"--kubeconfig="+fresh.Kubeconfig(), "--pod-namespace=default", "--prometheus-base-url=https://prometheus.invalid",
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	said, err := command.CombinedOutput()
	require.Error(t, err, string(said))
	assert.Contains(t, string(said), "install the kind with the chart (crd.install=true) or with `kubectl apply --server-side -f manifests/crd`")
}
