package victoriametrics_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// victoria is a VictoriaMetrics that runs for one test.
type victoria struct{ url string }

// startVictoria starts the pinned program with its defaults. It listens on a socket of its own, so
// that no port is needed, and a proxy stands before it.
func startVictoria(t *testing.T) *victoria {
	t.Helper()
	tools := os.Getenv("TOOLS_DIR")
	if tools == "" {
		tools = filepath.Join("..", "..", "..", "bin", "tools")
	}
	program, err := filepath.Abs(filepath.Join(tools, "victoria-metrics"))
	require.NoError(t, err)
	require.FileExists(t, program, "build it: hack/tool.sh victoria-metrics")
	folder, err := os.MkdirTemp("", "vm") //nolint:usetesting // the path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "socket")
	ctx, end := context.WithCancel(context.Background())
	child := exec.CommandContext(ctx, program, "-httpListenAddr=unix:"+socket, "-storageDataPath="+filepath.Join(folder, "data"), "-loggerLevel=ERROR")
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		end()
		_ = child.Wait()
	})
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "victoria"})
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	v := &victoria{server.URL}
	require.Eventually(t, func() bool {
		status, _ := v.get("/health")
		return status == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "VictoriaMetrics does not begin")
	return v
}

func (v *victoria) get(path string) (status int, text string) {
	answer, err := http.Get(v.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	page, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(page)
}

// append stores what was scraped at each time, and has it shown at once.
func (v *victoria) append(t *testing.T, scrapes map[time.Time]map[string]float64) {
	t.Helper()
	var page strings.Builder
	for _, at := range slices.SortedFunc(maps.Keys(scrapes), time.Time.Compare) {
		for series, value := range scrapes[at] {
			fmt.Fprintf(&page, "%s %v %d\n", series, value, at.UnixMilli())
		}
	}
	answer, err := http.Post(v.url+"/api/v1/import/prometheus", "text/plain", strings.NewReader(page.String()))
	require.NoError(t, err)
	_ = answer.Body.Close()
	require.Less(t, answer.StatusCode, 300)
	status, text := v.get("/internal/force_flush")
	require.Equal(t, http.StatusOK, status, text)
}
