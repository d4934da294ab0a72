package workload_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// opens reads a trace of that text from its file.
func opens(name, text string, o workload.OpenOptions) ([]workload.Request, error) {
	d := &disk{files: map[string]string{name: text}}
	trace, err := workload.Open(d.Open, name, o)
	if err != nil {
		return nil, err
	}
	return readAll(trace)
}

const plainHeader = workload.PlainHeader + "\n"

func TestPlainTraces(t *testing.T) {
	two := []workload.Request{{Arrival: 0, Input: 100, Output: 10}, {Arrival: 1500 * time.Millisecond, Input: 200, Output: 20}}
	for name, text := range map[string]string{
		"CSV in seconds":             plainHeader + "0,100,10\n1.5,200,20\n",
		"CSV from anywhere":          plainHeader + "1700000000.25,100,10\n1700000001.75,200,20\n",
		"CSV from Windows":           "\ufeff" + workload.PlainHeader + "\r\n0,100,10\r\n1.5,200,20\r\n\r\n",
		"CSV in times of day":        plainHeader + "2026-11-22T18:15:46Z,100,10\n2026-11-22T19:15:47.5+01:00,200,20\n",
		"CSV in times with a blank":  plainHeader + "2026-11-22 18:15:46,100,10\n2026-11-22 18:15:47.5,200,20\n",
		"JSON lines in seconds":      `{"time": 0, "input_tokens": 100, "output_tokens": 10}` + "\n" + `{"output_tokens":20,"time":1.5,"input_tokens":200,"user":"x"}` + "\n",
		"JSON lines in times of day": `{"time": "2026-11-22T18:15:46Z", "input_tokens": 100, "output_tokens": 10}` + "\n" + `{"time": "2026-11-22T18:15:47.5Z", "input_tokens": 200, "output_tokens": 20}`,
		"compressed":                 zipped(plainHeader + "0,100,10\n1.5,200,20\n"),
	} {
		got, err := opens("trace", text, workload.OpenOptions{})
		require.NoError(t, err, name)
		assert.Equal(t, two, got, name)
	}
}

func TestMalformedPlainTraces(t *testing.T) {
	const row = "1,1,1\n"
	object := func(time, input, output string) string {
		return `{"time": ` + time + `, "input_tokens": ` + input + `, "output_tokens": ` + output + `}` + "\n"
	}
	const form = `expected {"time": SECONDS, "input_tokens": TOKENS, "output_tokens": TOKENS}`
	for name, c := range map[string]struct{ text, want string }{
		"two columns":              {plainHeader + "1,1\n", `trace:2: 2 columns in "1,1"; expected 3: time,input_tokens,output_tokens`},
		"no time":                  {plainHeader + row + "soon,1,1\n", `trace:3: time is "soon"; expected seconds, such as 12.5, or a time, such as 2026-11-22T18:15:46.68Z`},
		"before 0":                 {plainHeader + "-1,1,1\n", `trace:2: time is -1; expected seconds of at least 0`},
		"no number":                {plainHeader + "NaN,1,1\n", `trace:2: time is NaN; expected seconds of at least 0`},
		"milliseconds since 1970":  {plainHeader + "1700000000000,1,1\n", `trace:2: time is 1700000000000; expected seconds`},
		"a time before all":        {plainHeader + "0999-11-22T18:15:46Z,1,1\n", `trace:2: time is "0999-11-22T18:15:46Z"; expected seconds`},
		"no tokens":                {plainHeader + "1,0,1\n", `trace:2: input_tokens is "0"; expected a whole number of at least 1: leave out requests that have none`},
		"half a token":             {plainHeader + "1,1,1.5\n", `trace:2: output_tokens is "1.5"; expected a whole number of at least 1`},
		"time goes back":           {plainHeader + "2,1,1\n1,1,1\n", `trace:3: time 1 is 1s before the line above; expected rows in order of time`},
		"numbers, then times":      {plainHeader + row + "2026-11-22T18:15:46Z,1,1\n", `trace:3: time is 2026-11-22T18:15:46Z, a time of day, after numbers; expected all in the same form`},
		"times, then numbers":      {plainHeader + "2026-11-22T18:15:46Z,1,1\n" + row, `trace:3: time is 1, a number, after times of day; expected all in the same form`},
		"an empty line":            {plainHeader + row + "\n" + row, `trace:3: the line is empty; expected time,input_tokens,output_tokens`},
		"JSON: no JSON":            {object("1", "1", "1") + "1,1,1\n", `trace:2: "1,1,1" is not a JSON object; ` + form},
		"JSON: no time":            {`{"input_tokens": 1, "output_tokens": 1}`, `trace:1: time is missing; ` + form},
		"JSON: no input":           {object("1", "1", "1") + `{"time": 1, "output_tokens": 1}`, `trace:2: input_tokens is missing; ` + form},
		"JSON: no output":          {`{"time": 1, "input_tokens": 1}`, `trace:1: output_tokens is missing; ` + form},
		"JSON: a null":             {object("1", "null", "1"), `trace:1: input_tokens is "null"; expected a whole number of at least 1`},
		"JSON: an empty time":      {object(`""`, "1", "1"), `trace:1: time is "\"\""; expected seconds`},
		"JSON: a list":             {object(`[1]`, "1", "1"), `trace:1: time is "[1]"; expected seconds`},
		"JSON: two objects a line": {`{"time": 1} {}`, `trace:1: "{\"time\": 1} {}" is not a JSON object; ` + form},
	} {
		_, err := opens("trace", c.text, workload.OpenOptions{})
		assert.ErrorContains(t, err, c.want, name)
	}
}

// A mistake in a time must not make a replay of years. Who wants the part before it, gets it.
func TestRowsThatAreFarApartAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain": {plainHeader + "2003-11-22T00:00:00Z,1,1\n2003-11-22T00:00:01.5Z,1,1\n2023-11-22T00:00:00Z,1,1\n",
			"trace:4: time 2023-11-22T00:00:00Z is 20.0 years after the line above; expected at most 14 days without a request: see whether the time is right, or replay what comes before it with --duration 2s"},
		"JSON lines": {`{"time": 0, "input_tokens": 1, "output_tokens": 1}` + "\n" + `{"time": 1.5, "input_tokens": 1, "output_tokens": 1}` + "\n" + `{"time": 1300000, "input_tokens": 1, "output_tokens": 1}` + "\n",
			"trace:3: time 1300000 is 15 days after the line above; expected at most 14 days"},
		"Azure": {header + "2003-11-22 00:00:00,1,1\n2003-11-22 00:00:01.5,1,1\n2023-11-22 00:00:00,1,1\n",
			"trace:4: TIMESTAMP 2023-11-22 00:00:00 is 20.0 years after the line above"},
		"Mooncake": {mooncakeRow("100", 1, 1) + mooncakeRow("1600", 1, 1) + mooncakeRow("1300001000", 1, 1),
			"trace:3: timestamp 1300001000 is 15 days after the line above"},
	} {
		_, err := opens("trace", c.text, workload.OpenOptions{})
		require.ErrorContains(t, err, c.want, name)
		got, err := opens("trace", c.text, workload.OpenOptions{Length: 2 * time.Second})
		require.NoError(t, err, name)
		assert.Len(t, got, 2, name)
		got, err = opens("trace", c.text, workload.OpenOptions{From: time.Second, Length: time.Hour})
		require.NoError(t, err, name)
		assert.Len(t, got, 1, name)
		_, err = opens("trace", c.text, workload.OpenOptions{From: time.Second, Length: 30 * 365 * 24 * time.Hour})
		require.ErrorContains(t, err, c.want, name+", a part that would have it")
	}
	weekly := plainHeader
	for day := 0; day < 400; day += 7 {
		weekly += time.Unix(0, 0).AddDate(0, 0, day).UTC().Format(time.RFC3339) + ",1,1\n"
	}
	_, err := opens("trace", weekly, workload.OpenOptions{})
	assert.ErrorContains(t, err, "trace:55: time 1971-01-07T00:00:00Z is 371 days after the first request; expected a trace of at most 366 days: replay a part of it with --duration")
}

func TestWhatIsWrittenPlainIsReadAgain(t *testing.T) {
	requests := loadOf(t, 7, workload.Point{At: 0, Rate: 3}, workload.Point{At: 5 * time.Minute, Rate: 1})
	var text bytes.Buffer
	sum, err := workload.WritePlain(&text, &listed{requests: requests})
	require.NoError(t, err)
	assert.Equal(t, len(requests), sum.Requests)
	got, err := opens("trace", text.String(), workload.OpenOptions{})
	require.NoError(t, err)
	require.Len(t, got, len(requests))
	for i, r := range requests {
		assert.InDelta(t, r.Arrival-requests[0].Arrival, got[i].Arrival, float64(2*time.Microsecond))
		assert.Equal(t, r.Input, got[i].Input)
		assert.Equal(t, r.Output, got[i].Output)
	}
	assert.Equal(t, sum.Requests+1, strings.Count(text.String(), "\n"))
}

// Whatever the bytes: no panic, requests are possible ones in order of time, an error names
// the file and a line that exists, and it stays.
func FuzzPlain(f *testing.F) {
	f.Add([]byte("0,1,1\n1,2,2\n"))
	f.Add([]byte("2026-11-22T18:15:46Z,1,1\r\n\n"))
	f.Add([]byte(`{"time":1e300,"input_tokens":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := strings.Count(string(data), "\n") + 1
		checkStream(t, workload.NewPlainJSON(strings.NewReader(string(data)), "trace"), map[string]int{"trace": lines})
		csv, err := workload.NewPlainCSV(strings.NewReader(plainHeader+string(data)), "trace")
		require.NoError(t, err)
		checkStream(t, csv, map[string]int{"trace": lines + 1})
	})
}
