package scheduler_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/rightstest"
)

const (
	manifests = "../../../manifests"
	home      = "workload-variant-autoscaler-system"
	scheduler = "variant-scheduler"
	names     = "workload-variant-autoscaler-accelerator-names"
	// soon is much longer than anything here should take, on a busy machine too.
	soon = 2 * time.Minute
)

// world is a cluster whose CRD is not installed yet.
type world struct {
	*localcluster.Cluster
	api client.Client
}

func start(t *testing.T) *world {
	t.Helper()
	custom := localcluster.EightH100
	custom.Product = "NVIDIA-Custom"
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{
		Components: localcluster.Components{
			ControllerManager: true,
			Kwok:              true,
			VariantScheduler: &localcluster.VariantScheduler{
				Config: filepath.Join(manifests, "scheduler", "config.yaml"), Namespace: home, ServiceAccount: scheduler,
				// As with an API server that does not send what there is when something is watched.
				Args: []string{"--feature-gates=WatchListClient=false"},
			},
		},
		Nodes: []*corev1.Node{
			localcluster.EightH100.Node("h100", "a"), localcluster.EightA100.Node("a100", "a"), custom.Node("custom", "a"),
		},
		Audit: true, AuditGroup: rights(nil).Group(),
		Manifests: []string{manifests + "/rbac", manifests + "/scheduler/rbac.yaml"},
	})
	require.NoError(t, err)
	t.Cleanup(cluster.Stop)
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)))
	api, err := client.New(cluster.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	return &world{Cluster: cluster, api: api}
}

// rights proves that every right of the scheduler beyond those of Kubernetes' own is needed.
func rights(cluster *localcluster.Cluster) rightstest.Proof {
	return rightstest.Proof{Cluster: cluster, Namespace: home, Account: scheduler, Files: []string{manifests + "/scheduler/rbac.yaml"}}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, condition func(ctx context.Context) bool, what string) {
	t.Helper()
	require.Eventually(t, func() bool { return condition(t.Context()) }, soon, 100*time.Millisecond, what)
}

// logged waits until the scheduler has written the text so many times.
func (w *world) logged(t *testing.T, text string, times int) {
	t.Helper()
	eventually(t, func(context.Context) bool {
		content, err := os.ReadFile(filepath.Join(w.Logs(), scheduler+".log"))
		return err == nil && strings.Count(string(content), text) >= times
	}, "the scheduler logs "+text)
}

// told waits for an event of a pod and returns what it says.
func (w *world) told(t *testing.T, pod, reason, part string) (note string) {
	t.Helper()
	eventually(t, func(ctx context.Context) bool {
		var events eventsv1.EventList
		if w.api.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)) != nil {
			return false
		}
		for i := range events.Items {
			e := &events.Items[i]
			if strings.HasPrefix(e.Regarding.Name, pod) && e.Reason == reason && strings.Contains(e.Note, part) {
				note = e.Note
				return true
			}
		}
		return false
	}, "an event "+reason+" of "+pod)
	return note
}

// node waits until the pods of an app are on nodes and names the last one's.
func (w *world) node(t *testing.T, app string) (name string) {
	t.Helper()
	eventually(t, func(ctx context.Context) bool {
		var pods corev1.PodList
		if w.api.List(ctx, &pods, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app}) != nil || len(pods.Items) == 0 {
			return false
		}
		name = pods.Items[0].Spec.NodeName
		return name != ""
	}, "the pods of "+app+" find a node")
	return name
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName: scheduler,
		Tolerations:   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "server", Image: "server", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{localcluster.GPUResource: resource.MustParse("1")},
		}}},
	}
}

func pod(name string, spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{"app": name}}, Spec: spec}
}

// deploy makes a variant and what it scales.
func (w *world) deploy(t *testing.T, name, accelerator string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{"app": name}}
	require.NoError(t, w.api.Create(t.Context(), &v1alpha1.VariantAutoscaling{ObjectMeta: meta, Spec: v1alpha1.VariantAutoscalingSpec{
		ModelID: "m", Accelerator: accelerator, ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: name},
	}}))
	require.NoError(t, w.api.Create(t.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: podSpec()},
	}}))
}

func TestTheSchedulerOnARealCluster(t *testing.T) {
	w := start(t)
	ctx := t.Context()

	w.logged(t, "The VariantAutoscaling CRD is not installed", 1)
	require.NoError(t, w.api.Create(ctx, pod("early", podSpec())))
	assert.NotEmpty(t, w.node(t, "early"), "without the CRD it packs")

	// The manifests come in any order, the CRD last of all.
	require.NoError(t, w.Apply(ctx, manifests+"/crd"))
	w.logged(t, "The VariantAutoscaling objects can be read", 1)
	w.deploy(t, "a100", "A100")
	assert.Equal(t, "a100", w.node(t, "a100"))

	// Nobody knows the product; then somebody says what it is.
	w.deploy(t, "b200", "B200")
	assert.Contains(t, w.told(t, "b200-", "FailedScheduling", "wants 1xB200"), "3 nodes are of another type")
	require.NoError(t, w.api.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: names}, Data: map[string]string{"NVIDIA-Custom": "B200"},
	}))
	assert.Equal(t, "custom", w.node(t, "b200"))

	// Ownership: somebody else places a pod, and a kubelet refuses one.
	foreign := podSpec()
	foreign.SchedulerName, foreign.NodeName = "default-scheduler", "h100"
	require.NoError(t, w.api.Create(ctx, pod("foreign", foreign)))
	assert.Contains(t, w.told(t, "foreign", "ForeignPodOnOwnedNode", ""), "default-scheduler placed it on node h100")
	refused := pod("refused", podSpec())
	require.NoError(t, w.api.Create(ctx, refused))
	node := w.node(t, "refused")
	require.NoError(t, w.api.Get(ctx, client.ObjectKeyFromObject(refused), refused))
	failed := refused.DeepCopy()
	failed.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfnvidia.com/gpu"}
	require.NoError(t, w.api.Status().Patch(ctx, failed, client.MergeFrom(refused)))
	assert.Contains(t, w.told(t, "refused", "RefusedForDevices", ""), "the kubelet of node "+node+" refused it (OutOfnvidia.com/gpu)")

	// The CRD goes, and with it all variants.
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.Resource + "." + v1alpha1.GroupName}}
	require.NoError(t, w.api.Delete(ctx, crd))
	eventually(t, func(ctx context.Context) bool {
		return apierrors.IsNotFound(w.api.Get(ctx, client.ObjectKeyFromObject(crd), crd))
	}, "the CRD goes")
	w.logged(t, "The VariantAutoscaling CRD is not installed", 2)
	require.NoError(t, w.api.Create(ctx, pod("late", podSpec())))
	assert.NotEmpty(t, w.node(t, "late"))
	assert.NoError(t, rights(w.Cluster).Check())
	w.gangs(t)
}
