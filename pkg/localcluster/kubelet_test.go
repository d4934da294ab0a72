package localcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// deploy makes a Deployment whose pods have these annotations and waits until all of them run.
func deploy(t *testing.T, space, name string, replicas int32, annotations map[string]string) []corev1.Pod {
	client := clientFor(t, cluster.Config())
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}
	_, err := client.AppsV1().Deployments(space).Create(t.Context(), deployment, metav1.CreateOptions{})
	require.NoError(t, err)
	var pods []corev1.Pod
	require.Eventually(t, func() bool {
		pods = podsOf(t, client, space, name)
		running := 0
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == int(replicas)
	}, patience, readyInterval, "pods of %s run", name)
	return pods
}

func podsOf(t *testing.T, client kubernetes.Interface, space, name string) []corev1.Pod {
	list, err := client.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	require.NoError(t, err)
	return list.Items
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// annotate says on behalf of a model server whether it is ready.
func annotate(t *testing.T, pod *corev1.Pod, ready string) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"emulation.llmd.ai/ready":%s}}}`, ready)
	_, err := clientFor(t, cluster.Config()).CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// eventually waits for a state of one pod.
func eventually(t *testing.T, pod *corev1.Pod, what string, holds func(*corev1.Pod) bool) *corev1.Pod {
	client := clientFor(t, cluster.Config())
	var now *corev1.Pod
	require.Eventually(t, func() bool {
		var err error
		now, err = client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		return err == nil && holds(now)
	}, patience, readyInterval, what)
	return now
}

func gone(t *testing.T, pod *corev1.Pod) bool {
	_, err := clientFor(t, cluster.Config()).CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func TestPlainPodsAreReadyAtOnceAndGoneAtOnce(t *testing.T) {
	space := namespace(t)
	pods := deploy(t, space, "plain", 3, nil)
	addresses := map[string]bool{}
	for _, pod := range pods {
		assert.True(t, isReady(&pod), pod.Name)
		assert.Equal(t, "cpu", pod.Spec.NodeName, "the stock scheduler keeps off the nodes with taints")
		address := netip.MustParseAddr(pod.Status.PodIP)
		assert.True(t, netip.MustParsePrefix(cluster.block.prefix()).Contains(address), pod.Status.PodIP)
		addresses[pod.Status.PodIP] = true
	}
	assert.Len(t, addresses, 3)

	client := clientFor(t, cluster.Config())
	require.NoError(t, client.AppsV1().Deployments(space).Delete(t.Context(), "plain", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	require.Eventually(t, func() bool { return len(podsOf(t, client, space, "plain")) == 0 }, patience, readyInterval, "garbage collection and end of the pods")
}

func TestAModelServerDecidesWhenItsPodIsReady(t *testing.T) {
	pod := &deploy(t, namespace(t), "model", 1, map[string]string{"emulation.llmd.ai/model-server": ""})[0]
	assert.False(t, isReady(pod))
	assert.NotEmpty(t, pod.Status.PodIP, "the server needs the address before it is ready")
	var scheduled bool
	for _, condition := range pod.Status.Conditions {
		scheduled = scheduled || condition.Type == corev1.PodScheduled
	}
	assert.True(t, scheduled, "conditions of others survive")

	annotate(t, pod, `"true"`)
	now := eventually(t, pod, "ready after the annotation", isReady)
	assert.True(t, now.Status.ContainerStatuses[0].Ready)
	assert.Equal(t, pod.Status.PodIP, now.Status.PodIP)
	annotate(t, pod, `"false"`)
	now = eventually(t, pod, "not ready when the server says so", func(pod *corev1.Pod) bool { return !isReady(pod) })
	assert.False(t, now.Status.ContainerStatuses[0].Ready)
}

func TestADeletedModelServerDrains(t *testing.T) {
	client := clientFor(t, cluster.Config())
	space := namespace(t)
	remove := func(pod *corev1.Pod, seconds int64) {
		require.NoError(t, client.CoreV1().Pods(space).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &seconds}))
	}
	tests := []struct {
		name  string
		grace int64
		ready string
		after func(*corev1.Pod)
	}{
		{"ends when it says that it has drained", 600, `"true"`, func(pod *corev1.Pod) {
			eventually(t, pod, "terminating", func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil && isReady(pod) })
			annotate(t, pod, "null")
		}},
		{"ends with its grace period", 1, `"true"`, func(*corev1.Pod) {}},
		{"ends at once when it never was ready", 600, "null", func(*corev1.Pod) {}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			name := fmt.Sprintf("drain-%d-%d", test.grace, len(test.ready))
			pod := &deploy(t, space, name, 1, map[string]string{"emulation.llmd.ai/model-server": "x"})[0]
			annotate(t, pod, test.ready)
			if test.ready != "null" {
				eventually(t, pod, "ready", isReady)
			}
			remove(pod, test.grace)
			test.after(pod)
			require.Eventually(t, func() bool { return gone(t, pod) }, patience, readyInterval)
		})
	}
}

func TestANodeIsNotReadyAsLongAsItsAnnotationSaysSo(t *testing.T) {
	nodes := clientFor(t, cluster.Config()).CoreV1().Nodes()
	_, err := nodes.Create(t.Context(), FourL40S.Node("shaky", "zone-1"), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, nodes.Delete(context.Background(), "shaky", metav1.DeleteOptions{})) })
	becomes := func(what string, holds func(*corev1.Node) bool) {
		require.Eventually(t, func() bool {
			node, err := nodes.Get(t.Context(), "shaky", metav1.GetOptions{})
			return err == nil && holds(node)
		}, patience, readyInterval, what)
	}
	say := func(value string) {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"emulation.llmd.ai/not-ready":%s}}}`, value)
		_, err := nodes.Patch(t.Context(), "shaky", types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	becomes("ready", takesPods)
	say(`"true"`)
	becomes("not ready, and tainted by the controller of nodes", func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeNotReady })
	})
	say("null")
	becomes("ready again", takesPods)
}

func TestTheVariantSchedulerPlacesItsPods(t *testing.T) {
	space, client := namespace(t), clientFor(t, cluster.Config())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "placed"},
		Spec: corev1.PodSpec{
			SchedulerName: "variant-scheduler",
			Tolerations:   []corev1.Toleration{{Key: GPUTaint, Operator: corev1.TolerationOpExists}, {Key: OwnershipTaint, Operator: corev1.TolerationOpExists}},
			NodeSelector:  map[string]string{"nvidia.com/gpu.product": FourL40S.Product},
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{GPUResource: resource.MustParse("4")},
			}}},
		},
	}
	// The service account of the pod comes from a controller, a moment after the namespace.
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, err := client.CoreV1().Pods(space).Create(context.Background(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
	}, patience, readyInterval)
	pod.Namespace = space
	t.Cleanup(func() { _ = client.CoreV1().Pods(space).Delete(context.Background(), pod.Name, metav1.DeleteOptions{}) })
	placed := eventually(t, pod, "ready", isReady)
	assert.Equal(t, "l40s", placed.Spec.NodeName)
}

func TestARestartedKwokKeepsPodsAndTheirAddresses(t *testing.T) {
	space := namespace(t)
	pods := deploy(t, space, "old", 2, nil)
	require.NoError(t, cluster.Kill("kwok"))
	require.NoError(t, cluster.Restart(t.Context(), "kwok"))
	pods = append(pods, deploy(t, space, "new", 2, nil)...)
	addresses := map[string]bool{}
	for _, pod := range pods {
		addresses[pod.Status.PodIP] = true
	}
	assert.Len(t, addresses, 4, "no address is given twice")
}

func TestPrometheusScrapesAModelServerAtTheAddressOfItsPod(t *testing.T) {
	space := namespace(t)
	pod := &deploy(t, space, "scraped", 1, map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8000"})[0]
	serve(t, pod.Status.PodIP+":8000")
	query := fmt.Sprintf(`speed{namespace=%q,pod=%q,node="cpu"}`, space, pod.Name)
	require.Eventually(t, func() bool { return value(t, query) == "42" }, patience, 100*time.Millisecond)
	assert.Equal(t, "1", value(t, fmt.Sprintf(`up{pod=%q}`, pod.Name)))
}

func TestPrometheusScrapesAddedTargets(t *testing.T) {
	address, err := cluster.FreeAddress()
	require.NoError(t, err)
	serve(t, address)
	require.NoError(t, cluster.AddScrapeTarget("other", address, map[string]string{"colour": "blue"}))
	require.Eventually(t, func() bool { return value(t, `speed{job="other",colour="blue"}`) == "42" }, patience, 100*time.Millisecond)
}

// serve answers scrapes at an address until the test ends.
func serve(t *testing.T, address string) {
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "speed 42")
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// value asks Prometheus for the value of one series; empty when there is none yet.
func value(t *testing.T, query string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cluster.PrometheusURL()+"/api/v1/query?query="+url.QueryEscape(query), nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	if len(answer.Data.Result) != 1 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}
