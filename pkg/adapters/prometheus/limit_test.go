package prometheus

import (
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// padded is an empty answer of so many bytes.
func padded(size int) io.Reader {
	const head, tail = `{"status":"success","data":{"resultType":"vector","result":[`, `]}}`
	return io.MultiReader(strings.NewReader(head), strings.NewReader(strings.Repeat(" ", size-len(head)-len(tail))), strings.NewReader(tail))
}

// pages answers with a body of so many bytes, and counts what is read.
type pages struct {
	size int
	read atomic.Int64
}

func (p *pages) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: &countedBody{io.NopCloser(padded(p.size)), p}}, nil
}

type countedBody struct {
	io.ReadCloser
	pages *pages
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.pages.read.Add(int64(n))
	return n, err
}

// limitedClient is a client of pages with limits of its own: 1 MiB an answer, 4 MiB a reading.
func limitedClient(t *testing.T, from *pages) *Client {
	t.Helper()
	small := limits{answer: 1 << 20, reading: 4 << 20}
	return newClient(limitedAPI(t, "http://prometheus", small, from), "http://prometheus", time.Minute, small)
}

// limitedAPI has limits of its own, and the transport that is given, if any.
func limitedAPI(t *testing.T, address string, small limits, from ...http.RoundTripper) v1.API {
	t.Helper()
	transport := append(from, http.DefaultTransport)[0]
	client, err := api.NewClient(api.Config{Address: address, Client: &http.Client{Transport: answers{&followed{now: &access{transport: transport}}, small}}})
	require.NoError(t, err)
	return v1.NewAPI(client)
}

func TestAnAnswerIsBounded(t *testing.T) {
	_, err := limitedClient(t, &pages{size: 1 << 20}).Queues(t.Context(), start)
	require.NoError(t, err)
	_, err = limitedClient(t, &pages{size: 1<<20 + 1}).Queues(t.Context(), start)
	require.ErrorContains(t, err, "prometheus http://prometheus: query for the gateway queue: the answer is larger than 1 MiB")
	for _, limit := range []string{"sample_limit", "label_value_length_limit", "body_size_limit"} {
		require.ErrorContains(t, err, limit, "it says what to do")
	}
	_, err = limitedClient(t, &pages{size: 1<<20 + 1}).Earlier(t.Context(), start)
	assert.ErrorContains(t, err, "the answer is larger than 1 MiB")
}

// A reading takes no more than its share, however many of its answers are large, and says so of the
// others. The next one begins anew.
func TestAReadingIsBounded(t *testing.T) {
	from := &pages{size: 1 << 20}
	client := limitedClient(t, from)
	for range 2 {
		from.read.Store(0)
		_, _, err := client.Read(t.Context(), start, window, lookback)
		require.ErrorContains(t, err, "are together larger than 4 MiB")
		assert.Greater(t, strings.Count(err.Error(), "query for the "), 10, "all but four answers")
		assert.Less(t, from.read.Load(), int64(6<<20))
	}
	from.size = 100
	_, _, err := client.Read(t.Context(), start, window, lookback)
	assert.NoError(t, err)
}

func TestTheLimitsInUse(t *testing.T) {
	client, err := New(options("https://prometheus"))
	require.NoError(t, err)
	assert.Equal(t, limits{answer: 64 << 20, reading: 64 << 20}, client.limits)
	for memory, want := range map[int64]int64{math.MaxInt64: 64, 0: 64, 128 << 20: 64, 1 << 30: 64, 2 << 30: 128, 5 << 29: 160} {
		assert.Equal(t, limits{answer: want << 20, reading: want << 20}, limitsFor(memory), "%d bytes", memory)
	}
}
