package prometheustest_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay/past"
	"llmd.ai/workload-variant-autoscaler/pkg/adapters/podmetrics"
	"llmd.ai/workload-variant-autoscaler/pkg/adapters/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// page is what a server shows, by series, 100 seconds after its start under a steady load.
type page map[string]float64

// at is the page a while after the start: what is counted grows, the rest stays.
func (p page) at(since time.Duration) page {
	all := make(page, len(p))
	for series, value := range p {
		name, _, _ := strings.Cut(series, "{")
		for _, counted := range []string{"_total", "_sum", "_count", "_bucket", "_success"} {
			if strings.HasSuffix(name, counted) {
				value *= since.Seconds() / 100
			}
		}
		all[series] = value
	}
	return all
}

// scraped are the series with the labels of a target, which keep theirs where the server has others.
func (p page) scraped(target map[string]string) page {
	all := make(page, len(p))
	for series, value := range p {
		name, labels, _ := strings.Cut(series, "{")
		if labels = strings.TrimSuffix(labels, "}"); labels != "" {
			labels += ","
		}
		for _, label := range slices.Sorted(maps.Keys(target)) {
			if strings.HasPrefix(labels, label+"=") {
				labels = "exported_" + labels
			}
			labels = strings.ReplaceAll(labels, ","+label+"=", ",exported_"+label+"=") + fmt.Sprintf("%s=%q,", label, target[label])
		}
		all[name+"{"+labels+"}"] = value
	}
	return all
}

// readers are both of them, of one server and of one gateway that show a page.
type readers struct {
	stored *prometheustest.Prometheus
	asked  *prometheus.Client
	direct *podmetrics.Client
	shown  page
	now    time.Time
}

func readersOf(t *testing.T) *readers {
	r := &readers{stored: prometheustest.New(t), now: start}
	var err error
	r.asked, err = prometheus.New(prometheus.Options{Address: serve(t, r.stored.Handler).String(), AllowHTTP: true, Timeout: time.Minute})
	require.NoError(t, err)
	u := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		for series, v := range r.shown {
			fmt.Fprintf(&b, "%s %s\n", series, strconv.FormatFloat(v, 'g', -1, 64))
		}
		_, _ = w.Write(b.Bytes())
	}))
	r.direct, err = podmetrics.New(podmetrics.Options{Interval: scrapeInterval, Now: func() time.Time { return r.now }, Gateways: []string{u.String()}})
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	r.direct.Follow([]modelserver.Target{{Namespace: "models", Name: "a", Address: u.Hostname(), Port: port}})
	return r
}

// steady scrapes a page with both readers for a while.
func (r *readers) steady(t *testing.T, p page, targets ...map[string]string) {
	for i := range 9 {
		since := 100*time.Second + time.Duration(i)*scrapeInterval
		r.shown = p.at(since)
		for _, target := range targets {
			// Each target has its own time, as Prometheus spreads them.
			late := time.Duration(len(target)) * 100 * time.Millisecond
			r.stored.Append(r.now.Add(late), p.at(since+late).scraped(target))
		}
		r.direct.Scrape(t.Context())
		r.now = r.now.Add(scrapeInterval)
	}
}

// reading is what one reader finds, by name; what is not known is not in it.
type reading map[string]float64

func (r *readers) both(t *testing.T) map[string]reading {
	at, all := r.now.Add(-scrapeInterval+2*time.Second), map[string]reading{}
	for name, read := range map[string]func() (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error){
		"Prometheus": func() (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
			return r.asked.Read(t.Context(), at, window, lookback)
		},
		"pods": func() (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
			replicas, models, _ := r.direct.Read(t.Context(), at, window, lookback) // A page is not of both.
			return replicas, models, nil
		},
	} {
		replicas, models, err := read()
		require.NoError(t, err)
		found := reading{}
		add := func(of string, s decision.Sample) {
			if s.Present {
				found[of] = s.Value
			}
		}
		server := replicas[types.NamespacedName{Namespace: "models", Name: "a"}]
		for of, s := range map[string]decision.Sample{
			"running": server.Running, "waiting": server.Waiting, "kv": server.KVUse, "tokens": server.KVTokens, "served": server.Served, "recent": server.Recent,
			"input": server.Input, "output": server.Output, "ttft": server.TTFT, "itl": server.ITL, "service": server.InService, "growth": server.InFlightGrowth,
		} {
			add(of, s)
		}
		for _, m := range models {
			add("arrival", m.Arrival)
			add("dispatched", m.Recent)
			add("queue", m.Queue)
		}
		adapters, err := map[string]func(context.Context, time.Time) (map[types.NamespacedName][]string, error){"Prometheus": r.asked.Adapters, "pods": r.direct.Adapters}[name](t.Context(), at)
		require.NoError(t, err)
		for _, one := range adapters[types.NamespacedName{Namespace: "models", Name: "a"}] {
			found["adapter:"+one] = 1
		}
		all[name] = found
	}
	return all
}

func target(pod, port, job string) map[string]string {
	return map[string]string{"namespace": "models", "pod": pod, "instance": "10.0.0.1:" + port, "job": job}
}

// Pages as servers and gateways of these versions publish them.
func TestPagesAsPublished(t *testing.T) {
	files, err := filepath.Glob("testdata/pages/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			shown, want := pageOf(t, file)
			require.NotEmpty(t, want)
			r := readersOf(t)
			r.steady(t, shown, target("a", "8000", "one"))
			for reader, got := range r.both(t) {
				for of, value := range want {
					assert.InEpsilon(t, value, got[of], 1e-6, "%s: %s", reader, of)
				}
				for of := range got {
					assert.False(t, strings.HasPrefix(of, "adapter:") && want[of] == 0, "%s: %s", reader, of)
				}
				if _, counted := want["served"]; counted {
					assert.InEpsilon(t, want["served"], got["recent"], 1e-6, reader)
				} else {
					assert.InDelta(t, want["arrival"], got["dispatched"], 1e-6, reader)
					assert.InDelta(t, want["arrival"], got["arrival"], 1e-6, reader)
				}
			}
		})
	}
}

// Who looks back finds on each page what a reading finds, as far as both show it.
func TestPagesLookedBackAt(t *testing.T) {
	files, err := filepath.Glob("testdata/pages/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			shown, want := pageOf(t, file)
			r := readersOf(t)
			r.steady(t, shown, target("a", "8000", "one"))
			read, step := r.both(t)["Prometheus"], window
			seen, err := past.LookBack(t.Context(), r.asked, past.Span{Model: "llama", Namespace: "models", From: start, To: start.Add(2 * step), Step: step})
			require.NoError(t, err)
			if _, server := want["running"]; !server {
				require.Empty(t, seen.Pods, "a gateway serves nothing itself")
				return
			}
			require.Len(t, seen.Pods, 1)
			last := seen.Pods[0].Steps[1]
			for of, got := range map[string]float64{
				"running": last.Running, "waiting": last.Waiting, "tokens": seen.Pods[0].KVTokens,
				"served": last.Completed / step.Seconds(), "growth": last.InFlight / step.Seconds(),
				"input": last.Input.Value(), "output": last.Output.Value(), "ttft": last.FirstToken.Value(), "itl": last.InterToken.Value(),
			} {
				if value, known := read[of]; known {
					assert.InDelta(t, value, got, 1e-6*max(1, value), of)
				} else if got > 0 { // and not an unknown number
					assert.Fail(t, of+": a reading does not know it")
				}
			}
		})
	}
}

// pageOf reads a page and what its head says that a reader must find.
func pageOf(t *testing.T, file string) (page, reading) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	shown, want := page{}, reading{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		wanted, isWant := strings.CutPrefix(line, "# want ")
		for pair := range strings.FieldsSeq(wanted) {
			if of, value, found := strings.Cut(pair, "="); isWant && found {
				want[of] = numberOf(t, value)
			}
		}
		if cut := strings.LastIndexByte(line, ' '); cut > 0 && line[0] != '#' {
			require.NotContains(t, shown, line[:cut], "a page has a series once")
			shown[line[:cut]] = numberOf(t, line[cut+1:])
		}
	}
	return shown, want
}

func numberOf(t *testing.T, text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return n
}

// Whatever label a server splits a metric by, both readers find what they find without it.
func TestALabelThatNobodyKnowsChangesNoReading(t *testing.T) {
	labels := []string{"endpoint_name", "pod_name", "endpoint", "container", "app", "stream", "wva_name", "le_grand", "exported_job", "replica"}
	for _, file := range []string{"vllm-v1-two-engines", "vllm-v1-adapters", "sglang-0.5.12", "llm-d-router-0.9"} {
		whole, _ := pageOf(t, "testdata/pages/"+file+".txt")
		plain := readersOf(t)
		plain.steady(t, whole, target("a", "8000", "one"))
		want := plain.both(t)
		for i, quantity := range slices.Concat(modelserver.OfServer(), modelserver.OfGateway()) {
			label := labels[i%len(labels)]
			split := splitBy(whole, quantity, label)
			if len(split) == len(whole) {
				continue // This page has not that metric.
			}
			t.Run(fmt.Sprint(file, " ", quantity.Names[0], " ", label), func(t *testing.T) {
				r := readersOf(t)
				r.steady(t, split, target("a", "8000", "one"))
				for reader, got := range r.both(t) {
					for _, of := range slices.Sorted(maps.Keys(want[reader])) {
						assert.InDelta(t, want[reader][of], got[of], 1e-6*max(1, want[reader][of]), "%s: %s", reader, of)
					}
				}
			})
		}
	}
}

// splitBy splits every series of a quantity into two by a label. The parts of a share are each a
// share, and those of the size of a cache are half as large.
func splitBy(whole page, quantity modelserver.Metric, label string) page {
	names := map[string]bool{}
	for _, name := range quantity.Names {
		for _, part := range []string{"", "_sum", "_count"} {
			names[name+part] = true
		}
	}
	all := page{}
	for series, value := range whole {
		name, labels, _ := strings.Cut(series, "{")
		if !names[name] || strings.Contains(series, label+"=") {
			all[series] = value
			continue
		}
		parts := [2]float64{value / 4, value * 3 / 4}
		switch quantity.Quantity {
		case modelserver.KVUse:
			parts = [2]float64{value / 2, value}
		case modelserver.Adapters:
			parts = [2]float64{value, value}
		case modelserver.CacheBlocks:
			parts = [2]float64{1, 1}
			labels = strings.Replace(labels, `num_gpu_blocks="1000"`, `num_gpu_blocks="500"`, 1)
		}
		for i, part := range parts {
			all[fmt.Sprintf("%s{%s=\"part-%d\",%s", name, label, i, labels)] = part
		}
	}
	return all
}

// A page that is scraped again counts once, however the second scrape calls itself.
func TestAPageThatIsScrapedTwiceCountsOnce(t *testing.T) {
	more := func(labels map[string]string) map[string]string {
		all := target("a", "8000", "one")
		maps.Copy(all, labels)
		return all
	}
	again := map[string]map[string]string{
		"by another job":                             more(map[string]string{"job": "two", "service": "vllm"}),
		"by a second target of the job":              more(map[string]string{"container": "proxy"}),
		"by a second Prometheus":                     more(map[string]string{"prometheus_replica": "b"}),
		"with labels of the pod":                     more(map[string]string{"app": "vllm", "pod_template_hash": "5d4f"}),
		"at a port of a sidecar that hands it on":    more(map[string]string{"instance": "10.0.0.1:15020", "container": "istio-proxy"}),
		"at a port of a sidecar by a job of its own": more(map[string]string{"instance": "10.0.0.1:15020", "job": "mesh"}),
	}
	for _, file := range []string{"vllm-v1-two-engines", "sglang-0.5.19", "vllm-ray", "llm-d-router-0.9"} {
		shown, want := pageOf(t, "testdata/pages/"+file+".txt")
		for name, second := range again {
			t.Run(file+" "+name, func(t *testing.T) {
				r := readersOf(t)
				r.steady(t, shown, target("a", "8000", "one"), second)
				got := r.both(t)["Prometheus"]
				for of, value := range want {
					assert.InEpsilon(t, value, got[of], 1e-3, of)
				}
			})
		}
	}
}

// Ranks that show themselves at a port of the pod each (vLLM's --data-parallel-multi-port-external-lb) are the
// engines of one server.
func TestRanksAtPortsOfTheirOwnAreEngines(t *testing.T) {
	shown, want := pageOf(t, "testdata/pages/vllm-v1-two-engines.txt")
	r := readersOf(t)
	for i := range 9 {
		now := shown.at(100*time.Second + time.Duration(i)*scrapeInterval)
		for engine, port := range map[string]string{`engine="0"`: "8000", `engine="1"`: "8001"} {
			own := maps.Clone(now)
			maps.DeleteFunc(own, func(series string, _ float64) bool { return !strings.Contains(series, engine) })
			r.stored.Append(r.now, own.scraped(target("a", port, "one")))
		}
		r.now = r.now.Add(scrapeInterval)
	}
	got := r.both(t)["Prometheus"]
	for of, value := range want {
		assert.InEpsilon(t, value, got[of], 1e-6, of)
	}
}

// Two servers in one pod that count for themselves are two.
func TestTwoServersInAPodAreTwo(t *testing.T) {
	shown, want := pageOf(t, "testdata/pages/vllm-v0.txt")
	r := readersOf(t)
	other := shown.at(120 * time.Second) // It has served a fifth more, and then as fast.
	for i := range 9 {
		since := time.Duration(i) * scrapeInterval
		r.stored.Append(r.now, shown.at(100*time.Second+since).scraped(target("a", "8000", "one")))
		r.stored.Append(r.now, other.at(100*time.Second+since).scraped(target("a", "8001", "one")))
		r.now = r.now.Add(scrapeInterval)
	}
	got := r.both(t)["Prometheus"]
	assert.InEpsilon(t, want["served"]*2.2, got["served"], 1e-6)
	assert.InEpsilon(t, want["running"]*2, got["running"], 1e-6)
	assert.InEpsilon(t, want["tokens"]*2, got["tokens"], 1e-6)
	assert.InEpsilon(t, want["input"], got["input"], 1e-6)
}
