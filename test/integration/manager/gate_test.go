package manager_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// gate stands between a manager and the API server.
type gate struct {
	server *httptest.Server
	to     http.Handler

	lock sync.Mutex
	// stops says which request is stopped, once, and arrives whether it reaches the API server.
	stops   func(*http.Request) bool
	arrives bool
	caught  chan struct{}
}

func newGate(t *testing.T) *gate {
	t.Helper()
	to, err := url.Parse(cluster.Config().Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(cluster.Config()))
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
	}
	g := &gate{to: proxy}
	g.server = httptest.NewTLSServer(g) // no token is sent without TLS
	t.Cleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
	})
	return g
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.lock.Lock()
	caught, arrives, stopped := g.caught, g.arrives, g.stops != nil && g.stops(r)
	if stopped {
		g.stops = nil
	}
	g.lock.Unlock()
	if !stopped {
		g.to.ServeHTTP(w, r)
		return
	}
	// Only who has read all of it learns that who asked is dead.
	body, _ := io.ReadAll(r.Body)
	if arrives {
		r.Body = io.NopCloser(bytes.NewReader(body))
		g.to.ServeHTTP(httptest.NewRecorder(), r)
	}
	close(caught)
	<-r.Context().Done()
}

// stop stops the next request that is such.
func (g *gate) stop(arrives bool, such func(*http.Request) bool) <-chan struct{} {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.stops, g.arrives, g.caught = such, arrives, make(chan struct{})
	return g.caught
}

// kubeconfig leads through the gate with the token of the manager's account.
func (g *gate) kubeconfig(t *testing.T) string {
	t.Helper()
	path, err := cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	config, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	for _, c := range config.Clusters {
		c.Server, c.CertificateAuthorityData = g.server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// A leader dies while a write of its is under way, which arrives or does not. The next one goes on from
// what is there: nothing is written twice, nothing goes, and nobody is taken for a second writer.
func TestALeaderThatDiesWithinAWrite(t *testing.T) {
	scales := func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/scale")
	}
	servers := serveModels(t)
	for name, arrives := range map[string]bool{"it does not arrive": false, "it arrives": true} {
		t.Run(name, func(t *testing.T) {
			instance := strings.ReplaceAll(name, " ", "-")
			election := []string{"--leader-elect", "--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=500ms"}
			g := newGate(t)
			first := startWith(t, g.kubeconfig(t), instance, instance+"-first", election...)
			namespace := space(t)
			servers.ask(namespace, 0.9*serves)
			d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", instance)
			v.Spec.Behavior = nil // its window of five minutes: nothing may go here
			create(t, d, v)
			hasAtLeast(t, d, v, 2)
			next := startHurried(t, instance, instance+"-next", election...)
			t.Cleanup(func() { require.NoError(t, cluster.Terminate(next)) })
			servers.settle(t, namespace, 2)

			before := *read(t, d).Spec.Replicas
			caught := g.stop(arrives, func(r *http.Request) bool { return scales(r) && strings.Contains(r.URL.Path, namespace) })
			servers.ask(namespace, 4*serves)
			conditiontest.Eventually(t, patience, "the write", func() (string, bool) {
				select {
				case <-caught:
					return "", true
				default:
					return describe(read(t, v)), false
				}
			})
			require.NoError(t, cluster.Kill(first))
			killed := time.Now()
			hasAtLeast(t, d, v, before+1)
			conditiontest.Eventually(t, patience, "rounds of the next leader", func() (string, bool) {
				rounds := prometheustest.Scrape(t, metricsOf[next])[`wva_round_duration_seconds{controller_instance="`+instance+`",result="success",round="Full"}`]
				return fmt.Sprint(rounds), rounds >= 5
			})
			last := int32(1)
			for _, w := range writesTo(t, d) {
				assert.Greater(t, w.Replicas, last, "no write takes replicas away, and none repeats another: %+v", w)
				last = w.Replicas
				if w.At.After(killed) {
					assert.Equal(t, credentialOf[next], w.Credential, "%+v", w)
				}
			}
			v = read(t, v)
			assert.Equal(t, last, *read(t, d).Spec.Replicas)
			assert.Equal(t, last, *v.Status.DesiredOptimizedAlloc.NumReplicas, "the status has caught up: %s", describe(v))
			for _, condition := range v.Status.Conditions {
				assert.False(t, condition.Type == v1alpha1.ConditionConflict && condition.Status == "True", "%+v", condition)
			}
		})
	}
}
