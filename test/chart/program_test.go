package chart

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const programs = "../../bin"

// everything is a release in which every choice that adds an argument or a setting
// is made.
var everything = release{name: plainName, namespace: plainNamespace, values: values{
	"scheduler": values{"enabled": true, "extraArgs": []any{"--logging-format=json"}},
	"wva": values{
		"extraArgs":          []any{"--logging-format=json"},
		"namespaceScoped":    true,
		"controllerInstance": "blue",
		"metricsSource":      "pods",
		"podMetrics":         values{"tokenPath": "/token", "caCertPath": "/ca.crt", "serverName": "vllm"},
		"gateway":            values{"metricsURLs": []any{"http://epp:9090/metrics"}, "namespaces": []any{"gateways"}, "tokenPath": "/token", "caCertPath": "/ca.crt"},
		"prometheus": values{
			"tokenPath": "/token",
			"matchers":  `cluster="a"`, "httpConfigSecret": "login",
			"caCert": "-----BEGIN CERTIFICATE-----",
			"tls":    values{"insecureSkipVerify": true, "clientCertPath": "/client/tls.crt", "clientKeyPath": "/client/tls.key", "serverName": "prometheus"},
		},
	},
}}

// flags are the flags that a program says it has.
func flags(t *testing.T, program string) []string {
	t.Helper()
	path := filepath.Join(programs, program)
	require.FileExists(t, path, "run make build first")
	help, err := exec.CommandContext(t.Context(), path, "--help").CombinedOutput()
	require.NoError(t, err, string(help))
	var found []string
	for _, match := range regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z0-9.-]+)`).FindAllStringSubmatch(string(help), -1) {
		found = append(found, match[1])
	}
	return found
}

func TestThePrograms(t *testing.T) {
	rendered := render(t, everything)
	for program, deployment := range map[string]string{
		"manager":   plainName + "-controller-manager",
		"scheduler": "variant-scheduler",
	} {
		t.Run(program+" knows its arguments", func(t *testing.T) {
			known := flags(t, program)
			for _, argument := range arguments(t, rendered.get(t, "Deployment", deployment)) {
				name, _, _ := strings.Cut(strings.TrimLeft(argument, "-"), "=")
				assert.Contains(t, known, name)
			}
		})
	}
	t.Run("manager knows its settings", func(t *testing.T) {
		known := flags(t, "manager")
		settings := parse(t, rendered.get(t, "ConfigMap", plainName+"-variantautoscaling-config"))["config.yaml"].(map[string]any)
		assert.NotEmpty(t, settings)
		for name := range settings {
			assert.Contains(t, known, strings.ToLower(strings.ReplaceAll(name, "_", "-")))
		}
	})
}
