package prometheus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// Pods that are scraped at different intervals, and some of them not punctually, each have the
// time between their own last two scrapes.
func TestTheTimeBetweenTheLastTwoScrapes(t *testing.T) {
	cases := map[string][]time.Duration{
		"every second":       {time.Second},
		"every 15 s":         {15 * time.Second},
		"every 5 s or 30 s":  {30 * time.Second, 5 * time.Second},
		"every 7 s and 20 s": {7 * time.Second, 20 * time.Second},
	}
	for name, intervals := range cases {
		t.Run(name, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(1, 2))
			p := prometheustest.New(t)
			last := start.Add(4 * time.Minute)
			want := map[string]time.Duration{}
			samples := map[time.Time]map[string]float64{}
			for i := range 12 {
				name, interval := fmt.Sprint("pod-", i), intervals[i%len(intervals)]
				// The next to last scrape is up to half an interval late, unless that is less than a step.
				late := time.Duration(0)
				if interval > 2*time.Second {
					late = time.Duration(chance.Int64N(int64(interval/2/time.Millisecond))) * time.Millisecond
				}
				at := last.Add(-time.Duration(chance.Int64N(int64(interval/time.Millisecond))) * time.Millisecond)
				want[name] = interval - late
				for k := range 40 {
					when := at.Add(-time.Duration(k) * interval)
					if k == 1 {
						when = when.Add(late)
					}
					if when.Before(start) {
						break
					}
					if samples[when] == nil {
						samples[when] = map[string]float64{}
					}
					labels := fmt.Sprintf(`{model_name="llama", namespace="models", pod=%q, instance=%q}`, name, name)
					for _, series := range []string{"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:request_success_total"} {
						samples[when][series+labels] = 1
					}
				}
			}
			var times []time.Time
			for at := range samples {
				times = append(times, at)
			}
			slices.SortFunc(times, time.Time.Compare)
			for _, at := range times {
				p.Append(at, samples[at])
			}
			replicas, _ := read(t, serve(t, p.Handler), last)
			require.Len(t, replicas, len(want))
			for name, span := range want {
				assert.Equal(t, span, replicas[pod(name)].RecentSpan, name)
			}
		})
	}
}

// No more steps than needed: each costs as much as a query of its own.
func TestStepsFollowTheScrapeInterval(t *testing.T) {
	for interval, step := range map[time.Duration]string{time.Second: ":1000ms]", scrapeInterval: ":5000ms]", 30 * time.Second: ":10000ms]"} {
		p := prometheustest.New(t)
		for at := start; !at.After(start.Add(2 * time.Minute)); at = at.Add(interval) {
			p.Append(at, map[string]float64{`vllm:num_requests_running{namespace="models", pod="a"}`: 1})
		}
		asked := make(chan string, 100)
		client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.FormValue("query")
			p.Handler.ServeHTTP(w, r)
		}))
		read(t, client, start.Add(2*time.Minute))
		close(asked)
		var spans []string
		for q := range asked {
			if strings.Contains(q, "num_requests_running)[5s:1s] @ ") {
				spans = append(spans, q)
			}
		}
		require.Len(t, spans, 1)
		assert.Contains(t, spans[0], step, "scraped every %s", interval)
	}
}

// A scrape may come in between two queries of a reading. What left, what changed and the time
// in between are of the same two scrapes all the same: at two requests per second nobody sees
// another rate, however uneven the scrapes are.
func TestAScrapeBetweenTwoQueries(t *testing.T) {
	const rate = 2.0
	p := prometheustest.New(t)
	at, i := start, 0
	var lock sync.Mutex
	scrape := func() {
		lock.Lock()
		defer lock.Unlock()
		at, i = at.Add([]time.Duration{5 * time.Second, 20 * time.Second, 8 * time.Second}[i%3]), i+1
		asked := rate * at.Sub(start).Seconds()
		// What completes is late by a share of what was asked, so that some is in flight.
		done := math.Floor(0.7 * asked)
		p.Append(at, map[string]float64{
			`vllm:num_requests_running{namespace="models", pod="a"}`:                                                 asked - done,
			`vllm:num_requests_waiting{namespace="models", pod="a"}`:                                                 0,
			`vllm:request_success_total{namespace="models", pod="a"}`:                                                done,
			`inference_extension_flow_control_queue_size{namespace="models", model_name="llama"}`:                    asked - done,
			`inference_extension_scheduler_attempts_total{namespace="models", model_name="llama", status="success"}`: done,
		})
	}
	for at.Before(start.Add(5 * time.Minute)) {
		scrape()
	}
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scrape()
		p.Handler.ServeHTTP(w, r)
	}))
	for range 5 {
		replicas, models, err := client.Read(t.Context(), at.Add(4*time.Minute), 10*time.Minute, 10*time.Minute)
		require.NoError(t, err)
		assert.InDelta(t, rate, replicas[pod("a")].Recent.Value, 0.01)
		assert.InDelta(t, rate, models[decision.ModelKey{Namespace: "models", ID: "llama"}].Recent.Value, 0.01)
	}
}
