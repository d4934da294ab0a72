package podmetrics

import (
	"context"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

func TestGatewaysBehindOneName(t *testing.T) {
	port, servers := epps(t, 2)
	addresses := []string{"127.0.0.1", "127.0.0.2", "::1"}
	c, now := gatewayOf(t, "http://epp.models.svc:"+port, func() []string { return addresses })
	show := func() {
		s := now.Now().Sub(start).Seconds()
		servers[0].show(map[string]float64{
			`llm_d_epp_flow_control_queue_size{model_name="llama",target_model_name="llama",priority="0"}`:         1 * s,
			`inference_extension_flow_control_queue_size{model_name="llama",target_model_name="llama"}`:            1 * s,
			`llm_d_epp_scheduler_attempts_total{model_name="llama",target_model_name="llama",status="success"}`:    3 * s,
			`llm_d_epp_scheduler_attempts_total{model_name="llama",target_model_name="llama",status="failure"}`:    9 * s,
			`inference_extension_scheduler_attempts_total{model_name="llama",status="success",namespace="models"}`: 3 * s,
		})
		servers[1].show(map[string]float64{
			`inference_extension_flow_control_queue_size{model_name="llama"}`:                                      5,
			`inference_extension_scheduler_attempts_total{model_name="llama",status="success",namespace="models"}`: 2 * s,
		})
	}
	for range 13 {
		show()
		c.Scrape(t.Context())
		now.pass(interval5)
	}
	last := now.Now().Add(-interval5)
	llama := decision.ModelKey{Namespace: "models", ID: "llama"}
	_, models, err := c.Read(t.Context(), last, window, lookback)
	require.NoError(t, err)
	require.Len(t, models, 1)
	m := models[llama]
	assert.Equal(t, decision.Sample{Value: 65, Time: last, Present: true}, m.Queue)
	assert.InDelta(t, 3+2+1, m.Arrival.Value, 1e-6, "what leaves both and what the one queue grows by")
	assert.InDelta(t, 6, m.Recent.Value, 1e-6)
	assert.Equal(t, interval5, m.RecentSpan)
	assert.Equal(t, "epp.models.svc:"+port, servers[0].asked[0].Host)

	servers[1].refuse(http.StatusInternalServerError)
	now.pass(2 * window)
	show()
	c.Scrape(t.Context())
	_, models, err = c.Read(t.Context(), now.Now(), window, lookback)
	require.ErrorContains(t, err, "1 of 1 gateways did not answer")
	assert.Positive(t, models[llama].Queue.Value, "at least so many wait")
	assert.False(t, models[llama].Arrival.Present || models[llama].Recent.Present, "of a part of the gateways no rate is known")

	addresses = addresses[:1]
	for range 2 {
		now.pass(interval5)
		show()
		c.Scrape(t.Context())
	}
	_, models, err = c.Read(t.Context(), now.Now(), window, lookback)
	require.NoError(t, err, "who is gone from the name is forgotten")
	assert.True(t, models[llama].Arrival.Present)

	addresses = nil
	now.pass(interval5)
	c.Scrape(t.Context())
	_, models, err = c.Read(t.Context(), now.Now(), window, lookback)
	require.ErrorContains(t, err, "resolving epp.models.svc")
	assert.True(t, models[llama].Arrival.Present, "the address known before still answers")
}

// A gateway that counts by replica has a new series for each new replica.
func TestTheQueueEmptiesIntoNewReplicas(t *testing.T) {
	port, servers := epps(t, 1)
	c, now := gatewayOf(t, "http://epp.models.svc:"+port, func() []string { return []string{"127.0.0.1"} })
	for i := range 15 {
		values := map[string]float64{
			`llm_d_epp_flow_control_queue_size{model_name="llama"}`:                                300,
			`llm_d_epp_scheduler_attempts_total{model_name="llama",pod_name="a",status="success"}`: 1000 + 2*now.Now().Sub(start).Seconds(),
		}
		if i == 14 {
			values[`llm_d_epp_flow_control_queue_size{model_name="llama"}`] = 0
			values[`llm_d_epp_scheduler_attempts_total{model_name="llama",pod_name="b",status="success"}`] = 330
		}
		servers[0].show(values)
		c.Scrape(t.Context())
		now.pass(interval5)
	}
	last := now.Now().Add(-interval5)
	_, models, err := c.Read(t.Context(), last, window, lookback)
	require.NoError(t, err)
	m := models[decision.ModelKey{Namespace: "models", ID: "llama"}]
	assert.InDelta(t, 2+(330.-300.)/5, m.Recent.Value, 1e-9)
	// The slope of eleven times 300 and then 0, five seconds apart, is -5.5 * 300 / (143 * 5).
	assert.InDelta(t, 2+330./60-5.5*300/(143*5), m.Arrival.Value, 1e-6)
}

// Where the clock is set back, what a gateway shows begins anew, as of pods.
func TestTheClockIsSetBackUnderAGateway(t *testing.T) {
	port, servers := epps(t, 1)
	c, now := gatewayOf(t, "http://epp.models.svc:"+port, func() []string { return []string{"127.0.0.1"} })
	sent := 0.0
	scrape := func(rate float64) {
		sent += rate * interval5.Seconds()
		servers[0].show(map[string]float64{
			`llm_d_epp_flow_control_queue_size{model_name="llama"}`:                   0,
			`llm_d_epp_scheduler_attempts_total{model_name="llama",status="success"}`: sent,
		})
		c.Scrape(t.Context())
		now.pass(interval5)
	}
	for range 6 {
		scrape(2)
	}
	for _, back := range []time.Duration{interval5 / 2, 20 * time.Second, time.Hour} {
		now.pass(-back - interval5)
		for range 14 {
			scrape(50)
		}
		at := now.Now().Add(-interval5)
		_, models, err := c.Read(t.Context(), at, window, lookback)
		require.NoError(t, err)
		arrival := models[decision.ModelKey{Namespace: "models", ID: "llama"}].Arrival
		assert.Equal(t, at, arrival.Time, back)
		assert.InDelta(t, 50, arrival.Value, 1e-6, back)
	}
}

func TestQueues(t *testing.T) {
	port, servers := epps(t, 2)
	addresses := []string{"127.0.0.1"}
	c, now := gatewayOf(t, "http://gateway:"+port, func() []string { return addresses })
	servers[0].show(map[string]float64{
		`inference_extension_flow_control_queue_size{model_name="waits",target_model_name="waits"}`:          3,
		`inference_extension_flow_control_queue_size{model_name="rests",target_model_name="rests"}`:          0,
		`inference_extension_flow_control_queue_size{model_name="broken"}`:                                   math.NaN(),
		`inference_extension_scheduler_attempts_total{status="success",model_name="waits",namespace="mine"}`: 9,
	})
	waits, rests := decision.ModelKey{Namespace: "mine", ID: "waits"}, decision.ModelKey{ID: "rests"}
	queues, err := c.Queues(t.Context(), now.Now())
	require.NoError(t, err)
	assert.Equal(t, map[decision.ModelKey]decision.Sample{
		waits: {Value: 3, Time: start, Present: true},
		rests: {Time: start, Present: true},
	}, queues, "a queue without a namespace has that of the model's other series")

	now.pass(lookAge / 2)
	_, err = c.Queues(t.Context(), now.Now())
	require.NoError(t, err)
	assert.Equal(t, 1, servers[0].times(), "half a second is new enough")
	now.pass(lookAge / 2)
	queues, err = c.Queues(t.Context(), now.Now())
	require.NoError(t, err)
	assert.Equal(t, 2, servers[0].times())
	assert.Equal(t, start.Add(lookAge), queues[waits].Time)

	addresses = []string{"127.0.0.1", "127.0.0.2"}
	servers[1].refuse(http.StatusForbidden)
	now.pass(lookAge)
	queues, err = c.Queues(t.Context(), now.Now())
	require.ErrorContains(t, err, "403")
	assert.Contains(t, queues, waits)
	assert.False(t, queues[rests].Present, "that none waits is not known")
}

func TestALookDoesNotWaitForAnAddressThatIsDead(t *testing.T) {
	port, servers := epps(t, 2)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	servers[1].Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	c, now := gatewayOf(t, "http://epp.models.svc:"+port, func() []string { return []string{"127.0.0.1", "127.0.0.2"} })
	c.options.Timeout = time.Hour
	servers[0].show(map[string]float64{`llm_d_epp_flow_control_queue_size{model_name="llama"}`: 3})
	queues, err := c.Queues(t.Context(), now.Now())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.InDelta(t, 3, queues[decision.ModelKey{Namespace: "models", ID: "llama"}].Value, 0, "what the other says is known")
}

// Of a page in a namespace that is not among those whose gateways may tell of others, only what it
// shows of its own namespace counts.
func TestAGatewayTellsOfOthersWhereItMay(t *testing.T) {
	victim, own := decision.ModelKey{Namespace: "victim", ID: "llama"}, decision.ModelKey{Namespace: "models", ID: "llama"}
	for name, c := range map[string]struct {
		host string
		may  []string
		want []decision.ModelKey
	}{
		"nothing is said":         {"epp.models.svc", nil, []decision.ModelKey{victim, own}},
		"its namespace may":       {"epp.models.svc", []string{"gateways", "models"}, []decision.ModelKey{victim, own}},
		"it may not":              {"epp.models.svc", []string{"gateways"}, []decision.ModelKey{own}},
		"it is outside, and may":  {"localhost", []string{"gateways"}, []decision.ModelKey{victim}},
		"it may be a domain":      {"epp.models", []string{"gateways"}, []decision.ModelKey{victim}},
		"its longer name may not": {"epp.models.svc.cluster.local", []string{"gateways"}, []decision.ModelKey{own}},
	} {
		t.Run(name, func(t *testing.T) {
			port, servers := epps(t, 1)
			c1, now := client(t, Options{Gateways: []string{"http://" + c.host + ":" + port}, GatewaysFor: c.may})
			c1.gateways[0].lookup = func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			servers[0].show(map[string]float64{
				`llm_d_epp_flow_control_queue_size{model_name="llama",namespace="victim"}`: 3,
				`llm_d_epp_flow_control_queue_size{model_name="llama"}`:                    2,
			})
			queues, err := c1.Queues(t.Context(), now.Now())
			require.NoError(t, err)
			assert.ElementsMatch(t, c.want, slices.Collect(maps.Keys(queues)))
		})
	}
}

// A query may hold a key, and errors stand in the status of objects, which others read.
func TestAQueryIsNotTold(t *testing.T) {
	page := serve(t)
	page.refuse(http.StatusForbidden)
	c, now := client(t, Options{Gateways: []string{page.URL + "/metrics?key=secret"}})
	target := page.target(t, "p1")
	target.Path = "/metrics?key=secret"
	c.Follow([]modelserver.Target{target})
	c.Scrape(t.Context())
	told := func() string {
		_, _, err := c.Read(t.Context(), start, window, lookback)
		require.Error(t, err)
		return err.Error()
	}
	assert.Equal(t, 2, strings.Count(told(), "asking "+page.URL+"/metrics: the answer is 403 Forbidden"))
	assert.NotContains(t, told(), "secret")
	page.refuse(http.StatusOK)
	now.pass(interval5)
	c.Scrape(t.Context())
	assert.Contains(t, told(), "asking "+page.URL+"/metrics: the answer has no metric of a known model server")
	assert.NotContains(t, told(), "secret")
}
