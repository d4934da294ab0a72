package monitoring

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// alert is one rule of the file of alerts.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func (a alert) hold(t *testing.T) time.Duration {
	t.Helper()
	duration, err := time.ParseDuration(a.For)
	require.NoError(t, err)
	return duration
}

func alerts(t *testing.T) []alert {
	t.Helper()
	text, err := os.ReadFile("../../manifests/monitoring/alerts.yaml")
	require.NoError(t, err)
	var file struct {
		Spec struct {
			Groups []struct {
				Rules []alert `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	var all []alert
	for _, group := range file.Spec.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// panel is one picture of the dashboard.
type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

func panels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile("../../manifests/monitoring/dashboard.json")
	require.NoError(t, err)
	var file struct {
		Panels []panel `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Panels)
	return file.Panels
}

func parse(t *testing.T, query string) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	require.NoError(t, err, query)
	return expr
}
