package prometheus

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

const (
	ttftSeries = "vllm:time_to_first_token_seconds"
	meanSeries = "vllm:request_time_per_output_token_seconds"
	itlSeries  = "vllm:inter_token_latency_seconds"
)

// histogram adds the buckets of a pod at a time after the start; a request of each end's count
// completes in a second.
func histogram(values map[string]float64, name, model, pod, job string, since time.Duration, ends map[string]float64) {
	for end, rate := range ends {
		values[fmt.Sprintf(`%s_bucket{namespace="models",pod=%q,instance=%q,job=%q,le=%q,model_name=%q}`, name, pod, pod, job, end, model)] = rate * since.Seconds()
	}
}

func modelKey(id string) decision.ModelKey { return decision.ModelKey{Namespace: "models", ID: id} }

func TestTheShareThatKeptThePromise(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(9)
	for i, at := range times {
		since, values := at.Sub(start), map[string]float64{}
		// Two pods, of which one is scraped by two jobs, and which write ends in two ways.
		for _, job := range []string{"vllm", "other"} {
			histogram(values, ttftSeries, "two", "a", job, since, map[string]float64{"0.5": 1, "1": 3, "2": 4, "+Inf": 4})
			histogram(values, meanSeries, "two", "a", job, since, map[string]float64{"0.02": 2, "0.04": 4, "+Inf": 4})
		}
		histogram(values, ttftSeries, "two", "b", "vllm", since, map[string]float64{"0.5": 3, "1.0": 5, "2.0": 12, "+Inf": 12})
		histogram(values, meanSeries, "two", "b", "vllm", since, map[string]float64{"0.02": 2, "0.04": 10, "+Inf": 12})
		histogram(values, itlSeries, "two", "b", "vllm", since, map[string]float64{"0.02": 0, "0.04": 0, "+Inf": 900})
		histogram(values, ttftSeries, "first", "c", "vllm", since, map[string]float64{"0.25": 1, "0.75": 3, "+Inf": 4})
		histogram(values, itlSeries, "tokens", "d", "vllm", since, map[string]float64{"0.01": 1, "0.03": 3, "+Inf": 4})
		histogram(values, ttftSeries, "half", "e", "vllm", since, map[string]float64{"0.5": 1, "+Inf": 1})
		histogram(values, ttftSeries, "idle", "f", "vllm", 0, map[string]float64{"0.5": 1, "+Inf": 1})
		if i < 3 {
			histogram(values, ttftSeries, "gone", "g", "vllm", since, map[string]float64{"0.5": 1, "+Inf": 1})
		}
		if i < 7 {
			histogram(values, ttftSeries, "ages", "h", "vllm", since, map[string]float64{"0.5": 1, "+Inf": 2})
		}
		p.Append(at, values)
	}
	last := times[len(times)-1]
	met, err := serve(t, p.Handler).Met(t.Context(), last.Add(5*time.Second), window, map[decision.ModelKey]capacity.SLO{
		modelKey("two"): {TTFT: 1500, ITL: 40}, modelKey("first"): {TTFT: 500}, modelKey("tokens"): {ITL: 20},
		modelKey("half"): {TTFT: 500, ITL: 20}, modelKey("idle"): {TTFT: 500}, modelKey("gone"): {TTFT: 500},
		modelKey("ages"): {TTFT: 500}, modelKey("silent"): {TTFT: 500, ITL: 20},
	})
	require.NoError(t, err)
	want := map[decision.ModelKey]struct {
		sure, most float64
		ttft, itl  decision.Bucket
		at         time.Time
	}{
		// Both pods, each once, and the mean time of requests: half were within 1 s, all within
		// 2 s, and two of sixteen took longer per token than they may.
		modelKey("two"):    {8./16 - 2./16, 14. / 16, decision.Bucket{Above: 1000, UpTo: 2000}, decision.Bucket{}, last},
		modelKey("first"):  {1. / 4, 3. / 4, decision.Bucket{Above: 250, UpTo: 750}, decision.Bucket{}, last},
		modelKey("tokens"): {1. / 4, 3. / 4, decision.Bucket{}, decision.Bucket{Above: 10, UpTo: 30}, last},
		modelKey("ages"):   {1. / 2, 1. / 2, decision.Bucket{}, decision.Bucket{}, times[6]}, // it is as old as its last scrape
	}
	require.Len(t, met, len(want), "unknown is not zero: %v", met)
	for key, w := range want {
		assert.True(t, met[key].Present, key.ID)
		assert.InDelta(t, w.sure, met[key].Sure, 1e-9, key.ID)
		assert.InDelta(t, w.most, met[key].Value, 1e-9, key.ID)
		assert.Equal(t, w.ttft, met[key].TTFT, key.ID)
		assert.Equal(t, w.itl, met[key].ITL, key.ID)
		assert.Equal(t, w.at, met[key].Time, key.ID)
	}
}

// While a version is rolled out servers have other ends than the ones before. What a server
// without the end of a bucket served may have been within the target.
// A label that nobody knows splits the buckets of a server in any number of parts: the share is that of the
// whole, as it is without the label.
func TestAnUnknownLabelChangesNoShare(t *testing.T) {
	ends := map[string]map[string]float64{
		ttftSeries: {"0.5": 8, "1.0": 12, "+Inf": 16}, meanSeries: {"0.02": 4, "0.04": 12, "+Inf": 16}, itlSeries: {"0.02": 100, "0.04": 300, "+Inf": 400},
	}
	promises := map[decision.ModelKey]capacity.SLO{modelKey("llama"): {TTFT: 750, ITL: 30}}
	at := scrapes(9)
	share := func(histograms []string, parts int, label string) decision.Kept {
		p := prometheustest.New(t)
		for _, now := range at {
			values := map[string]float64{}
			for _, pod := range []string{"a", "b"} {
				for _, name := range histograms {
					for part := range parts {
						of := map[string]float64{}
						for end, rate := range ends[name] {
							of[end] = rate / float64(parts)
						}
						all := map[string]float64{}
						histogram(all, name, "llama", pod, "vllm", now.Sub(start), of)
						for series, value := range all {
							if label != "" {
								series = strings.Replace(series, "{", fmt.Sprintf("{%s=%q,", label, fmt.Sprint("part-", part)), 1)
							}
							values[series] = value
						}
					}
				}
			}
			p.Append(now, values)
		}
		met, err := serve(t, p.Handler).Met(t.Context(), at[len(at)-1].Add(5*time.Second), window, promises)
		require.NoError(t, err)
		require.Contains(t, met, modelKey("llama"))
		return met[modelKey("llama")]
	}
	for _, histograms := range [][]string{{ttftSeries, meanSeries}, {ttftSeries, itlSeries}} {
		whole := share(histograms, 1, "")
		assert.Less(t, whole.Sure, whole.Value, "the targets lie within buckets")
		for _, label := range []string{"finished_reason", "priority", "lora", "endpoint_name", "pid", "dp_rank", "nobody_knows_this"} {
			for _, parts := range []int{1, 2, 5} {
				split := share(histograms, parts, label)
				assert.InDelta(t, whole.Sure, split.Sure, 1e-9, "%v by %s in %d", histograms, label, parts)
				assert.InDelta(t, whole.Value, split.Value, 1e-9, "%v by %s in %d", histograms, label, parts)
				assert.Equal(t, whole.TTFT, split.TTFT, label)
			}
		}
	}
}

func TestServersWithOtherBucketsMayHaveKeptThePromise(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(9)
	for _, at := range times {
		since, values := at.Sub(start), map[string]float64{}
		histogram(values, ttftSeries, "mixed", "a", "vllm", since, map[string]float64{"0.5": 2, "1": 2, "+Inf": 2})
		histogram(values, ttftSeries, "mixed", "b", "vllm", since, map[string]float64{"0.25": 2, "0.75": 2, "+Inf": 2})
		histogram(values, ttftSeries, "end", "a", "vllm", since, map[string]float64{"0.5": 1, "1": 2, "+Inf": 2})
		histogram(values, ttftSeries, "end", "b", "vllm", since, map[string]float64{"0.25": 2, "0.75": 2, "+Inf": 2})
		p.Append(at, values)
	}
	met, err := serve(t, p.Handler).Met(t.Context(), times[8].Add(time.Second), window, map[decision.ModelKey]capacity.SLO{
		modelKey("mixed"): {TTFT: 600}, modelKey("end"): {TTFT: 500},
	})
	require.NoError(t, err)
	assert.InDelta(t, 0.5, met[modelKey("mixed")].Sure, 1e-9, "two of a, and b is not asked")
	assert.InDelta(t, 1, met[modelKey("mixed")].Value, 1e-9, "all were within 600 ms, or may have been")
	assert.InDelta(t, 0.25, met[modelKey("end")].Sure, 1e-9)
	assert.InDelta(t, 1, met[modelKey("end")].Value, 1e-9, "b has no bucket that ends at 500 ms")
}

// A pod of a group keeps its name when it starts anew as another version, whose buckets end elsewhere. Until the
// window holds nothing of before, what may have kept the promise is not known.
func TestAServerThatStartsAnewWithOtherBuckets(t *testing.T) {
	for restarted := 5; restarted <= 13; restarted++ {
		p := prometheustest.New(t)
		times := scrapes(14)
		for i, at := range times {
			values := map[string]float64{}
			ends := map[string]float64{"0.5": 4, "1.0": 4, "+Inf": 4}
			if i >= restarted {
				ends = map[string]float64{"0.25": 1, "0.75": 4, "+Inf": 4}
			}
			if i == restarted {
				histogram(values, ttftSeries, "m", "a", "vllm", 0, map[string]float64{"0.5": 1, "1.0": 1})
				for series := range values {
					values[series] = prometheustest.Stale
				}
			}
			since := at.Sub(start)
			if i >= restarted {
				since = at.Sub(times[restarted])
			}
			histogram(values, ttftSeries, "m", "a", "vllm", since, ends)
			p.Append(at, values)
		}
		met, err := serve(t, p.Handler).Met(t.Context(), times[13].Add(time.Second), window, map[decision.ModelKey]capacity.SLO{modelKey("m"): {TTFT: 500}})
		require.NoError(t, err)
		if kept := met[modelKey("m")]; kept.Present {
			assert.InDelta(t, 1, kept.Value, 1e-9, "all may have: %d", restarted)
			assert.LessOrEqual(t, kept.Sure, 0.25+1e-9, restarted)
		} else {
			assert.NotEqual(t, 5, restarted, "all of it is of the new version")
		}
	}
}

// The servers of one model may be of several versions and makers, each with a histogram of its own. All of
// them make the whole: vLLM 0.9 has time_per_output_token alone, 0.11 inter_token_latency too and the
// mean of each request, SGLang 0.5 inter_token_latency.
func TestHistogramsOfSeveralVersionsAreOneWhole(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(9)
	const older, sglangTTFT, sglangITL = "vllm:time_per_output_token_seconds", "sglang:time_to_first_token_seconds", "sglang:inter_token_latency_seconds"
	for _, at := range times {
		since, values := at.Sub(start), map[string]float64{}
		// A fast server of the preferred name, and three slow ones of another maker.
		histogram(values, ttftSeries, "makers", "a", "vllm", since, map[string]float64{"0.5": 1, "1": 1, "+Inf": 1})
		for _, pod := range []string{"b", "c", "d"} {
			histogram(values, sglangTTFT, "makers", pod, "sglang", since, map[string]float64{"0.4": 0, "0.6": 0.5, "+Inf": 1})
		}
		// Requests count where each server counts them, tokens where more servers count those.
		for _, pod := range []string{"a", "b"} {
			histogram(values, meanSeries, "means", pod, "vllm", since, map[string]float64{"0.025": 1, "0.05": 2, "+Inf": 2})
			histogram(values, itlSeries, "means", pod, "vllm", since, map[string]float64{"0.025": 0, "0.05": 0, "+Inf": 500})
		}
		histogram(values, meanSeries, "upgrade", "a", "vllm", since, map[string]float64{"0.025": 2, "0.05": 2, "+Inf": 2})
		histogram(values, itlSeries, "upgrade", "a", "vllm", since, map[string]float64{"0.025": 100, "0.05": 100, "+Inf": 100})
		for _, pod := range []string{"b", "c"} {
			histogram(values, older, "upgrade", pod, "vllm", since, map[string]float64{"0.025": 0, "0.05": 100, "+Inf": 150})
		}
		histogram(values, itlSeries, "ends", "a", "vllm", since, map[string]float64{"0.025": 40, "0.05": 40, "+Inf": 40})
		histogram(values, sglangITL, "ends", "b", "sglang", since, map[string]float64{"0.02": 5, "0.03": 20, "+Inf": 60})
		p.Append(at, values)
	}
	met, err := serve(t, p.Handler).Met(t.Context(), times[8].Add(time.Second), window, map[decision.ModelKey]capacity.SLO{
		modelKey("makers"): {TTFT: 500}, modelKey("means"): {ITL: 25}, modelKey("upgrade"): {ITL: 25}, modelKey("ends"): {ITL: 25},
	})
	require.NoError(t, err)
	for name, want := range map[string]struct {
		sure, most float64
		ttft, itl  decision.Bucket
	}{
		"makers":  {1. / 4, 1./4 + 1.5/4, decision.Bucket{Above: 400, UpTo: 600}, decision.Bucket{}},
		"means":   {1. / 2, 1. / 2, decision.Bucket{}, decision.Bucket{}},
		"upgrade": {100. / 400, 100. / 400, decision.Bucket{}, decision.Bucket{}},
		"ends":    {45. / 100, 60. / 100, decision.Bucket{}, decision.Bucket{Above: 20, UpTo: 30}},
	} {
		assert.InDelta(t, want.sure, met[modelKey(name)].Sure, 1e-9, name)
		assert.InDelta(t, want.most, met[modelKey(name)].Value, 1e-9, name)
		assert.Equal(t, want.ttft, met[modelKey(name)].TTFT, name)
		assert.Equal(t, want.itl, met[modelKey(name)].ITL, name)
	}
}

// However many models there are, two queries tell all, and two more which buckets there are.
func TestTheNumberOfQueriesDoesNotDependOnTheModels(t *testing.T) {
	for _, models := range []int{1, 30} {
		p, promises := prometheustest.New(t), map[decision.ModelKey]capacity.SLO{}
		feed := func(at time.Time, models int) {
			values := map[string]float64{}
			for i := range models {
				name := fmt.Sprintf("m%d", i)
				histogram(values, ttftSeries, name, name, "vllm", at.Sub(start), map[string]float64{"0.5": 1, "1": 2, "+Inf": 2})
				histogram(values, itlSeries, name, name, "vllm", at.Sub(start), map[string]float64{"0.02": 1, "0.04": 2, "+Inf": 2})
				promises[modelKey(name)] = capacity.SLO{TTFT: capacity.Milliseconds(500 + i), ITL: 20}
			}
			p.Append(at, values)
		}
		var asked, ends atomic.Int64
		client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if err := r.ParseForm(); err == nil && strings.Contains(r.Form.Get("query"), `le!=""`) {
				ends.Add(1)
			}
			p.Handler.ServeHTTP(w, r)
		}))
		read := func(at time.Time, wantAsked, wantEnds int64) {
			t.Helper()
			asked.Store(0)
			ends.Store(0)
			met, err := client.Met(t.Context(), at, window, promises)
			require.NoError(t, err)
			assert.Len(t, met, len(promises))
			assert.Equal(t, wantAsked, asked.Load())
			assert.Equal(t, wantEnds, ends.Load())
		}
		times := scrapes(16)
		for _, at := range times[:5] {
			feed(at, models)
		}
		read(times[4], 4, 2)
		read(times[4], 2, 0)
		// A model that nobody knew has the buckets of the others, and its own are asked for once.
		for _, at := range times[5:] {
			feed(at, models+1)
		}
		read(times[15], 2, 0)
		read(times[15], 4, 2)
		read(times[15], 2, 0)
	}
}

func TestBucketsThatCannotBeRead(t *testing.T) {
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"status":"error","errorType":"timeout","error":"query timed out"}`, http.StatusUnprocessableEntity)
	}))
	met, err := client.Met(t.Context(), start, window, map[decision.ModelKey]capacity.SLO{modelKey("m"): {TTFT: 500}})
	require.ErrorContains(t, err, "requests within the SLO")
	assert.Empty(t, met)
	met, err = client.Met(t.Context(), start, window, map[decision.ModelKey]capacity.SLO{modelKey("m"): {}})
	require.NoError(t, err, "nothing is asked where nothing is promised")
	assert.Empty(t, met)
}

// Where a target lies, whoever wrote the ends of the buckets and however.
func TestWhereATargetLies(t *testing.T) {
	for name, c := range map[string]struct {
		slo        capacity.Milliseconds
		ends       map[string]float64
		sure, most float64
		in         decision.Bucket
	}{
		"at an end that was reckoned": {300, map[string]float64{"0.1": 1, "0.30000000000000004": 3, "0.9": 4, "+Inf": 4}, 0.75, 0.75, decision.Bucket{}},
		"at an end with a point":      {5000, map[string]float64{"2.5": 3, "5.0": 4, "+Inf": 4}, 1, 1, decision.Bucket{}},
		"between vLLM's 2.5 and 5 s":  {3000, map[string]float64{"2.5": 3, "5.0": 4, "7.5": 4, "+Inf": 4}, 0.75, 1, decision.Bucket{Above: 2500, UpTo: 5000}},
		"missed all the same":         {3000, map[string]float64{"2.5": 0, "5.0": 1, "7.5": 4, "+Inf": 4}, 0, 0.25, decision.Bucket{Above: 2500, UpTo: 5000}},
		"above the last end":          {3000000, map[string]float64{"2560.0": 3, "+Inf": 4}, 0.75, 1, decision.Bucket{Above: 2560000}},
	} {
		p := prometheustest.New(t)
		times := scrapes(9)
		for _, at := range times {
			values := map[string]float64{}
			histogram(values, ttftSeries, "m", "a", "vllm", at.Sub(start), c.ends)
			p.Append(at, values)
		}
		met, err := serve(t, p.Handler).Met(t.Context(), times[8].Add(time.Second), window, map[decision.ModelKey]capacity.SLO{modelKey("m"): {TTFT: c.slo}})
		require.NoError(t, err)
		got := met[modelKey("m")]
		assert.InDelta(t, c.sure, got.Sure, 1e-9, name)
		assert.InDelta(t, c.most, got.Value, 1e-9, name)
		assert.Equal(t, c.in, got.TTFT, name)
	}
}

// However seldom servers are scraped and however late that is known, a share is known, and right, once a reading
// has seen how it is. What one namespace does changes nothing of another's.
func TestTheShareOfServersThatAreScrapedSeldom(t *testing.T) {
	promises := map[decision.ModelKey]capacity.SLO{modelKey("m"): {TTFT: 500}, {Namespace: "slow", ID: "m"}: {TTFT: 500}}
	for _, every := range []time.Duration{30 * time.Second, time.Minute} {
		for _, late := range []time.Duration{0, 45 * time.Second} {
			t.Run(fmt.Sprintf("every %s, %s late", every, late), func(t *testing.T) {
				p := prometheustest.New(t)
				client := serve(t, p.Handler)
				scrape := func(namespace string, since time.Duration) {
					values := load(strings.ReplaceAll(engine("a", "0"), `namespace="models"`, fmt.Sprintf("namespace=%q", namespace)), since)
					for end, rate := range map[string]float64{"0.25": 1, "0.5": 3, "1.0": 4, "+Inf": 4} {
						values[fmt.Sprintf(`%s_bucket{namespace=%q,pod="a",instance="a",job="vllm",le=%q,model_name="m"}`, ttftSeries, namespace, end)] = rate * since.Seconds()
					}
					p.Append(start.Add(since), values)
				}
				next, nextSlow, lacks := time.Duration(0), time.Duration(0), map[string]int{}
				for at := 7 * time.Second; at < 18*time.Minute; at += 10 * time.Second {
					for ; next <= at; next += scrapeInterval {
						scrape("models", next)
					}
					for ; nextSlow+late <= at; nextSlow += every {
						scrape("slow", nextSlow)
					}
					if at < 14*time.Minute {
						continue
					}
					_, _ = read(t, client, start.Add(at))
					if at < 16*time.Minute || at%(30*time.Second) > 10*time.Second {
						continue
					}
					met, err := client.Met(t.Context(), start.Add(at), window, promises)
					require.NoError(t, err)
					for key := range promises {
						if one, found := met[key]; !found {
							lacks[key.Namespace]++
						} else {
							assert.InDelta(t, 0.75, one.Sure, 0.02, "%s", key)
							assert.LessOrEqual(t, start.Add(at).Sub(one.Time), every+late+lagStep+scrapeInterval)
						}
					}
				}
				assert.Empty(t, lacks)
			})
		}
	}
}
