package monitoring

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/controller/metrics"
)

// variant are the labels of a series about one variant, as they are after a scrape.
const variant = `{namespace="wva", exported_namespace="chat", variant_name="llama"`

// cases are for every alert series that it is for, and series on which it is silent, one
// sample a minute.
var cases = map[string]struct{ fires, silent string }{
	"WVAManagerAbsent": {
		fires:  `other 1x90`,
		silent: `wva_last_round_timestamp_seconds{namespace="wva"} 0+60x90`,
	},
	"WVALoopStalled": {
		fires:  `wva_last_round_timestamp_seconds{namespace="wva"} 0x90`,
		silent: `wva_last_round_timestamp_seconds{namespace="wva"} 0+60x90` + "\n" + `wva_last_round_timestamp_seconds{namespace="wva", pod="standby"} 0x90`,
	},
	"WVARoundsFail": {
		fires:  `wva_round_duration_seconds_count{namespace="wva", round="Full", result="error"} 0+1x90`,
		silent: `wva_round_duration_seconds_count{namespace="wva", round="Full", result="success"} 0+1x90`,
	},
	"WVAVariantHeld": {
		fires:  `wva_held_rounds_total` + variant + `} 0+1x90`,
		silent: `wva_held_rounds_total` + variant + `} 7x90`,
	},
	"WVASamplesStale": {
		fires:  `wva_oldest_sample_age_seconds{namespace="wva", exported_namespace="chat", model_name="m"} 180x90`,
		silent: `wva_oldest_sample_age_seconds{namespace="wva", exported_namespace="chat", model_name="m"} 15x90`,
	},
	"WVASaturatedForLong": {
		fires: saturated("0x90"),
		// As long in all, but over within ten minutes each time.
		silent: saturated("0x9 600x9 1200x9 1800x9 2400x9 3000x9 3600x9 4200x9 4800x9"),
	},
	"WVASLOBurnsFast": {
		fires:  kept("0.99", "0.8x90"),
		silent: kept("0.99", "0.87x90") + "\n" + kept("0.9", "0.55x90", "of-few-nines") + "\n" + kept("0.99", "1x60 0.5x4 1x26", "for-minutes"),
	},
	"WVASLOBurnsSlowly": {
		fires:  kept("0.99", "0.93x90"),
		silent: kept("0.99", "0.95x90") + "\n" + kept("0.99", "1x60 0.7x5 1x25", "for-minutes"),
	},
	"WVANoRoom": {
		fires:  replicas("4x90", "2x90", "0x90"),
		silent: replicas("4x90", "2x90", "3x90"),
	},
	"WVAFlapping": {
		fires:  `wva_direction_changes_total` + variant + `} 0+1x90`,
		silent: `wva_direction_changes_total` + variant + `} 0x30 1x30 2x28`,
	},
	"WVAUnknownAccelerator": {
		fires:  `wva_unlisted_accelerator_nodes{namespace="wva", product="NEW"} 2x90`,
		silent: `wva_unlisted_accelerator_nodes{namespace="wva", product="NEW"} 0x90`,
	},
	"WVAPodsUnplaceable": {
		fires:  `acceleratorplacement_unplaceable_pods{profile="variant-scheduler", reason="no room"} 1x90`,
		silent: `acceleratorplacement_unplaceable_pods{profile="variant-scheduler", reason="no room"} 0 1x8 0x80`,
	},
	"WVAForeignPods": {
		fires:  `acceleratorplacement_foreign_pods{profile="variant-scheduler"} 1x90`,
		silent: `acceleratorplacement_foreign_pods{profile="variant-scheduler"} 0x90`,
	},
	"WVAKubeletRefusals": {
		fires:  `acceleratorplacement_kubelet_refusals_total{profile="variant-scheduler", reason="UnexpectedAdmissionError"} 0+1x90`,
		silent: `acceleratorplacement_kubelet_refusals_total{profile="variant-scheduler", reason="UnexpectedAdmissionError"} 3x90`,
	},
	"WVAVariantsUnread": {
		fires:  `acceleratorplacement_variants_known{profile="variant-scheduler"} 0x90`,
		silent: `acceleratorplacement_variants_known{profile="variant-scheduler"} 1x90`,
	},
}

// saturated are the instants since when a model is.
func saturated(since string) string {
	return `wva_saturated_since_timestamp_seconds{namespace="wva", exported_namespace="chat", model_name="m"} ` + since
}

// kept is how many of a model's requests met the SLO at most, and how many are to.
func kept(objective, share string, model ...string) string {
	name := strings.Join(append([]string{"m"}, model...), "-")
	labels := `{namespace="wva", exported_namespace="chat", model_name="` + name + `"`
	return "wva_slo_objective_ratio" + labels + "} " + objective + "x90\nwva_slo_met_ratio" + labels + `, bound="upper"} ` + share + "\nwva_slo_met_ratio" + labels + `, bound="lower"} 0x90`
}

func replicas(desired, current, slots string) string {
	const accelerator = variant + `, accelerator_type="H100"} `
	return "wva_desired_replicas" + accelerator + desired + "\nwva_current_replicas" + accelerator + current + "\nwva_variant_free_slots" + accelerator + slots
}

// firing says whether an alert fires on series within an hour and a half.
func firing(t *testing.T, a alert, series string) bool {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(strings.TrimSpace(series), "\n", "\n  ")+"\n")
	t.Cleanup(func() { assert.NoError(t, storage.Close()) })
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000), storage)
	rule := rules.NewAlertingRule(a.Alert, parse(t, a.Expr), a.hold(t), 0, labels.FromMap(a.Labels), labels.FromMap(a.Annotations), labels.EmptyLabels(), "", true, promslog.NewNopLogger())
	for at := time.Unix(0, 0); !at.After(time.Unix(90*60, 0)); at = at.Add(time.Minute) {
		_, err := rule.Eval(t.Context(), 0, at, query, nil, 0)
		require.NoError(t, err)
		for _, active := range rule.ActiveAlerts() {
			if active.State == rules.StateFiring {
				for name, text := range active.Annotations.Map() {
					assert.NotContains(t, text, "<error", "%s: %s", a.Alert, name)
					assert.NotContains(t, text, "<no value>", "%s: %s", a.Alert, name)
				}
				return true
			}
		}
	}
	return false
}

func TestEveryAlertFiresOnWhatItIsForAndOnNothingElse(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		seen[a.Alert] = true
		t.Run(a.Alert, func(t *testing.T) {
			given, found := cases[a.Alert]
			require.True(t, found, "it has no series to fire on")
			assert.True(t, firing(t, a, given.fires), "it fires")
			assert.False(t, firing(t, a, given.silent), "it is silent")
		})
	}
	for name := range cases {
		assert.True(t, seen[name], "%s is no alert", name)
	}
}

func TestEveryAlertHasItsPartOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/alerts.md")
	require.NoError(t, err)
	for _, a := range alerts(t) {
		assert.Equal(t, "docs/operate/alerts.md#"+strings.ToLower(a.Alert), a.Annotations["runbook_url"])
		assert.Contains(t, string(page), "\n## "+a.Alert+"\n")
		assert.Contains(t, []string{"critical", "warning", "info"}, a.Labels["severity"], a.Alert)
		assert.NotEmpty(t, a.Annotations["summary"], a.Alert)
	}
}

// TestQueriesNameWhatThePrograms have: every metric, and every label of it.
func TestQueriesNameWhatTheProgramsHave(t *testing.T) {
	known := exposed(t)
	queries := map[string]string{}
	for _, a := range alerts(t) {
		queries["alert "+a.Alert] = a.Expr
	}
	for _, p := range panels(t) {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			queries["panel "+p.Title+": "+target.Expr] = strings.NewReplacer("$__rate_interval", "5m", "$variant", ".*", "$namespace", ".*").Replace(target.Expr)
		}
	}
	for name, query := range queries {
		expr := parse(t, query)
		var had []string
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok {
				of, found := known[selector.Name]
				assert.True(t, found, "%s: no program has %s", name, selector.Name)
				had = append(had, of...)
			}
			return nil
		})
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch n := node.(type) {
			case *parser.AggregateExpr:
				for _, label := range n.Grouping {
					assert.True(t, slices.Contains(had, label), "%s: no metric of it has the label %s", name, label)
				}
			case *parser.VectorSelector:
				for _, matcher := range n.LabelMatchers {
					assert.True(t, matcher.Name == "__name__" || slices.Contains(known[n.Name], matcher.Name), "%s: %s has no label %s", name, n.Name, matcher.Name)
				}
			}
			return nil
		})
	}
}

// TestTheDashboardTellsNamespacesApart: two of them may have a variant, or a model, of one name.
func TestTheDashboardTellsNamespacesApart(t *testing.T) {
	known := exposed(t)
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			parser.Inspect(parse(t, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")), func(node parser.Node, _ []parser.Node) error {
				selector, ok := node.(*parser.VectorSelector)
				if !ok || !slices.Contains(known[selector.Name], "variant_name") && !slices.Contains(known[selector.Name], "model_name") {
					return nil
				}
				assert.True(t, slices.ContainsFunc(selector.LabelMatchers, func(m *labels.Matcher) bool {
					return m.Name == "exported_namespace" && m.Type == labels.MatchRegexp && m.Value == "$namespace"
				}), "%s: it can be narrowed to a namespace", p.Title)
				return nil
			})
			if strings.Contains(target.LegendFormat, "_name}}") {
				assert.Contains(t, target.LegendFormat, "{{exported_namespace}} {{", p.Title)
				assert.Regexp(t, `by \(exported_namespace, namespace, `, target.Expr, p.Title)
			}
		}
	}
}

// exposed are the series of both programs with their labels, and with those that a scrape
// adds.
func exposed(t *testing.T) map[string][]string {
	t.Helper()
	scraped := []string{"namespace", "exported_namespace", "controller_instance"}
	known := map[string][]string{}
	add := func(name string, kind string, own []string) {
		own = slices.Concat(own, scraped)
		if kind == "histogram" {
			known[name+"_bucket"], known[name+"_count"], known[name+"_sum"] = append(own, "le"), own, own
			return
		}
		known[name] = own
	}
	references, err := metrics.References()
	require.NoError(t, err)
	for _, r := range references {
		add(r.Name, r.Kind, r.Labels)
	}
	// The plugin links the scheduler, so its source says what it has.
	source, err := os.ReadFile("../../plugins/acceleratorplacement/metrics.go")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?s)gauge\("([a-z_]+)",\s+"[^"]*"(?:,\s+((?:"[a-z_]+",? ?)+))?\)`).FindAllStringSubmatch(string(source), -1) {
		add("acceleratorplacement_"+m[1], "gauge", append([]string{"profile"}, regexp.MustCompile(`[a-z_]+`).FindAllString(m[2], -1)...))
	}
	require.Contains(t, string(source), `"kubelet_refusals_total"`)
	add("acceleratorplacement_kubelet_refusals_total", "counter", []string{"profile", "reason"})
	return known
}
