package load_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// ofThree and ofFour are loads for so many replicas of which none may go: with headroom
// they are more than one fewer carries by a fifth, and as far from the triggers, because a
// busy machine makes rates uneven.
const (
	ofThree = 5.3
	ofFour  = 7.6
)

// line is a way to Prometheus that can be cut: connections are refused then, as when it
// has stopped.
type line struct {
	address string
	proxy   http.Handler
	server  *http.Server
}

func (w *world) line(t *testing.T) *line {
	t.Helper()
	to, err := url.Parse(w.cluster.PrometheusURL())
	require.NoError(t, err)
	address, err := w.cluster.FreeAddress()
	require.NoError(t, err)
	l := &line{address: address, proxy: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}}
	l.mend(t)
	return l
}

func (l *line) mend(t *testing.T) {
	t.Helper()
	l.server = &http.Server{ReadHeaderTimeout: patience, Handler: l.proxy}
	serve(t, l.server, l.address)
}

func (l *line) cut(t *testing.T) {
	t.Helper()
	require.NoError(t, l.server.Close())
}

// serve answers on an address until the test ends or the server is closed, and returns
// the address with its port.
func serve(t *testing.T, server *http.Server, address string) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving on %s: %v", address, err)
		}
	})
	return listener.Addr().String()
}

// Prometheus stops under load, and then the load falls. Nobody knows, so nothing goes,
// and everybody is told. When it is back, what is too much goes.
func prometheusStops(t *testing.T, w *world) {
	const instance = "blind"
	l := w.line(t)
	w.startManager(t, instance, append(hurry, prometheusAt("http://"+l.address)...)...)
	s := w.site(t, "llama")
	x := s.target(t, plan{name: "server", model: "llama", instance: instance, kind: "l4", replicas: 3, held: true})
	load := s.clients(t, "llama")
	x.steady(t, load, ofThree)
	recorded, before := x.watchWrites(t), len(x.safetyNet(t, instance))

	l.cut(t)
	x.shows(t, patience, v1alpha1.ConditionMetricsAvailable, v1alpha1.ReasonPrometheusError)
	load.ask(0.5)
	x.isHeld(t, instance, before, 3)
	x.shows(t, patience, v1alpha1.ConditionReady, v1alpha1.ReasonMetricsUnavailable)
	x.shows(t, patience, v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonMetricsUnavailable)
	assert.Empty(t, recorded.seen(), "%s\n%s", recorded, x.notes(t))
	assert.NotEmpty(t, x.told(t, v1alpha1.ReasonPrometheusError), "a warning event")

	l.mend(t)
	x.comesToAsk(t, patience, "fewer", below(3))
	assert.NotEmpty(t, w.logged(t, instance, "Safety net deactivated", x.variant.Name))
}

// safetyNet are the lines of a manager's log by which its safety net began to hold the
// variant. There may be one from the time before the first scrape.
func (x *target) safetyNet(t *testing.T, instance string) []string {
	t.Helper()
	return x.logged(t, instance, "Safety net activated", x.namespace+"/"+x.variant.Name)
}

// isHeld waits until the safety net holds the variant once more than before, and that
// for some rounds: the log says so once, and the metric shows no less than there is.
func (x *target) isHeld(t *testing.T, instance string, before, replicas int) {
	t.Helper()
	eventually(t, patience, "the line in the log", func() (string, bool) {
		_, text := x.asks(t)
		return text, len(x.safetyNet(t, instance)) > before
	})
	x.roundsLater(t, instance, 3)
	lines := x.safetyNet(t, instance)[before:]
	require.Len(t, lines, 1, "it is told of once")
	assert.Contains(t, lines[0], fmt.Sprintf("currentReplicas=%d desiredReplicas=%d", replicas, replicas))
	assert.Regexp(t, `fallbackSource="?(previous-desired|current-replicas)"?`, lines[0])
	assert.GreaterOrEqual(t, x.desired(t, instance), float64(replicas), "nobody who follows the metric is told to remove one")
}

// desired is the replicas that a manager wants for the variant, as its metric has it.
func (x *target) desired(t *testing.T, instance string) float64 {
	t.Helper()
	for series, value := range x.scrape(t, instance) {
		if strings.HasPrefix(series, "wva_desired_replicas{") && strings.Contains(series, fmt.Sprintf("namespace=%q,variant_name=%q", x.namespace, x.variant.Name)) {
			return value
		}
	}
	require.Fail(t, "no series wva_desired_replicas of "+x.variant.Name)
	return 0
}

// Half of the pods have no metrics, and then the load falls. What the others show may
// raise and not lower.
func halfOfThePodsShowNothing(t *testing.T, w *world) {
	s := w.site(t, "llama")
	x := s.target(t, plan{name: "server", model: "llama", instance: brisk, kind: "a100", replicas: 4, held: true})
	load := s.clients(t, "llama")
	x.steady(t, load, ofFour)
	recorded := x.watchWrites(t)

	pods := x.pods(t)
	for i := range pods[:2] {
		w.patch(t, &pods[i], `{"metadata":{"annotations":{"prometheus.io/scrape":"false"}}}`)
	}
	x.shows(t, patience, v1alpha1.ConditionMetricsAvailable, "MetricsPartial")
	eventually(t, patience, "two pods without metrics", func() (string, bool) {
		seen, _ := s.query(t, fmt.Sprintf("count(vllm:num_requests_running{namespace=%q})", s.namespace))
		return fmt.Sprint(seen), seen == 2
	})
	load.ask(0.5)
	w.roundsLater(t, brisk, 5)
	assert.Empty(t, recorded.seen(), "%s\n%s", recorded, x.notes(t))
	// More is decided on partial data, and here it needs all of the load on the two that
	// can be seen to look like too much.
	load.ask(12)
	x.comesToAsk(t, patience, "more", atLeast(5))

	for i := range pods[:2] {
		w.patch(t, &pods[i], `{"metadata":{"annotations":{"prometheus.io/scrape":"true"}}}`)
	}
	load.ask(0.5)
	x.comesToAsk(t, patience, "fewer", below(3))
}

// All numbers of all pods are NaN, and then the load falls. NaN is unknown and no zero.
func allNumbersAreNone(t *testing.T, w *world) {
	s := w.site(t, "llama")
	x := s.target(t, plan{name: "server", model: "llama", instance: brisk, kind: "l40s", replicas: 3, held: true})
	load := s.clients(t, "llama")
	x.steady(t, load, ofThree)
	recorded, before := x.watchWrites(t), len(x.safetyNet(t, brisk))

	pods := x.pods(t)
	for i := range pods {
		s.pretend(t, &pods[i], "NaN")
	}
	x.shows(t, patience, v1alpha1.ConditionMetricsAvailable, "MetricsMissing")
	load.ask(0.5)
	x.isHeld(t, brisk, before, 3)
	assert.Empty(t, recorded.seen(), "%s\n%s", recorded, x.notes(t))

	for i := range pods {
		w.patch(t, &pods[i], fmt.Sprintf(`{"metadata":{"annotations":{"prometheus.io/port":%q}}}`, serverPort))
	}
	x.comesToAsk(t, patience, "fewer", below(3))
}

const serverPort = "8000"

// pretend lets Prometheus scrape another page at the pod's address, on which all numbers
// are the given one.
func (s *site) pretend(t *testing.T, pod *corev1.Pod, number string) {
	t.Helper()
	var text strings.Builder
	for _, name := range []string{
		"kv_cache_usage_perc", "num_requests_running", "num_requests_waiting", "request_success_total",
		"request_prompt_tokens_sum", "request_prompt_tokens_count", "request_generation_tokens_sum", "request_generation_tokens_count",
		"request_inference_time_seconds_sum", "request_inference_time_seconds_count",
	} {
		fmt.Fprintf(&text, "vllm:%s{model_name=%q,engine=\"0\"} %s\n", name, pod.Annotations[modelAnnotation], number)
	}
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(text.String()))
	})}
	_, port, err := net.SplitHostPort(serve(t, server, pod.Status.PodIP+":0"))
	require.NoError(t, err)
	s.patch(t, pod, fmt.Sprintf(`{"metadata":{"annotations":{"prometheus.io/port":%q}}}`, port))
}

// Without Prometheus the manager asks pods and gateways itself: it follows the load up
// and down, and what does not answer is unknown there too.
func podsAreAsked(t *testing.T, w *world) {
	const instance = "pods"
	s := w.site(t, "llama")
	w.startManager(t, instance, append(hurry,
		"--wva-metrics-source=pods", "--pod-metrics-scrape-interval="+scrapeInterval.String(), "--gateway-metrics-urls="+s.gateway())...)
	x := s.target(t, plan{name: "server", model: "llama", instance: instance, kind: "t4", replicas: 1, held: true})
	load := s.clients(t, "llama")
	x.steady(t, load, 1)

	load.ask(2.4 * carries)
	n := x.comesToAsk(t, patience, "three", atLeast(3))
	assert.LessOrEqual(t, n, int32(4), "three, and one for what waited meanwhile")
	x.serves(t, int(n))
	load.ask(0.5)
	x.comesToAsk(t, 2*patience, "one", exactly(1))
}
