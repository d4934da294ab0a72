package prometheus

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

func TestThroughTheAPIServer(t *testing.T) {
	t.Parallel()
	config := &rest.Config{Host: "https://api:6443/base"}
	for address, want := range map[string]string{
		"https://prom.monitoring.svc:9090":              "https://api:6443/base/api/v1/namespaces/monitoring/services/https:prom:9090/proxy",
		"http://prom.monitoring.svc.cluster.local/path": "https://api:6443/base/api/v1/namespaces/monitoring/services/http:prom:80/proxy/path",
		"https://prom.monitoring.svc":                   "https://api:6443/base/api/v1/namespaces/monitoring/services/https:prom:443/proxy",
		"https://prometheus.example.com":                "",
		"https://localhost:9090":                        "",
	} {
		parsed, err := url.Parse(address)
		require.NoError(t, err)
		proxied, ok, err := throughAPI(config, parsed)
		require.NoError(t, err)
		assert.Equal(t, want != "", ok, address)
		if ok {
			assert.Equal(t, want, proxied.String())
		}
	}
}

// served is a server at an address.
func served(t *testing.T, handler http.Handler) *Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	return &Server{address: address, client: server.Client()}
}

// The series of an object are found whether a scrape keeps the label namespace or not, and
// are not confused with those of an object in the manager's namespace.
func TestSeriesOfAnObject(t *testing.T) {
	t.Parallel()
	samples := prometheustest.New(t)
	at := time.Now()
	samples.Append(at, map[string]float64{
		`wva_desired_replicas{variant_name="a",namespace="monitoring",exported_namespace="chat"}`: 1,
		`wva_desired_replicas{variant_name="a",namespace="kept"}`:                                 2,
		`wva_desired_replicas{variant_name="b",namespace="kept"}`:                                 3,
	})
	s := served(t, samples.Handler)
	for _, c := range []struct {
		namespace, name string
		want            map[string]model.SampleValue
	}{
		{"chat", "a", map[string]model.SampleValue{"chat": 1}},
		{"kept", "a", map[string]model.SampleValue{"kept": 2}},
		{"monitoring", "a", map[string]model.SampleValue{}},
		{"", "a", map[string]model.SampleValue{"chat": 1, "kept": 2}},
	} {
		found, err := s.Now(t.Context(), Of("wva_desired_replicas", c.namespace, c.name))
		require.NoError(t, err)
		got := map[string]model.SampleValue{}
		for _, sample := range found {
			got[NamespaceOf(sample.Metric)] = sample.Value
		}
		assert.Equal(t, c.want, got, c)
	}
	matrix, err := s.Range(t.Context(), Of("wva_desired_replicas", "", "b"), at, at.Add(30*time.Second), 15*time.Second)
	require.NoError(t, err)
	require.Len(t, matrix, 1)
	assert.Len(t, matrix[0].Values, 3)
	all, err := s.Now(t.Context(), Of("wva_desired_replicas", "", ""))
	require.NoError(t, err)
	assert.Len(t, all, 3)
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	_, err := served(t, prometheustest.New(t).Handler).Now(t.Context(), "(")
	require.ErrorContains(t, err, "parse error")
	_, err = served(t, http.NotFoundHandler()).Now(t.Context(), "up")
	require.ErrorContains(t, err, "it answered 404 Not Found; --prometheus gives another address")
	server := served(t, http.NotFoundHandler())
	server.address.Host = "127.0.0.1:1"
	_, err = server.Now(t.Context(), "up")
	require.ErrorContains(t, err, "--prometheus gives another address")
}

// The address of the manager's Prometheus may hold a key, as its user or in its query.
func TestWhatAnAddressHoldsIsNotTold(t *testing.T) {
	t.Parallel()
	s := served(t, http.NotFoundHandler())
	s.address.User, s.address.RawQuery = url.User("secret"), "key=secret"
	_, err := s.Now(t.Context(), "up")
	require.ErrorContains(t, err, "asking Prometheus at http://"+s.address.Host+"/api/v1/query: it answered 404 Not Found")
	assert.NotContains(t, err.Error(), "secret")
	s.address.Host = "127.0.0.1:1"
	_, err = s.Now(t.Context(), "up")
	require.ErrorContains(t, err, "asking Prometheus at http://127.0.0.1:1/api/v1/query: dial tcp 127.0.0.1:1: ")
	assert.NotContains(t, err.Error(), "secret")
}
