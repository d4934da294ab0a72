package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// scrapesAt are scrapes 15 s apart, the last one at the given time, of what one of so
// many looks like.
func scrapesAt(last time.Duration, n int, of func(i int, since time.Duration) simulation.Metrics) []Scrape {
	var all []Scrape
	for i := range n {
		when := last - time.Duration(n-1-i)*15*time.Second
		all = append(all, Scrape{At: when, Metrics: of(i, when)})
	}
	return all
}

func absent() decision.Sample { return decision.Sample{} }

func TestWindowsEndNowAndLeaveTheirBeginOut(t *testing.T) {
	scrapes := scrapesAt(5*time.Minute, 10, func(int, time.Duration) simulation.Metrics { return simulation.Metrics{} })
	for now, want := range map[time.Duration]int{
		5 * time.Minute: 4, 5*time.Minute + 14*time.Second: 4, 5*time.Minute + 15*time.Second: 3,
		5*time.Minute + 59*time.Second: 1, 6 * time.Minute: 0,
	} {
		assert.Len(t, WindowOf(scrapes, now, time.Minute), want, now)
	}
	assert.Empty(t, WindowOf(nil, time.Minute, time.Minute))
}

func TestSamplesOfAWindow(t *testing.T) {
	last := 4 * time.Minute
	of := func(values ...float64) (Window, func(Scrape) float64) {
		w := scrapesAt(last, len(values), func(i int, _ time.Duration) simulation.Metrics { return simulation.Metrics{Running: i} })
		return w, func(s Scrape) float64 { return values[s.Running] }
	}
	tests := map[string]struct {
		values            []float64
		mean, rate, slope decision.Sample
	}{
		"no scrape":  {nil, absent(), absent(), absent()},
		"one scrape": {[]float64{7}, known(7, last), absent(), absent()},
		"two":        {[]float64{1, 4}, known(2.5, last), known(0.2, last), known(0.2, last)},
		"even":       {[]float64{3, 3, 3, 3}, known(3, last), known(0, last), known(0, last)},
		"a line":     {[]float64{0, 30, 60, 90}, known(45, last), known(2, last), known(2, last)},
		// Least squares: sum of (x - 22.5)(y - 5) over that of (x - 22.5)^2 is 450 / 1125.
		"a step":  {[]float64{0, 0, 0, 20}, known(5, last), known(20.0/45, last), known(0.4, last)},
		"falling": {[]float64{9, 6, 3}, known(6, last), known(-0.2, last), known(-0.2, last)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, value := of(test.values...)
			same(t, test.mean, w.mean(value))
			same(t, test.rate, w.Rate(value))
			same(t, test.slope, w.slope(value))
		})
	}
}

// same compares samples to the last digits.
func same(t *testing.T, want, got decision.Sample) {
	t.Helper()
	assert.InDelta(t, want.Value, got.Value, 1e-9)
	assert.Equal(t, want.Time, got.Time)
	assert.Equal(t, want.Present, got.Present)
}

func TestRatiosNeedSomethingThatEnded(t *testing.T) {
	last := time.Minute
	of := func(counts ...uint64) Window {
		return scrapesAt(last, len(counts), func(i int, _ time.Duration) simulation.Metrics {
			return simulation.Metrics{Finished: counts[i], Output: 50 * counts[i] * counts[i]}
		})
	}
	output := func(s Scrape) float64 { return float64(s.Output) }
	for name, test := range map[string]struct {
		counts []uint64
		want   decision.Sample
	}{
		"nothing":          {nil, absent()},
		"one scrape":       {[]uint64{4}, absent()},
		"nothing ended":    {[]uint64{4, 4, 4}, absent()},
		"some ended":       {[]uint64{0, 1, 3}, known(150, last)},
		"some ended later": {[]uint64{2, 2, 4}, known(300, last)},
	} {
		t.Run(name, func(t *testing.T) { same(t, test.want, of(test.counts...).Ratio(output, Scrape.Ended)) })
	}
}

func TestRecentArrivals(t *testing.T) {
	last := time.Minute
	of := func(all ...simulation.Metrics) Window {
		return scrapesAt(last, len(all), func(i int, _ time.Duration) simulation.Metrics { return all[i] })
	}
	for name, test := range map[string]struct {
		window Window
		want   decision.Sample
		span   time.Duration
	}{
		"no scrape":            {of(), absent(), 0},
		"one scrape":           {of(simulation.Metrics{Running: 3}), absent(), 0},
		"what ended":           {of(simulation.Metrics{Finished: 10}, simulation.Metrics{Finished: 40}), known(2, last), 15 * time.Second},
		"what came and stayed": {of(simulation.Metrics{Running: 2}, simulation.Metrics{Running: 10, Waiting: 22}), known(2, last), 15 * time.Second},
		"what was there before": {of(simulation.Metrics{Finished: 10, Running: 20, Waiting: 10}, simulation.Metrics{Finished: 40}),
			known(0, last), 15 * time.Second},
		"only the last two": {of(simulation.Metrics{}, simulation.Metrics{Finished: 1000}, simulation.Metrics{Finished: 1003}),
			known(0.2, last), 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			got, span := test.window.recent()
			same(t, test.want, got)
			assert.Equal(t, test.span, span)
		})
	}
}

func TestReplicaAsItsMetricsShowIt(t *testing.T) {
	// Ten requests per second of 200 prompt and 50 further tokens.
	now := 5 * time.Minute
	scrapes := scrapesAt(now-5*time.Second, 8, func(i int, when time.Duration) simulation.Metrics {
		n := uint64(10 * when / time.Second)
		return simulation.Metrics{
			Running: 4 + i, Waiting: i, KVUsed: 1000 * i, KVCapacity: 10_000,
			Finished: n, Input: 200 * n, Output: 51 * n, InService: time.Duration(n) * 2 * time.Second,
			FirstTokens: n, FirstToken: time.Duration(n) * 300 * time.Millisecond,
			Tokens: 50 * n, BetweenTokens: time.Duration(n) * 1500 * time.Millisecond,
		}
	})
	pod := Pod{Replica: simulation.Replica{Name: "a", Ready: 20 * time.Second}, Scrapes: scrapes}
	r := WindowOf(scrapes, now, time.Minute).replica(pod, "node-1")
	last := now - 5*time.Second
	assert.Equal(t, "a", r.Name)
	assert.Equal(t, "node-1", r.Node)
	assert.Equal(t, at(20*time.Second), r.Since)
	assert.Equal(t, 15*time.Second, r.RecentSpan)
	for name, test := range map[string]struct {
		want float64
		got  decision.Sample
	}{
		"running: 8, 9, 10, 11":   {9.5, r.Running},
		"waiting: 4, 5, 6, 7":     {5.5, r.Waiting},
		"KV cache: 0.4 to 0.7":    {0.55, r.KVUse},
		"size of the KV cache":    {10_000, r.KVTokens},
		"served":                  {10, r.Served},
		"two more in each scrape": {2.0 / 15, r.InFlightGrowth},
		"the same and those":      {10 + 2.0/15, r.Recent},
		"seconds in service":      {2, r.InService},
		"prompt":                  {200, r.Input},
		"generated":               {51, r.Output},
		"first token":             {0.3, r.TTFT},
		"further tokens":          {0.03, r.ITL},
	} {
		t.Run(name, func(t *testing.T) { same(t, known(test.want, last), test.got) })
	}
}

func TestReplicaWithoutScrapesIsUnknown(t *testing.T) {
	pod := Pod{Replica: simulation.Replica{Name: "a", Ready: 20 * time.Second}}
	assert.Equal(t, decision.Replica{Name: "a", Since: at(20 * time.Second)}, Window(nil).replica(pod, ""))
	// A cache of unknown size is neither empty nor full.
	one := Window{{At: time.Second, Metrics: simulation.Metrics{Running: 1}}}
	r := one.replica(pod, "")
	assert.Equal(t, absent(), r.KVUse)
	assert.Equal(t, absent(), r.KVTokens)
	assert.Equal(t, known(1, time.Second), r.Running)
}

func TestModelAsTheGatewayShowsIt(t *testing.T) {
	now := 3 * time.Minute
	of := func(all ...simulation.Gateway) []GatewayScrape {
		var scrapes []GatewayScrape
		for i, g := range all {
			scrapes = append(scrapes, GatewayScrape{At: now - time.Duration(len(all)-1-i)*15*time.Second, Gateway: g})
		}
		return scrapes
	}
	old := of(simulation.Gateway{Queue: 3, Dispatched: 5})
	old[0].At = now - time.Minute
	tests := map[string]struct {
		scrapes []GatewayScrape
		want    decision.Model
	}{
		"no gateway":        {nil, decision.Model{}},
		"nothing lately":    {old, decision.Model{}},
		"one scrape":        {of(simulation.Gateway{Queue: 3, Dispatched: 100}), decision.Model{Queue: known(3, now)}},
		"nobody serves yet": {of(simulation.Gateway{}, simulation.Gateway{Queue: 30}, simulation.Gateway{Queue: 60}), decision.Model{Queue: known(60, now), Arrival: known(2, now), Recent: known(2, now), RecentSpan: 15 * time.Second}},
		"all is sent on":    {of(simulation.Gateway{Dispatched: 10}, simulation.Gateway{Dispatched: 40}, simulation.Gateway{Dispatched: 160}), decision.Model{Queue: known(0, now), Arrival: known(5, now), Recent: known(8, now), RecentSpan: 15 * time.Second}},
		"the queue drains":  {of(simulation.Gateway{Queue: 60}, simulation.Gateway{Queue: 30, Dispatched: 45}, simulation.Gateway{Dispatched: 90}), decision.Model{Queue: known(0, now), Arrival: known(1, now), Recent: known(1, now), RecentSpan: 15 * time.Second}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var m decision.Model
			gateway(&m, test.scrapes, now, time.Minute)
			same(t, test.want.Queue, m.Queue)
			same(t, test.want.Arrival, m.Arrival)
			same(t, test.want.Recent, m.Recent)
			assert.Equal(t, test.want.RecentSpan, m.RecentSpan)
		})
	}
}

func TestKVUse(t *testing.T) {
	assert.Zero(t, Scrape{}.KVUse())
	assert.InDelta(t, 0.25, Scrape{Metrics: simulation.Metrics{KVUsed: 5, KVCapacity: 20}}.KVUse(), 0)
}

// What several replicas completed within the window counts together. One that started anew,
// or was scraped once, says nothing of it.
func TestWhatKeptThePromise(t *testing.T) {
	now := 5 * time.Minute
	pod := func(finished, missed []uint64, last time.Duration) Pod {
		return Pod{Scrapes: scrapesAt(last, len(finished), func(i int, _ time.Duration) simulation.Metrics {
			return simulation.Metrics{Finished: finished[i], Missed: missed[i]}
		})}
	}
	steady := pod([]uint64{100, 110, 140}, []uint64{7, 8, 10}, now)
	for name, c := range map[string]struct {
		pods []Pod
		want decision.Sample
	}{
		"no replica":                   {want: absent()},
		"nothing completed":            {[]Pod{pod([]uint64{5, 5}, []uint64{1, 1}, now)}, absent()},
		"one":                          {[]Pod{steady}, known(1-3.0/40, now)},
		"two, the newer scrape counts": {[]Pod{steady, pod([]uint64{0, 60}, []uint64{0, 7}, now-10*time.Second)}, known(0.9, now)},
		"one scrape alone":             {[]Pod{steady, pod([]uint64{500}, []uint64{500}, now)}, known(1-3.0/40, now)},
		"one that started anew":        {[]Pod{steady, pod([]uint64{500, 3}, []uint64{400, 0}, now)}, known(1-3.0/40, now)},
	} {
		t.Run(name, func(t *testing.T) {
			m := ModelView{Variants: []VariantView{{Pods: c.pods[:len(c.pods)/2]}, {Pods: c.pods[len(c.pods)/2:]}}}
			got := m.met(now, time.Minute)
			assert.InDelta(t, c.want.Value, got.Value, 1e-12)
			got.Value = c.want.Value
			assert.Equal(t, c.want, got)
		})
	}
}
