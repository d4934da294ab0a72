package prometheus

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

type labelled = map[string]string

func service(namespace, name string, labels labelled, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: corev1.ServiceSpec{Ports: ports}}
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number}
}

// The Services as these installations make them.
func TestPrometheusOfCommonInstallationsIsFound(t *testing.T) {
	t.Parallel()
	operated := func(namespace string, of labelled, p corev1.ServicePort) *corev1.Service {
		return service(namespace, "prometheus-operated", of, p, port("grpc", 10901))
	}
	serving := func(s *corev1.Service) *corev1.Service {
		s.Annotations = map[string]string{servedByTLS: s.Name + "-tls"}
		return s
	}
	const set = "--set wva.prometheus."
	for name, c := range map[string]struct {
		there []client.Object
		want  map[string]string
	}{
		"kube-prometheus": {[]client.Object{
			service("monitoring", "prometheus-k8s", labelled{labelName: "prometheus", labelPartOf: "kube-prometheus"}, port("web", 9090), port("reloader-web", 8080)),
			operated("monitoring", labelled{labelOperated: "true"}, port("web", 9090)),
			service("monitoring", "alertmanager-main", labelled{labelName: "alertmanager", labelPartOf: "kube-prometheus"}, port("web", 9093)),
		}, map[string]string{
			"http://prometheus-k8s.monitoring.svc:9090": set + "baseURL=http://prometheus-k8s.monitoring.svc:9090 " + set + "allowHTTP=true " + set + "serviceAccountName=prometheus-k8s " + set + "monitoringNamespace=monitoring",
		}},
		"kube-prometheus-stack": {[]client.Object{
			service("mon", "kps-prometheus", labelled{labelApp: "kube-prometheus-stack-prometheus", labelPartOf: "kube-prometheus-stack", labelRelease: "kps"}, port("http-web", 9090), port("reloader-web", 8080)),
			operated("mon", labelled{labelOperated: "true"}, port("http-web", 9090)),
		}, map[string]string{
			"http://kps-prometheus.mon.svc:9090": set + "baseURL=http://kps-prometheus.mon.svc:9090 " + set + "allowHTTP=true " + set + "serviceAccountName=kps-prometheus " + set + "monitoringNamespace=mon --set wva.metrics.serviceMonitor.labels.release=kps",
		}},
		"the chart prometheus": {[]client.Object{
			service("prom", "prom-prometheus-server", labelled{labelName: "prometheus", "app.kubernetes.io/component": "server"}, port("http", 80)),
		}, map[string]string{
			"http://prom-prometheus-server.prom.svc:80": set + "baseURL=http://prom-prometheus-server.prom.svc:80 " + set + "allowHTTP=true",
		}},
		"a Prometheus of the operator alone": {[]client.Object{
			operated("own", labelled{labelOperated: "true"}, port("web", 9090)),
		}, map[string]string{
			"http://prometheus-operated.own.svc:9090": set + "baseURL=http://prometheus-operated.own.svc:9090 " + set + "allowHTTP=true",
		}},
		"OpenShift": {[]client.Object{
			serving(service("openshift-monitoring", "thanos-querier", labelled{labelName: "thanos-query", labelPartOf: "openshift-monitoring"}, port("web", 9091), port("tenancy", 9092))),
			serving(service("openshift-monitoring", "prometheus-k8s", labelled{labelName: "prometheus", labelPartOf: "openshift-monitoring"}, port("web", 9091), port("metrics", 9092))),
			operated("openshift-user-workload-monitoring", labelled{labelOperated: "true"}, port("web", 9090)),
		}, map[string]string{
			"https://thanos-querier.openshift-monitoring.svc:9091": "-f charts/workload-variant-autoscaler/values-openshift.yaml",
		}},
		"none": {[]client.Object{service("chat", "llama", nil, port("http", 8000))}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := Candidates(t.Context(), fake.NewClientBuilder().WithObjects(c.there...).Build())
			require.NoError(t, err)
			got := map[string]string{}
			for _, one := range found {
				got[one.Address()] = one.Settings()
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// The one that is used already is no advice, and who may not look gets none.
func TestTheAdvice(t *testing.T) {
	t.Parallel()
	s := service("prom", "server", labelled{labelName: "prometheus"}, port("http", 80))
	api := fake.NewClientBuilder().WithObjects(s).Build()
	assert.Equal(t, "these Services of the cluster look like a Prometheus: http://server.prom.svc:80 (`helm upgrade` with `--set wva.prometheus.baseURL=http://server.prom.svc:80 --set wva.prometheus.allowHTTP=true` has the manager use it)",
		Advice(t.Context(), api, "https://prometheus.monitoring.svc:9090"))
	assert.Empty(t, Advice(t.Context(), api, "http://server.prom.svc.cluster.local:80"))
	refusing := interceptor.NewClient(api, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("forbidden")
	}})
	assert.Empty(t, Advice(t.Context(), refusing, ""))
}

// A server that is not there is told with what is there instead; one that answers has another problem.
func TestWhatDoesNotAnswerIsToldWithWhatMay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		answer  string
		advised bool
	}{
		"no such Service":   {http.StatusNotFound, `{"kind":"Status","status":"Failure"}`, true},
		"no Prometheus":     {http.StatusOK, `<html>`, true},
		"a query too large": {http.StatusUnprocessableEntity, `{"status":"error","error":"too many samples"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			s.advice = func(context.Context) string { return "another one" }
			_, err := s.Now(t.Context(), "up")
			require.Error(t, err)
			if c.advised {
				assert.ErrorContains(t, err, "; another one")
			} else {
				assert.NotContains(t, err.Error(), "another one")
			}
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	address, err := url.Parse(gone.URL)
	require.NoError(t, err)
	gone.Close()
	s := At(address)
	s.advice = func(context.Context) string { return "another one" }
	_, err = s.Now(t.Context(), "up")
	assert.ErrorContains(t, err, "; another one")
}
