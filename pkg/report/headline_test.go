package report

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

func result(policy string, attainment, cost, over float64) replay.Result {
	return replay.Result{Policy: policy, StartupSeconds: 60, Requests: 100, Attainment: attainment, Cost: cost, CostOverBound: over}
}

func TestTheHeadlineSaysWhoWinsByWhat(t *testing.T) {
	hybrid, hpa, keda := result("hybrid", 0.9987, 90, 1.2), result("hpa:rps=4", 0.995, 100, 1.33), result("keda", 0.8, 20, 0.3)
	fixed, peak := result("static:4", 1, 75, 1), result("peak", 0.999, 80, 1.1)
	later := func(r replay.Result) replay.Result { r.StartupSeconds = 300; return r }
	none := result("keda", 0, 0, 0)
	none.Requests = 0
	for name, c := range map[string]struct {
		results []replay.Result
		want    string
	}{
		"the cheapest of those that meet the SLO": {[]replay.Result{keda, hpa, hybrid, fixed, peak},
			"hybrid wins: of the 2 policies that meet the SLO for 99% of the requests it costs least, $90.0, 1.20 times the bound. That is 10% less than hpa:rps=4, the next, with $100."},
		"about as dear": {[]replay.Result{result("hpa:kv", 0.99, 90.1, 0), hybrid},
			"hybrid wins: of the 2 policies that meet the SLO for 99% of the requests it costs least, $90.0, 1.20 times the bound. hpa:kv costs about as much, $90.1."},
		"as dear": {[]replay.Result{result("hpa:kv", 0.99, 90, 0), hybrid},
			"hybrid wins: of the 2 policies that meet the SLO for 99% of the requests it costs least, $90.0, 1.20 times the bound. hpa:kv costs the same."},
		"one alone": {[]replay.Result{keda, hybrid, fixed},
			"hybrid wins: it alone meets the SLO for 99% of the requests (99.87%), at $90.0, 1.20 times the bound. Next is keda with 80.00%, at $20.0."},
		"another alone":    {[]replay.Result{hpa, keda}, "hpa:rps=4 wins: it alone meets the SLO for 99% of the requests (99.50%), at $100, 1.33 times the bound. Next is keda with 80.00%, at $20.0."},
		"nobody":           {[]replay.Result{keda, result("hpa:kv", 0.9, 30, 0)}, "No policy meets the SLO for 99% of the requests. hpa:kv comes closest with 90.00%, at $30.0."},
		"one, which keeps": {[]replay.Result{hybrid, fixed}, "hybrid meets the SLO for 99% of the requests (99.87%), at $90.0, 1.20 times the bound."},
		"one, which fails": {[]replay.Result{keda}, "keda does not meet the SLO for 99% of the requests: it meets it for 80.00%, at $20.0."},
		"two start-up times": {[]replay.Result{hybrid, later(keda)},
			"Start-up 1m: hybrid meets the SLO for 99% of the requests (99.87%), at $90.0, 1.20 times the bound. Start-up 5m: keda does not meet the SLO for 99% of the requests: it meets it for 80.00%, at $20.0."},
		"references alone": {[]replay.Result{fixed, peak}, ""},
		"no requests":      {[]replay.Result{none}, ""},
		"nothing":          {nil, ""},
	} {
		assert.Equal(t, c.want, Headline(c.results, 0.99), name)
		for _, line := range ReplayHeadline(c.results, 0.99, Style{Width: 60}) {
			assert.LessOrEqual(t, len(line), 60, name)
		}
	}
	assert.Contains(t, Headline([]replay.Result{hybrid}, 0.995), "for 99.5% of the requests")
}

func TestFailedRequestsAreNeverLeftOut(t *testing.T) {
	results, _ := madeUp(7, 3, 30)
	results[2].Failed = 12_345
	for _, width := range []int{30, 40, 60, 80, 200} {
		text := strings.Join(ReplayTable(results, Style{Width: width}), "\n")
		assert.Contains(t, text, "FAILED", "width %d", width)
		assert.Contains(t, text, "12.3k", "width %d", width)
	}
}

func TestRequestsThatFitNoReplicaSayWhy(t *testing.T) {
	results, recordings := madeUp(7, 3, 60)
	results[1].TooLong = &replay.TooLong{Requests: 2, Input: 900_000, Output: 500, Variant: "llama-70b", KVTokens: 697_376}
	const why = "2 requests of hybrid failed because they are too long for the replica that got them: the longest has 900,000 prompt and 500 generated tokens, and the KV cache of a replica of llama-70b holds 697,376"
	text := strings.Join(strings.Fields(strings.Join(ReplayTable(results, Style{}), "\n")), " ")
	assert.Contains(t, text, why+".")
	html := written(t, "toolong.html", func(w io.Writer) error { return HTML(w, "t", results, recordings) })
	assert.Contains(t, wellFormed(t, html), why)

	results[3].TooLong = &replay.TooLong{Requests: 1, Input: 5, Output: 5, Variant: "v", KVTokens: 8}
	assert.Contains(t, tooLongNote(results), why+"; such requests failed in 2 runs.")
	results[1].TooLong = nil
	assert.Equal(t, "1 request of "+results[3].Policy+" failed because it is too long for the replica that got it: it has 5 prompt and 5 generated tokens, and the KV cache of a replica of v holds 8.", tooLongNote(results))
	results[3].TooLong = nil
	assert.Empty(t, tooLongNote(results))
}

func TestThePageSaysHowItWasMade(t *testing.T) {
	results, recordings := madeUp(7, 10, 60)
	about := About{Title: "t", Share: 0.99, Made: []string{"kubectl wva replay --trace=x.csv", "seed 7, kubectl wva v1"}}
	text := wellFormed(t, written(t, "made.html", func(w io.Writer) error { return HTMLOfReplay(w, about, results, recordings) }))
	for _, want := range append(about.Made, Headline(results, 0.99)) {
		assert.Contains(t, text, want)
	}
	plain := wellFormed(t, written(t, "plain.html", func(w io.Writer) error { return HTML(w, "t", results, recordings) }))
	assert.NotContains(t, plain, "How this page was made")
	assert.NotContains(t, plain, "wins")
}

// The names that the page gives are those that people set.
func TestSettingsAreNamedAsInTheConfiguration(t *testing.T) {
	var keys []string
	for _, k := range config.Keys() {
		keys = append(keys, k.Name)
	}
	capitals := regexp.MustCompile("^[A-Z_]+$")
	for parameter, name := range settings {
		if capitals.MatchString(name) {
			assert.True(t, slices.Contains(keys, name), "%s: %s is no key", parameter, name)
		}
	}
	results := []replay.Result{{Policy: "hybrid", Parameters: []replay.Parameter{{Name: "horizon", Value: "30m"}, {Name: "kvCacheThreshold", Value: "0.8"}}},
		{Policy: "keda", Parameters: []replay.Parameter{{Name: "interval", Value: "1m"}}}}
	html := written(t, "settings.html", func(w io.Writer) error { return HTML(w, "t", results, nil) })
	runs := dataOf(t, html)["runs"].([]any)
	require.Len(t, runs, 2)
	assert.Equal(t, []any{[]any{"WVA_SWITCH_HORIZON", "30m"}, []any{"kvCacheThreshold", "0.8"}}, runs[0].(map[string]any)["parameters"])
	assert.Equal(t, []any{[]any{"interval", "1m"}}, runs[1].(map[string]any)["parameters"], "a rival's settings are its own")
}
