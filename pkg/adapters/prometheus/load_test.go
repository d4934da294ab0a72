package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// A server that gets all queries at once works on all of them and, where it is slow, has answered
// none when the reading ends.
func TestAReadingAsksAFewQueriesAtOnce(t *testing.T) {
	var now, most, asked atomic.Int64
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		for n := now.Add(1); n > most.Load(); {
			most.Store(n)
		}
		runtime.Gosched()
		now.Add(-1)
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	_, _, err := client.Read(t.Context(), start, window, lookback)
	require.NoError(t, err)
	assert.Equal(t, int64(23), asked.Load(), "all of them, but for the last two scrapes of no pod")
	assert.LessOrEqual(t, most.Load(), int64(queriesAtOnce+1), "and beside them the one for the last two scrapes")
}

// What a slow server has answered when the reading must end is known.
func TestAReadingThatEndsHasWhatWasAnswered(t *testing.T) {
	p := prometheustest.New(t)
	for _, at := range scrapes(5) {
		p.Append(at, load(engine("a", "0"), at.Sub(start)))
	}
	fast := map[string]bool{}
	fast[newBuilder(window, lookback).copiedServers().promQL()] = true
	for _, q := range newBuilder(window, lookback).leaveOut(nil).ofPods()[:queriesAtOnce] {
		fast[q.promQL()] = true
	}
	fast[newBuilder(window, lookback).paces(middleOf(window, lookback)).promQL()] = true
	fast[newBuilder(window, lookback).unlike(lookback).promQL()] = true
	var asked atomic.Int64
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if fast[r.FormValue("query")] {
			p.Handler.ServeHTTP(w, r)
			return
		}
		<-r.Context().Done()
	}))
	ctx, end := context.WithTimeout(t.Context(), 2*time.Second)
	defer end()
	replicas, _, err := client.Read(ctx, start.Add(time.Minute), window, lookback)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "query for the "+inputTokens)
	require.ErrorContains(t, err, "query for the "+gatewayLastTwo)
	assert.LessOrEqual(t, asked.Load(), int64(2*queriesAtOnce+4), "the others are not asked any more")
	r := replicas[pod("a")]
	assert.True(t, r.KVUse.Present && r.Waiting.Present, "the first ones, and their times, were answered")
	assert.False(t, r.Input.Present)
}

// Each answer names the same pods, and of a large cluster the names are most of it.
func TestAnswersShareTheLabelsThatTheyHaveInCommon(t *testing.T) {
	metric := func(pod, about string) model.Metric {
		return model.Metric{"namespace": "models", "pod": model.LabelValue(pod), labelIs: model.LabelValue(about)}
	}
	same := func(a, b *model.Sample) bool {
		return reflect.ValueOf(a.Metric).Pointer() == reflect.ValueOf(b.Metric).Pointer()
	}
	var known labelSets
	first := model.Vector{{Metric: metric("a", kvUse)}, {Metric: metric("b", kvUse)}}
	second := model.Vector{{Metric: metric("b", kvUse)}, {Metric: metric("b", waiting)}, {Metric: metric("a", kvUse)}}
	var want []model.Metric
	for _, s := range second {
		want = append(want, maps.Clone(s.Metric))
	}
	known.share(first)
	known.share(second)
	for i, s := range second {
		assert.Equal(t, want[i], s.Metric)
	}
	assert.True(t, same(first[1], second[0]) && same(first[0], second[2]))
	assert.False(t, same(second[0], second[1]), "another label is another set")
}

// large is a server of which every query is about so many pods.
func large(b *testing.B, pods int) *Client {
	b.Helper()
	vector := func(labels ...string) string {
		var page strings.Builder
		page.WriteString(`{"status":"success","data":{"resultType":"vector","result":[`)
		for i := range pods {
			for j, more := range labels {
				if i+j > 0 {
					page.WriteByte(',')
				}
				fmt.Fprintf(&page, `{"metric":{%s"namespace":"team-%d","pod":"llama-variant-%d-6d5f7c8b9-%05d"},"value":[%d,"%d"]}`,
					more, i/1000, i/10, i, start.Unix(), cmp.Or(map[bool]int64{true: start.Unix() - 10}[more != ""], 1))
			}
		}
		return page.String() + `]}}`
	}
	of := func(about string) string { return fmt.Sprintf("%q:%q,", labelIs, about) }
	values, times, counts := vector(""), vector(of(kvUse), of(waiting), of(running)), vector(of(served))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.FormValue("query") {
		case lastScrapes(kvUse, waiting, running):
			_, _ = io.WriteString(w, times)
		case lastScrapes(served):
			_, _ = io.WriteString(w, counts)
		case newBuilder(window, lookback).unlike(lookback).promQL():
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`) // all are alike
		default:
			_, _ = io.WriteString(w, values)
		}
	}))
	b.Cleanup(server.Close)
	client, err := New(Options{Address: server.URL, AllowHTTP: true, Timeout: time.Hour})
	require.NoError(b, err)
	return client
}

// BenchmarkRead is the manager's part of a reading at the size of the goal: 5,000 variants of 10
// replicas each.
func BenchmarkRead(b *testing.B) {
	const pods = 50_000
	client := large(b, pods)
	client.limits = limitsFor(5 << 29)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak uint64
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				peak = max(peak, memory.HeapInuse)
			}
		}
	})
	for b.Loop() {
		replicas, _, err := client.Read(b.Context(), start, window, lookback)
		require.NoError(b, err)
		require.Len(b, replicas, pods)
	}
	close(done)
	watch.Wait()
	b.ReportMetric(float64(peak-before.HeapInuse)/(1<<20), "MiB-peak")
}
