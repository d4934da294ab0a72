package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// pod is what the kubelet would have made of a Deployment's template.
type pod struct {
	template corev1.PodSpec
	args     []string
	env      []string
	// kubeconfig has the token of its service account.
	kubeconfig string
	// folders are the mounted volumes by the paths that the container sees.
	folders map[string]string
}

// newPod mounts what the template of a Deployment mounts.
func newPod(t *testing.T, cluster *localcluster.Cluster, api kubernetes.Interface, deployment *appsv1.Deployment) *pod {
	t.Helper()
	p := &pod{template: deployment.Spec.Template.Spec, folders: map[string]string{}}
	require.Len(t, p.template.Containers, 1)
	container := p.template.Containers[0]
	p.args = container.Args
	var err error
	p.kubeconfig, err = cluster.KubeconfigFor(t.Context(), home, p.template.ServiceAccountName)
	require.NoError(t, err)
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			if of := from.ResourceFieldRef; of != nil {
				require.Equal(t, "limits.memory", of.Resource, variable.Name)
				p.env = append(p.env, fmt.Sprintf("%s=%d", variable.Name, container.Resources.Limits.Memory().Value()))
				continue
			}
			require.NotNil(t, from.FieldRef, variable.Name)
			fields := map[string]string{"metadata.namespace": home, "metadata.name": deployment.Name + "-pod"}
			require.Contains(t, fields, from.FieldRef.FieldPath, variable.Name)
			value = fields[from.FieldRef.FieldPath]
		}
		p.env = append(p.env, variable.Name+"="+value)
	}
	volumes := map[string]corev1.Volume{}
	for _, volume := range p.template.Volumes {
		volumes[volume.Name] = volume
	}
	for _, mount := range container.VolumeMounts {
		p.mount(t.Context(), t, api, volumes[mount.Name], mount)
	}
	return p
}

func (p *pod) mount(ctx context.Context, t *testing.T, api kubernetes.Interface, volume corev1.Volume, mount corev1.VolumeMount) {
	t.Helper()
	require.Empty(t, mount.SubPath, "a single file")
	folder := t.TempDir()
	p.folders[mount.MountPath] = folder
	if volume.Secret != nil {
		require.True(t, *volume.Secret.Optional, "the manager makes it itself")
		return
	}
	require.NotNil(t, volume.ConfigMap, mount.Name)
	data, err := api.CoreV1().ConfigMaps(home).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
	require.NoError(t, err)
	for file, text := range data.Data {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
	}
}

// arguments are those of the pod with the paths of this machine, and with these addresses
// in place of its ports: several programs share one machine.
func (p *pod) arguments(t *testing.T, addresses map[string]string) []string {
	t.Helper()
	var all []string
	for _, argument := range p.args {
		for path, folder := range p.folders {
			argument = strings.ReplaceAll(argument, "="+path+"/", "="+folder+"/")
		}
		flag, _, _ := strings.Cut(argument, "=")
		if address, ok := addresses[flag]; ok {
			argument = flag + "=" + address
			delete(addresses, flag)
		}
		all = append(all, argument)
	}
	require.Empty(t, addresses, "flags that the pod has")
	return all
}
