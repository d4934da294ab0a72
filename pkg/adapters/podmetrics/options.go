package podmetrics

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/common/config"

	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
)

// HTTP says how to speak to servers.
type HTTP struct {
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
}

// Options says what to ask for metrics and how. The zero value of each means its
// default.
type Options struct {
	// Pods is how to speak to pods. Their token is sent over https alone, and only where
	// that is the Scheme of all pods: a pod's annotations choose its own, and not
	// everybody who may write those may see the token.
	Pods HTTP
	// Scheme, Port and Path are those of a pod that does not say its own: http, 8000 and
	// /metrics.
	Scheme string
	Port   int
	Path   string
	// Gateways are the URLs of the gateways' metrics, such as
	// http://epp.default.svc:9090/metrics. Every address that the host resolves to is
	// asked, of one family of addresses, and the answers are added up: a Service in
	// front of several gateways must be headless. A gateway's series that name no
	// namespace are of the namespace that such a host names.
	Gateways []string
	// GatewaysFor are the namespaces whose gateways may tell of other namespaces; empty for
	// all. Of what a gateway elsewhere shows, only that of its own namespace counts.
	GatewaysFor []string
	// Gateway is how to speak to gateways. Their token is sent over http, too.
	Gateway HTTP
	// Timeout bounds each scrape; 5 s.
	Timeout time.Duration
	// Concurrency is the largest number of scrapes of pods at once; 64. Pods that did
	// not answer lately share another quarter of it.
	Concurrency int
	// Interval is the time between two scrapes of a pod; 5 s.
	Interval time.Duration
	// Now tells the time; nil means time.Now.
	Now func() time.Time
}

const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"
)

func (o Options) withDefaults() Options {
	if o.Scheme == "" {
		o.Scheme = schemeHTTP
	}
	if o.Path == "" {
		o.Path = "/metrics"
	}
	if o.Port == 0 {
		o.Port = 8000
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Concurrency == 0 {
		o.Concurrency = 64
	}
	if o.Interval == 0 {
		o.Interval = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.Scheme != schemeHTTP && o.Scheme != schemeHTTPS:
		return fmt.Errorf("pod metrics: the scheme is %q and must be http or https", o.Scheme)
	case o.Port < 1 || o.Port > 65535:
		return fmt.Errorf("pod metrics: the port is %d and must be 1 to 65535", o.Port)
	case o.Timeout < 0:
		return fmt.Errorf("pod metrics: the time-out is %s and must be positive", o.Timeout)
	case o.Concurrency < 0:
		return fmt.Errorf("pod metrics: the concurrency is %d and must be positive", o.Concurrency)
	case o.Interval < 0:
		return fmt.Errorf("pod metrics: the interval is %s and must be positive", o.Interval)
	}
	return nil
}

// gatewayURL checks an address of a gateway.
func gatewayURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		// The error of url.Parse quotes the address, which may hold a password.
		return nil, errors.New("pod metrics: the address of a gateway is not a URL: it must be like http://epp.default.svc:9090/metrics")
	case u.User != nil:
		return nil, fmt.Errorf("pod metrics: the address of the gateway %s holds credentials: put a token into a file", u.Host)
	case u.Scheme != schemeHTTP && u.Scheme != schemeHTTPS:
		return nil, fmt.Errorf("pod metrics: the address of the gateway, %s, must begin with http:// or https://", settings.Location(u.String()))
	case u.Hostname() == "":
		return nil, fmt.Errorf("pod metrics: the address of the gateway, %s, names no host", settings.Location(u.String()))
	}
	if u.Path == "" {
		u.Path = "/metrics"
	}
	return u, nil
}

// client makes an HTTP client that follows redirects to the same address alone, because others
// could carry the token elsewhere, and uses no proxy: pods are near.
func (h HTTP) client(name, serverName string, token bool) (*http.Client, error) {
	c := config.HTTPClientConfig{
		EnableHTTP2: true,
		TLSConfig: config.TLSConfig{
			CAFile: h.CAFile, CertFile: h.CertFile, KeyFile: h.KeyFile,
			ServerName:         h.ServerName,
			InsecureSkipVerify: h.InsecureSkipVerify,
		},
	}
	if c.TLSConfig.ServerName == "" {
		c.TLSConfig.ServerName = serverName
	}
	switch {
	case !token:
	case h.Token != "":
		c.Authorization = &config.Authorization{Type: "Bearer", Credentials: config.Secret(h.Token)}
	case h.TokenFile != "":
		c.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: h.TokenFile}
	}
	client, err := config.NewClientFromConfig(c, name)
	if err != nil {
		return nil, fmt.Errorf("%s: setting up TLS and credentials: %w", name, err)
	}
	client.CheckRedirect = nextDoor
	return client, nil
}
