package prometheus

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
)

// Options says where the Prometheus server is and how to ask it.
type Options struct {
	// Address is the base URL of the server, without /api/v1.
	Address string
	// AllowHTTP permits an address without TLS.
	AllowHTTP bool
	// Token is a bearer token; empty for that of TokenFile.
	Token string
	// TokenFile holds a bearer token; empty means none. It is read for every request,
	// so that a rotated token is used at once.
	TokenFile string
	// CAFile, CertFile and KeyFile are PEM files. They are read again when they
	// change. ServerName overrides the name that the certificate must carry.
	CAFile, CertFile, KeyFile, ServerName string
	// InsecureSkipVerify turns the check of the server's certificate off.
	InsecureSkipVerify bool
	// ConfigFile is the path of a file with the HTTP client configuration of Prometheus: the login, headers,
	// TLS, a proxy. Paths in it are relative to its folder. It is read for every request, so that a change
	// is used at once. What it says may not contradict the fields above; empty for none.
	ConfigFile string
	// Matchers are put into every selector, for a server that holds more than one cluster, such
	// as cluster="a"; empty for none.
	Matchers string
	// Timeout bounds each query.
	Timeout time.Duration
}

// Client reads samples from one Prometheus server. It is safe for concurrent use.
type Client struct {
	api     v1.API
	address string
	timeout time.Duration
	limits  limits
	// matchers are those that are put into every selector.
	matchers []*labels.Matcher
	crowds   *crowds
	seen     sightings
	// ends are those of the buckets of both latencies that can be promised.
	ends [2]latencyEnds
}

// New returns a client. It does not contact the server; it fails on an address that
// is no URL, on http without AllowHTTP, on files that cannot be used, and where ConfigFile
// contradicts other options.
func New(o Options) (*Client, error) {
	address, err := checkAddress(o)
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		return nil, fmt.Errorf("prometheus %s: the timeout is %s and must be positive", settings.Location(address.String()), o.Timeout)
	}
	login, err := o.follow()
	if err != nil {
		return nil, fmt.Errorf("prometheus %s: setting up TLS and credentials: %w", settings.Location(address.String()), err)
	}
	// A redirect could carry the token elsewhere.
	// The Go runtime knows it from GOMEMLIMIT; a negative limit changes nothing.
	limits := limitsFor(debug.SetMemoryLimit(-1))
	plain := &http.Client{Transport: answers{login, limits}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	client, err := api.NewClient(api.Config{Address: address.String(), Client: plain})
	if err != nil {
		return nil, fmt.Errorf("prometheus %s: %w", settings.Location(address.String()), cause(err))
	}
	c := newClient(v1.NewAPI(client), settings.Location(address.String()), o.Timeout, limits)
	if o.Matchers != "" {
		matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector("{" + o.Matchers + "}")
		if err != nil {
			return nil, fmt.Errorf("PROMETHEUS_MATCHERS is %q: write matchers of PromQL with commas between them, such as cluster=\"a\": %w", o.Matchers, err)
		}
		c.api, c.matchers = oneCluster{c.api, matchers}, matchers
	}
	return c, nil
}

func newClient(from v1.API, address string, timeout time.Duration, limits limits) *Client {
	left := &crowds{}
	return &Client{api: uncrowded{from, left}, crowds: left, address: address, timeout: timeout, limits: limits}
}

func checkAddress(o Options) (*url.URL, error) {
	if o.Address == "" {
		return nil, errors.New("the address of Prometheus is empty: set PROMETHEUS_BASE_URL")
	}
	u, err := url.Parse(o.Address)
	if err != nil {
		// The error of url.Parse quotes the address, which may hold a password.
		return nil, errors.New("the address of Prometheus is not a URL: set PROMETHEUS_BASE_URL to https://host:port")
	}
	switch {
	case u.User != nil:
		return nil, errors.New("the address of Prometheus holds credentials: leave them out of PROMETHEUS_BASE_URL and set PROMETHEUS_TOKEN_PATH or PROMETHEUS_HTTP_CONFIG_PATH")
	case u.Hostname() == "":
		return nil, fmt.Errorf("the address of Prometheus, %q, names no host: set PROMETHEUS_BASE_URL to https://host:port", settings.Location(u.String()))
	case u.Scheme == "https", u.Scheme == "http" && o.AllowHTTP:
		return u, nil
	case u.Scheme == "http":
		return nil, fmt.Errorf("the address of Prometheus, %s, has no TLS: use https, or set PROMETHEUS_ALLOW_HTTP=true", settings.Location(u.String()))
	}
	return nil, fmt.Errorf("the address of Prometheus, %s, must begin with https://", settings.Location(u.String()))
}

func (o Options) http() config.HTTPClientConfig {
	c := config.HTTPClientConfig{
		EnableHTTP2: true,
		TLSConfig: config.TLSConfig{
			CAFile:             o.CAFile,
			CertFile:           o.CertFile,
			KeyFile:            o.KeyFile,
			ServerName:         o.ServerName,
			InsecureSkipVerify: o.InsecureSkipVerify,
		},
	}
	c.ProxyFromEnvironment = true
	switch {
	case o.Token != "":
		c.Authorization = &config.Authorization{Type: "Bearer", Credentials: config.Secret(o.Token)}
	case o.TokenFile != "":
		c.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: o.TokenFile}
	}
	return c
}
