package emulation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// maxAttempts is how often a request is sent before the router gives up; with
	// the pauses between them it outlasts the news that a replica is gone.
	maxAttempts = 10
	// attemptPause is the pause before a request is sent to a replica that has
	// failed it already.
	attemptPause = 100 * time.Millisecond
)

// RoutedModel is a model that a router serves.
type RoutedModel struct {
	// Namespace is where its replicas are.
	Namespace string
	// Name is what clients ask for.
	Name string
}

// Router sends each request to the Ready replica of its model with the fewest
// requests in flight, of equals the first by name, and holds requests in order of
// arrival while there is none. A request that did not get the first byte of an
// answer is sent again, to another replica if there is one. It is an http.Handler
// of
//
//	POST /v1/completions
//	GET  /health
//	GET  /metrics     the queue and the requests dispatched, as the gateway's
//	                  endpoint picker names them
//
// and a Directory.
type Router struct {
	handler   http.Handler
	transport *http.Transport

	mu     sync.Mutex
	models map[string]*route
}

// newTransport is for many requests at a time to few servers.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     30 * time.Second,
		ReadBufferSize:      2 << 10,
		WriteBufferSize:     2 << 10,
	}
}

// NewRouter makes a router of the given models, which have no replicas yet.
func NewRouter(models ...RoutedModel) (*Router, error) {
	r := &Router{
		models:    map[string]*route{},
		transport: newTransport(),
	}
	for _, m := range models {
		if _, double := r.models[m.Name]; m.Name == "" || double {
			return nil, fmt.Errorf("router: the model name %q is empty or given twice", m.Name)
		}
		r.models[m.Name] = newRoute(m)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(routerCollector{r})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/completions", r.complete)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	r.handler = mux
	return r, nil
}

// ServeHTTP implements http.Handler.
func (r *Router) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.handler.ServeHTTP(w, request)
}

// Add implements Directory: requests that wait for the model go to the replica at
// once. A model that the router does not serve is ignored.
func (r *Router) Add(replica Replica) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if route := r.models[replica.Model]; route != nil && route.Namespace == replica.Namespace {
		route.add(replica)
	}
}

// Remove implements Directory: requests in flight there go on.
func (r *Router) Remove(namespace, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, route := range r.models {
		if route.Namespace == namespace {
			route.remove(name)
		}
	}
}

// Busiest is the number of requests of a model that its replica with most has in flight,
// together with those that wait for a replica.
func (r *Router) Busiest(model string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	route := r.models[model]
	if route == nil {
		return 0
	}
	most := 0
	for _, e := range route.endpoints {
		most = max(most, e.inFlight)
	}
	return most + route.queue.Len()
}

// complete answers POST /v1/completions.
func (r *Router) complete(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusBadRequest, "reading the request: "+err.Error())
		return
	}
	var named struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		refuse(w, http.StatusBadRequest, "the body is no completions request: "+err.Error())
		return
	}
	r.mu.Lock()
	route := r.models[named.Model]
	r.mu.Unlock()
	if route == nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("the model %q does not exist here", named.Model))
		return
	}
	r.dispatch(w, request, route, body)
}

// dispatch sends a request until a replica answers it.
func (r *Router) dispatch(w http.ResponseWriter, request *http.Request, route *route, body []byte) {
	var failed []*endpoint
	var last error
	ticket := r.enter(route, len(body))
	for range maxAttempts {
		e := r.choose(request, route, ticket, failed)
		if e == nil {
			return // the client is gone
		}
		err := r.forward(w, request, e, body)
		if err == nil {
			return
		}
		if request.Context().Err() != nil {
			return
		}
		last = err
		if slices.Contains(failed, e) && !pause(request.Context(), attemptPause) {
			return
		}
		failed = append(failed, e)
	}
	refuse(w, http.StatusBadGateway, fmt.Sprintf("no replica of %s answered in %d attempts, the last one because: %v", route.Name, maxAttempts, last))
}

// forward sends a request to a replica and its answer to the client. The error
// says that there was no answer to begin with.
func (r *Router) forward(w http.ResponseWriter, request *http.Request, e *endpoint, body []byte) error {
	defer r.leave(e)
	response, err := r.send(request, e, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	relay(w, response)
	return nil
}

// send returns the answer of a replica once it has begun.
func (r *Router) send(request *http.Request, e *endpoint, body []byte) (*http.Response, error) {
	out, err := http.NewRequestWithContext(request.Context(), http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header.Set("Content-Type", "application/json")
	response, err := r.transport.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		_ = response.Body.Close()
		return nil, errors.New(e.Name + ": " + strings.TrimSpace(string(reason)))
	}
	return response, nil
}

// relay copies an answer as it comes. When the replica breaks off, so does the
// answer to the client: it must not look complete.
func relay(w http.ResponseWriter, response *http.Response) {
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	controller := http.NewResponseController(w)
	buffer := make([]byte, 2<<10)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
			if controller.Flush() != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
