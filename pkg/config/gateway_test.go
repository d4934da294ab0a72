package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

func TestTheNamespaceInAName(t *testing.T) {
	for host, want := range map[string]string{
		"epp.models.svc": "models", "epp.models.svc.cluster.local": "models", "epp.models": "", "epp": "", "127.0.0.1": "", "a.example.com": "",
	} {
		assert.Equal(t, want, config.ServiceNamespace(host), host)
	}
}

func TestWhichGatewaysAreTrusted(t *testing.T) {
	for name, c := range map[string]struct {
		urls, namespaces string
		want             []string
	}{
		"none":                        {"", "", nil},
		"those of the addresses":      {"http://a.two.svc:9090/m,http://a.one.svc,http://b.two.svc,http://epp:9090,http://10.0.0.1", "", []string{"one", "two"}},
		"those that are named":        {"", "two, one,,two", []string{"one", "two"}},
		"those that are named, alone": {"http://a.two.svc:9090", "one", []string{"one"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.Load(config.Sources{Flags: map[string]string{"prometheus-base-url": "https://p", "gateway-metrics-urls": c.urls, "gateway-namespaces": c.namespaces}})
			require.NoError(t, err)
			assert.ElementsMatch(t, c.want, got.Gateway.Trusted())
			assert.IsIncreasing(t, append([]string{""}, got.Gateway.Trusted()...))
		})
	}
	_, err := config.Load(config.Sources{Flags: map[string]string{"prometheus-base-url": "https://p", "gateway-namespaces": "a,B c"}})
	require.ErrorContains(t, err, `holds "B c": write names of namespaces`)
}
