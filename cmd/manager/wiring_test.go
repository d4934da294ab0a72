package main

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/podmetrics"
	"llmd.ai/workload-variant-autoscaler/pkg/adapters/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// wired is all that is made of settings outside of the controller.
type wired struct {
	Prometheus prometheus.Options
	Pods       podmetrics.Options
	Serving    serving
	Timeout    time.Duration
}

type serving struct {
	BindAddress, CertDir, CertName, KeyName string
	Secure, Authorised                      bool
}

func wire(c config.Config) wired {
	served := serveMetrics(c.Serving)
	return wired{
		Prometheus: querying(c.Prometheus),
		Pods:       scraping(c),
		Serving:    serving{served.BindAddress, served.CertDir, served.CertName, served.KeyName, served.SecureServing, served.FilterProvider != nil},
		Timeout:    withTimeout(&rest.Config{}, c).Timeout,
	}
}

// Each setting changes what it names, and nothing else.
func TestEverySettingArrives(t *testing.T) {
	fields := map[string]struct {
		value string
		set   func(*wired)
	}{
		"PROMETHEUS_BASE_URL":                      {"https://p", func(w *wired) { w.Prometheus.Address = "https://p" }},
		"PROMETHEUS_ALLOW_HTTP":                    {"true", func(w *wired) { w.Prometheus.AllowHTTP = true }},
		"PROMETHEUS_BEARER_TOKEN":                  {"m", func(w *wired) { w.Prometheus.Token = "m" }},
		"PROMETHEUS_TOKEN_PATH":                    {"/a", func(w *wired) { w.Prometheus.TokenFile = "/a" }},
		"PROMETHEUS_CA_CERT_PATH":                  {"/b", func(w *wired) { w.Prometheus.CAFile = "/b" }},
		"PROMETHEUS_SERVER_NAME":                   {"c", func(w *wired) { w.Prometheus.ServerName = "c" }},
		"PROMETHEUS_TLS_INSECURE_SKIP_VERIFY":      {"true", func(w *wired) { w.Prometheus.InsecureSkipVerify = true }},
		"PROMETHEUS_HTTP_CONFIG_PATH":              {"/o", func(w *wired) { w.Prometheus.ConfigFile = "/o" }},
		"PROMETHEUS_MATCHERS":                      {`a="b"`, func(w *wired) { w.Prometheus.Matchers = `a="b"` }},
		"POD_METRICS_SCRAPE_INTERVAL":              {"7s", func(w *wired) { w.Pods.Interval = 7 * time.Second }},
		"POD_METRICS_SCHEME":                       {"https", func(w *wired) { w.Pods.Scheme = "https" }},
		"POD_METRICS_PORT":                         {"81", func(w *wired) { w.Pods.Port = 81 }},
		"POD_METRICS_TOKEN_PATH":                   {"/d", func(w *wired) { w.Pods.Pods.TokenFile = "/d" }},
		"POD_METRICS_CA_CERT_PATH":                 {"/e", func(w *wired) { w.Pods.Pods.CAFile = "/e" }},
		"POD_METRICS_SERVER_NAME":                  {"f", func(w *wired) { w.Pods.Pods.ServerName = "f" }},
		"POD_METRICS_TLS_INSECURE_SKIP_VERIFY":     {"true", func(w *wired) { w.Pods.Pods.InsecureSkipVerify = true }},
		"GATEWAY_METRICS_URLS":                     {"http://a/m,http://b/m", func(w *wired) { w.Pods.Gateways = []string{"http://a/m", "http://b/m"} }},
		"GATEWAY_NAMESPACES":                       {"a,b", func(w *wired) { w.Pods.GatewaysFor = []string{"a", "b"} }},
		"EPP_METRIC_READER_BEARER_TOKEN":           {"n", func(w *wired) { w.Pods.Gateway.Token = "n" }},
		"GATEWAY_METRICS_TOKEN_PATH":               {"/g", func(w *wired) { w.Pods.Gateway.TokenFile = "/g" }},
		"GATEWAY_METRICS_CA_CERT_PATH":             {"/h", func(w *wired) { w.Pods.Gateway.CAFile = "/h" }},
		"GATEWAY_METRICS_TLS_INSECURE_SKIP_VERIFY": {"true", func(w *wired) { w.Pods.Gateway.InsecureSkipVerify = true }},
		"METRICS_BIND_ADDRESS":                     {":9", func(w *wired) { w.Serving.BindAddress = ":9" }},
		"METRICS_SECURE":                           {"false", func(w *wired) { w.Serving.Secure, w.Serving.Authorised = false, false }},
		"METRICS_CERT_PATH":                        {"/i", func(w *wired) { w.Serving.CertDir = "/i" }},
		"METRICS_CERT_NAME":                        {"j", func(w *wired) { w.Serving.CertName = "j" }},
		"METRICS_CERT_KEY":                         {"k", func(w *wired) { w.Serving.KeyName = "k" }},
		"REST_CLIENT_TIMEOUT":                      {"9s", func(w *wired) { w.Timeout = 9 * time.Second }},
	}
	of := func(t *testing.T, flags map[string]string) wired {
		t.Helper()
		c, err := config.Load(config.Sources{Flags: flags})
		require.NoError(t, err)
		return wire(c)
	}
	byName := map[string]config.Key{}
	together := []string{"PROMETHEUS_CLIENT_CERT_PATH", "PROMETHEUS_CLIENT_KEY_PATH"}
	for _, key := range config.Keys() {
		byName[key.Name] = key
		if source, _, _ := strings.Cut(key.Name, "_"); key.Static && slices.Contains([]string{"PROMETHEUS", "POD", "GATEWAY", "EPP", "METRICS"}, source) &&
			!slices.Contains(together, key.Name) && !slices.Contains([]string{"POD_NAMESPACE", "POD_NAME"}, key.Name) && key.Name != "METRICS_PUBLISHED_NAMES" {
			assert.Contains(t, fields, key.Name, "a setting without a test of where it arrives")
		}
	}
	for name, field := range fields {
		t.Run(name, func(t *testing.T) {
			flags := map[string]string{"prometheus-base-url": "https://prometheus"}
			want := of(t, flags)
			flags[byName[name].Flag()] = field.value
			got := of(t, flags)
			assert.NotEqual(t, want, got)
			field.set(&want)
			assert.Equal(t, want, got)
		})
	}
	t.Run("both files of a client certificate", func(t *testing.T) {
		flags := map[string]string{"prometheus-base-url": "https://prometheus"}
		want := of(t, flags)
		flags["prometheus-client-cert-path"], flags["prometheus-client-key-path"] = "/l", "/m"
		want.Prometheus.CertFile, want.Prometheus.KeyFile = "/l", "/m"
		assert.Equal(t, want, of(t, flags))
	})
}

func TestWhatHasNoSetting(t *testing.T) {
	assert.Equal(t, queryTimeout, querying(config.Prometheus{}).Timeout)
	cluster := &rest.Config{Host: "https://api"}
	bounded := withTimeout(cluster, config.Config{Static: config.Static{RESTClientTimeout: time.Second}})
	assert.Equal(t, cluster.Host, bounded.Host)
	assert.Zero(t, cluster.Timeout, "watches keep theirs")
	var t1 tls.Config
	for _, set := range serveMetrics(config.Serving{}).TLSOpts {
		set(&t1)
	}
	assert.Equal(t, []string{"http/1.1"}, t1.NextProtos)
}
