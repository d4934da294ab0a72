package emulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// ServerOptions describe one model server.
type ServerOptions struct {
	// Model is the name that clients ask for.
	Model string
	// Profile gives the latencies and the limits.
	Profile serving.Profile
	// TokenBudget is the largest number of tokens in one iteration; 0 means
	// simulation.DefaultTokenBudget.
	TokenBudget int
	// Startup is the time from Serve until the server answers.
	Startup time.Duration
}

// Server is a model server: simulation.Engine on the wall clock, behind the part
// of vLLM's HTTP interface that matters for load and scaling:
//
//	POST /v1/completions   model, prompt, max_tokens, stream, ignore_eos
//	GET  /v1/models
//	GET  /health
//	GET  /metrics
//
// Until it has started it answers 503 to everything; while it drains it takes no
// new connections and no new completions.
//
// The engine keeps its own schedule: an iteration begins when the one before has
// ended in the engine's time, not when a timer fired, so late timers do not add
// up.
type Server struct {
	options ServerOptions
	http    *http.Server
	started chan struct{}

	mu sync.Mutex
	// epoch is where the engine's time begins.
	epoch  time.Time
	engine *simulation.Engine
	// timer fires at wake, the end of the running iteration.
	timer    *time.Timer
	wake     time.Duration
	draining bool
	tickets  map[uint64]*ticket
	lastID   uint64
	observed observations
}

// ticket is how a request learns of its tokens.
type ticket struct {
	id     uint64
	events chan simulation.Event
}

// errDraining means that the server takes no more requests.
var errDraining = errors.New("the model server is shutting down")

// NewServer makes a server that has not started yet.
func NewServer(options ServerOptions) (*Server, error) {
	if options.Model == "" {
		return nil, errors.New("model server: no model name")
	}
	s := &Server{
		options:  options,
		started:  make(chan struct{}),
		epoch:    time.Now(),
		tickets:  map[uint64]*ticket{},
		observed: newObservations(),
	}
	var err error
	s.engine, err = simulation.NewEngine(simulation.Options{
		Profile:     options.Profile,
		TokenBudget: options.TokenBudget,
		Watch:       s.observed.iteration,
	})
	if err != nil {
		return nil, fmt.Errorf("model server of %s: %w", options.Model, err)
	}
	s.timer = time.AfterFunc(time.Hour, s.step)
	s.timer.Stop()
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	return s, nil
}

func (s *Server) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(serverCollector{s})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/completions", s.complete)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.started:
			mux.ServeHTTP(w, r)
		default:
			refuse(w, http.StatusServiceUnavailable, "the model server is starting")
		}
	})
}

// Serve answers on the listener until Shutdown or Close; it then returns nil. The
// server has started when its start-up time has passed.
func (s *Server) Serve(listener net.Listener) error {
	startup := time.AfterFunc(s.options.Startup, func() { close(s.started) })
	defer startup.Stop()
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("model server of %s on %s: %w", s.options.Model, listener.Addr(), err)
	}
	return nil
}

// Started is closed when the server has started.
func (s *Server) Started() <-chan struct{} { return s.started }

// Shutdown refuses new requests at once and returns when those in flight are
// done, or, with the error of the context and all connections cut, when the
// context ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.Close()
		return fmt.Errorf("draining the model server of %s: %w", s.options.Model, err)
	}
	return s.Close()
}

// Close cuts all connections.
func (s *Server) Close() error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	return s.http.Close()
}

// State is the state of the engine.
func (s *Server) State() simulation.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.State()
}

// submit hands a request to the engine.
func (s *Server) submit(input, output int) (*ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, errDraining
	}
	s.lastID++
	// The first token and the last one: nobody has to wait for the receiver.
	t := &ticket{id: s.lastID, events: make(chan simulation.Event, 2)}
	err := s.engine.Submit(time.Since(s.epoch), simulation.Request{ID: t.id, Input: input, Output: output})
	if err != nil {
		return nil, err
	}
	s.tickets[t.id] = t
	s.follow()
	return t, nil
}

// cancel forgets a request whose client is gone.
func (s *Server) cancel(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.tickets[t.id]; !ok {
		return
	}
	delete(s.tickets, t.id)
	if s.engine.Cancel(time.Since(s.epoch), t.id) {
		s.observed.aborted++
	}
	s.follow()
}

// step follows the engine to the present.
func (s *Server) step() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow()
}

// follow hands out what happened in the engine until now and sets the timer to
// the end of the running iteration. The caller holds the lock.
func (s *Server) follow() {
	for _, event := range s.engine.Advance(time.Since(s.epoch)) {
		s.observed.event(event)
		t, ok := s.tickets[event.Request.ID]
		if !ok || event.Kind == simulation.Resumed {
			continue
		}
		t.events <- event
		if event.Kind == simulation.Finished {
			delete(s.tickets, t.id)
		}
	}
	end, ok := s.engine.Next()
	if !ok || end == s.wake {
		return
	}
	s.wake = end
	s.timer.Reset(end - time.Since(s.epoch))
}
