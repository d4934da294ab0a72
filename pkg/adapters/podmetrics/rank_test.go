package podmetrics

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// ranks are two servers at ports that follow each other.
func ranks(t *testing.T) [2]*server {
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		second, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first.Addr().(*net.TCPAddr).Port+1)))
		if err != nil {
			require.NoError(t, first.Close())
			continue // Somebody else has that one.
		}
		var all [2]*server
		for i, listener := range []net.Listener{first, second} {
			s := &server{status: http.StatusOK}
			s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.answer))
			require.NoError(t, s.Listener.Close())
			s.Listener = listener
			s.Start()
			t.Cleanup(s.Close)
			all[i] = s
		}
		return all
	}
	t.Fatal("no two ports follow each other")
	return [2]*server{}
}

// A pod whose ranks answer at a port each is what all of them show, whether they call their engines by one
// name or not, and is not known where one of them is silent.
func TestAPodWithAPortForEachRank(t *testing.T) {
	for name, second := range map[string][]string{"engines of one name": {}, "an engine each": {`engine="0"`, `engine="1"`}} {
		t.Run(name, func(t *testing.T) {
			c, now := client(t, Options{})
			all := ranks(t)
			pod := all[0].target(t, "a")
			pod.Ranks = 2
			c.Follow([]modelserver.Target{pod})
			for range 13 {
				since := now.Now().Sub(start)
				all[0].show(load(since))
				all[1].show(other(load(2*since), second...))
				c.Scrape(t.Context())
				now.pass(interval5)
			}
			last := now.Now().Add(-interval5)
			replicas, _, err := c.Read(t.Context(), last.Add(time.Second), window, lookback)
			require.NoError(t, err)
			r := replicas[pods("a")]
			assert.InDelta(t, 40, r.Running.Value, 1e-9)
			assert.InDelta(t, 2+4, r.Served.Value, 1e-9)
			assert.InDelta(t, 0.5, r.KVUse.Value, 1e-9)
			assert.InDelta(t, 32000, r.KVTokens.Value, 1e-9)
			assert.InDelta(t, 1000, r.Input.Value, 1e-9)

			all[1].refuse(http.StatusServiceUnavailable)
			c.Scrape(t.Context())
			replicas, _, err = c.Read(t.Context(), now.Now(), window, lookback)
			require.ErrorContains(t, err, "503")
			assert.Equal(t, last, replicas[pods("a")].Running.Time, "what one of them shows is a part")
		})
	}
}
