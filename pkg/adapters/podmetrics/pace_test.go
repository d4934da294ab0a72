package podmetrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// However seldom a pod and a gateway are asked, and whenever a reading comes, all of them is known,
// and right.
func TestWhatIsAskedSeldomIsKnown(t *testing.T) {
	for _, seconds := range []int{5, 15, 30, 35, 45, 60, 90, 120} {
		every := time.Duration(seconds) * time.Second
		t.Run(fmt.Sprint("every ", every), func(t *testing.T) {
			s := serve(t)
			c, now := client(t, Options{Interval: every, Gateways: []string{s.URL}})
			c.Follow([]modelserver.Target{s.target(t, "a")})
			last := start
			for last.Sub(start) < 15*time.Minute {
				last = now.Now()
				values := load(last.Sub(start))
				values[`inference_extension_scheduler_attempts_total{status="success",target_model_name="llama",namespace="models"}`] = 2 * last.Sub(start).Seconds()
				values[`inference_extension_flow_control_queue_size{target_model_name="llama",model_name="llama",namespace="models"}`] = 0
				s.show(values)
				c.Scrape(t.Context())
				// What is read early makes it remember as much as it needs.
				_, _, err := c.Read(t.Context(), last, window, lookback)
				require.NoError(t, err)
				now.pass(every)
			}
			for part := range 5 {
				at := last.Add(time.Duration(part) * every / 5)
				replicas, models, err := c.Read(t.Context(), at, window, lookback)
				require.NoError(t, err)
				r, m := replicas[pods("a")], models[decision.ModelKey{Namespace: "models", ID: "llama"}]
				for name, want := range map[string]struct {
					sample decision.Sample
					value  float64
				}{
					"running": {r.Running, 20}, "served": {r.Served, 2}, "growth": {r.InFlightGrowth, 0.1}, "recent": {r.Recent, 2.1},
					"input": {r.Input, 1000}, "output": {r.Output, 200}, "TTFT": {r.TTFT, 0.3}, "ITL": {r.ITL, 0.02}, "arrival": {m.Arrival, 2}, "recent arrival": {m.Recent, 2},
				} {
					assert.True(t, want.sample.Present, name)
					assert.InEpsilon(t, want.value, want.sample.Value, 0.03, name)
					assert.Equal(t, last, want.sample.Time, name)
				}
				assert.Equal(t, every, r.Pace.Interval)
				assert.Equal(t, 2*every > window, r.Pace.Window > 0)
				assert.Equal(t, r.Pace, m.Pace)
			}
		})
	}
}
