package prometheus

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// What tenants' proxies, gateways and pages to log in answer, by their documentation.
func TestWordsOfAnswers(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"Mimir without a tenant":      {"no org id\n", "no org id"},
		"Cortex as Prometheus":        {`{"status":"error","errorType":"unauthorized","error":"no org id"}`, "no org id"},
		"prom-label-proxy":            {`{"status":"error","errorType":"prom-label-proxy","error":"The \"namespace\" query parameter must be provided."}`, `The "namespace" query parameter must be provided.`},
		"kube-rbac-proxy":             {"Forbidden (user=system:serviceaccount:wva:manager, verb=get, resource=namespaces, subresource=)", "Forbidden (user=system:serviceaccount:wva:manager, verb=get, resource=namespaces, subresource=)"},
		"a Status of Kubernetes":      {`{"kind":"Status","message":"prometheuses.monitoring.coreos.com is forbidden","code":403}`, "prometheuses.monitoring.coreos.com is forbidden"},
		"an error within an object":   {`{"error":{"code":403,"message":"Permission monitoring.timeSeries.list denied"}}`, "Permission monitoring.timeSeries.list denied"},
		"an object without a message": {`{"code":7}`, `{"code":7}`},
		"a page to log in":            {"<!DOCTYPE html>\n<html><head><title>Sign in</title><style>p{color:red}</style><script>var key = \"abc\"</script></head><body><!-- build 7 --><h1>Log&nbsp;in</h1> to Grafana</body></html>", "Sign in Log in to Grafana"},
		"a redirect":                  {`<a href="https://login.example/?key=value">Found</a>.`, "Found ."},
		"an address with a query":     {"go to https://me:pass@login.example/start?key=value#there now", "go to https://login.example/start now"},
		"a number of the request":     {"denied, request 8f3a2b1c-1111-4222-8333-123456789abc at 2026-11-29T12:00:00.123Z (ray 8c1f00aa17)", "denied, request … at … (ray …)"},
		"a time of the day":           {"[Sun, 29 Nov 2026 12:00:00 GMT] upstream down since 12:00:01.5", "[…] upstream down since …"},
		"a token that is repeated":    {"invalid token eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJ3dmEifQ", "invalid token …"},
		"what was sent":               {"bad password hush-hush for hush", "bad password (hidden) for (hidden)"},
		"hosts and ports":             {"dial tcp 10.0.0.1:9090 of prometheus-0.monitoring.svc: refused", "dial tcp 10.0.0.1:9090 of prometheus-0.monitoring.svc: refused"},
		"what acts on a terminal":     {"a\x1b[31mred\u202e", `a\x1b[31mred\u202e`},
		"nothing":                     {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, words(c.body, []string{"hush-hush", "hush", "d"}))
		})
	}
	long := words(strings.Repeat("äöü ", 400), nil)
	assert.Equal(t, longestWords, utf8.RuneCountInString(long), "shortened, between two characters: the last space goes for the mark")
	assert.True(t, strings.HasSuffix(long, "ü…"))
}
