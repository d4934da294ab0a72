package prometheus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/config"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"
)

// access is what a configuration makes of HTTP: how to reach the server, and what of it nobody may
// see.
type access struct {
	transport http.RoundTripper
	config    config.HTTPClientConfig
}

// newAccess is that of the settings, and of the file beside them that has this content.
func (o Options) newAccess(content []byte) (*access, error) {
	c := o.http()
	if o.ConfigFile != "" {
		var err error
		if c, err = o.beside(content); err != nil {
			return nil, err
		}
	}
	transport, err := o.transport(c)
	if err != nil {
		return nil, err
	}
	return &access{transport, c}, nil
}

// transport sends requests as the configuration says. Its own of prometheus/common asks for an OAuth
// 2.0 token without a bound of time, and would wait for ever for a server that is silent.
func (o Options) transport(c config.HTTPClientConfig) (http.RoundTripper, error) {
	login := c.OAuth2
	c.OAuth2 = nil
	transport, err := config.NewRoundTripperFromConfig(c, "prometheus")
	if err != nil || login == nil {
		return transport, err
	}
	secret, file, reference := login.ClientSecret, login.ClientSecretFile, login.ClientSecretRef
	if login.GrantType == jwtBearer {
		secret, file, reference = login.ClientCertificateKey, login.ClientCertificateKeyFile, login.ClientCertificateKeyRef
	}
	var from config.SecretReader
	switch {
	case reference != "":
		return nil, errors.New("oauth2: no secret manager knows the reference: use a file")
	case file != "":
		from = config.NewFileSecret(file)
	default:
		from = config.NewInlineSecret(string(secret))
	}
	gate := &loginGate{next: transport, free: make(chan struct{}, 1)}
	gate.login = config.NewOAuth2RoundTripper(from, login, http.RoundTripper(passed{gate}), config.WithDialContextFunc(o.dialBriefly))
	return gate, nil
}

const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// dialBriefly is a connection to the server of tokens, which lives no longer than a query may take.
func (o Options) dialBriefly(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{Timeout: o.Timeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if err := connection.SetDeadline(time.Now().Add(o.Timeout)); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection, nil
}

// loginGate lets one request at a time ask for a token, and the others wait for that no longer than
// they may take.
type loginGate struct {
	login, next http.RoundTripper
	free        chan struct{}
}

type leaveKey struct{}

// RoundTrip implements http.RoundTripper.
func (g *loginGate) RoundTrip(request *http.Request) (*http.Response, error) {
	select {
	case g.free <- struct{}{}:
	case <-request.Context().Done():
		return nil, fmt.Errorf("waiting for a token: %w", request.Context().Err())
	}
	leave := sync.OnceFunc(func() { <-g.free })
	defer leave()
	return g.login.RoundTrip(request.WithContext(context.WithValue(request.Context(), leaveKey{}, leave)))
}

// passed is what a request goes through that has its token.
type passed struct{ gate *loginGate }

// RoundTrip implements http.RoundTripper.
func (p passed) RoundTrip(request *http.Request) (*http.Response, error) {
	if leave, ok := request.Context().Value(leaveKey{}).(func()); ok {
		leave()
	}
	return p.gate.next.RoundTrip(request)
}

// said is what a file says itself, where its silence means something else than in prometheus/common.
type said struct {
	FollowRedirects      *bool `json:"follow_redirects"`
	EnableHTTP2          *bool `json:"enable_http2"`
	ProxyFromEnvironment *bool `json:"proxy_from_environment"`
	TLS                  struct {
		InsecureSkipVerify *bool `json:"insecure_skip_verify"`
	} `json:"tls_config"`
}

// quoted is what errors of a reader of YAML quote of the text, which can be a secret.
var quoted = regexp.MustCompile("`[^`]*`")

// beside is the configuration of the file, with the settings where the file says nothing. Its error
// names all that the two contradict each other in, and no value.
func (o Options) beside(content []byte) (config.HTTPClientConfig, error) {
	file, err := config.LoadHTTPConfig(string(content))
	if err != nil {
		return config.HTTPClientConfig{}, errors.New(strings.Join(strings.Fields(quoted.ReplaceAllString(err.Error(), "a value")), " "))
	}
	var own said
	if err := yaml.Unmarshal(content, &own); err != nil {
		return config.HTTPClientConfig{}, errors.New("it is not the YAML of one object")
	}
	file.SetDirectory(filepath.Dir(o.ConfigFile))
	if file.OAuth2 != nil {
		file.OAuth2.ClientCertificateKeyFile = config.JoinDir(filepath.Dir(o.ConfigFile), file.OAuth2.ClientCertificateKeyFile)
	}
	c, settings := *file, o.http()
	c.FollowRedirects = false
	c.EnableHTTP2 = own.EnableHTTP2 == nil || *own.EnableHTTP2
	if c.ProxyURL.URL == nil && c.NoProxy == "" {
		c.ProxyFromEnvironment = own.ProxyFromEnvironment == nil || *own.ProxyFromEnvironment
	}
	problems := o.contradictions(c, own)
	if own.FollowRedirects != nil && *own.FollowRedirects {
		problems = append(problems, "follow_redirects is true: a redirect is never followed, because it could carry the login elsewhere; leave it out")
	}
	if len(problems) > 0 {
		return c, errors.New(strings.Join(problems, "; "))
	}
	if !loginOf(c) {
		c.Authorization = settings.Authorization
	}
	t, more := &c.TLSConfig, settings.TLSConfig
	if t.CA == "" && t.CARef == "" {
		t.CAFile = cmp.Or(t.CAFile, more.CAFile)
	}
	if t.Cert == "" && t.Key == "" && t.CertRef == "" && t.KeyRef == "" {
		t.CertFile, t.KeyFile = cmp.Or(t.CertFile, more.CertFile), cmp.Or(t.KeyFile, more.KeyFile)
	}
	t.ServerName = cmp.Or(t.ServerName, more.ServerName)
	t.InsecureSkipVerify = t.InsecureSkipVerify || more.InsecureSkipVerify
	return c, unreadable(c)
}

// contradictions are what the settings and the file both say, and not the same.
func (o Options) contradictions(c config.HTTPClientConfig, own said) (problems []string) {
	differs := func(setting, field string, ours, theirs string, more ...string) {
		if ours == "" || theirs == ours || strings.Join(more, "") == "" && theirs == "" {
			return
		}
		problems = append(problems, fmt.Sprintf("%s and %s of the file say different things: remove one of them", setting, field))
	}
	a := c.Authorization
	if a != nil && !strings.EqualFold(a.Type, "Bearer") || c.BasicAuth != nil || c.OAuth2 != nil {
		differs("PROMETHEUS_BEARER_TOKEN", "the login", o.Token, "", "another login")
		differs("PROMETHEUS_TOKEN_PATH", "the login", o.TokenFile, "", "another login")
	} else if a != nil {
		differs("PROMETHEUS_BEARER_TOKEN", "authorization", o.Token, string(a.Credentials), a.CredentialsFile, a.CredentialsRef)
		differs("PROMETHEUS_TOKEN_PATH", "authorization", o.TokenFile, a.CredentialsFile, string(a.Credentials), a.CredentialsRef)
	}
	t := c.TLSConfig
	differs("PROMETHEUS_CA_CERT_PATH", "tls_config.ca_file", o.CAFile, t.CAFile, t.CA, t.CARef)
	differs("PROMETHEUS_CLIENT_CERT_PATH", "tls_config.cert_file", o.CertFile, t.CertFile, t.Cert, t.CertRef)
	differs("PROMETHEUS_CLIENT_KEY_PATH", "tls_config.key_file", o.KeyFile, t.KeyFile, string(t.Key), t.KeyRef)
	differs("PROMETHEUS_SERVER_NAME", "tls_config.server_name", o.ServerName, t.ServerName)
	if o.InsecureSkipVerify && own.TLS.InsecureSkipVerify != nil && !*own.TLS.InsecureSkipVerify {
		differs("PROMETHEUS_TLS_INSECURE_SKIP_VERIFY", "tls_config.insecure_skip_verify", "true", "false")
	}
	return problems
}

func loginOf(c config.HTTPClientConfig) bool {
	return c.Authorization != nil || c.BasicAuth != nil || c.OAuth2 != nil
}

// unreadable is an error where one of the files that a configuration names cannot be read.
func unreadable(c config.HTTPClientConfig) error {
	files, _ := secretsOf(c)
	tls := []config.TLSConfig{c.TLSConfig}
	if c.OAuth2 != nil {
		tls = append(tls, c.OAuth2.TLSConfig)
	}
	for _, t := range tls {
		files = append(files, t.CAFile, t.CertFile, t.KeyFile)
	}
	if c.BasicAuth != nil {
		files = append(files, c.BasicAuth.UsernameFile)
	}
	for _, name := range files {
		if name == "" {
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("a file that it names cannot be read: %w", err)
		}
		_ = file.Close()
	}
	return nil
}

// secretsOf are the files and the texts that hold what nobody may see.
func secretsOf(c config.HTTPClientConfig) (files, texts []string) {
	if a := c.Authorization; a != nil {
		files, texts = append(files, a.CredentialsFile), append(texts, string(a.Credentials))
	}
	if b := c.BasicAuth; b != nil {
		files, texts = append(files, b.PasswordFile), append(texts, string(b.Password))
	}
	if o := c.OAuth2; o != nil {
		files = append(files, o.ClientSecretFile, o.ClientCertificateKeyFile)
		texts = append(texts, string(o.ClientSecret), string(o.ClientCertificateKey))
	}
	if c.HTTPHeaders != nil {
		for _, h := range c.HTTPHeaders.Headers {
			files = append(files, h.Files...)
			for _, s := range h.Secrets {
				texts = append(texts, string(s))
			}
		}
	}
	return files, texts
}

// secrets are what may not be told of an answer, the longest first: a server may repeat what it was
// sent.
func (c *access) secrets(response *http.Response) []string {
	files, texts := secretsOf(c.config)
	for _, name := range files {
		if content, err := os.ReadFile(name); err == nil {
			texts = append(texts, strings.TrimSpace(string(content)))
		}
	}
	if response != nil && response.Request != nil {
		_, credentials, _ := strings.Cut(response.Request.Header.Get("Authorization"), " ")
		texts = append(texts, credentials)
		if plain, err := base64.StdEncoding.DecodeString(credentials); err == nil {
			_, password, _ := strings.Cut(string(plain), ":")
			texts = append(texts, password)
		}
		for name, values := range response.Request.URL.Query() {
			if name != newestParameter {
				texts = append(texts, values...)
			}
		}
	}
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	return texts
}

// followed is the access by a file that may change. That of the last content that could be
// used stays where a later one cannot.
type followed struct {
	options Options
	mu      sync.Mutex
	now     *access
	content []byte
	// problem is why the content of the file cannot be used; nil where it can.
	problem error
}

// follow is an error where the file cannot be used at once.
func (o Options) follow() (*followed, error) {
	f := &followed{options: o}
	var err error
	if o.ConfigFile != "" {
		if f.content, err = os.ReadFile(o.ConfigFile); err != nil {
			return nil, o.ofFile(err)
		}
	}
	f.now, err = o.newAccess(f.content)
	return f, o.ofFile(err)
}

func (o Options) ofFile(err error) error {
	if err == nil || o.ConfigFile == "" {
		return err
	}
	return fmt.Errorf("PROMETHEUS_HTTP_CONFIG_PATH is %q, which cannot be used: %w", o.ConfigFile, err)
}

// access is that of the file as it is now, and why it is not, where it is not.
func (f *followed) access() (*access, error) {
	if f.options.ConfigFile == "" {
		return f.now, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	content, err := os.ReadFile(f.options.ConfigFile)
	if err != nil {
		return f.now, f.options.ofFile(err)
	}
	if bytes.Equal(content, f.content) {
		return f.now, f.problem
	}
	next, err := f.options.newAccess(content)
	f.content, f.problem = content, f.options.ofFile(err)
	if err != nil {
		klog.ErrorS(f.problem, "The login at Prometheus stays as it was")
		return f.now, f.problem
	}
	if idle, ok := f.now.transport.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
	f.now = next
	return f.now, nil
}
