package prometheus

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// A server may have a pod_name for each of very many things: where the scrape names the pod, none
// of them is in an answer.
func TestAPodNameStandsInWhereThereIsNoPod(t *testing.T) {
	const many = 2000
	p := prometheustest.New(t)
	for i, at := range scrapes(5) {
		values := load(engine("a", "0"), at.Sub(start))
		for j := range many {
			values[fmt.Sprintf(`vllm:num_requests_running{pod_name="x-%d",%s}`, j, engine("b", "0"))] = 1
		}
		for series, value := range load(`namespace="models",pod_name="c",instance="10.0.0.3:8000",job="vllm"`, at.Sub(start)) {
			values[series] = value
		}
		p.Append(at, values)
		if i == 0 {
			assert.Len(t, values, many+2*len(load("", 0)))
		}
	}
	var largest int
	var lock sync.Mutex
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &bodySize{ResponseWriter: w}
		p.Handler.ServeHTTP(counted, r)
		lock.Lock()
		defer lock.Unlock()
		largest = max(largest, counted.bytes)
	}))
	replicas, _ := read(t, client, start.Add(61*time.Second))
	require.Len(t, replicas, 3)
	assert.InDelta(t, many, replicas[pod("b")].Running.Value, 1e-9)
	want, got := replicas[pod("a")], replicas[pod("c")]
	got.Name = want.Name
	assert.Equal(t, want, got)
	assert.Less(t, largest, 4<<10, "an answer has as many rows as there are pods")
}

// bodySize counts the bytes of a body.
type bodySize struct {
	http.ResponseWriter
	bytes int
}

func (c *bodySize) Write(b []byte) (int, error) {
	c.bytes += len(b)
	return c.ResponseWriter.Write(b)
}

// VictoriaMetrics refuses queries of more than 16 KiB (-search.maxQueryLen). However many pods miss a
// scrape, and whatever clusters and namespaces are picked, none is longer.
func TestQueriesAreShortEnoughForVictoriaMetrics(t *testing.T) {
	q := newBuilder(100*time.Minute, time.Hour)
	q.at = start
	all := slices.Concat(q.ofPods(), q.ofGateways(), []query{q.copiedServers(), q.copiedGateways(), q.paces(30 * time.Minute), q.unlike(time.Hour), q.lastTwo(4), queues(time.Minute), completions(), adapterLists()})
	all = append(all, lookingBack(StepsOf(time.Minute, "an-organisation/a-model-with-a-long-name", "a-namespace"))...)
	for _, n := range []int{1, 20, manyPods, 10 * manyPods} {
		gone := map[string]bool{}
		for i := range n {
			gone[fmt.Sprintf("%s-%05d", strings.Repeat("a-long-name", 6), i)] = true
		}
		all = append(all, q.goodScrapes(gone), q.podPaces(30*time.Minute, gone))
	}
	client := serve(t, http.NotFoundHandler())
	client.matchers = []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, "cluster", "production-eu-west")}
	crowded := serve(t, http.NotFoundHandler())
	crowded.matchers = client.matchers
	for i := range 4 {
		crowded.crowds.leaveOut(fmt.Sprint(strings.Repeat("n", 62), i), start, leftOutFor)
	}
	require.Len(t, crowded.crowds.names(), 1)
	for _, c := range []*Client{crowded, crowded.narrowTo([]string{strings.Repeat("n", 63), "another"}), serve(t, http.NotFoundHandler()), client.narrowTo([]string{strings.Repeat("n", longestNames)}), client.narrowTo([]string{strings.Repeat("n", 63), "another"})} {
		for _, one := range all {
			var parts []string
			for _, some := range one.shortened(c.selecting()) {
				text, err := narrow(some.promQL(), c.selecting())
				require.NoError(t, err)
				assert.Less(t, max(len(text), len(some.promQL())), 16<<10, one.about)
				parts = append(parts, some.parts...)
			}
			assert.Equal(t, one.parts, parts, "all of it is asked")
		}
	}
}

// The names that others write are read like the server's own.
func TestNamesAsOthersWriteThem(t *testing.T) {
	other := func(names map[string]string, first string) map[string]string {
		all := map[string]string{}
		for ours, theirs := range names {
			if theirs != "" {
				theirs = first + theirs[len("vllm:"):]
			}
			all[ours] = theirs
		}
		return all
	}
	own := map[string]string{}
	for series := range load("", 0) {
		name := nameOf(series)
		own[name] = name
	}
	p := prometheustest.New(t)
	times := scrapes(9)
	for _, at := range times {
		p.Append(at, load(engine("own", "0"), at.Sub(start)))
		p.Append(at, renamed(load(engine("plain", "0"), at.Sub(start)), other(own, "vllm_")))
		p.Append(at, renamed(load(engine("ray", "0"), at.Sub(start)), other(own, "ray_vllm_")))
		p.Append(at, load(engine("both", "0"), at.Sub(start)))
		p.Append(at, renamed(load(engine("both", "0"), at.Sub(start)), other(own, "vllm_")))
	}
	replicas, _ := read(t, serve(t, p.Handler), times[len(times)-1].Add(time.Second))
	want := replicas[pod("own")]
	require.True(t, want.Recent.Present && want.KVTokens.Present)
	for _, name := range []string{"plain", "ray", "both"} {
		got := replicas[pod(name)]
		got.Name = want.Name
		assert.Equal(t, want, got, name)
	}
}

func nameOf(series string) string {
	for i, c := range series {
		if c == '{' {
			return series[:i]
		}
	}
	return series
}

// An attempt that names no model is nobody's, and the servers' own count stands.
func TestAGatewayThatNamesNoModelCountsForNobody(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(9)
	for _, at := range times {
		p.Append(at, map[string]float64{`inference_extension_scheduler_attempts_total{status="success",namespace="models",pod="epp",instance="10.0.0.9:9090"}`: 7 * at.Sub(start).Seconds()})
		p.Append(at, load(engine("a", "0"), at.Sub(start)))
	}
	replicas, models := read(t, serve(t, p.Handler), times[len(times)-1].Add(time.Second))
	assert.Empty(t, models)
	assert.InDelta(t, 2, replicas[pod("a")].Served.Value, 1e-9)
	assert.NotContains(t, models, decision.ModelKey{Namespace: "models"})
}
