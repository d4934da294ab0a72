package prometheus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

const (
	// patience bounds a query.
	patience = 30 * time.Second
	// largestAnswer keeps a wrong server from filling the memory.
	largestAnswer = 64 << 20
)

// Flags say where Prometheus is.
type Flags struct {
	address   string
	namespace string
}

// Add adds the flags to a command.
func (f *Flags) Add(command *cobra.Command) {
	command.Flags().StringVar(&f.address, "prometheus", "", "Address of Prometheus, such as http://localhost:9090; without it the one that the manager has, through the API server where it is a Service.")
	command.Flags().StringVar(&f.namespace, "manager-namespace", "", "Namespace of the manager; without it the manager is looked for in all.")
}

// Given reports whether an address was given.
func (f *Flags) Given() bool { return f.address != "" }

// ManagerNamespace is the namespace of the manager; empty where none was named.
func (f *Flags) ManagerNamespace() string { return f.namespace }

// Manager is the manager that the flags name, or that is found.
func (f *Flags) Manager(ctx context.Context, api client.Reader) (*installation.Manager, error) {
	return installation.Find(ctx, api, f.namespace)
}

// Server is a Prometheus server.
type Server struct {
	address *url.URL
	// through is the manager's own address of a server that is asked through the API
	// server; empty for one that is asked itself.
	through string
	client  *http.Client
	// Manager is the one whose metrics are meant, with its prices.
	Manager *installation.Manager
	// advice says which other servers there are, for one that does not answer; nil for one that the user
	// named.
	advice func(context.Context) string
}

// At is the server at an address.
func At(address *url.URL) *Server {
	return &Server{address: address, client: &http.Client{Timeout: patience}}
}

// Find finds the server.
func (f *Flags) Find(ctx context.Context, api client.Reader, flags *cluster.Flags) (*Server, error) {
	manager, err := f.Manager(ctx, api)
	if err != nil {
		return nil, err
	}
	s := At(nil)
	s.Manager = manager
	if f.address != "" {
		s.address, err = url.Parse(f.address)
		if err != nil || s.address.Host == "" {
			return nil, fmt.Errorf("--prometheus is %q: expected an address such as http://localhost:9090", f.address)
		}
		return s, nil
	}
	s.advice = func(ctx context.Context) string { return Advice(ctx, api, manager.Config.Prometheus.BaseURL) }
	if manager.Config.MetricsSource == config.SourcePods || manager.Config.Prometheus.BaseURL == "" {
		return nil, s.advised(ctx, fmt.Errorf("no Prometheus is known (%s): give its address with --prometheus", cmp.Or(strings.Join(manager.Notes, "; "), "the manager has none")))
	}
	if s.address, err = url.Parse(manager.Config.Prometheus.BaseURL); err != nil {
		return nil, errors.New("the manager's address of Prometheus is no URL: give another one with --prometheus")
	}
	host, err := flags.Config()
	if err != nil {
		return nil, err
	}
	proxied, ok, err := throughAPI(host, s.address)
	if err != nil || !ok {
		return s, err
	}
	s.through = config.Location(s.address.String()) + " (the manager's PROMETHEUS_BASE_URL, through the API server)"
	s.address = proxied
	s.client, err = rest.HTTPClientFor(host)
	if err == nil {
		s.client.Timeout = patience
	}
	return s, err
}

// throughAPI is the address of a Service by the API server's proxy; not ok for what is no
// Service, as name.namespace.svc is.
func throughAPI(config *rest.Config, address *url.URL) (proxied *url.URL, ok bool, err error) {
	parts := strings.Split(address.Hostname(), ".")
	if len(parts) < 3 || parts[2] != "svc" {
		return nil, false, nil
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, false, fmt.Errorf("finding the API server: %w", err)
	}
	port := address.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[address.Scheme]
		port = cmp.Or(port, "80")
	}
	service := fmt.Sprintf("%s:%s:%s", address.Scheme, parts[0], port)
	return host.JoinPath("api/v1/namespaces", parts[1], "services", service, "proxy", address.Path), true, nil
}

// Now is the value of each series of an instant query.
func (s *Server) Now(ctx context.Context, query string) (model.Vector, error) {
	var vector model.Vector
	return vector, s.ask(ctx, "query", url.Values{"query": {query}}, &vector)
}

// Range are the values of each series of a query over a time.
func (s *Server) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) (model.Matrix, error) {
	var matrix model.Matrix
	return matrix, s.ask(ctx, "query_range", url.Values{
		"query": {query}, "start": {stamp(from)}, "end": {stamp(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}, &matrix)
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// ask reads, and only reads: proxies and permissions tell it from a write by the method.
func (s *Server) ask(ctx context.Context, path string, values url.Values, result any) error {
	at := s.address.JoinPath("api/v1", path)
	where := cmp.Or(s.through, config.Location(at.String()))
	at.RawQuery = values.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) { // which would name the address once more
			err = failed.Err
		}
		return s.advised(ctx, fmt.Errorf("asking Prometheus at %s: %w; --prometheus gives another address", where, err))
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return fmt.Errorf("asking Prometheus at %s: %w", where, err)
	}
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		err := fmt.Errorf("asking Prometheus at %s: %s; --prometheus gives another address", where, cmp.Or(answer.Error, "it answered "+response.Status))
		if answer.Error != "" {
			return err
		}
		return s.advised(ctx, err)
	}
	return json.Unmarshal(answer.Data.Result, result)
}

// advised is an error about a server that is not there, with what is there instead.
func (s *Server) advised(ctx context.Context, err error) error {
	if s.advice == nil {
		return err
	}
	// The time for the answer may be over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if text := s.advice(ctx); text != "" {
		return fmt.Errorf("%w; %s", err, text)
	}
	return err
}

// Of selects the series of a metric that are of an object, or of all of a namespace, or
// with neither of all. A scrape turns the label namespace into exported_namespace, unless
// it honours it; in that case namespace is the manager's own.
func Of(metric, namespace, name string) string {
	selector := ""
	if name != "" {
		selector = fmt.Sprintf("variant_name=%q,", name)
	}
	return of(metric, selector, namespace)
}

// OfModel selects the series of a metric that are of a model; the selector has further matchers, each
// with a comma after it.
func OfModel(metric, selector, namespace, model string) string {
	return of(metric, selector+fmt.Sprintf("model_name=%q,", model), namespace)
}

func of(metric, selector, namespace string) string {
	if namespace == "" {
		return fmt.Sprintf("%s{%s}", metric, strings.TrimSuffix(selector, ","))
	}
	return fmt.Sprintf(`(%[1]s{%[2]sexported_namespace=%[3]q} or %[1]s{%[2]snamespace=%[3]q,exported_namespace=""})`, metric, selector, namespace)
}

// NamespaceOf is the namespace of the object that a series is of.
func NamespaceOf(labels model.Metric) string {
	return string(cmp.Or(labels["exported_namespace"], labels["namespace"]))
}
