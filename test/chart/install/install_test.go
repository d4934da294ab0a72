package install

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmchart "helm.sh/helm/v3/pkg/chart"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

const (
	programs = "../../../bin"
	patience = 60 * time.Second
	prefix   = name + "-workload-variant-autoscaler"
)

var (
	variants     = schema.GroupVersionResource{Group: "llmd.ai", Version: "v1alpha1", Resource: "variantautoscalings"}
	definitions  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	rules        = schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheusrules"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	hpas         = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
)

// site is one cluster and its clients.
type site struct {
	*localcluster.Cluster
	helm
	api     kubernetes.Interface
	dynamic dynamic.Interface
}

func newSite(t *testing.T) *site {
	t.Helper()
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{
		Programs:   programs,
		Components: localcluster.Components{ControllerManager: true, Scheduler: true, Kwok: true, Prometheus: &localcluster.Prometheus{}},
		Nodes:      []*corev1.Node{localcluster.EightH100.Node("h100", "a")},
		// The kind as kubectl apply left it, with an object of its own.
		Manifests: []string{"../../../manifests/crd", "testdata"},
	})
	require.NoError(t, err)
	t.Cleanup(cluster.Stop)
	s := &site{Cluster: cluster, helm: newHelm(t, cluster, home)}
	s.api, err = kubernetes.NewForConfig(cluster.Config())
	require.NoError(t, err)
	s.dynamic, err = dynamic.NewForConfig(cluster.Config())
	require.NoError(t, err)
	return s
}

// exists says whether an object is there.
func (s *site) exists(t *testing.T, kind schema.GroupVersionResource, namespace, object string) bool {
	t.Helper()
	_, err := s.dynamic.Resource(kind).Namespace(namespace).Get(t.Context(), object, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
	return err == nil
}

// field is a field of an object; nil when it has none.
func (s *site) field(t *testing.T, kind schema.GroupVersionResource, namespace, object string, path ...string) any {
	t.Helper()
	found, err := s.dynamic.Resource(kind).Namespace(namespace).Get(t.Context(), object, metav1.GetOptions{})
	require.NoError(t, err)
	value, _, err := unstructured.NestedFieldNoCopy(found.Object, path...)
	require.NoError(t, err)
	return value
}

// older is a chart of the published values that only has a ConfigMap.
func older(t *testing.T) *helmchart.Chart {
	return &helmchart.Chart{
		Metadata:  &helmchart.Metadata{APIVersion: "v2", Name: "workload-variant-autoscaler", Version: "0.5.0"},
		Values:    valuesFile(t, "../testdata/published.yaml"),
		Templates: []*helmchart.File{{Name: "templates/config.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: of-the-older-chart\n")}},
	}
}

// TestALifeOfARelease walks through what a release goes through, in that order.
func TestALifeOfARelease(t *testing.T) {
	s := newSite(t)
	const model = "llm-d-autoscaler"

	require.NoError(t, s.install(t, older(t), nil))
	t.Run("the published chart is upgraded with its values", func(t *testing.T) {
		require.NoError(t, s.upgrade(t, load(t), true, nil))
		assert.True(t, s.exists(t, hpas, model, prefix+"-hpa"))
		assert.Equal(t, "Metric", s.field(t, variants, model, prefix+"-va", "spec", "actuation"))
		assert.Equal(t, "Helm", s.field(t, definitions, "", "variantautoscalings.llmd.ai", "metadata", "labels", "app.kubernetes.io/managed-by"), "the kind was adopted")
		assert.True(t, s.exists(t, variants, home, "old"), "with what was there of it")
		_, err := s.api.CoreV1().ConfigMaps(home).Get(t.Context(), "of-the-older-chart", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err))
		require.NoError(t, s.upgrade(t, load(t), true, map[string]any{"wva": map[string]any{"actuation": "Scale"}}))
		assert.False(t, s.exists(t, hpas, model, prefix+"-hpa"))
		assert.True(t, s.exists(t, clusterRoles, "", prefix+"-observe"), "what the published chart did stays")
		require.NoError(t, s.upgrade(t, load(t), true, map[string]any{"wva": map[string]any{"actuation": "Metric"}}))
	})
	t.Run("and then with those of this one, and a scheduler", func(t *testing.T) {
		require.NoError(t, s.upgrade(t, load(t), false, map[string]any{
			"wva": map[string]any{
				"prometheus": map[string]any{"baseURL": s.PrometheusURL(), "allowHTTP": true, "serviceAccountName": "reader", "monitoringNamespace": metav1.NamespaceDefault, "createReader": true},
				"metrics":    map[string]any{"secure": false},
			},
			"scheduler": map[string]any{"enabled": true, "serviceMonitor": map[string]any{"enabled": true}},
			"alerts":    map[string]any{"enabled": true}, "dashboards": map[string]any{"enabled": true},
		}))
		assert.False(t, s.exists(t, hpas, model, prefix+"-hpa"), "none is needed")
		assert.False(t, s.exists(t, variants, model, prefix+"-va"))
	})
	t.Run("another release takes nothing from this one", s.nothingIsTaken)
	t.Run("pods are admitted where only restricted ones are", s.podsAreAdmitted)
	t.Run("the manager works as its pod would", s.managerWorks)
	t.Run("the scheduler works as its pod would", s.schedulerWorks)
	t.Run("the manager works with the Roles of one namespace", func(t *testing.T) {
		require.NoError(t, s.upgrade(t, load(t), false, map[string]any{"wva": map[string]any{
			"prometheus":        map[string]any{"baseURL": s.PrometheusURL(), "allowHTTP": true},
			"metrics":           map[string]any{"secure": false},
			"namespaceScoped":   true,
			"reconcileInterval": "5s",
		}}))
		s.rolesSuffice(t)
	})
	t.Run("a rollback brings back what was there", func(t *testing.T) {
		s.rollback(t, 2)
		assert.True(t, s.exists(t, hpas, model, prefix+"-hpa"))
		assert.True(t, s.exists(t, variants, model, prefix+"-va"))
	})
	t.Run("what is uninstalled goes, but for the kind and its objects", func(t *testing.T) {
		s.uninstall(t)
		conditiontest.Eventually(t, patience, "nothing but the kind and what docs/install.md names", func() (string, bool) {
			left := s.left(t)
			return strings.Join(left, "\n"), slices.Equal(left, []string{
				"CustomResourceDefinition variantautoscalings.llmd.ai", "Lease 72dd1cf1.llm-d.ai", "Lease variant-scheduler",
			})
		})
		assert.True(t, s.exists(t, definitions, "", "variantautoscalings.llmd.ai"))
		assert.True(t, s.exists(t, variants, home, "old"))
	})
	t.Run("and it can be installed again", func(t *testing.T) {
		require.NoError(t, s.install(t, load(t), nil))
		assert.True(t, s.exists(t, variants, home, "old"))
	})
	t.Run("a cluster that does not know the kind is told what to do first", func(t *testing.T) {
		s.uninstall(t)
		require.NoError(t, s.dynamic.Resource(definitions).Delete(t.Context(), "variantautoscalings.llmd.ai", metav1.DeleteOptions{}))
		require.Eventually(t, func() bool { return !s.exists(t, definitions, "", "variantautoscalings.llmd.ai") }, patience, 200*time.Millisecond)
		s.helm = newHelm(t, s.Cluster, home)
		err := s.install(t, load(t), valuesFile(t, chartDir+"/values-llm-d.yaml"))
		require.ErrorContains(t, err, "Install the kind first (kubectl apply --server-side -f manifests/crd), and give helm --take-ownership")
		require.NoError(t, s.Apply(t.Context(), "../../../manifests/crd"))
		s.helm = newHelm(t, s.Cluster, home)
		require.NoError(t, s.install(t, load(t), valuesFile(t, chartDir+"/values-llm-d.yaml")))
		assert.True(t, s.exists(t, variants, model, prefix+"-va"))
	})
	t.Run("the commands of the pages do what they say", s.pagesRun)
}

// nothingIsTaken installs a release of the same name in another namespace, and one with
// another name and a scheduler. Taking ownership would leave the first without its rights.
func (s *site) nothingIsTaken(t *testing.T) {
	other := newHelm(t, s.Cluster, metav1.NamespaceDefault)
	err := other.install(t, load(t), map[string]any{"fullnameOverride": "second"})
	require.ErrorContains(t, err, "crd.install: the release "+name+" in namespace "+home+" keeps the kind VariantAutoscaling: set crd.install=false")
	err = other.install(t, load(t), map[string]any{"crd": map[string]any{"install": false}})
	require.ErrorContains(t, err, "ClusterRoleBinding "+prefix+"-observe is that of the release "+name+" in namespace "+home+
		", which would lose its rights: give this release another name, or set fullnameOverride")
	err = other.install(t, load(t), map[string]any{
		"crd": map[string]any{"install": false}, "fullnameOverride": "second", "scheduler": map[string]any{"enabled": true},
	})
	require.ErrorContains(t, err, "ClusterRoleBinding variant-scheduler is that of the release "+name+" in namespace "+home)
	require.ErrorContains(t, err, "set scheduler.name")
}

// left are the objects with the label of the release, and all of its namespace, but for what
// the tests and Kubernetes put there.
func (s *site) left(t *testing.T) []string {
	t.Helper()
	kinds, err := s.api.Discovery().ServerPreferredResources()
	require.NoError(t, err)
	found := map[string]bool{}
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		require.NoError(t, err)
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			list, err := s.dynamic.Resource(version.WithResource(kind.Name)).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for i := range list.Items {
				one := &list.Items[i]
				if one.GetLabels()["app.kubernetes.io/instance"] == name || one.GetNamespace() == home && !s.brought(one) {
					found[one.GetKind()+" "+one.GetName()] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// brought says that the tests or Kubernetes itself put an object into the namespace.
func (s *site) brought(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "Event":
		return true
	case "ConfigMap":
		return object.GetName() == "kube-root-ca.crt"
	case "ServiceAccount":
		return object.GetName() == "default"
	}
	return strings.HasPrefix(object.GetName(), "old") || strings.HasPrefix(object.GetName(), "scoped")
}

func (s *site) podsAreAdmitted(t *testing.T) {
	for _, component := range []string{"manager", "scheduler"} {
		require.Eventually(t, func() bool {
			pods, err := s.api.CoreV1().Pods(home).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + component})
			return err == nil && len(pods.Items) >= 2
		}, patience, 200*time.Millisecond, component)
	}
}

// startManager runs the manager as its pod would, until the test ends, and returns the
// address of its metrics.
func (s *site) startManager(t *testing.T, name string) string {
	t.Helper()
	deployment, err := s.api.AppsV1().Deployments(home).Get(t.Context(), prefix+"-controller-manager", metav1.GetOptions{})
	require.NoError(t, err)
	p := newPod(t, s.Cluster, s.api, deployment)
	metrics, health := s.free(t), s.free(t)
	require.NoError(t, s.StartProcess(t.Context(), localcluster.Process{
		Name: name, Path: filepath.Join(programs, "manager"), Env: p.env,
		Args:  append(p.arguments(t, map[string]string{"--metrics-bind-address": metrics, "--health-probe-bind-address": health}), "--kubeconfig="+p.kubeconfig),
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}))
	t.Cleanup(func() { assert.NoError(t, s.Terminate(name)) })
	return metrics
}

// reports waits until an object has a condition with this status.
func (s *site) reports(t *testing.T, object, condition, status string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conditions, _ := s.field(t, variants, home, object, "status", "conditions").([]any)
		for _, one := range conditions {
			if c := one.(map[string]any); c["type"] == condition && c["status"] == status {
				return true
			}
		}
		return false
	}, patience, 200*time.Millisecond, "it reports on the object %s", object)
}

func (s *site) managerWorks(t *testing.T) {
	metrics := s.startManager(t, "manager")
	s.reports(t, "old", "TargetResolved", "True")
	leases, err := s.api.CoordinationV1().Leases(home).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.NotEmpty(t, leases.Items, "it leads")
	s.queriesAreAnswered(t, metrics)
	assert.NotContains(t, s.logOf(t, "manager"), "is forbidden", "it has every right that it asks for")
}

// rolesSuffice runs the manager of a release that has Roles in its own namespace and no
// right beyond it, on a variant that came since.
func (s *site) rolesSuffice(t *testing.T) {
	roles, err := s.api.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + name})
	require.NoError(t, err)
	assert.Empty(t, roles.Items)
	deployments := s.api.AppsV1().Deployments(home)
	scoped, err := deployments.Get(t.Context(), "old", metav1.GetOptions{})
	require.NoError(t, err)
	scoped.ObjectMeta = metav1.ObjectMeta{Namespace: home, Name: "scoped"}
	scoped.Spec.Replicas = new(int32)
	scoped.Spec.Selector.MatchLabels = map[string]string{"app": "scoped"}
	scoped.Spec.Template.Labels = scoped.Spec.Selector.MatchLabels
	_, err = deployments.Create(t.Context(), scoped, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.dynamic.Resource(variants).Namespace(home).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling", "metadata": map[string]any{"name": "scoped"},
		"spec": map[string]any{"scaleTargetRef": map[string]any{"name": "scoped"}, "modelID": "meta/scoped", "accelerator": "H100"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)

	s.startManager(t, "manager-with-roles")
	s.reports(t, "scoped", "TargetResolved", "True")
	s.reports(t, "scoped", "CapacityKnown", "False")
	conditiontest.Eventually(t, patience, "the one replica that a model keeps", func() (string, bool) {
		scaled, err := deployments.Get(t.Context(), "scoped", metav1.GetOptions{})
		require.NoError(t, err)
		return fmt.Sprint(s.field(t, variants, home, "scoped", "status")), *scaled.Spec.Replicas == 1
	})
	conditiontest.Eventually(t, patience, "an event of it", func() (string, bool) {
		events, err := s.api.EventsV1().Events(home).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return fmt.Sprint(len(events.Items), " events"), slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "scoped" && e.Regarding.Kind == "VariantAutoscaling"
		})
	})
	assert.NotContains(t, s.logOf(t, "manager-with-roles"), "is forbidden", "it has every right that it asks for")
}

func (s *site) schedulerWorks(t *testing.T) {
	deployment, err := s.api.AppsV1().Deployments(home).Get(t.Context(), "variant-scheduler", metav1.GetOptions{})
	require.NoError(t, err)
	p := newPod(t, s.Cluster, s.api, deployment)
	// In a pod the credentials come from the service account; here the file names them.
	config := filepath.Join(p.folders["/etc/variant-scheduler"], "config.yaml")
	file, err := os.OpenFile(config, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("\nclientConnection:\n  kubeconfig: " + p.kubeconfig + "\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	host, port, err := net.SplitHostPort(s.free(t))
	require.NoError(t, err)
	require.NoError(t, s.StartProcess(t.Context(), localcluster.Process{
		Name: "scheduler-of-the-chart", Path: filepath.Join(programs, "scheduler"), Env: p.env,
		Args: append(p.arguments(t, map[string]string{"--secure-port": port}), "--bind-address="+host,
			"--authentication-kubeconfig="+p.kubeconfig, "--authorization-kubeconfig="+p.kubeconfig),
	}))
	t.Cleanup(func() { assert.NoError(t, s.Terminate("scheduler-of-the-chart")) })
	require.Eventually(t, func() bool {
		pods, err := s.api.CoreV1().Pods(home).List(t.Context(), metav1.ListOptions{LabelSelector: "app=old"})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Spec.NodeName == "h100"
	}, patience, 200*time.Millisecond, "it places the pods that ask for it")
	metrics := "https://" + net.JoinHostPort(host, port) + "/metrics"
	assert.Equal(t, http.StatusOK, s.answers(t, metrics, s.tokenOf(t, "reader")), "the Prometheus that the values name")
	assert.Equal(t, http.StatusForbidden, s.answers(t, metrics, s.tokenOf(t, "stranger")))
	secret, err := s.api.CoreV1().Secrets(home).Get(t.Context(), prefix+"-metrics-reader", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, s.answers(t, metrics, string(secret.Data[corev1.ServiceAccountTokenKey])), "whoever has the token of the release")
}

// tokenOf is a token of a new service account of the namespace default.
func (s *site) tokenOf(t *testing.T, account string) string {
	t.Helper()
	accounts := s.api.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := accounts.CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return token.Status.Token
}

// answers is the status that a page has for whoever shows a token.
func (s *site) answers(t *testing.T, url, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	// The scheduler signs its certificate itself.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

func (s *site) free(t *testing.T) string {
	t.Helper()
	address, err := s.FreeAddress()
	require.NoError(t, err)
	return address
}
