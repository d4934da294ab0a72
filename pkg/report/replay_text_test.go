package report

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func TestTheTableOfAReplayLinesUp(t *testing.T) {
	results, _ := madeUp(7, 3, 30, 300)
	results[3].CostOverBound, results[4].Requests, results[5].TTFT = 0, 0, replay.Percentiles{}
	colors := regexp.MustCompile("\x1b\\[[0-9]*m")
	shown := map[int]int{}
	for _, width := range []int{30, 60, 80, 120, 200} {
		lines := ReplayTable(results, Style{Width: width})
		require.Len(t, lines, len(results)+2)
		for i, line := range lines {
			assert.LessOrEqual(t, utf8.RuneCountInString(line), width, line)
			if i >= 2 {
				// Every column but the first ends where its name ends.
				assert.Equal(t, utf8.RuneCountInString(lines[1]), utf8.RuneCountInString(line), line)
			}
		}
		for i, end := range ends(lines[1]) {
			for _, line := range lines[2:] {
				if runes := []rune(line); i > 0 && end < len(runes) {
					assert.Equal(t, ' ', runes[end], "%d: %q", end, line)
				}
			}
		}
		shown[width] = len(strings.Fields(lines[1]))
		colored := ReplayTable(results, Style{Width: width, Color: true})
		assert.Equal(t, lines, strings.Split(colors.ReplaceAllString(strings.Join(colored, "\n"), ""), "\n"))
	}
	assert.GreaterOrEqual(t, shown[120], len(replayTextColumns)-1)
	assert.Equal(t, len(replayTextColumns), shown[200])
	assert.Less(t, shown[80], shown[120])
	assert.Less(t, shown[60], shown[80])
	assert.Empty(t, ReplayTable(nil, Style{}))
}

func TestDispersionIsSaidOnce(t *testing.T) {
	r := replay.Result{Dispersion: []workload.Index{{Seconds: 1, Index: 1.316}, {Seconds: 60, Index: 13.2}}}
	assert.Equal(t, []string{"index of dispersion of the arrivals: 1.32 in 1s, 13.2 in 1m"}, ReplayDispersion([]replay.Result{r, r}))
	r.TraceDispersion = []workload.Index{{Seconds: 1, Index: 1}}
	assert.Equal(t, []string{"index of dispersion of the arrivals: 1.32 in 1s, 13.2 in 1m; of the trace as it is: 1.00 in 1s"}, ReplayDispersion([]replay.Result{r}))
	assert.Empty(t, ReplayDispersion([]replay.Result{{}}), "too short to say")
	assert.Empty(t, ReplayDispersion(nil))
}

// ends are the columns behind each word.
func ends(line string) []int {
	var out []int
	runes := []rune(line)
	for i, r := range runes {
		if r != ' ' && (i+1 == len(runes) || runes[i+1] == ' ') {
			out = append(out, i+1)
		}
	}
	return out
}

func TestTheChartOfAReplayFitsItsWidth(t *testing.T) {
	results, recordings := madeUp(7, 1440, 60)
	long := recordings[1]
	long.Models = append([]replay.RecordedModel{}, long.Models[0], long.Models[0])
	for _, width := range []int{40, 80, 120, 200} {
		for _, recording := range []replay.Recording{recordings[1], long, {Policy: "nothing"}, {Policy: "empty", Models: []replay.RecordedModel{{ID: "m", Variants: []replay.RecordedVariant{{Name: "v"}}}}}} {
			lines := ReplayChart(results[:2], []replay.Recording{recording, recording}, Style{}, width)
			assert.Contains(t, lines, "Bars of attainment begin at 90%.")
			for _, line := range lines {
				assert.LessOrEqual(t, utf8.RuneCountInString(line), width, line)
				assert.NotContains(t, line, "NaN")
			}
		}
	}
	lines := strings.Join(ReplayChart(results[1:2], recordings[1:2], Style{}, 100), "\n")
	assert.Equal(t, 1, strings.Count(strings.Join(ReplayChart(results, recordings, Style{}, 100), "\n"), "load  "), "the load is the same for all")
	assert.Empty(t, ReplayChart(nil, nil, Style{}, 100))
	for _, part := range []string{"hybrid", "load", "llama-70b-4xh100", "llama-70b-2xh200", "attainment", "cost / bound", "12:00", "24:00"} {
		assert.Contains(t, lines, part)
	}
}

func TestTheChartOfAReplayKeepsPeaks(t *testing.T) {
	r := replay.Recording{Policy: "p", Length: 24 * time.Hour, Step: time.Minute, Models: []replay.RecordedModel{{
		Samples:  make([]replay.Sample, 1440),
		Variants: []replay.RecordedVariant{{Name: "v", Wanted: make([]int, 1440), Ready: make([]int, 1440)}},
	}}}
	m := &r.Models[0]
	for i := range m.Samples {
		m.Samples[i] = replay.Sample{Requests: 60, Met: 60}
	}
	m.Samples[700] = replay.Sample{Requests: 6000, Met: 3000}
	m.Variants[0].Ready[33], m.Variants[0].Wanted[33] = 4, 4
	lines := ReplayChart(make([]replay.Result, 1), []replay.Recording{r}, Style{}, 100)
	require.Len(t, lines, 10)
	assert.Equal(t, 1, strings.Count(lines[1], "█"), lines[1])
	assert.Equal(t, 1, strings.Count(lines[6], "█"), lines[6])
	assert.Contains(t, lines[6], ".", "none is not few")
	assert.Equal(t, 1, strings.Count(lines[7], "▁"), "one bad minute: "+lines[7])
}

func TestTheChartOfAReplayHasTheCostOfTheTable(t *testing.T) {
	results, recordings := madeUp(7, 30, 60)
	results[0].CostOverBound, results[1].CostOverBound = 1.2249, 0
	text := strings.Join(ReplayChart(results[:2], recordings[:2], Style{}, 100), "\n")
	assert.Contains(t, text, "capacity-only, start-up 1m, 1.22 x bound\n")
	assert.Contains(t, text, "hybrid, start-up 1m\n", "none is known")
	assert.NotContains(t, text, "in all")
}

func TestNamesStayDistinctInNarrowTerminals(t *testing.T) {
	for name, tc := range map[string]struct {
		names   []string
		columns int
		want    []string
	}{
		"enough room":                   {[]string{"a", "bcd"}, 3, []string{"a", "bcd"}},
		"other ends":                    {[]string{"llama-70b-h100-4", "llama-70b-h100-8", "x"}, 15, []string{"llama-7…-h100-4", "llama-7…-h100-8", "x"}},
		"the middle is what is other":   {[]string{"variant-a-of-the-model", "variant-b-of-the-model"}, 12, []string{"variant-a…el", "variant-b…el"}},
		"the difference is at one side": {[]string{"abcdefg-model-on-h100", "abcdxfg-model-on-h100"}, 8, []string{"abcde…00", "abcdx…00"}},
		"the same name twice":           {[]string{"abcdefghij", "abcdefghij"}, 5, []string{"ab…ij", "ab…ij"}},
		"no room":                       {[]string{"abc", "abd"}, 1, []string{"…", "…"}},
	} {
		assert.Equal(t, tc.want, shortened(tc.names, tc.columns), name)
	}
	for width := 30; width <= 60; width++ {
		results, recordings := madeUp(7, 30, 60)
		for _, lines := range [][]string{ReplayTable(results, Style{Width: width})[2:], ReplayChart(results[:1], recordings[:1], Style{}, width)[5:8]} {
			seen := map[string]bool{}
			for _, line := range lines {
				word, _, _ := strings.Cut(line, " ")
				assert.False(t, seen[word], "%d columns: %q twice", width, word)
				seen[word] = true
			}
		}
	}
}

func TestAFleetThatBreaksThePromiseIsMarked(t *testing.T) {
	results, _ := madeUp(7, 3, 60)
	whole := ReplayTable(results, Style{Width: 80})
	results[3].Parameters = append(results[3].Parameters, replay.Parameter{Name: "keepsThePromise", Value: "true"})
	assert.Equal(t, whole, ReplayTable(results, Style{Width: 80}), "one that keeps it is not")
	results[3].Parameters = []replay.Parameter{{Name: "keepsThePromise", Value: "false"}}
	lines := ReplayTable(results, Style{Width: 80})
	require.Len(t, lines, len(results)+4)
	assert.Regexp(t, `^peak .* 9\d\.\d\d%\* `, lines[5])
	assert.Equal(t, "* peak: no static fleet that was tried meets the SLO; this one attains about the", lines[len(lines)-2])
	html := written(t, "broken.html", func(w io.Writer) error { return HTML(w, "t", results, nil) })
	assert.Contains(t, html, `<p class="note">* peak: no static fleet that was tried meets the SLO`)
	assert.Equal(t, 1, strings.Count(html, "%*</td>"))
}

func TestShortFormsStayShort(t *testing.T) {
	for want, ms := range map[string]float64{"-": 0, "4.2ms": 4.21, "31ms": 31.4, "999ms": 999.4, "1.0s": 999.6, "9.9s": 9949, "10s": 9951, "599s": 599_000, "12m": 720_000} {
		assert.Equal(t, want, brief(ms))
	}
	for want, s := range map[string]float64{"0s": 0, "45s": 45, "2m": 120, "9m59s": 599, "12m": 720, "3h07m": 11_225, "27h00m": 97_200} {
		assert.Equal(t, want, hoursAndMinutes(s))
	}
	for want, value := range map[string]float64{"0.00": 0, "9.99": 9.99, "10.0": 9.996, "100": 99.96, "12346": 12345.6} {
		assert.Equal(t, want, short(value))
	}
	for d, want := range map[time.Duration]string{time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", 10 * time.Second: "10s", 20 * time.Minute: "20m", time.Millisecond + 1: "1ms"} {
		assert.Equal(t, want, Duration(d))
	}
	for want, n := range map[string]int{"0": 0, "999": 999, "12.3k": 12_345, "999k": 999_499, "1.00M": 999_500, "1.73M": 1_728_000} {
		assert.Equal(t, want, thousands(n))
	}
	for want, share := range map[string]float64{"100.00%": 1, "99.99%": 0.99999, "99.87%": 0.9987, "0.00%": 0} {
		assert.Equal(t, want, attained(share), "rounded down")
	}
	for want, n := range map[string]int{"0": 0, "999": 999, "1,000": 1000, "-12,345,678": -12345678} {
		assert.Equal(t, want, grouped(n))
	}
}
