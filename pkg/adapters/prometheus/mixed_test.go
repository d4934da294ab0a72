package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// mixed are the scrapes of what has a monitor of its own beside another one, and when each of
// the two was last scraped.
type mixed struct {
	every, age [2]time.Duration
}

// quarters are so many of a time, in whole seconds.
func quarters(of time.Duration, n int) time.Duration {
	return (of * time.Duration(n) / 4).Truncate(time.Second)
}

// everyPair calls for each pair of intervals, at several phases of both.
func everyPair(t *testing.T, check func(t *testing.T, m mixed)) {
	t.Helper()
	intervals := []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute}
	for i, one := range intervals {
		for _, other := range intervals[i:] {
			for part := range 4 {
				m := mixed{[2]time.Duration{one, other}, [2]time.Duration{quarters(one, part), quarters(other, 3-part)}}
				t.Run(fmt.Sprint(m.every, " ", m.age, " after the scrape"), func(t *testing.T) { check(t, m) })
			}
		}
	}
}

// last is the time of the newest scrape of one of the two.
func (m mixed) last(i int, at time.Time) time.Time { return at.Add(-m.age[i]) }

// scraped appends what a page shows in a time after the start, as one of the two finds it.
func (m mixed) scraped(p *prometheustest.Prometheus, i int, at time.Time, page func(since time.Duration) map[string]float64) {
	last := m.last(i, at)
	for one := last.Add(-last.Sub(start).Truncate(m.every[i])); !one.After(last); one = one.Add(m.every[i]) {
		p.Append(one, page(one.Sub(start)))
	}
}

func serverPage(pod, job string) func(since time.Duration) map[string]float64 {
	return func(since time.Duration) map[string]float64 {
		return load(fmt.Sprintf(`engine="0", model_name="llama", namespace="models", pod=%[1]q, instance=%[1]q, job=%[2]q`, pod, job), since)
	}
}

// gatewayPage is a gateway that sends two requests a second on and whose queue grows by one in ten seconds.
func gatewayPage(id, pod, job string) func(since time.Duration) map[string]float64 {
	labels := fmt.Sprintf(`target_model_name=%q,namespace="models",pod=%[2]q,instance=%[2]q,job=%[3]q}`, id, pod, job)
	return func(since time.Duration) map[string]float64 {
		return map[string]float64{
			`inference_extension_scheduler_attempts_total{status="success",` + labels: 2 * since.Seconds(),
			`inference_extension_flow_control_queue_size{` + labels:                   0.1 * since.Seconds(),
		}
	}
}

// Two monitors may select the pods of one model, or the gateways of one namespace. Whatever the
// interval of the others, all that is known of each is known from the first reading on, and of its own scrapes.
func TestOneNamespaceIsScrapedAtTwoIntervals(t *testing.T) {
	for _, late := range []time.Duration{0, 45 * time.Second} {
		t.Run(fmt.Sprint(late, " late"), func(t *testing.T) {
			everyPair(t, func(t *testing.T, m mixed) {
				at := start.Add(20 * time.Minute)
				known, p := at.Add(-late), prometheustest.New(t)
				for i, name := range []string{"one", "other"} {
					for _, replica := range []string{"-a", "-b"} {
						m.scraped(p, i, known, serverPage(name+replica, name))
					}
					m.scraped(p, i, known, gatewayPage(name, "epp-"+name, name))
				}
				replicas, models := read(t, serve(t, p.Handler), at)
				require.Len(t, replicas, 4)
				for i, name := range []string{"one", "other"} {
					for _, replica := range []string{"-a", "-b"} {
						r := replicas[pod(name+replica)]
						knows(t, r, m.last(i, known))
						assert.Equal(t, m.every[i], r.RecentSpan)
					}
					g := models[modelKey(name)]
					for of, sample := range map[string]decision.Sample{"arrival": g.Arrival, "recent arrival": g.Recent} {
						assert.True(t, sample.Present, of)
						assert.InEpsilon(t, 2.1, sample.Value, 0.03, of)
						assert.Equal(t, m.last(i, known), sample.Time, of)
					}
					assert.Equal(t, m.every[i], g.RecentSpan)
				}
			})
		})
	}
}

// Two monitors may select the same pod. It counts once, and a change of its queue is that of the
// time in which it was seen, whether the queue grows or shrinks.
func TestOnePageIsScrapedAtTwoIntervals(t *testing.T) {
	everyPair(t, func(t *testing.T, m mixed) {
		at, p := start.Add(20*time.Minute), prometheustest.New(t)
		for i, job := range []string{"one", "other"} {
			m.scraped(p, i, at, serverPage("grows", job))
			m.scraped(p, i, at, func(since time.Duration) map[string]float64 {
				page := serverPage("shrinks", job)(since)
				for series, value := range page {
					if value == 0.1*since.Seconds() {
						page[series] = 200 - value
					}
				}
				return page
			})
			m.scraped(p, i, at, gatewayPage("llama", "epp", job))
		}
		replicas, models := read(t, serve(t, p.Handler), at)
		require.Len(t, replicas, 2)
		for name, growth := range map[string]float64{"grows": 0.1, "shrinks": -0.1} {
			r := replicas[pod(name)]
			for of, one := range map[string]struct {
				sample decision.Sample
				value  float64
			}{
				"running": {r.Running, 20}, "served": {r.Served, 2}, "growth": {r.InFlightGrowth, growth}, "recent": {r.Recent, 2 + growth},
				"in service": {r.InService, 8}, "input": {r.Input, 1000}, "KV": {r.KVTokens, 16000}, "TTFT": {r.TTFT, 0.3},
			} {
				assert.True(t, one.sample.Present, "%s: %s", name, of)
				assert.InEpsilon(t, one.value, one.sample.Value, 0.03, "%s: %s", name, of)
			}
		}
		assert.InEpsilon(t, 2.1, models[modelKey("llama")].Arrival.Value, 0.03)
		assert.InEpsilon(t, 2.1, models[modelKey("llama")].Recent.Value, 0.01)
	})
}

// A sidecar may hand on the page of the server beside it, and another job scrape that. The server counts
// once, and so does a gateway.
func TestOnePageAtTwoAddressesIsScrapedAtTwoIntervals(t *testing.T) {
	everyPair(t, func(t *testing.T, m mixed) {
		at, p := start.Add(20*time.Minute), prometheustest.New(t)
		for i, port := range []string{":8000", ":15020"} {
			m.scraped(p, i, at, func(since time.Duration) map[string]float64 {
				page := map[string]float64{}
				for series, value := range serverPage("a", port)(since) {
					page[strings.Replace(series, `instance="a"`, `instance="a`+port+`"`, 1)] = value
				}
				for series, value := range gatewayPage("llama", "epp", port)(since) {
					page[strings.Replace(series, `instance="epp"`, `instance="epp`+port+`"`, 1)] = value
				}
				return page
			})
		}
		readsAs(t, p, at, 1)
	})
}

// readsAs says that the pod a and the gateway are read as so many servers, and as many gateways.
func readsAs(t *testing.T, p *prometheustest.Prometheus, at time.Time, servers float64) {
	t.Helper()
	replicas, models := read(t, serve(t, p.Handler), at)
	r, m := replicas[pod("a")], models[modelKey("llama")]
	for of, one := range map[string]struct{ want, got float64 }{
		"running": {20, r.Running.Value}, "served": {2, r.Served.Value}, "growth": {0.1, r.InFlightGrowth.Value}, "recent": {2.1, r.Recent.Value},
		"KV": {16000, r.KVTokens.Value}, "arrivals": {2.1, m.Arrival.Value},
	} {
		assert.InEpsilon(t, servers*one.want, one.got, 0.03, of)
	}
	assert.InEpsilon(t, servers*2.1, m.Recent.Value, 0.01, "recent arrivals")
}

// Two servers of one pod, and two gateways of one model, are two, whatever the interval of each.
func TestTwoServersOfOnePodAreScrapedAtTwoIntervals(t *testing.T) {
	everyPair(t, func(t *testing.T, m mixed) {
		at, p := start.Add(20*time.Minute), prometheustest.New(t)
		for i, name := range []string{"one", "other"} {
			m.scraped(p, i, at, func(since time.Duration) map[string]float64 {
				page := gatewayPage("llama", "epp-"+name, "epp")(since)
				labels := fmt.Sprintf(`engine="0", model_name="llama", namespace="models", pod="a", instance=%q, job="vllm"`, name)
				for series, value := range load(labels, since+time.Duration(i)*time.Hour) {
					page[series] = value
				}
				return page
			})
		}
		readsAs(t, p, at, 2)
	})
}

// What is read of pods that are scraped often does not change with what is beside them in their namespace.
func TestPodsThatAreScrapedSeldomChangeNothingOfOthers(t *testing.T) {
	at := start.Add(15 * time.Minute)
	alone, beside := prometheustest.New(t), prometheustest.New(t)
	regularServer(alone, "models", scrapeInterval, at)
	regularServer(beside, "models", scrapeInterval, at)
	for i, every := range []time.Duration{35 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		m := mixed{every: [2]time.Duration{every}}
		m.scraped(beside, 0, at, serverPage(fmt.Sprint("seldom-", i), "seldom"))
	}
	want, _ := read(t, serve(t, alone.Handler), at)
	got, _ := read(t, serve(t, beside.Handler), at)
	require.Len(t, got, 5)
	assert.Equal(t, want[pod("a")], got[pod("a")])
	for i, every := range []time.Duration{35 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		r := got[pod(fmt.Sprint("seldom-", i))]
		assert.InEpsilon(t, every.Seconds(), r.Pace.Interval.Seconds(), 0.3)
		assert.GreaterOrEqual(t, r.Pace.Window, min(2*every, lookback))
		assert.True(t, r.Served.Present)
	}
}

// A pod that has just begun is read as the others are, however few scrapes it has, and those that have
// ended are, too.
func TestPodsThatBeginOrEndAreReadAsTheOthers(t *testing.T) {
	for _, age := range []time.Duration{0, 14 * time.Second, 29 * time.Second, 45 * time.Second, 70 * time.Second, 3 * time.Minute} {
		at, p := start.Add(15*time.Minute), prometheustest.New(t)
		regularServer(p, "models", scrapeInterval, at)
		m := mixed{every: [2]time.Duration{scrapeInterval, scrapeInterval}, age: [2]time.Duration{0, age}}
		for one := at.Add(-age).Truncate(scrapeInterval); !one.After(at); one = one.Add(scrapeInterval) {
			p.Append(one, serverPage("young", "vllm")(one.Sub(start)))
		}
		m.scraped(p, 1, at, serverPage("ended", "vllm"))
		client := serve(t, p.Handler)
		servers, _, err := client.paced(t.Context(), at, window, lookback)
		require.NoError(t, err)
		require.Len(t, servers, 1, age)
		assert.Equal(t, window, servers[0].window)
	}
}

// A promise is kept or not by all of the servers of a model: those that are scraped seldom count like the
// others.
func TestTheShareIsThatOfServersThatAreScrapedSeldomToo(t *testing.T) {
	everyPair(t, func(t *testing.T, m mixed) {
		at, p := start.Add(20*time.Minute), prometheustest.New(t)
		for i, pod := range []string{"keeps", "misses"} {
			within := map[string]float64{"0.5": 2 - 2*float64(i), "1": 2, "+Inf": 2}
			m.scraped(p, i, at, func(since time.Duration) map[string]float64 {
				values := serverPage(pod, "vllm")(since)
				histogram(values, ttftSeries, "llama", pod, "vllm", since, within)
				return values
			})
		}
		client := serve(t, p.Handler)
		_, _ = read(t, client, at)
		met, err := client.Met(t.Context(), at, window, map[decision.ModelKey]capacity.SLO{modelKey("llama"): {TTFT: 500}})
		require.NoError(t, err)
		assert.InDelta(t, 0.5, met[modelKey("llama")].Sure, 0.02)
		assert.InDelta(t, 0.5, met[modelKey("llama")].Value, 0.02)
	})
}

// However many there are, a reading asks in few ways, and a namespace whose scrapes are late takes from no other
// one the way to be read over a wider window.
func TestPodsAreReadInFewWays(t *testing.T) {
	dense := seenPace{newest: start, window: 12, middle: 30, behind: 60}
	seldom := seenPace{newest: start, window: 1, middle: 2, behind: 5}
	seen := map[unit]seenPace{}
	put := func(of unit, p seenPace, late time.Duration) {
		p.newest = p.newest.Add(-late)
		seen[of] = p.bounded(start, window, lookback)
	}
	for i := range 100 {
		late := time.Duration(i) * time.Second
		for _, p := range []struct {
			pod  string
			pace seenPace
		}{{"", dense}, {"often", dense}, {"seldom", seldom}} {
			put(unit{Namespace: fmt.Sprintf("%03d", i), Name: p.pod}, p.pace, late)
			put(unit{Namespace: fmt.Sprintf("now-%03d", i), Name: p.pod}, p.pace, 0)
		}
	}
	groups := groupsOf(seen, start, window, lookback)
	assert.LessOrEqual(t, len(groups), 2*manyGroups+1)
	assert.Nil(t, groups[0].namespaces)
	for i := range 100 {
		name := fmt.Sprintf("now-%03d", i)
		assert.Zero(t, indexOf(groups, unit{Namespace: name}))
		assert.Zero(t, indexOf(groups, unit{Namespace: name, Name: "often"}))
		g := groups[indexOf(groups, unit{Namespace: name, Name: "seldom"})]
		assert.Equal(t, when{start, 150 * time.Second}, when{g.at, g.window})
		assert.Contains(t, g.namespaces, name)
	}
}

// A server scrapes the pods of a namespace one after the other, so that the newest scrapes of some are an interval
// older than those of others. However late they are known, all is known of all of them at any time.
func TestPodsAreScrapedOneAfterTheOther(t *testing.T) {
	const pods, settled = 4, 6 * time.Minute
	for _, every := range []time.Duration{scrapeInterval, 30 * time.Second, time.Minute} {
		for _, late := range []time.Duration{0, 2 * time.Second, 20 * time.Second, 45 * time.Second} {
			t.Run(fmt.Sprintf("every %s, %s late", every, late), func(t *testing.T) {
				p := prometheustest.New(t)
				client, next := serve(t, p.Handler), 0
				for at := time.Duration(0); at < settled+2*time.Minute; at += 10 * time.Second {
					for ; ; next++ {
						scrape := time.Duration(next)*every/pods + 123*time.Millisecond
						if scrape+late > at {
							break
						}
						p.Append(start.Add(scrape), serverPage(fmt.Sprint(next%pods), "vllm")(scrape))
					}
					if at < settled {
						_, _, err := client.paced(t.Context(), start.Add(at), window, lookback)
						require.NoError(t, err)
						continue
					}
					replicas, _ := read(t, client, start.Add(at))
					require.Len(t, replicas, pods)
					for name, r := range replicas {
						knows(t, r, r.Running.Time)
						assert.Equal(t, every, r.RecentSpan, "%s %s", at, name)
						assert.LessOrEqual(t, start.Add(at).Sub(r.Running.Time), late+every, "%s %s", at, name)
					}
				}
			})
		}
	}
}
