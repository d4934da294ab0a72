package podmetrics

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// A server of many adapters has a series for each set of them that was ever in use. The newest ones
// count, wherever they stand, and the rest of the page is read all the same.
func TestManySetsOfAdaptersHideNothing(t *testing.T) {
	s := serve(t)
	c, now := client(t, Options{})
	c.Follow([]modelserver.Target{s.target(t, "a")})
	shown := load(0)
	for i := range 3 * maxSeries {
		shown[fmt.Sprintf(`vllm:lora_requests_info{max_lora="8",running_lora_adapters="old-%d",waiting_lora_adapters=""}`, i)] = float64(start.Add(-time.Duration(i+1) * time.Minute).Unix())
	}
	shown[`vllm:lora_requests_info{max_lora="8",running_lora_adapters="sql",waiting_lora_adapters="chat"}`] = float64(start.Unix())
	s.show(shown)
	c.Scrape(t.Context())
	replicas, _, err := c.Read(t.Context(), now.Now(), window, lookback)
	require.NoError(t, err)
	assert.InDelta(t, 20, replicas[pods("a")].Running.Value, 0)
	found, err := c.Adapters(t.Context(), now.Now())
	require.NoError(t, err)
	names := found[pods("a")]
	assert.Len(t, names, 61, "of the last hour")
	assert.Contains(t, names, "sql")
	assert.Contains(t, names, "chat")

	s.refuse(http.StatusServiceUnavailable)
	now.pass(interval5)
	c.Scrape(t.Context())
	found, err = c.Adapters(t.Context(), now.Now())
	require.NoError(t, err)
	assert.Equal(t, map[types.NamespacedName][]string{}, found, "who does not answer shows none")
}
