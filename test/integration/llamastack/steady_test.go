package llamastack_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// A server whose answer is another one every time is not asked again because of what it
// said: each question makes it ask all its providers.
func TestAServerThatNeverSaysTheSameIsNotAskedForEver(t *testing.T) {
	var asked atomic.Int64
	// The message of a connection that is reset names the port at this end.
	vllm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		connection, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) && assert.NoError(t, connection.(*net.TCPConn).SetLinger(0)) {
			assert.NoError(t, connection.Close())
		}
	}))
	t.Cleanup(vllm.Close)
	object := hub(t, space(t), "demo", "distribution: {name: starter}\nproviders: {inference: {provider: vllm, endpoint: '"+vllm.URL+"/v1'}}")
	create(t, object)
	comes(t, object, "the server's providers", func(o *v1alpha2.LlamaStackDistribution) bool {
		return conditionOf(o, "HealthCheck").Reason == "HealthCheckPassed"
	})
	conditiontest.Throughout(t, quiet, "it is asked a few times", func() (string, bool) {
		const few = 5 // while it starts, once for each thing that happens to it
		n := asked.Load()
		return fmt.Sprint(n, " times"), n <= few
	})
}
