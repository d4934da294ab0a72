package podmetrics

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// full is an exposition of the size of vLLM's: what is of interest among a thousand
// buckets.
func full() []byte {
	b := bytes.NewBuffer(text(load(time.Hour)))
	for h := range 25 {
		for bucket := range 40 {
			fmt.Fprintf(b, "vllm:some_histogram_%d_seconds_bucket{engine=\"0\",le=\"%d.0\",model_name=\"meta-llama/Llama-3.1-8B-Instruct\"} %d.0\n", h, bucket, bucket)
		}
	}
	return b.Bytes()
}

func BenchmarkParse(b *testing.B) {
	v, body := vocabularyOf(modelserver.OfServer()), full()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		found, err := v.parse(bytes.NewReader(body))
		require.NoError(b, err)
		require.NotEmpty(b, found)
	}
}

// BenchmarkRead reads 10,000 pods with a minute of scrapes each, and says what a pod
// takes in memory.
func BenchmarkRead(b *testing.B) {
	const pods = 10_000
	now := start
	c, err := New(Options{Now: func() time.Time { return now }})
	require.NoError(b, err)
	targets := make([]modelserver.Target, pods)
	for i := range targets {
		targets[i] = modelserver.Target{Namespace: "models", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint(i))}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c.Follow(targets)
	for range 20 {
		found, err := c.servers.parse(bytes.NewReader(text(load(now.Sub(start)))))
		require.NoError(b, err)
		for _, p := range c.pods {
			p.history.append(now, found, c.keep(window), lookback)
		}
		now = now.Add(interval5)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ResetTimer()
	for b.Loop() {
		replicas, _, err := c.Read(b.Context(), now, window, lookback)
		require.NoError(b, err)
		require.Len(b, replicas, pods)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/pods, "B/pod")
}
