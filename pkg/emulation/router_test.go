package emulation_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

// route starts a router of the models in the namespace "ns".
func route(t testing.TB, models ...string) (router *emulation.Router, address string) {
	t.Helper()
	var routed []emulation.RoutedModel
	for _, m := range models {
		routed = append(routed, emulation.RoutedModel{Namespace: "ns", Name: m})
	}
	router, err := emulation.NewRouter(routed...)
	require.NoError(t, err)
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return router, strings.TrimPrefix(server.URL, "http://")
}

func replica(name, model, address string) emulation.Replica {
	return emulation.Replica{Namespace: "ns", Name: name, Model: model, Address: address}
}

// gated is a backend that tells when a request came and answers when it is told
// to.
type gated struct {
	address string
	came    chan string
	answer  chan struct{}
}

func gate(t testing.TB) *gated {
	g := &gated{came: make(chan string, 100), answer: make(chan struct{})}
	g.address = backend(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		g.came <- string(body)
		select {
		case <-g.answer:
			_, _ = io.WriteString(w, "answered")
		case <-r.Context().Done():
		}
	})
	return g
}

func backend(t testing.TB, handler http.HandlerFunc) (address string) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// refused is an address at which nobody listens.
func refused(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func gauge(t testing.TB, address, name, model string) float64 {
	return valueOf(t, scrape(t, address), name, map[string]string{"target_model_name": model})
}

const (
	queueSize  = "inference_extension_flow_control_queue_size"
	queueBytes = "inference_extension_flow_control_queue_bytes"
	attempts   = "inference_extension_scheduler_attempts_total"
)

func TestRouterHoldsRequestsWhileThereIsNoReplica(t *testing.T) {
	router, address := route(t, "llama", "gpt")
	families := scrape(t, address)
	assert.Equal(t, "GAUGE", families[queueSize].GetType().String())
	assert.Equal(t, "GAUGE", families[queueBytes].GetType().String())
	assert.Equal(t, "COUNTER", families[attempts].GetType().String())
	labels := map[string]string{"status": "success", "target_model_name": "gpt", "model_name": "gpt", "namespace": "ns"}
	assert.InDelta(t, 0, valueOf(t, families, attempts, labels), 0, "series exist before the first request")
	assert.Len(t, families[attempts].GetMetric()[0].GetLabel(), 4)
	assert.InDelta(t, 0, valueOf(t, families, queueSize, map[string]string{"model_name": "gpt", "target_model_name": "gpt"}), 0)

	const body = `{"model":"llama","prompt":"a","max_tokens":2}`
	statuses := make(chan int, 3)
	for range 3 {
		go func() {
			response, err := post(t.Context(), address, body)
			if assert.NoError(t, err) {
				_ = response.Body.Close()
				statuses <- response.StatusCode
			}
		}()
	}
	require.Eventually(t, func() bool { return gauge(t, address, queueSize, "llama") == 3 }, patience, tick)
	assert.InDelta(t, 3*len(body), gauge(t, address, queueBytes, "llama"), 0)
	assert.InDelta(t, 0, gauge(t, address, attempts, "llama"), 0, "none is dispatched")
	assert.Equal(t, 3, router.Busiest("llama"))
	assert.InDelta(t, 0, gauge(t, address, queueSize, "gpt"), 0)

	_, llama := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	router.Add(emulation.Replica{Namespace: "elsewhere", Name: "x", Model: "llama", Address: llama})
	assert.InDelta(t, 3, gauge(t, address, queueSize, "llama"), 0, "a replica of another namespace is another model's")
	router.Add(replica("a", "llama", llama))
	for range 3 {
		assert.Equal(t, http.StatusOK, <-statuses)
	}
	assert.InDelta(t, 0, gauge(t, address, queueSize, "llama"), 0)
	assert.InDelta(t, 0, gauge(t, address, queueBytes, "llama"), 0)
	assert.InDelta(t, 3, gauge(t, address, attempts, "llama"), 0)

	router.Remove("ns", "a")
	go func() { _ = hang(t.Context(), address, body) }()
	require.Eventually(t, func() bool { return gauge(t, address, queueSize, "llama") == 1 }, patience, tick, "the replica is gone")
}

func TestRouterForgetsAClientThatIsGone(t *testing.T) {
	_, address := route(t, "llama")
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- hang(ctx, address, `{"model":"llama","prompt":"a"}`) }()
	require.Eventually(t, func() bool { return gauge(t, address, queueSize, "llama") == 1 }, patience, tick)
	leave()
	require.Error(t, <-gone)
	require.Eventually(t, func() bool { return gauge(t, address, queueSize, "llama") == 0 }, patience, tick)
	assert.InDelta(t, 0, gauge(t, address, queueBytes, "llama"), 0)
	assert.InDelta(t, 0, gauge(t, address, attempts, "llama"), 0)
}

func TestRouterChoosesTheLeastLoadedReplica(t *testing.T) {
	router, address := route(t, "llama")
	a, b, c := gate(t), gate(t), gate(t)
	// Added out of order: ties go by name.
	router.Add(replica("c", "llama", c.address))
	router.Add(replica("a", "llama", a.address))
	router.Add(replica("b", "llama", b.address))
	router.Add(replica("b", "llama", b.address))
	answered := make(chan struct{}, 100)
	send := func() {
		go func() {
			response, err := post(t.Context(), address, `{"model":"llama","prompt":"a"}`)
			if err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			answered <- struct{}{}
		}()
	}
	for _, g := range []*gated{a, b, c, a, b, c} {
		send()
		<-g.came
	}
	assert.Equal(t, 2, router.Busiest("llama"))
	assert.Zero(t, router.Busiest("nobody"))
	b.answer <- struct{}{}
	<-answered
	send()
	<-b.came // the others have two
	c.answer <- struct{}{}
	<-answered
	c.answer <- struct{}{}
	<-answered
	send()
	<-c.came
	send()
	<-c.came
	router.Remove("ns", "c")
	send()
	<-a.came
	assert.Empty(t, a.came)
	assert.Empty(t, b.came)
	assert.Empty(t, c.came)
}

func TestRouterSendsAgainWhatGotNoAnswer(t *testing.T) {
	for name, broken := range map[string]func(*testing.T) string{
		"nobody listens": func(t *testing.T) string { return refused(t) },
		"the replica is ending": func(t *testing.T) string {
			return backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		},
		"the connection breaks": func(t *testing.T) string {
			return backend(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			router, address := route(t, "llama")
			_, good := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
			router.Add(replica("a", "llama", broken(t)))
			router.Add(replica("b", "llama", good))
			for range 3 {
				status, body := ask(t, address, "llama", 3, 2)
				assert.Equal(t, http.StatusOK, status, body)
			}
			assert.InDelta(t, 3, gauge(t, address, attempts, "llama"), 0, "each request counts once")
		})
	}
}

func TestRouterWaitsForAReplicaThatReplacesABrokenOne(t *testing.T) {
	router, address := route(t, "llama")
	router.Add(replica("a", "llama", refused(t)))
	statuses := make(chan int, 1)
	go func() {
		status, _ := ask(t, address, "llama", 3, 2)
		statuses <- status
	}()
	require.Eventually(t, func() bool { return gauge(t, address, attempts, "llama") == 1 }, patience, tick)
	router.Remove("ns", "a")
	_, good := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	router.Add(replica("b", "llama", good))
	assert.Equal(t, http.StatusOK, <-statuses)
}

func TestRouterGivesUpOnABrokenReplica(t *testing.T) {
	router, address := route(t, "llama")
	router.Add(replica("a", "llama", refused(t)))
	status, body := ask(t, address, "llama", 3, 2)
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, body, "no replica of llama answered in 10 attempts")
}

// An answer that has begun cannot be sent again, and must not look complete.
func TestRouterBreaksOffWithItsReplica(t *testing.T) {
	router, address := route(t, "llama")
	router.Add(replica("a", "llama", backend(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})))
	response, err := post(t.Context(), address, `{"model":"llama","prompt":"a","stream":true}`)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, "data: {}\n\n", string(body))
	// It no longer counts as in flight: the tie goes to the first by name again.
	b := gate(t)
	router.Add(replica("b", "llama", b.address))
	response, err = post(t.Context(), address, `{"model":"llama","prompt":"a","stream":true}`)
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.Empty(t, b.came)
}

func TestRouterServesTwoModels(t *testing.T) {
	router, address := route(t, "llama", "gpt")
	for _, m := range []string{"llama", "gpt"} {
		_, backend := serve(t, emulation.ServerOptions{Model: m, Profile: quick})
		router.Add(replica(m+"-0", m, backend))
	}
	for i, m := range []string{"llama", "gpt", "llama"} {
		status, body := ask(t, address, m, 1, 1)
		assert.Equal(t, http.StatusOK, status, body)
		assert.Contains(t, body, fmt.Sprintf("%q", m), "request %d", i)
	}
	assert.InDelta(t, 2, gauge(t, address, attempts, "llama"), 0)
	assert.InDelta(t, 1, gauge(t, address, attempts, "gpt"), 0)

	status, body := ask(t, address, "mistral", 1, 1)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "mistral")
	response, err := post(t.Context(), address, `no JSON`)
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
}

// The answer of a replica that refuses a request for good is passed on.
func TestRouterPassesRefusalsOn(t *testing.T) {
	router, address := route(t, "llama")
	_, backend := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	router.Add(replica("a", "llama", backend))
	status, body := ask(t, address, "llama", 1, 20_000)
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, body, "the server has 16000")
}

func TestRouterRefusals(t *testing.T) {
	_, err := emulation.NewRouter(emulation.RoutedModel{Name: "a"}, emulation.RoutedModel{Name: "a"})
	assert.ErrorContains(t, err, `"a" is empty or given twice`)
	_, err = emulation.NewRouter(emulation.RoutedModel{})
	assert.Error(t, err)
}
