package prometheus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const nothing = `{"status":"success","data":{"resultType":"vector","result":[]}}`

// seen are the requests that a server got.
type seen struct {
	mu       sync.Mutex
	requests []*http.Request
}

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	_, _ = io.WriteString(w, nothing)
}

// last is the newest request.
func (s *seen) last(t *testing.T) *http.Request {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.requests)
	return s.requests[len(s.requests)-1]
}

// put writes files into a folder.
func put(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
}

// withFile are options for a server, with a file of this content and others beside it.
func withFile(t *testing.T, address, content string, beside map[string]string) Options {
	t.Helper()
	o := options(address)
	o.AllowHTTP = true
	folder := t.TempDir()
	o.ConfigFile = filepath.Join(folder, "http.yaml")
	put(t, folder, map[string]string{"http.yaml": content})
	put(t, folder, beside)
	return o
}

func pemOf(certificate *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
}

// tokens is a server of OAuth 2.0 tokens. It gives the one that is named after the secret.
func tokens(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, basic := r.BasicAuth()
		if !basic || id != "wva" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"for-%s-%s","token_type":"Bearer","expires_in":3600}`, secret, r.FormValue("scope"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// The server sees each kind of login that the file has, and paths are relative to the file.
func TestEveryLoginIsSeenByTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		beside map[string]string
		want   map[string][]string
	}{
		"a user":                 {"basic_auth: {username: wva, password: hush}", nil, map[string][]string{"Authorization": {"Basic d3ZhOmh1c2g="}}},
		"a user in files":        {"basic_auth: {username_file: user, password_file: password}", map[string]string{"user": "wva\n", "password": "hush\n"}, map[string][]string{"Authorization": {"Basic d3ZhOmh1c2g="}}},
		"a token":                {"authorization: {credentials: hush}", nil, map[string][]string{"Authorization": {"Bearer hush"}}},
		"a token in a file":      {"authorization: {credentials_file: token}", map[string]string{"token": "hush\n"}, map[string][]string{"Authorization": {"Bearer hush"}}},
		"another scheme":         {"authorization: {type: ApiKey, credentials: hush}", nil, map[string][]string{"Authorization": {"ApiKey hush"}}},
		"the older words":        {"bearer_token: hush", nil, map[string][]string{"Authorization": {"Bearer hush"}}},
		"the older word of file": {"bearer_token_file: token", map[string]string{"token": "hush"}, map[string][]string{"Authorization": {"Bearer hush"}}},
		"OAuth 2.0":              {"oauth2: {client_id: wva, client_secret: hush, token_url: TOKENS, scopes: [read]}", nil, map[string][]string{"Authorization": {"Bearer for-hush-read"}}},
		"OAuth 2.0 in a file":    {"oauth2: {client_id: wva, client_secret_file: secret, token_url: TOKENS}", map[string]string{"secret": "hush\n"}, map[string][]string{"Authorization": {"Bearer for-hush-"}}},
		"a tenant":               {"http_headers: {X-Scope-OrgID: {values: [team-a]}}", nil, map[string][]string{"X-Scope-Orgid": {"team-a"}, "Authorization": nil}},
		"a header from files":    {"http_headers: {X-Key: {secrets: [one], files: [key]}}", map[string]string{"key": "two\n"}, map[string][]string{"X-Key": {"one", "two"}}},
		"several of them":        {"authorization: {credentials: hush}\nhttp_headers: {X-Scope-OrgID: {values: [team-a]}}", nil, map[string][]string{"Authorization": {"Bearer hush"}, "X-Scope-Orgid": {"team-a"}}},
		"OAuth 2.0 for a tenant": {"oauth2: {client_id: wva, client_secret: hush, token_url: TOKENS}\nhttp_headers: {X-Scope-OrgID: {values: [team-a]}}", nil, map[string][]string{"Authorization": {"Bearer for-hush-"}, "X-Scope-Orgid": {"team-a"}}},
		"nothing":                {"# nothing\n", nil, map[string][]string{"Authorization": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			var got seen
			server := httptest.NewServer(&got)
			t.Cleanup(server.Close)
			client, err := New(withFile(t, server.URL, strings.ReplaceAll(c.file, "TOKENS", tokens(t)), c.beside))
			require.NoError(t, err)
			_, err = client.Queues(t.Context(), start)
			require.NoError(t, err)
			for header, values := range c.want {
				assert.Equal(t, values, got.last(t).Header[header], header)
			}
		})
	}
}

// What the settings say counts where the file is silent.
func TestTheFileIsBesideTheSettings(t *testing.T) {
	var got seen
	server := httptest.NewTLSServer(&got)
	t.Cleanup(server.Close)
	o := withFile(t, server.URL, "http_headers: {X-Scope-OrgID: {values: [team-a]}}", map[string]string{"ca.crt": pemOf(server.Certificate()), "token": "hush"})
	o.CAFile, o.TokenFile = filepath.Join(filepath.Dir(o.ConfigFile), "ca.crt"), filepath.Join(filepath.Dir(o.ConfigFile), "token")
	client, err := New(o)
	require.NoError(t, err)
	_, err = client.Queues(t.Context(), start)
	require.NoError(t, err)
	assert.Equal(t, "team-a", got.last(t).Header.Get("X-Scope-OrgID"))
	assert.Equal(t, "Bearer hush", got.last(t).Header.Get("Authorization"))
}

func TestTLSOfTheFile(t *testing.T) {
	var got seen
	server := httptest.NewUnstartedServer(&got)
	server.Config.ErrorLog = nil
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert} //nolint:gosec // the least version is Go's own
	server.StartTLS()
	t.Cleanup(server.Close)
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	beside := map[string]string{"ca.crt": pemOf(server.Certificate()), "key.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))}
	for name, c := range map[string]struct{ file, want string }{
		"all of it":         {"tls_config: {ca_file: ca.crt, cert_file: ca.crt, key_file: key.pem, server_name: example.com}", ""},
		"any certificate":   {"tls_config: {insecure_skip_verify: true, cert_file: ca.crt, key_file: key.pem}", ""},
		"the name of other": {"tls_config: {ca_file: ca.crt, cert_file: ca.crt, key_file: key.pem, server_name: other.example}", "other.example"},
		"no authority":      {"tls_config: {cert_file: ca.crt, key_file: key.pem}", "certificate"},
		// The server may have hung up before its answer was read.
		"none of the client": {"tls_config: {ca_file: ca.crt}", "certificate required|connection reset"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := New(withFile(t, server.URL, c.file, beside))
			require.NoError(t, err)
			_, err = client.Queues(t.Context(), start)
			if c.want == "" {
				require.NoError(t, err)
				assert.NotEmpty(t, got.last(t).TLS.PeerCertificates)
				return
			}
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
		})
	}
}

func TestTheProxyOfTheFile(t *testing.T) {
	var proxied seen
	proxy := httptest.NewServer(&proxied)
	t.Cleanup(proxy.Close)
	client, err := New(withFile(t, "http://prometheus.nowhere.example", "proxy_url: "+proxy.URL, nil))
	require.NoError(t, err)
	_, err = client.Queues(t.Context(), start)
	require.NoError(t, err)
	assert.Equal(t, "prometheus.nowhere.example", proxied.last(t).Host)
}

func TestWhatTheFileMayNotSay(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		set  func(*Options)
		want []string
	}{
		"two logins":                {"basic_auth: {username: a, password: hush}", func(o *Options) { o.TokenFile = o.CAFile }, []string{"PROMETHEUS_TOKEN_PATH and the login of the file say different things: remove one of them"}},
		"a token and another":       {"authorization: {credentials: hush}", func(o *Options) { o.Token = "quiet" }, []string{"PROMETHEUS_BEARER_TOKEN and authorization"}},
		"a token and a file":        {"bearer_token_file: other", func(o *Options) { o.TokenFile = o.CAFile }, []string{"PROMETHEUS_TOKEN_PATH and authorization"}},
		"OAuth and a token":         {"oauth2: {client_id: a, client_secret: hush, token_url: 'http://tokens'}", func(o *Options) { o.Token = "quiet" }, []string{"PROMETHEUS_BEARER_TOKEN and the login"}},
		"two authorities":           {"tls_config: {ca_file: other}", nil, []string{"PROMETHEUS_CA_CERT_PATH and tls_config.ca_file"}},
		"an authority as text":      {"tls_config: {ca: hush}", nil, []string{"PROMETHEUS_CA_CERT_PATH and tls_config.ca_file"}},
		"two certificates":          {"tls_config: {cert_file: other, key_file: other}", func(o *Options) { o.CertFile, o.KeyFile = "/cert", "/key" }, []string{"PROMETHEUS_CLIENT_CERT_PATH and tls_config.cert_file", "PROMETHEUS_CLIENT_KEY_PATH and tls_config.key_file"}},
		"two names":                 {"tls_config: {server_name: a}", func(o *Options) { o.ServerName = "b" }, []string{"PROMETHEUS_SERVER_NAME and tls_config.server_name"}},
		"any, and not any":          {"tls_config: {insecure_skip_verify: false}", func(o *Options) { o.InsecureSkipVerify = true }, []string{"PROMETHEUS_TLS_INSECURE_SKIP_VERIFY and tls_config.insecure_skip_verify"}},
		"redirects":                 {"follow_redirects: true", nil, []string{"a redirect is never followed"}},
		"two logins of its own":     {"basic_auth: {username: a}\nbearer_token: hush", nil, []string{"at most one of"}},
		"an unknown field":          {"basic_auth: {user: a}", nil, []string{"field user not found"}},
		"a secret in a wrong place": {"basic_auth: hush-hush", nil, []string{"cannot unmarshal !!str a value"}},
		"no YAML":                   {"a: b: c", nil, []string{"cannot be used"}},
		"a file that is not there":  {"basic_auth: {username: a, password_file: gone}", nil, []string{"a file that it names cannot be read", "gone"}},
		"a reference":               {"oauth2: {client_id: a, client_secret_ref: hush, token_url: 'http://tokens'}", func(o *Options) { o.CAFile = "" }, []string{"use a file"}},
		"a header of the client":    {"http_headers: {Authorization: {secrets: [hush]}}", nil, []string{"not allowed"}},
		"all at once":               {"follow_redirects: true\ntls_config: {server_name: a}", func(o *Options) { o.ServerName = "b" }, []string{"PROMETHEUS_SERVER_NAME", "a redirect is never followed"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := withFile(t, "http://prometheus", c.file, map[string]string{"ca.crt": "", "other": ""})
			o.CAFile = filepath.Join(filepath.Dir(o.ConfigFile), "ca.crt")
			if c.set != nil {
				c.set(&o)
			}
			_, err := New(o)
			require.ErrorContains(t, err, fmt.Sprintf("PROMETHEUS_HTTP_CONFIG_PATH is %q, which cannot be used: ", o.ConfigFile))
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, strings.ReplaceAll(err.Error(), o.ConfigFile, ""), "hush")
			assert.NotContains(t, err.Error(), "quiet")
		})
	}
	_, err := New(Options{Address: "http://prometheus", AllowHTTP: true, Timeout: time.Second, ConfigFile: "/gone/http.yaml"})
	require.ErrorContains(t, err, "PROMETHEUS_HTTP_CONFIG_PATH")
}

// Who says the same twice does not contradict himself.
func TestTheSameTwice(t *testing.T) {
	o := withFile(t, "http://prometheus", "authorization: {credentials_file: token}\ntls_config: {server_name: a, insecure_skip_verify: true}", map[string]string{"token": "a"})
	o.TokenFile, o.ServerName, o.InsecureSkipVerify = filepath.Join(filepath.Dir(o.ConfigFile), "token"), "a", true
	_, err := New(o)
	require.NoError(t, err)
}

// A Secret that is rotated changes what the server sees, without a restart. What cannot be used does
// not, and is named once the server refuses what still is.
func TestARotatedLoginIsUsedAtOnce(t *testing.T) {
	allowed := ""
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if got := strings.TrimSpace(r.Header.Get("Authorization") + " " + r.Header.Get("X-Scope-OrgID")); got != allowed {
			http.Error(w, "unknown: "+got, http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, nothing)
	}))
	t.Cleanup(server.Close)
	o := withFile(t, server.URL, "basic_auth: {username: wva, password_file: password}", map[string]string{"password": "hush"})
	folder := filepath.Dir(o.ConfigFile)
	client, err := New(o)
	require.NoError(t, err)
	ask := func(only string) error {
		mu.Lock()
		allowed = only
		mu.Unlock()
		_, err := client.Queues(t.Context(), start)
		return err
	}
	require.NoError(t, ask("Basic d3ZhOmh1c2g="))
	put(t, folder, map[string]string{"password": "quiet"})
	require.NoError(t, ask("Basic d3ZhOnF1aWV0"), "the password")
	put(t, folder, map[string]string{"http.yaml": "authorization: {credentials: hush}\nhttp_headers: {X-Scope-OrgID: {values: [a]}}"})
	require.NoError(t, ask("Bearer hush a"), "another kind of login")
	for _, bad := range []string{"authorization: {credentials_file: gone}", "basic_auth: hush"} {
		put(t, folder, map[string]string{"http.yaml": bad})
		require.NoError(t, ask("Bearer hush a"), "what was good still is")
		err = ask("another")
		require.ErrorContains(t, err, "HTTP status 401 Unauthorized: look at the login and what it permits; it says: unknown: Bearer (hidden) a; PROMETHEUS_HTTP_CONFIG_PATH is ")
	}
	require.NoError(t, os.Remove(o.ConfigFile))
	require.NoError(t, ask("Bearer hush a"), "a file that is away for a moment")
	put(t, folder, map[string]string{"http.yaml": "authorization: {credentials: third}"})
	require.NoError(t, ask("Bearer third"))
	require.NotContains(t, ask("another").Error(), "PROMETHEUS_HTTP_CONFIG_PATH")
}

// Another authority counts as soon as its file has it, without a restart. Until then the server is not
// believed.
func TestARotatedAuthorityIsUsedAtOnce(t *testing.T) {
	for name, option := range map[string]func(address string, pem string) (o Options, folder string){
		"PROMETHEUS_CA_CERT_PATH": func(address, pem string) (Options, string) {
			o, folder := options(address), t.TempDir()
			o.CAFile = filepath.Join(folder, "ca.crt")
			put(t, folder, map[string]string{"ca.crt": pem})
			return o, folder
		},
		"PROMETHEUS_HTTP_CONFIG_PATH": func(address, pem string) (Options, string) {
			o := withFile(t, address, "tls_config: {ca_file: ca.crt}", map[string]string{"ca.crt": pem})
			return o, filepath.Dir(o.ConfigFile)
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := issued(t), issued(t)
			var shown atomic.Pointer[tls.Certificate]
			server := httptest.NewUnstartedServer(&seen{})
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			// Each query looks at the certificate.
			server.Config.SetKeepAlivesEnabled(false)
			server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { //nolint:gosec // the least version is Go's own
				return &tls.Config{Certificates: []tls.Certificate{*shown.Load()}}, nil //nolint:gosec // likewise
			}}
			shown.Store(before)
			server.StartTLS()
			t.Cleanup(server.Close)
			o, folder := option(server.URL, pemOf(before.Leaf))
			client, err := New(o)
			require.NoError(t, err)
			for _, step := range []struct {
				what, file string
				shown      *tls.Certificate
				want       string
			}{
				{"as it was", pemOf(before.Leaf), before, ""},
				{"the server is ahead", pemOf(before.Leaf), after, "unknown authority"},
				{"half of a file", pemOf(after.Leaf)[:80], after, "ca.crt"},
				{"the file follows", pemOf(after.Leaf), after, ""},
				{"the file is ahead", pemOf(after.Leaf), before, "unknown authority"},
				{"both", pemOf(before.Leaf) + pemOf(after.Leaf), before, ""},
				{"both, and the server follows", pemOf(before.Leaf) + pemOf(after.Leaf), after, ""},
			} {
				put(t, folder, map[string]string{"ca.crt": step.file})
				shown.Store(step.shown)
				_, err := client.Queues(t.Context(), start)
				if step.want == "" {
					require.NoError(t, err, step.what)
				} else {
					require.ErrorContains(t, err, step.want, step.what)
				}
			}
		})
	}
}

// issued is a certificate that is its own authority.
func issued(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "prometheus"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// The server of tokens is another program, and its words are told as well.
func TestATokenThatIsNotGiven(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"by the standard": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":"invalid_client","error_description":"Invalid secret hush-hush."}`, http.StatusUnauthorized)
		}, ": HTTP status 401 Unauthorized; it says: Invalid secret (hidden)."},
		"by a page": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<title>Realm closed</title>", http.StatusForbidden)
		}, ": HTTP status 403 Forbidden; it says: Realm closed"},
		"by a broken line": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, ": EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			login := httptest.NewServer(c.answer)
			t.Cleanup(login.Close)
			client, err := New(withFile(t, "http://prometheus", "oauth2: {client_id: wva, client_secret: hush-hush, token_url: '"+login.URL+"/token?key=secret'}", nil))
			require.NoError(t, err)
			_, err = client.Queues(t.Context(), start)
			require.ErrorContains(t, err, "logging in at "+login.URL+"/token"+c.want)
			assert.NotContains(t, err.Error(), "hush")
			assert.NotContains(t, err.Error(), "secret=")
			_, again := client.Queues(t.Context(), start)
			assert.EqualError(t, again, err.Error(), "a condition holds it")
		})
	}
}

// prometheus/common waits for a token without a bound, and each query after another.
func TestASilentServerOfTokensIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	login := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(login.Close)
	t.Cleanup(func() { close(release) })
	o := withFile(t, "http://prometheus", "oauth2: {client_id: wva, client_secret: hush, token_url: '"+login.URL+"'}", nil)
	o.Timeout = 100 * time.Millisecond
	client, err := New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err = client.Read(ctx, start, window, lookback)
	require.Error(t, err)
	require.NoError(t, ctx.Err())
}

// Once there is a token, queries do not wait for each other.
func TestQueriesWithATokenRunTogether(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == "" {
			return
		}
		both.Done()
		both.Wait()
		_, _ = io.WriteString(w, nothing)
	}))
	t.Cleanup(server.Close)
	client, err := New(withFile(t, server.URL, "oauth2: {client_id: wva, client_secret: hush, token_url: '"+tokens(t)+"'}", nil))
	require.NoError(t, err)
	failures := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := client.Queues(t.Context(), start)
			failures <- err
		}()
	}
	require.NoError(t, <-failures)
	require.NoError(t, <-failures)
}
