package prometheus

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// regular are the scrapes of a server and a gateway of the namespace under a steady load, up to
// those that are known so long after the start.
func regular(p *prometheustest.Prometheus, namespace string, every, late, age, long time.Duration) {
	last := start.Add(long - late - age)
	for at := last.Add(-last.Sub(start) / every * every); !at.After(last); at = at.Add(every) {
		since := at.Sub(start)
		p.Append(at, load(strings.ReplaceAll(engine("a", "0"), `namespace="models"`, fmt.Sprintf("namespace=%q", namespace)), since))
		p.Append(at, map[string]float64{
			fmt.Sprintf(`inference_extension_scheduler_attempts_total{status="success",target_model_name="llama",namespace=%q,pod="epp",instance="10.0.0.9:9090"}`, namespace): 2 * since.Seconds(),
			fmt.Sprintf(`inference_extension_flow_control_queue_size{target_model_name="llama",namespace=%q,pod="epp",instance="10.0.0.9:9090"}`, namespace):                   0,
		})
	}
}

// However seldom a server is scraped, however late that is known and whenever it is asked, all of
// it is known, and right.
func TestWhatIsScrapedSeldomOrKnownLateIsKnown(t *testing.T) {
	const long = 15 * time.Minute
	for _, every := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, 45 * time.Second, time.Minute, 2 * time.Minute} {
		for _, late := range []time.Duration{0, 45 * time.Second} {
			for _, part := range []int{0, 2, 4} {
				age := every * time.Duration(part) / 5
				t.Run(fmt.Sprintf("every %s, %s late, %s after the scrape", every, late, age), func(t *testing.T) {
					p := prometheustest.New(t)
					regular(p, "models", every, late, age, long)
					at := start.Add(long)
					replicas, models := read(t, serve(t, p.Handler), at)
					r, m := replicas[pod("a")], models[decision.ModelKey{Namespace: "models", ID: "llama"}]
					for name, want := range map[string]struct {
						sample decision.Sample
						value  float64
					}{
						"running": {r.Running, 20}, "served": {r.Served, 2}, "growth": {r.InFlightGrowth, 0.1}, "recent": {r.Recent, 2.1},
						"in service": {r.InService, 8}, "input": {r.Input, 1000}, "output": {r.Output, 200}, "TTFT": {r.TTFT, 0.3}, "ITL": {r.ITL, 0.02},
						"arrival": {m.Arrival, 2}, "recent arrival": {m.Recent, 2},
					} {
						assert.True(t, want.sample.Present, name)
						assert.InEpsilon(t, want.value, want.sample.Value, 0.03, name)
						assert.Equal(t, at.Add(-late-age), want.sample.Time, name)
					}
					assert.True(t, r.Waiting.Present && m.Queue.Present)
					assert.Equal(t, every, r.RecentSpan)
					if late > every {
						assert.InDelta(t, late.Seconds(), r.Pace.Lag.Seconds(), every.Seconds()+1)
					}
					assert.Equal(t, r.Pace, m.Pace)
				})
			}
		}
	}
}

// What one namespace does changes nothing of what is read in another one.
func TestNamespacesAreReadEachAtItsPace(t *testing.T) {
	const long = 15 * time.Minute
	both, alone := prometheustest.New(t), prometheustest.New(t)
	regular(alone, "models", scrapeInterval, 0, 0, long)
	regular(both, "models", scrapeInterval, 0, 0, long)
	for i, p := range []struct{ every, late time.Duration }{{time.Minute, 0}, {scrapeInterval, 45 * time.Second}, {2 * time.Minute, 0}, {5 * time.Second, 100 * time.Second}} {
		regular(both, fmt.Sprint("other-", i), p.every, p.late, 0, long)
	}
	at := start.Add(long)
	want, wantModels := read(t, serve(t, alone.Handler), at)
	got, gotModels := read(t, serve(t, both.Handler), at)
	assert.Equal(t, want[pod("a")], got[pod("a")])
	key := decision.ModelKey{Namespace: "models", ID: "llama"}
	assert.Equal(t, wantModels[key], gotModels[key])
	require.Len(t, got, 5)
	for i := range manyGroups {
		for name, r := range got {
			if name.Namespace == fmt.Sprint("other-", i) {
				assert.InEpsilon(t, 2, r.Served.Value, 0.03, name)
				assert.NotZero(t, r.Pace, name)
			}
		}
	}
}

// Where many namespaces are read otherwise, none is left out, and the others are read as ever.
func TestManyNamespacesAreReadAtTheirPace(t *testing.T) {
	const long = 6 * time.Minute
	p := prometheustest.New(t)
	for i := range 2 * manyNames {
		regular(p, fmt.Sprint("slow-", i), time.Minute, 0, 0, long)
	}
	regular(p, "models", scrapeInterval, 0, 0, long)
	got, models := read(t, serve(t, p.Handler), start.Add(long))
	require.Len(t, got, 2*manyNames+1)
	require.Len(t, models, 2*manyNames+1)
	for name, r := range got {
		assert.InEpsilon(t, 2, r.Served.Value, 0.03, name)
		assert.Equal(t, name.Namespace == "models", r.Pace == decision.Pace{}, name)
	}
}

// A server has a bound to what it is asked, whatever the namespaces do.
func TestNamespacesAreReadInFewWays(t *testing.T) {
	seen := map[string]seenPace{}
	for i := range 100 {
		seen[fmt.Sprint("ns-", i)] = seenPace{newest: start.Add(-time.Duration(i) * time.Second), window: 12, middle: 30, behind: 60}
	}
	assert.Len(t, groupsOf(seen, start, window, lookback), manyGroups+1)
	assert.Len(t, groupsOf(nil, start, window, lookback), 1)
}

// VictoriaMetrics shows nothing of the last 30 seconds unless it is told to.
func TestTheNewestSamplesAreAskedFor(t *testing.T) {
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "1ms", r.FormValue("latency_offset"))
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`))
	}))
	_, _, err := client.Read(t.Context(), start, window, lookback)
	require.NoError(t, err)
}
