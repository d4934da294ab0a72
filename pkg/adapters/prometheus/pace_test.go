package prometheus

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// regular are the scrapes of a server and a gateway of the namespace under a steady load, up to
// those that are known so long after the start.
func regular(p *prometheustest.Prometheus, namespace string, every, late, age, long time.Duration) {
	regularServer(p, namespace, every, start.Add(long-late-age))
	regularGateway(p, namespace, every, start.Add(long-late-age))
}

func regularServer(p *prometheustest.Prometheus, namespace string, every time.Duration, last time.Time) {
	for at := last.Add(-last.Sub(start).Truncate(every)); !at.After(last); at = at.Add(every) {
		p.Append(at, load(strings.ReplaceAll(engine("a", "0"), `namespace="models"`, fmt.Sprintf("namespace=%q", namespace)), at.Sub(start)))
	}
}

func regularGateway(p *prometheustest.Prometheus, namespace string, every time.Duration, last time.Time) {
	for at := last.Add(-last.Sub(start).Truncate(every)); !at.After(last); at = at.Add(every) {
		p.Append(at, map[string]float64{
			fmt.Sprintf(`inference_extension_scheduler_attempts_total{status="success",target_model_name="llama",namespace=%q,pod="epp",instance="10.0.0.9:9090"}`, namespace): 2 * at.Sub(start).Seconds(),
			fmt.Sprintf(`inference_extension_flow_control_queue_size{target_model_name="llama",namespace=%q,pod="epp",instance="10.0.0.9:9090"}`, namespace):                   0,
		})
	}
}

// knows checks that all is known of the server of steady load, and right.
func knows(t *testing.T, r decision.Replica, last time.Time) {
	t.Helper()
	for name, want := range map[string]struct {
		sample decision.Sample
		value  float64
	}{
		"running": {r.Running, 20}, "served": {r.Served, 2}, "growth": {r.InFlightGrowth, 0.1}, "recent": {r.Recent, 2.1},
		"in service": {r.InService, 8}, "input": {r.Input, 1000}, "output": {r.Output, 200}, "TTFT": {r.TTFT, 0.3}, "ITL": {r.ITL, 0.02},
	} {
		assert.True(t, want.sample.Present, name)
		assert.InEpsilon(t, want.value, want.sample.Value, 0.03, name)
		assert.Equal(t, last, want.sample.Time, name)
	}
	assert.True(t, r.Waiting.Present && r.KVUse.Present && r.KVTokens.Present)
}

func knowsGateway(t *testing.T, m decision.Model, last time.Time) {
	t.Helper()
	for name, sample := range map[string]decision.Sample{"arrival": m.Arrival, "recent arrival": m.Recent} {
		assert.True(t, sample.Present, name)
		assert.InEpsilon(t, 2, sample.Value, 0.03, name)
		assert.Equal(t, last, sample.Time, name)
	}
	assert.True(t, m.Queue.Present)
}

// However seldom a server is scraped, however late that is known and whenever it is asked, all of
// it is known, and right, from the first reading on.
func TestWhatIsScrapedSeldomOrKnownLateIsKnown(t *testing.T) {
	const long = 20 * time.Minute
	for _, interval := range []int{5, 15, 30, 35, 60, 120} {
		every := time.Duration(interval) * time.Second
		for _, lag := range []int{0, 20, 45, 60} {
			late := time.Duration(lag) * time.Second
			for _, part := range []int{0, 2, 4} {
				age := every * time.Duration(part) / 5
				t.Run(fmt.Sprintf("every %s, %s late, %s after the scrape", every, late, age), func(t *testing.T) {
					p := prometheustest.New(t)
					regular(p, "models", every, late, age, long)
					at := start.Add(long)
					replicas, models := read(t, serve(t, p.Handler), at)
					knows(t, replicas[pod("a")], at.Add(-late-age))
					knowsGateway(t, models[modelKey("llama")], at.Add(-late-age))
					assert.Equal(t, every, replicas[pod("a")].RecentSpan)
				})
			}
		}
	}
}

// A gateway is scraped by a job of its own, as often or as seldom as that says.
func TestServersAndGatewaysAreReadEachAtTheirPace(t *testing.T) {
	for _, every := range [][2]time.Duration{{5 * time.Second, time.Minute}, {time.Minute, 5 * time.Second}, {15 * time.Second, 2 * time.Minute}} {
		for _, late := range [][2]time.Duration{{0, 0}, {45 * time.Second, 0}, {0, 45 * time.Second}} {
			t.Run(fmt.Sprint(every, late), func(t *testing.T) {
				p := prometheustest.New(t)
				at := start.Add(20 * time.Minute)
				regularServer(p, "models", every[0], at.Add(-late[0]))
				regularGateway(p, "models", every[1], at.Add(-late[1]))
				replicas, models := read(t, serve(t, p.Handler), at)
				knows(t, replicas[pod("a")], at.Add(-late[0]))
				knowsGateway(t, models[modelKey("llama")], at.Add(-late[1]))
			})
		}
	}
}

// What is told of the interval and the lag is what they are, and does not change with the time of
// the day. Samples that come no more are not late but old.
func TestTheIntervalAndTheLagAreTold(t *testing.T) {
	const long = 10 * time.Minute
	for _, every := range []time.Duration{5 * time.Second, scrapeInterval, 30 * time.Second, time.Minute, 2 * time.Minute} {
		for _, late := range []time.Duration{0, 45 * time.Second} {
			t.Run(fmt.Sprintf("every %s, %s late", every, late), func(t *testing.T) {
				p := prometheustest.New(t)
				regular(p, "models", every, late, 0, long)
				client := serve(t, p.Handler)
				at, last := start.Add(long), start.Add(long-late)
				told := func() decision.Pace {
					servers, _, err := client.paced(t.Context(), at, window, lookback)
					require.NoError(t, err)
					return servers[0].paces[unit{Namespace: "models"}]
				}
				for range 60 {
					told()
					at = at.Add(7 * time.Second)
					for ; !last.Add(every + late).After(at); last = last.Add(every) {
						p.Append(last.Add(every), load(engine("a", "0"), last.Add(every).Sub(start)))
					}
				}
				seen := told()
				assert.InEpsilon(t, every.Seconds(), seen.Interval.Seconds(), 0.1)
				assert.GreaterOrEqual(t, seen.Lag, max(0, late-every-time.Second))
				assert.LessOrEqual(t, seen.Lag, late)
				for end := at.Add(3 * time.Minute); at.Before(end); at = at.Add(7 * time.Second) {
					assert.LessOrEqual(t, told().Lag, seen.Lag, "nothing is scraped any more")
				}
			})
		}
	}
}

// Who has been scraped once may be scraped at any interval, and is read as ever.
func TestASingleScrapeSaysNothingOfTheInterval(t *testing.T) {
	for _, age := range []time.Duration{0, 20 * time.Second, 50 * time.Second, 2 * time.Minute} {
		p := prometheustest.New(t)
		regular(p, "models", time.Hour, 0, 0, 0)
		replicas, _ := read(t, serve(t, p.Handler), start.Add(age))
		assert.Equal(t, decision.Pace{}, replicas[pod("a")].Pace)
		assert.True(t, replicas[pod("a")].Running.Present)
		assert.Equal(t, start, replicas[pod("a")].Running.Time)
	}
}

// What one namespace does changes nothing of what is read in another one.
func TestNamespacesAreReadEachAtItsPace(t *testing.T) {
	const long = 15 * time.Minute
	both, alone := prometheustest.New(t), prometheustest.New(t)
	regular(alone, "models", scrapeInterval, 0, 0, long)
	regular(both, "models", scrapeInterval, 0, 0, long)
	for i, p := range []struct{ every, late time.Duration }{{time.Minute, 0}, {scrapeInterval, 45 * time.Second}, {2 * time.Minute, 0}, {5 * time.Second, 100 * time.Second}} {
		regular(both, fmt.Sprint("other-", i), p.every, p.late, 0, long)
	}
	at := start.Add(long)
	want, wantModels := read(t, serve(t, alone.Handler), at)
	got, gotModels := read(t, serve(t, both.Handler), at)
	assert.Equal(t, want[pod("a")], got[pod("a")])
	key := decision.ModelKey{Namespace: "models", ID: "llama"}
	assert.Equal(t, wantModels[key], gotModels[key])
	require.Len(t, got, 5)
	for i := range manyGroups {
		for name, r := range got {
			if name.Namespace == fmt.Sprint("other-", i) {
				assert.InEpsilon(t, 2, r.Served.Value, 0.03, name)
				assert.NotZero(t, r.Pace.Window, name)
			}
		}
	}
}

// Where many namespaces are read otherwise, none is left out, and the others are read as ever.
func TestManyNamespacesAreReadAtTheirPace(t *testing.T) {
	const long, manySlow = 6 * time.Minute, 20
	p := prometheustest.New(t)
	for i := range 2 * manySlow {
		regular(p, fmt.Sprint("slow-", i), time.Minute, 0, 0, long)
	}
	regular(p, "models", scrapeInterval, 0, 0, long)
	got, models := read(t, serve(t, p.Handler), start.Add(long))
	require.Len(t, got, 2*manySlow+1)
	require.Len(t, models, 2*manySlow+1)
	for name, r := range got {
		assert.InEpsilon(t, 2, r.Served.Value, 0.03, name)
		assert.Equal(t, name.Namespace == "models", r.Pace.Window == 0, name)
	}
}

// A server has a bound to what it is asked, whatever the namespaces do.
func TestNamespacesAreReadInFewWays(t *testing.T) {
	seen := map[unit]seenPace{}
	for i := range 100 {
		seen[unit{Namespace: fmt.Sprint("ns-", i)}] = seenPace{newest: start.Add(-time.Duration(i) * time.Second), window: 12, middle: 30, behind: 60}.bounded(start, window, lookback)
	}
	assert.Len(t, groupsOf(seen, start, window, lookback), manyGroups+1)
	assert.Len(t, groupsOf(nil, start, window, lookback), 1)
}

// VictoriaMetrics shows nothing of the last 30 seconds unless it is told to, and of a window that begins more
// than five minutes ago not all.
func TestTheNewestSamplesAreAskedFor(t *testing.T) {
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "1ms", r.FormValue("latency_offset"))
		assert.Equal(t, "1", r.FormValue("nocache"))
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`))
	}))
	_, _, err := client.Read(t.Context(), start, window, lookback)
	require.NoError(t, err)
}

// What people report of scrapes that are not regular. All of the server is known, and right, at whatever time
// it is asked for, from a while after the change on.
func TestReportsOfScrapesThatAreNotRegular(t *testing.T) {
	const long, change = 18 * time.Minute, 8 * time.Minute
	regularly := func(every time.Duration, until time.Duration) (all []time.Duration) {
		for at := time.Duration(0); at <= until; at += every {
			all = append(all, at)
		}
		return all
	}
	random := rand.New(rand.NewPCG(5, 16))
	for name, c := range map[string]struct {
		// scraped are the times of the scrapes, and known is when a scrape is known.
		scraped []time.Duration
		known   func(time.Duration) time.Duration
	}{
		"every second scrape fails":             {regularly(30*time.Second, long), nil},
		"three of four scrapes fail":            {regularly(time.Minute, long), nil},
		"an operator scrapes every minute now":  {append(regularly(15*time.Second, change), after(change, regularly(time.Minute, change))...), nil},
		"an operator scrapes more often now":    {append(regularly(time.Minute, change), after(change, regularly(15*time.Second, change))...), nil},
		"they come a little early or late":      {shaken(random, regularly(time.Minute, long), 6*time.Second), nil},
		"half of them come a little later":      {shaken(random, regularly(15*time.Second, long), 3*time.Second), nil},
		"remote write sends a batch a minute":   {regularly(15*time.Second, long), func(d time.Duration) time.Duration { return (d + time.Minute - 1).Truncate(time.Minute) }},
		"a batch of two minutes' scrapes":       {regularly(30*time.Second, long), func(d time.Duration) time.Duration { return (d + 2*time.Minute - 1).Truncate(2 * time.Minute) }},
		"remote write is a minute and more off": {regularly(time.Minute, long), func(d time.Duration) time.Duration { return d + 80*time.Second }},
		"each batch comes later than the last":  {regularly(15*time.Second, long), func(d time.Duration) time.Duration { return d + d.Truncate(time.Minute)%(4*time.Minute)/4 }},
		"each is known after another while":     {regularly(15*time.Second, long), func(d time.Duration) time.Duration { return d + 10*time.Second + (7*d)%(50*time.Second) }},
		"Prometheus' clock is 40 s behind":      {regularly(15*time.Second, long), func(d time.Duration) time.Duration { return d + 40*time.Second }},
		"Prometheus' clock is ahead":            {regularly(15*time.Second, long+time.Minute), func(d time.Duration) time.Duration { return d - 40*time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			p := prometheustest.New(t)
			client := serve(t, p.Handler)
			next, unknown := 0, ""
			for at := change - time.Minute; at <= 2*change+time.Minute; at += 7 * time.Second {
				for ; next < len(c.scraped); next++ {
					known := c.scraped[next]
					if c.known != nil {
						known = c.known(known)
					}
					if known > at {
						break
					}
					p.Append(start.Add(c.scraped[next]), load(engine("a", "0"), c.scraped[next]))
				}
				if at > change && at < change+lookback {
					at += 24 * time.Second
					_, _ = read(t, client, start.Add(at))
					continue // It may take a while until a change is seen.
				}
				replicas, _ := read(t, client, start.Add(at))
				r := replicas[pod("a")]
				for of, one := range map[string]decision.Sample{"running": r.Running, "served": r.Served, "growth": r.InFlightGrowth, "in service": r.InService, "input": r.Input, "TTFT": r.TTFT, "waiting": r.Waiting} {
					if !one.Present {
						unknown += fmt.Sprintf("%s: %s; ", at, of)
					}
				}
				if r.Served.Present {
					// Prometheus carries a rate on to the ends of the window, which is not right where scrapes are not regular.
					assert.InEpsilon(t, 2, r.Served.Value, 0.25, "%s", at)
				}
			}
			assert.Empty(t, unknown)
		})
	}
}

// after are times a while later, without the first.
func after(offset time.Duration, all []time.Duration) []time.Duration {
	for i := range all {
		all[i] += offset
	}
	return all[1:]
}

// shaken are times that are each up to so much earlier or later.
func shaken(random *rand.Rand, all []time.Duration, by time.Duration) []time.Duration {
	for i := range all[1:] {
		all[i+1] += time.Duration((2*random.Float64() - 1) * float64(by)).Truncate(time.Millisecond)
	}
	return all
}
