package workload_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// files are the texts of a ServeGen trace, without their headers.
type files struct {
	rate, clients, lengths []string
}

func text(header string, rows []string) string {
	return strings.Join(append([]string{header}, rows...), "\n") + "\n"
}

func (f files) texts() (rate, clients, lengths string) {
	return text(workload.ServeGenRateHeader, f.rate), text(workload.ServeGenClientsHeader, f.clients), text(workload.ServeGenLengthsHeader, f.lengths)
}

func (f files) open(o workload.OpenOptions) (workload.Stream, error) {
	rate, clients, lengths := f.texts()
	return serveGen(rate, clients, lengths, o)
}

func serveGen(rate, clients, lengths string, o workload.OpenOptions) (workload.Stream, error) {
	return workload.NewServeGen(workload.ServeGenFiles{
		Rate:    workload.File{Name: "m_rate.csv", Reader: strings.NewReader(rate)},
		Clients: workload.File{Name: "m_clients.csv", Reader: strings.NewReader(clients)},
		Lengths: workload.File{Name: "m_lengths.csv", Reader: strings.NewReader(lengths)},
	}, o)
}

func (f files) read(t *testing.T, o workload.OpenOptions) []workload.Request {
	t.Helper()
	s, err := f.open(o)
	require.NoError(t, err)
	all, err := readAll(s)
	require.NoError(t, err)
	assert.True(t, slices.IsSortedFunc(all, func(a, b workload.Request) int { return int(a.Arrival - b.Arrival) }), "in order of arrival")
	return all
}

// always are the lengths of a client whose requests all have the same, from a
// start on.
func always(client, start, input, output int) []string {
	row := func(field string, n int) string {
		return fmt.Sprintf("%d,%d,%s,%d%s,5", client, start, field, n, strings.Repeat(","+strconv.Itoa(n), 9))
	}
	return []string{row("input_tokens", input), row("output_tokens", output)}
}

// steady is one client with n windows of 600 s at a rate, and a pattern.
func steady(n int, rate float64, pattern string) files {
	f := files{lengths: always(3, 0, 100, 10)}
	for i := range n {
		f.rate = append(f.rate, fmt.Sprintf("%d,%v,1,1", i*600, rate))
		f.clients = append(f.clients, fmt.Sprintf("3,%d,%v,1,%s", i*600, rate, pattern))
	}
	return f
}

// gaps returns the coefficient of variation of the gaps between arrivals.
func gaps(all []workload.Request) float64 {
	var sum, squares float64
	for i := 1; i < len(all); i++ {
		g := (all[i].Arrival - all[i-1].Arrival).Seconds()
		sum, squares = sum+g, squares+g*g
	}
	n := float64(len(all) - 1)
	mean := sum / n
	return math.Sqrt(squares/n-mean*mean) / mean
}

func TestServeGenScalesItsClientsToTheRateOfAll(t *testing.T) {
	f := files{
		// The third window is a gap in the recording.
		rate: []string{"0,3,2,1", "600,6.5,2,1", "1200,0,0,0", "1800,0.001,1,1"},
		clients: []string{
			// 4 per second in all, in any order; a client that asks nothing.
			"7,0,1,1,Gamma,1,1", "2,600,2,1,Weibull,0.8,0.4", "2,0,3,1,Gamma,0.5,0.6", "7,600,2,1,Gamma,1,0.5",
			"7,1200,5,1,Gamma,1,0.2", "7,1800,9,1,Gamma,1,0.1", "9,0,0,1,Gamma,1,1",
		},
		lengths: slices.Concat(always(2, 0, 20, 2), always(7, 0, 70, 7)),
	}
	windows, clients := map[int]int{}, map[int]int{}
	for _, r := range f.read(t, workload.OpenOptions{Seed: 1}) {
		windows[int(r.Arrival/(10*time.Minute))]++
		if r.Arrival < 10*time.Minute {
			clients[r.Input]++
		}
	}
	assert.Equal(t, 1800, windows[0], "exactly the rate times the length of the window")
	assert.Equal(t, map[int]int{20: 1350, 70: 450}, clients, "three quarters and one quarter of it")
	assert.Equal(t, 3900, windows[1])
	assert.Zero(t, windows[2])
	assert.LessOrEqual(t, windows[3], 1, "of 0.6 requests there is one or none")
}

func TestServeGenPartsOfARequestAreChances(t *testing.T) {
	n := 0
	const seeds = 2000
	for seed := range uint64(seeds) {
		n += len(steady(1, 0.0005, "Gamma,1,1").read(t, workload.OpenOptions{Seed: seed}))
	}
	assert.InDelta(t, 0.3*seeds, n, 4*math.Sqrt(0.3*0.7*seeds), "0.3 requests in a window, within four standard deviations")
}

func TestServeGenGapsFollowThePattern(t *testing.T) {
	for pattern, c := range map[string]struct{ want, kurtosis float64 }{
		// Gamma: CV = 1/sqrt(k), kurtosis 3 + 6/k.
		"Gamma,1,1":     {1, 9},
		"Gamma,0.25,99": {2, 27},
		"Gamma,16,1":    {0.25, 3.4},
		// Weibull of 1/2: CV = sqrt(5), kurtosis 87.7; of 2: 0.523, 3.2.
		"Weibull,0.5,0.01": {math.Sqrt(5), 87.7},
		"Weibull,2,1":      {0.5227, 3.2},
	} {
		t.Run(pattern, func(t *testing.T) {
			all := steady(1, 200, pattern).read(t, workload.OpenOptions{Seed: 4})
			// The relative error of a standard deviation is sqrt((kurtosis-1)/4n).
			assert.InEpsilon(t, c.want, gaps(all), 5*math.Sqrt((c.kurtosis-1)/(4*120_000)))
		})
	}
}

func TestServeGenBurstsStandAnywhereInTheWindow(t *testing.T) {
	// Gaps so uneven that a window is little more than one burst.
	var thirds [3]float64
	const seeds = 1500
	for seed := range uint64(seeds) {
		all := steady(1, 0.1, "Gamma,0.0001,1").read(t, workload.OpenOptions{Seed: seed})
		require.Len(t, all, 60)
		require.Less(t, all[len(all)-1].Arrival, 10*time.Minute)
		thirds[all[0].Arrival/(200*time.Second)]++
	}
	for i, n := range thirds {
		assert.InDelta(t, seeds/3, n, 4*math.Sqrt(seeds*2.0/9), "third %d, within four standard deviations", i)
	}
}

func TestServeGenThinsAsRateDoes(t *testing.T) {
	const n, p = 8 * 60_000, 0.1
	for pattern, c := range map[string]struct{ variation, kurtosis float64 }{
		"Gamma,0.04,1":    {5, 30},
		"Gamma,4,1":       {0.5, 10},
		"Weibull,0.5,0.1": {math.Sqrt(5), 30},
	} {
		t.Run(pattern, func(t *testing.T) {
			f := steady(8, 100, pattern)
			thin := f.read(t, workload.OpenOptions{Thin: p, Seed: 1})
			whole, err := f.open(workload.OpenOptions{Seed: 1})
			require.NoError(t, err)
			rate, err := workload.Rate(whole, p, workload.MinSpread, 1)
			require.NoError(t, err)
			reference, err := readAll(rate)
			require.NoError(t, err)

			want := math.Sqrt(p*c.variation*c.variation + 1 - p)
			for name, all := range map[string][]workload.Request{"thinned": thin, "behind Rate": reference} {
				assert.InDelta(t, n*p, len(all), 4*math.Sqrt(n*p*(1-p)), "%s: the number, within four standard deviations", name)
				assert.InEpsilon(t, want, gaps(all), 5*math.Sqrt((c.kurtosis-1)/(4*n*p)), "%s: the burstiness", name)
			}
		})
	}
}

func TestServeGenThinnedToNearlyNothing(t *testing.T) {
	assert.Empty(t, steady(2, 1, "Gamma,1,1").read(t, workload.OpenOptions{Thin: 1e-300, Seed: 1}))
	assert.Len(t, steady(2, 1, "Gamma,1,1").read(t, workload.OpenOptions{Thin: 1, Seed: 1}), 1200)
}

func TestServeGenFromAndLength(t *testing.T) {
	f := steady(4, 2, "Weibull,0.6,0.2")
	f.lengths = []string{
		"3,0,input_tokens,500,10,50,100,250,500,750,900,950,990,9", "3,0,output_tokens,50,1,5,10,25,50,75,90,95,99,9",
	}
	whole := f.read(t, workload.OpenOptions{Seed: 5})
	require.Len(t, whole, 4800)
	for name, o := range map[string]workload.OpenOptions{
		"whole windows":         {From: 20 * time.Minute, Length: 10 * time.Minute},
		"from within a window":  {From: 17*time.Minute + time.Millisecond},
		"until within a window": {Length: 15 * time.Minute},
		"within one window":     {From: time.Minute, Length: time.Minute},
		"longer than the trace": {From: 39 * time.Minute, Length: time.Hour},
		"longer than all time":  {From: 39 * time.Minute, Length: math.MaxInt64},
		"begins after all time": {From: math.MaxInt64},
		"begins after its end":  {From: 40 * time.Minute, Length: time.Hour},
		"a nanosecond":          {Length: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o.Seed = 5
			var want []workload.Request
			for _, r := range whole {
				if r.Arrival -= o.From; r.Arrival >= 0 && (o.Length == 0 || r.Arrival < o.Length) {
					want = append(want, r)
				}
			}
			assert.Equal(t, want, f.read(t, o), "the same requests as in the whole trace")
		})
	}
}

func TestServeGenBeginsWithItsFirstWindow(t *testing.T) {
	f := files{
		rate: []string{"1200,1,1,1", "1800,2,1,1"}, clients: []string{"3,1200,1,1,Gamma,9,1", "3,1800,1,1,Gamma,9,1"},
		lengths: always(3, 0, 1, 1),
	}
	all := f.read(t, workload.OpenOptions{})
	require.Len(t, all, 1800)
	assert.Less(t, all[0].Arrival, 10*time.Second)
	assert.Len(t, f.read(t, workload.OpenOptions{From: 10 * time.Minute}), 1200)
}

func TestServeGenFollowsItsSeed(t *testing.T) {
	f := steady(2, 1, "Gamma,0.5,1")
	once, again := f.read(t, workload.OpenOptions{Seed: 1}), f.read(t, workload.OpenOptions{Seed: 1})
	assert.Equal(t, once, again)
	assert.NotEqual(t, once, f.read(t, workload.OpenOptions{Seed: 2}))
	shuffled := f
	shuffled.clients = []string{f.clients[1], f.clients[0]}
	assert.Equal(t, once, shuffled.read(t, workload.OpenOptions{Seed: 1}), "the order of rows says nothing")
}

func TestServeGenMissingLengthsFollowTheOthers(t *testing.T) {
	f := files{
		rate: []string{"0,40,4,1", "600,10,1,1"},
		clients: []string{
			"1,0,3,1,Gamma,1,1", "2,0,1,1,Gamma,1,1", "3,0,36,1,Gamma,1,1", "3,600,36,1,Gamma,1,1",
		},
		// The third client has input lengths only, which count as none.
		lengths: slices.Concat(always(1, 0, 100, 1), always(2, 0, 200, 2), always(3, 0, 300, 3)[:1]),
	}
	var inputs [2]map[int]float64
	for _, r := range f.read(t, workload.OpenOptions{Seed: 1}) {
		w := r.Arrival / (10 * time.Minute)
		if inputs[w] == nil {
			inputs[w] = map[int]float64{}
		}
		inputs[w][r.Input]++
		require.Equal(t, r.Input/100, r.Output, "both lengths of a request are one client's")
	}
	const own, mixed = 40 * 600 / 40 * 3, 40 * 600 * 36 / 40
	assert.InDelta(t, own+0.75*mixed, inputs[0][100], 4*math.Sqrt(0.75*0.25*mixed), "weighed by the rates, within four standard deviations")
	assert.Len(t, inputs[0], 2)
	assert.InDelta(t, 3000, inputs[1][100], 4*math.Sqrt(0.25*6000), "when nobody known is active all known ones weigh the same")
	assert.InDelta(t, 6000, inputs[1][100]+inputs[1][200], 0)
}

func TestServeGenLengthsChangeWithTime(t *testing.T) {
	f := steady(4, 1, "Gamma,1,1")
	// The first period has nobody's lengths as a whole, which makes it none.
	f.lengths = slices.Concat(always(3, 0, 9, 9)[1:], always(3, 1200, 12, 2), always(3, 600, 6, 1))
	for _, r := range f.read(t, workload.OpenOptions{}) {
		want := 6
		if r.Arrival >= 20*time.Minute {
			want = 12
		}
		require.Equal(t, want, r.Input)
	}
}

func TestServeGenLengthsFollowQuantilesAndMean(t *testing.T) {
	f := steady(1, 100, "Gamma,1,1")
	f.lengths = []string{
		"3,0,input_tokens,620,10,50,100,250,500,750,900,950,1990,9",
		"3,0,output_tokens,3800,289,293,296,296,7084,7087,7091,7157,7222,42",
	}
	all := f.read(t, workload.OpenOptions{Seed: 2})
	n := float64(len(all))
	for field, c := range map[string]struct {
		of   func(workload.Request) int
		mean float64
		at   map[float64]int
	}{
		"input":  {func(r workload.Request) int { return r.Input }, 620, map[float64]int{0.05: 50, 0.25: 250, 0.5: 500, 0.9: 900, 0.99: 1990}},
		"output": {func(r workload.Request) int { return r.Output }, 3800, map[float64]int{0.5: 7084, 0.75: 7087, 0.95: 7157, 0.99: 7222}},
	} {
		var sum, squares float64
		for _, r := range all {
			x := float64(c.of(r))
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / n
		assert.InDelta(t, c.mean, mean, 4*math.Sqrt((squares/n-mean*mean)/n)+0.5, "%s: the mean, within four standard errors and rounding", field)
		for level, length := range c.at {
			below := 0.0
			for _, r := range all {
				if c.of(r) < length {
					below++
				}
			}
			assert.InDelta(t, level, below/n, 4*math.Sqrt(level*(1-level)/n)+0.002, "%s: the share below its quantile", field)
		}
	}
}

func TestMalformedServeGenTraces(t *testing.T) {
	good := steady(2, 1, "Gamma,1,1")
	rate, clients, lengths := good.texts()
	const client, length = "3,0,1,1,Gamma,1,1", "3,0,input_tokens,5,1,2,3,4,5,6,7,8,9,3"
	withRate := func(rows ...string) [3]string {
		return [3]string{text(workload.ServeGenRateHeader, rows), clients, lengths}
	}
	withClients := func(rows ...string) [3]string {
		return [3]string{rate, text(workload.ServeGenClientsHeader, rows), lengths}
	}
	withLengths := func(rows ...string) [3]string {
		return [3]string{rate, clients, text(workload.ServeGenLengthsHeader, rows)}
	}
	for name, c := range map[string]struct {
		texts [3]string
		want  string
	}{
		"an empty rate file":     {[3]string{"", clients, lengths}, "m_rate.csv:1: the file is empty; expected the header window_start_s,total_rate_rps"},
		"another header":         {[3]string{clients, clients, lengths}, `m_rate.csv:1: the header is "client,window_start_s`},
		"no windows":             {withRate(), "m_rate.csv:2: there are no windows; expected rows of window_start_s"},
		"columns of a rate":      {withRate("0,1,1"), `m_rate.csv:2: 3 columns in "0,1,1"; expected 4: window_start_s`},
		"a window's start":       {withRate("0.5,1,1,1"), `m_rate.csv:2: window_start_s is "0.5"; expected a whole number of at least 0`},
		"a rate":                 {withRate("0,-1,1,1"), `m_rate.csv:2: total_rate_rps is "-1"; expected a number of at least 0`},
		"a rate that is NaN":     {withRate("0,NaN,1,1"), `m_rate.csv:2: total_rate_rps is "NaN"; expected`},
		"a rate beyond all":      {withRate("0,1e6,1,1"), "m_rate.csv:2: total_rate_rps is 1e+06; expected at most 10000000 requests in a window of 10m0s"},
		"a window twice":         {withRate("0,1,1,1", "0,1,1,1"), "m_rate.csv:3: window_start_s is 0 after 0; expected"},
		"a window left out":      {withRate("0,1,1,1", "600,1,1,1", "1800,1,1,1"), "m_rate.csv:4: window_start_s is 1800 after 600; expected every window to be as long as the first"},
		"nobody in a window":     {withRate("0,1,1,1", "600,0,1,1", "1200,3,1,1"), "m_rate.csv:4: the window 1200 has 3 requests per second, but no client in m_clients.csv; expected at least one"},
		"an empty line":          {withRate("0,1,1,1", "", "600,1,1,1"), "m_rate.csv:3: the line is empty; expected window_start_s"},
		"a header of clients":    {[3]string{rate, rate, lengths}, `m_clients.csv:1: the header is "window_start_s`},
		"columns of a client":    {withClients(client, "3,0"), `m_clients.csv:3: 2 columns in "3,0"; expected 7: client,`},
		"a client's name":        {withClients("bob,0,1,1,Gamma,1,1"), `m_clients.csv:2: client is "bob"; expected a whole number`},
		"a client's window":      {withClients("3,late,1,1,Gamma,1,1"), `m_clients.csv:2: window_start_s is "late"; expected`},
		"a window of no rate":    {withClients("3,1200,1,1,Gamma,1,1"), "m_clients.csv:2: window_start_s is 1200; expected one of the rate file, from 0 to 600 in steps of 600"},
		"between two windows":    {withClients("3,300,1,1,Gamma,1,1"), "m_clients.csv:2: window_start_s is 300; expected one of"},
		"a client's rate":        {withClients("3,0,x,1,Gamma,1,1"), `m_clients.csv:2: rate_rps is "x"; expected a number of at least 0`},
		"a pattern":              {withClients("3,0,1,1,Pareto,1,1"), `m_clients.csv:2: pattern is "Pareto"; expected Gamma or Weibull`},
		"a shape":                {withClients("3,0,1,1,Gamma,0,1"), `m_clients.csv:2: p_shape is "0"; expected a number above 0`},
		"a shape without end":    {withClients("3,0,1,1,Gamma,Inf,1"), `m_clients.csv:2: p_shape is "Inf"; expected`},
		"a scale":                {withClients("3,0,1,1,Gamma,1,"), `m_clients.csv:2: p_scale is ""; expected a number above 0`},
		"a client twice":         {withClients(client, "4,0,1,1,Gamma,1,1", client), "m_clients.csv:4: client 3 has the window 0 already in line 2; expected one row"},
		"a header of lengths":    {[3]string{rate, clients, rate}, `m_lengths.csv:1: the header is`},
		"columns of lengths":     {withLengths("3,0,input_tokens"), `m_lengths.csv:2: 3 columns in "3,0,input_tokens"; expected 14: client,`},
		"a client of lengths":    {withLengths(strings.Replace(length, "3", "-3", 1)), `m_lengths.csv:2: client is "-3"; expected`},
		"a start of lengths":     {withLengths(strings.Replace(length, "0", "?", 1)), `m_lengths.csv:2: window_start_s is "?"; expected`},
		"a field":                {withLengths(strings.Replace(length, "input", "image", 1)), `m_lengths.csv:2: field is "image_tokens"; expected input_tokens or output_tokens`},
		"a mean":                 {withLengths(strings.Replace(length, ",5,1", ",,1", 1)), `m_lengths.csv:2: mean is ""; expected a number of at least 0`},
		"a quantile":             {withLengths(strings.Replace(length, ",7,", ",-7,", 1)), `m_lengths.csv:2: q90 is "-7"; expected a number of at least 0`},
		"a quantile that falls":  {withLengths(strings.Replace(length, ",7,", ",4,", 1)), `m_lengths.csv:2: q90 is 4, below q75, 6; expected quantiles that do not fall`},
		"a quantile beyond all":  {withLengths(strings.Replace(length, ",9,", ",1e10,", 1)), `m_lengths.csv:2: q99 is "1e10"; expected fewer than 2^31 tokens`},
		"lengths twice":          {withLengths(length, length), "m_lengths.csv:3: client 3 has input_tokens of the window 0 already; expected one row"},
		"nobody's whole lengths": {withLengths(length), "m_lengths.csv:3: no client has both input_tokens and output_tokens; expected at least one"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serveGen(c.texts[0], c.texts[1], c.texts[2], workload.OpenOptions{})
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestServeGenChecksRowsOutsideOfThePart(t *testing.T) {
	f := steady(3, 1, "Gamma,1,1")
	f.clients[2] = "3,1200,1,1,Gamma,none,1"
	_, err := f.open(workload.OpenOptions{Length: time.Minute})
	assert.ErrorContains(t, err, `m_clients.csv:4: p_shape is "none"`)
}

// Whatever the bytes of the three files: no panic, requests are possible ones in
// order of time, an error names a file and a line that exists.
func FuzzServeGen(f *testing.F) {
	rate, clients, lengths := steady(2, 0.1, "Gamma,0.3,1").texts()
	f.Add([]byte(rate), []byte(clients), []byte(lengths))
	rate, clients, lengths = steady(1, 0.1, "Weibull,0.001,1").texts()
	f.Add([]byte(rate), []byte(clients), []byte(strings.ReplaceAll(lengths, "\n", "\r\n")))
	f.Add([]byte(rate), []byte(rate), []byte(lengths))
	f.Fuzz(func(t *testing.T, rate, clients, lengths []byte) {
		count := func(text []byte) int { return strings.Count(string(text), "\n") + 1 }
		// Windows with many requests are possible, but take their time.
		for _, row := range strings.Split(string(rate), "\n") {
			columns := strings.Split(row, ",")
			if len(columns) < 2 {
				continue
			}
			if x, err := strconv.ParseFloat(columns[1], 64); err == nil && x > 0.2 {
				return
			}
		}
		s, err := serveGen(string(rate), string(clients), string(lengths), workload.OpenOptions{Length: time.Hour, Seed: 1})
		names := map[string]int{"m_rate.csv": count(rate), "m_clients.csv": count(clients), "m_lengths.csv": count(lengths)}
		if err != nil {
			checkPlace(t, err, names)
			return
		}
		checkStream(t, s, names)
	})
}
