package load_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// What every model server is and every request asks: an iteration takes 100 ms whatever
// is in it, so a request of 28 tokens takes 2.8 s, and a replica that holds ten of them
// completes 3.57 a second. At the load that the published triggers allow, seven tenths
// of that, it carries 2.5.
const (
	iteration  = 100
	batchLimit = 10
	input      = 16
	output     = 28
	carries    = 2.5
	// kvTokens is far more than ten requests take: the batch is what limits.
	kvTokens = 4096

	modelAnnotation   = "test.llmd.ai/model"
	startupAnnotation = "test.llmd.ai/startup"
)

// site is what one test has for itself: a namespace, the model servers of its pods, and
// the router in front of them.
type site struct {
	*world
	namespace string
	router    *httptest.Server
}

// site makes one for the models, whose names are made unique: a gateway does not say
// the namespace of what it queues.
func (w *world) site(t *testing.T, models ...string) *site {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	require.NoError(t, w.api.Create(t.Context(), namespace))
	s := &site{world: w, namespace: namespace.Name}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		require.NoError(t, w.api.DeleteAllOf(context.Background(), &v1alpha1.VariantAutoscaling{}, client.InNamespace(s.namespace)))
		require.NoError(t, w.api.Delete(context.Background(), namespace))
	})
	var routed []emulation.RoutedModel
	for _, name := range models {
		routed = append(routed, emulation.RoutedModel{Namespace: s.namespace, Name: s.model(name)})
	}
	router, err := emulation.NewRouter(routed...)
	require.NoError(t, err)
	s.router = httptest.NewServer(router)
	t.Cleanup(s.router.Close)
	require.NoError(t, w.cluster.AddScrapeTarget("router-"+s.namespace, strings.TrimPrefix(s.router.URL, "http://"), nil))
	s.runServers(t, router)
	return s
}

// model is the unique name of one of the site's models.
func (s *site) model(name string) string { return name + "-" + s.namespace }

// gateway is the metrics page of the router.
func (s *site) gateway() string { return s.router.URL + "/metrics" }

// runServers gives every pod its model server until the test ends.
func (s *site) runServers(t *testing.T, router *emulation.Router) {
	t.Helper()
	fleet, err := emulation.NewFleet(emulation.FleetOptions{
		Client: s.typed, Namespace: s.namespace, Describe: describeServer, Directory: router,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fleet.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// describeServer is the model server of a pod, as the annotations of its template say.
func describeServer(pod *corev1.Pod) (emulation.ServerOptions, error) {
	startup, err := time.ParseDuration(pod.Annotations[startupAnnotation])
	if err != nil {
		return emulation.ServerOptions{}, fmt.Errorf("annotation %s: %w", startupAnnotation, err)
	}
	return emulation.ServerOptions{
		Model:   pod.Annotations[modelAnnotation],
		Profile: serving.Profile{Base: iteration, BatchLimit: batchLimit, KVTokens: kvTokens},
		Startup: startup,
	}, nil
}

// clients send requests of one model at even distances, at a rate that is set while
// they do. Evenly, because the tests are about what is made of a rate and not about how
// it is estimated.
type clients struct {
	*emulation.Tap
	lock sync.Mutex
	// failed counts requests without a complete answer.
	failed int
}

// clients begin without asking anything and end with the test, when no request may have
// failed: replicas that go finish what they have.
func (s *site) clients(t *testing.T, model string) *clients {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &clients{Tap: emulation.NewTap(ctx, input, output)}
	traffic := emulation.Traffic{URL: s.router.URL, Model: s.model(model), Requests: c.Tap, Start: c.Start(), Observe: func(o emulation.Outcome) {
		if o.Failed && ctx.Err() == nil {
			c.lock.Lock()
			defer c.lock.Unlock()
			c.failed++
		}
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = traffic.Play(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		require.Zero(t, c.failed, "requests failed")
	})
	return c
}

// ask sets the rate in requests per second.
func (c *clients) ask(rate float64) { c.Set(rate) }

// once sends a single request and returns what became of it.
func (s *site) once(ctx context.Context, model string) (emulation.Outcome, error) {
	outcomes, err := emulation.Traffic{URL: s.router.URL, Model: s.model(model), Requests: &single{}}.Play(ctx)
	if err != nil {
		return emulation.Outcome{}, err
	}
	return outcomes[0], nil
}

// single is a stream of one request.
type single struct{ sent bool }

// Next implements workload.Stream.
func (s *single) Next() (workload.Request, error) {
	if s.sent {
		return workload.Request{}, io.EOF
	}
	s.sent = true
	return workload.Request{Input: input, Output: output}, nil
}
