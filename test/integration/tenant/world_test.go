package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

const (
	manifests = "../../../manifests"
	home      = "workload-variant-autoscaler-system"
	account   = "workload-variant-autoscaler-controller-manager"

	// victim is a namespace of models, theirs is the attacker's, and trusted has a gateway that the
	// administrator names.
	victim, theirs, trusted = "victim", "theirs", "gateways"
	// attacker is a user with edit in one namespace.
	attacker = "mallory"
	// asking is the instance of the manager that asks the pods themselves, and scarce the one for a cluster
	// that does not grow; both are in limited mode.
	asking, scarce = "asking", "scarce"

	scrapeEvery = 500 * time.Millisecond
	// patience is how long a test waits for what must come, and a while how long it looks whether
	// something comes that must not: full rounds are a second apart.
	patience = time.Minute
	aWhile   = 4 * time.Second
)

// world is the cluster with its manager.
type world struct {
	cluster *localcluster.Cluster
	// api is the administrator's, and tenant the attacker's.
	api, tenant client.Client
	shown       *shown
	prometheus  *prometheustest.Prometheus
	crowd       crowd
}

// shown is what Prometheus scrapes.
type shown struct {
	lock sync.Mutex
	// gauges and counters are values by series; counters grow by rates per second.
	gauges, counters, rates map[string]float64
}

// show sets a gauge.
func (s *shown) show(series string, value float64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.gauges[series] = value
}

// grow lets a counter grow.
func (s *shown) grow(series string, rate float64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.rates[series] = rate
}

// forget shows no longer what has this in its name or labels.
func (s *shown) forget(what string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, of := range []map[string]float64{s.gauges, s.counters, s.rates} {
		maps.DeleteFunc(of, func(series string, _ float64) bool { return strings.Contains(series, what) })
	}
}

func (s *shown) scraped() map[string]float64 {
	s.lock.Lock()
	defer s.lock.Unlock()
	all := map[string]float64{}
	for series, rate := range s.rates {
		s.counters[series] += rate * scrapeEvery.Seconds()
		all[series] = s.counters[series]
	}
	for series, value := range s.gauges {
		all[series] = value
	}
	return all
}

// gateway shows in a namespace what a gateway shows of a model.
func (s *shown) gateway(namespace, model string, rate, queue float64) {
	labels := fmt.Sprintf(`{model_name=%q,target_model_name=%[1]q,namespace=%q,pod="epp",instance="epp"`, model, namespace)
	s.grow("inference_extension_scheduler_attempts_total"+labels+`,status="success"}`, rate)
	s.show("inference_extension_flow_control_queue_size"+labels+"}", queue)
}

// server shows what the server of a pod shows that serves one request in ten seconds.
func (s *shown) server(pod *corev1.Pod, model string) { s.loaded(pod, model, 0.02, 0) }

// loaded shows the same of a server that is so full, with so many requests that wait.
func (s *shown) loaded(pod *corev1.Pod, model string, use, waiting float64) {
	labels := fmt.Sprintf(`{engine="0",model_name=%q,namespace=%q,pod=%q,instance=%q`, model, pod.Namespace, pod.Name, pod.Status.PodIP)
	s.show("vllm:kv_cache_usage_perc"+labels+"}", use)
	s.show("vllm:num_requests_running"+labels+"}", 1)
	s.show("vllm:num_requests_waiting"+labels+"}", waiting)
	s.grow("vllm:request_success_total"+labels+`,finished_reason="stop"}`, 0.1)
	for _, tokens := range []string{"prompt", "generation"} {
		s.grow("vllm:request_"+tokens+"_tokens_sum"+labels+"}", 10)
		s.grow("vllm:request_"+tokens+"_tokens_count"+labels+"}", 0.1)
	}
}

// newWorld starts the cluster and the manager.
func newWorld(t *testing.T) *world {
	t.Helper()
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(programs, "manager"))
	require.NoError(t, err, "run `make build`")
	w := &world{shown: &shown{gauges: map[string]float64{}, counters: map[string]float64{}, rates: map[string]float64{}}}
	w.cluster, err = localcluster.Start(t.Context(), localcluster.Options{
		Components: localcluster.Components{ControllerManager: true, Scheduler: true, Kwok: true},
		Nodes:      []*corev1.Node{localcluster.EightH100.Node("h100", "a"), localcluster.FourL40S.Node("l40s", "a"), localcluster.EightA100.Node("a100", "a")},
		Manifests:  []string{manifests + "/crd", manifests + "/rbac"},
	})
	if w.cluster != nil {
		t.Cleanup(w.cluster.Stop)
	}
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	w.api, err = client.New(w.cluster.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	as := w.cluster.Config()
	as.Impersonate = rest.ImpersonationConfig{UserName: attacker, Groups: []string{"system:authenticated"}}
	w.tenant, err = client.New(as, client.Options{Scheme: scheme})
	require.NoError(t, err)
	w.prepare(t)
	w.prometheus = prometheustest.New(t)
	server := httptest.NewServer(w.crowd.around(w.prometheus.Handler))
	// Close waits for answers that nobody reads any more.
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	conditiontest.Every(t, scrapeEvery, func(_ context.Context, at time.Time) { w.prometheus.Append(at, w.shown.scraped()) })
	w.startManager(t, "manager",
		"--prometheus-base-url="+server.URL, "--prometheus-allow-http", "--gateway-namespaces="+trusted, "--wva-scale-to-zero", "--wva-scale-to-zero-retention=1h")
	w.startManager(t, "manager-"+scarce,
		"--controller-instance="+scarce, "--prometheus-base-url="+server.URL, "--prometheus-allow-http", "--wva-limited-mode")
	w.startManager(t, "manager-"+asking,
		"--controller-instance="+asking, "--wva-metrics-source=pods", "--pod-metrics-scrape-interval=1s", "--wva-limited-mode")
	return w
}

// prepare makes the namespaces, two classes that only the victim may have, and one for everybody.
func (w *world) prepare(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{victim, theirs, trusted} {
		require.NoError(t, w.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	require.NoError(t, w.api.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "edit"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: attacker}},
	}))
	require.NoError(t, w.api.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "service-classes-config"},
		Data: map[string]string{
			"gold.yaml": strings.Join([]string{
				"name: Gold", "priority: 1", "namespaces: [" + victim + "]", "data:",
				"- {model: busy, slo-ttft: 1000, slo-tpot: 100}", "- {model: golden, slo-ttft: 1000, slo-tpot: 100}",
			}, "\n"),
			"silver.yaml": strings.Join([]string{
				"name: Silver", "priority: 5", "namespaces: [" + victim + "]", "data:", "- {model: holds, slo-ttft: 1000, slo-tpot: 100}",
			}, "\n"),
			"open.yaml": strings.Join([]string{"name: Open", "priority: 2", "data:", "- {model: opened, slo-ttft: 1000, slo-tpot: 100}"}, "\n"),
		},
	}))
}

// startManager starts a manager with the shipped permissions.
func (w *world) startManager(t *testing.T, name string, settings ...string) {
	t.Helper()
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	kubeconfig, err := w.cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	metrics, err := w.cluster.FreeAddress()
	require.NoError(t, err)
	health, err := w.cluster.FreeAddress()
	require.NoError(t, err)
	require.NoError(t, w.cluster.StartProcess(t.Context(), localcluster.Process{
		Name: name, Path: filepath.Join(programs, "manager"),
		Args: append(settings, "--global-opt-interval=1s", "--prometheus-metrics-window=5s", "--kubeconfig="+kubeconfig,
			"--metrics-bind-address="+metrics, "--metrics-secure=false", "--health-probe-bind-address="+health),
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}))
}

// deployment is a model server on one device.
func deployment(namespace, name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](0),
				NodeSelector:                  map[string]string{"nvidia.com/gpu.product": localcluster.EightH100.Product},
				Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{
					Name: "server", Image: "model-server", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8000}},
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{localcluster.GPUResource: resource.MustParse("1")}},
				}},
			}},
		},
	}
}

func variant(namespace, name, model string) *v1alpha1.VariantAutoscaling {
	return &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: model, ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: name}},
	}
}

// model makes a Deployment of the victim with its object.
func (w *world) model(t *testing.T, name string, replicas int32, change func(*v1alpha1.VariantAutoscaling)) *v1alpha1.VariantAutoscaling {
	t.Helper()
	require.NoError(t, w.api.Create(t.Context(), deployment(victim, name, replicas)))
	v := variant(victim, name, name)
	if change != nil {
		change(v)
	}
	require.NoError(t, w.api.Create(t.Context(), v))
	return v
}

// shows waits until a condition has the reason.
func (w *world) shows(t *testing.T, v *v1alpha1.VariantAutoscaling, kind, reason string) {
	t.Helper()
	conditiontest.Eventually(t, patience, fmt.Sprintf("%s of %s/%s with reason %s", kind, v.Namespace, v.Name, reason), func() (string, bool) {
		if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
			return err.Error(), false
		}
		c := apimeta.FindStatusCondition(v.Status.Conditions, kind)
		return fmt.Sprintf("%+v", v.Status.Conditions), c != nil && c.Reason == reason
	})
}

// replicas are those that a Deployment of the victim asks for.
func (w *world) replicas(t *testing.T, name string) int32 {
	t.Helper()
	var d appsv1.Deployment
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: victim, Name: name}, &d))
	return *d.Spec.Replicas
}

// stays looks for a while whether a Deployment of the victim asks for as many.
func (w *world) stays(t *testing.T, name string, want int32) {
	t.Helper()
	conditiontest.Throughout(t, aWhile, fmt.Sprintf("%s asks for %d", name, want), func() (string, bool) {
		n := w.replicas(t, name)
		return fmt.Sprint(n), n == want
	})
}
