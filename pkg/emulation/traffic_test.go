package emulation_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// listed is a stream of given requests, then of an error or the end.
type listed struct {
	requests []workload.Request
	err      error
}

func (l *listed) Next() (workload.Request, error) {
	if len(l.requests) == 0 {
		if l.err != nil {
			return workload.Request{}, l.err
		}
		return workload.Request{}, io.EOF
	}
	r := l.requests[0]
	l.requests = l.requests[1:]
	return r, nil
}

func every(d time.Duration, n, output int) (all []workload.Request) {
	for i := range n {
		all = append(all, workload.Request{Arrival: time.Duration(i) * d, Input: 10 + i, Output: output})
	}
	return all
}

func TestTrafficThroughTheRouter(t *testing.T) {
	router, address := route(t, "llama")
	for _, name := range []string{"a", "b"} {
		_, backend := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
		router.Add(replica(name, "llama", backend))
	}
	var observed []emulation.Outcome
	requests := every(2*time.Millisecond, 200, 10)
	requests[7].Output = 1
	outcomes, err := emulation.Traffic{
		URL: "http://" + address + "/", Model: "llama", Requests: &listed{requests: requests},
		Observe: func(o emulation.Outcome) { observed = append(observed, o) },
	}.Play(t.Context())
	require.NoError(t, err)
	require.Len(t, outcomes, 200)
	assert.ElementsMatch(t, outcomes, observed)
	for i, o := range outcomes {
		require.False(t, o.Failed)
		want := requests[i]
		require.Equal(t, []any{want.Arrival, want.Input, want.Output}, []any{o.Arrival, o.Input, o.Output}, "in order of arrival")
		require.Equal(t, "llama", o.Model)
		require.GreaterOrEqual(t, o.TTFT, 2*time.Millisecond, "an iteration at least")
		itl, ok := o.ITL()
		if o.Output == 1 {
			require.False(t, ok)
			continue
		}
		require.True(t, ok)
		require.GreaterOrEqual(t, o.EndToEnd, o.TTFT)
		require.Equal(t, (o.EndToEnd-o.TTFT)/9, itl)
	}
	assert.InDelta(t, 200, gauge(t, address, attempts, "llama"), 0)
}

// Latency counts from when a request was due: a generator that is late cannot
// hide it.
func TestTrafficThatIsLateDoesNotHideIt(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	outcomes, err := emulation.Traffic{
		URL: "http://" + address, Model: "llama", Requests: &listed{requests: every(0, 3, 2)}, Start: time.Now().Add(-time.Hour),
	}.Play(t.Context())
	require.NoError(t, err)
	for _, o := range outcomes {
		assert.Greater(t, o.TTFT, time.Hour)
	}
}

func TestTrafficCountsFailures(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"nobody listens": func(t *testing.T) string { return refused(t) },
		"refused": func(t *testing.T) string {
			return backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		},
		"broken off": func(t *testing.T) string {
			return backend(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "data: {}\n\n")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
		},
		"ended early": func(t *testing.T) string {
			return backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "data: {}\n\n") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			outcomes, err := emulation.Traffic{URL: "http://" + url(t), Model: "llama", Requests: &listed{requests: every(0, 2, 2)}}.Play(t.Context())
			require.NoError(t, err)
			require.Len(t, outcomes, 2)
			for _, o := range outcomes {
				assert.True(t, o.Failed)
				assert.Zero(t, o.TTFT+o.EndToEnd)
				_, ok := o.ITL()
				assert.False(t, ok)
			}
		})
	}
}

func TestTrafficDrains(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: serving.Profile{Base: 10}})
	outcomes, err := emulation.Traffic{
		URL: "http://" + address, Model: "llama", Requests: &listed{requests: every(0, 3, 20)}, Drain: time.Hour,
	}.Play(t.Context())
	require.NoError(t, err)
	for _, o := range outcomes {
		assert.False(t, o.Failed, "it takes longer than the traffic")
	}

	_, address = serve(t, emulation.ServerOptions{Model: "llama", Profile: slow})
	outcomes, err = emulation.Traffic{
		URL: "http://" + address, Model: "llama", Requests: &listed{requests: every(0, 3, 20)}, Drain: 10 * time.Millisecond,
	}.Play(t.Context())
	require.NoError(t, err)
	require.Len(t, outcomes, 3)
	for _, o := range outcomes {
		assert.True(t, o.Failed, "it takes longer than the drain")
	}
}

func TestTrafficEndsWithItsContext(t *testing.T) {
	server, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: slow})
	ctx, cancel := context.WithCancel(t.Context())
	requests := append(every(0, 2, 5), workload.Request{Arrival: time.Hour, Input: 1, Output: 1})
	go func() {
		assert.Eventually(t, func() bool { return server.State().Running+server.State().Waiting == 2 }, patience, tick)
		cancel()
	}()
	outcomes, err := emulation.Traffic{URL: "http://" + address, Model: "llama", Requests: &listed{requests: requests}}.Play(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, outcomes, 2, "what was never sent is no outcome")
	for _, o := range outcomes {
		assert.True(t, o.Failed)
	}
}

func TestTrafficReportsABrokenStream(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	broken := errors.New("trace.csv:9: broken")
	outcomes, err := emulation.Traffic{
		URL: "http://" + address, Model: "llama", Requests: &listed{requests: every(0, 2, 5), err: broken},
	}.Play(t.Context())
	require.ErrorIs(t, err, broken)
	require.Len(t, outcomes, 2)
	for _, o := range outcomes {
		assert.False(t, o.Failed)
	}
}

// BenchmarkTraffic plays 200 requests per second of which about 1,500 are in
// flight, through a router to eight model servers, all in this process, and
// reports how many cores that takes.
func BenchmarkTraffic(b *testing.B) {
	const servers, rate, seconds = 8, 200, 30
	router, address := route(b, "llama")
	for i := range servers {
		// 25 ms per iteration and 300 tokens: 7.5 s per request.
		_, backend := serve(b, emulation.ServerOptions{Model: "llama", Profile: serving.Profile{Base: 25, KVTokens: 4_000_000}})
		router.Add(replica(string(rune('a'+i)), "llama", backend))
	}
	random := rand.New(rand.NewPCG(1, 1))
	var requests []workload.Request
	for i := range rate * seconds {
		requests = append(requests, workload.Request{
			Arrival: time.Duration(i) * time.Second / rate, Input: 1 + random.IntN(2300), Output: 250 + random.IntN(100),
		})
	}
	for b.Loop() {
		start, used := time.Now(), cpuTime(b)
		outcomes, err := emulation.Traffic{URL: "http://" + address, Model: "llama", Requests: &listed{requests: requests}}.Play(b.Context())
		require.NoError(b, err)
		for _, o := range outcomes {
			require.False(b, o.Failed)
		}
		b.ReportMetric((cpuTime(b)-used).Seconds()/time.Since(start).Seconds(), "cores")
	}
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
