package install

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer is what Prometheus says to a query.
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		Result []json.RawMessage `json:"result"`
	} `json:"data"`
}

func (s *site) ask(t *testing.T, query string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.PrometheusURL()+"/api/v1/query?query="+url.QueryEscape(query), nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	var said answer
	require.NoError(t, json.NewDecoder(response.Body).Decode(&said))
	return said
}

// queriesAreAnswered evaluates every query of the dashboard and every alert that the
// release has on a Prometheus that reads the manager. What the manager always shows must
// be there; on the rest test/monitoring has series.
func (s *site) queriesAreAnswered(t *testing.T, metrics string) {
	require.NoError(t, s.AddScrapeTarget("manager", metrics, map[string]string{"namespace": home}))
	require.Eventually(t, func() bool { return len(s.ask(t, "wva_last_round_timestamp_seconds").Data.Result) > 0 }, patience, 200*time.Millisecond, "the manager is read")
	require.Eventually(t, func() bool { return len(s.ask(t, `wva_desired_replicas{variant_name="old"}`).Data.Result) > 0 }, patience, 200*time.Millisecond, "and what it decided")

	groups, ok := s.field(t, rules, home, prefix+"-alerts", "spec", "groups").([]any)
	require.True(t, ok)
	queries := map[string]string{}
	for _, group := range groups {
		for _, rule := range group.(map[string]any)["rules"].([]any) {
			queries["alert "+rule.(map[string]any)["alert"].(string)] = rule.(map[string]any)["expr"].(string)
		}
	}
	page, ok := s.field(t, configMaps, home, prefix+"-dashboard", "data", "workload-variant-autoscaler.json").(string)
	require.True(t, ok)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(page), &dashboard))
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries["panel "+panel.Title+": "+target.Expr] = strings.NewReplacer("$__rate_interval", "1m", "$variant", ".*", "$namespace", ".*").Replace(target.Expr)
		}
	}
	assert.Greater(t, len(queries), 20)
	shown := 0
	for name, query := range queries {
		said := s.ask(t, query)
		assert.Equal(t, "success", said.Status, "%s: %s", name, said.Error)
		if len(said.Data.Result) > 0 {
			shown++
		}
	}
	assert.GreaterOrEqual(t, shown, 3, "replicas wanted, replicas there, and the time since the last round")
}

// logOf is what a program wrote.
func (s *site) logOf(t *testing.T, program string) string {
	t.Helper()
	text, err := os.ReadFile(s.Logs() + "/" + program + ".log")
	require.NoError(t, err)
	return string(text)
}
