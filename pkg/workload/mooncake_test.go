package workload_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func mooncakeRow(milliseconds string, input, output int) string {
	return fmt.Sprintf(`{"timestamp": %s, "input_length": %d, "output_length": %d, "hash_ids": [0, 1, 2]}`+"\n", milliseconds, input, output)
}

func readMooncake(text string, seed uint64) ([]workload.Request, error) {
	return readAll(workload.NewMooncake(strings.NewReader(text), "trace.jsonl", seed))
}

func TestMooncakeTimesBetweenSteps(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []time.Duration
	}{
		"an empty file":                {"", nil},
		"times of their own":           {mooncakeRow("1040", 5, 6) + mooncakeRow("1277", 7, 8), []time.Duration{0, 237 * time.Millisecond}},
		"two at one time":              {mooncakeRow("1040", 5, 6) + mooncakeRow("1040", 7, 8), []time.Duration{0, 0}},
		"a part of a millisecond":      {mooncakeRow("1040", 5, 6) + mooncakeRow("1040.5", 7, 8), []time.Duration{0, 500 * time.Microsecond}},
		"windows and empty lines last": {strings.ReplaceAll(mooncakeRow("1040", 5, 6)+mooncakeRow("1041", 7, 8), "\n", "\r\n") + "\n\r\n", []time.Duration{0, time.Millisecond}},
		"no last end of line":          {strings.TrimSpace(mooncakeRow("1040", 5, 6)), []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readMooncake(c.text, 1)
			require.NoError(t, err)
			require.Len(t, got, len(c.want))
			for i, r := range got {
				assert.Equal(t, workload.Request{Arrival: c.want[i], Input: 5 + 2*i, Output: 6 + 2*i}, r)
			}
		})
	}
}

func TestMooncakeSpreadsEvenlyWithinAStep(t *testing.T) {
	// Steps as in the published trace, one of them a millisecond early.
	const perStep = 5000
	var text strings.Builder
	steps := []int{27000, 30000, 32999, 36000, 42000}
	for _, at := range steps {
		for i := range perStep {
			text.WriteString(mooncakeRow(strconv.Itoa(at), i+1, 1))
		}
	}
	got, err := readMooncake(text.String(), 1)
	require.NoError(t, err)
	require.Len(t, got, perStep*len(steps))
	last := time.Duration(0)
	for i, at := range steps {
		from := time.Duration(at-27000) * time.Millisecond
		until := from + workload.MooncakeStep
		if i+1 < len(steps) {
			until = min(until, time.Duration(steps[i+1]-27000)*time.Millisecond)
		}
		var thirds [3]float64
		for j, r := range got[i*perStep : (i+1)*perStep] {
			if r.Arrival < last || r.Arrival < from || r.Arrival >= until || r.Input != j+1 {
				require.Fail(t, "out of order or of its step", "row %d of step %d is %v, after %s", j, i, r, last)
			}
			last = r.Arrival
			thirds[3*(r.Arrival-from)/(until-from)]++
		}
		for _, n := range thirds {
			assert.InDelta(t, perStep/3, n, 4*math.Sqrt(perStep*2.0/9), "step %d, within four standard deviations", i)
		}
	}

	again, err := readMooncake(text.String(), 1)
	require.NoError(t, err)
	assert.Equal(t, got, again)
	other, err := readMooncake(text.String(), 2)
	require.NoError(t, err)
	assert.NotEqual(t, got, other)
}

// byLine reads one line at a time and ends with an error.
type byLine struct {
	lines []string
	read  int
	err   error
}

func (b *byLine) Read(p []byte) (int, error) {
	if b.read == len(b.lines) {
		return 0, b.err
	}
	b.read++
	return copy(p, b.lines[b.read-1]), nil
}

func TestMooncakeReadsOneStepAhead(t *testing.T) {
	lines := &byLine{err: errors.New("read too far")}
	for _, at := range []string{"0", "0", "3000", "3000", "6000"} {
		lines.lines = append(lines.lines, mooncakeRow(at, 1, 1))
	}
	m := workload.NewMooncake(lines, "trace.jsonl", 1)
	_, err := m.Next()
	require.NoError(t, err)
	assert.Equal(t, 3, lines.read, "two of the first step and the next one")

	got, err := readAll(m)
	assert.Len(t, got, 4, "what came before an error is handed out")
	require.ErrorContains(t, err, "trace.jsonl:6: reading the trace: read too far")
	_, again := m.Next()
	assert.Equal(t, err, again, "an error stays")
}

func TestMalformedMooncakeTraces(t *testing.T) {
	row := mooncakeRow("3000", 1, 1)
	const form = `expected {"timestamp": MILLISECONDS, "input_length": TOKENS, "output_length": TOKENS}`
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":            {row + "3000,1,1\n", `trace.jsonl:2: "3000,1,1" is not a JSON object; ` + form},
		"a list":             {"[1]\n", `trace.jsonl:1: "[1]" is not a JSON object; ` + form},
		"cut off":            {row + row[:20], `trace.jsonl:2: "{\"timestamp\": 3000, " is not a JSON object; ` + form},
		"two objects":        {`{"timestamp": 1} {}`, `is not a JSON object`},
		"a text for a time":  {`{"timestamp": "1"}`, `trace.jsonl:1: timestamp is a string; ` + form},
		"no time":            {`{"input_length": 1, "output_length": 1}`, `trace.jsonl:1: timestamp is missing; ` + form},
		"a time before 0":    {mooncakeRow("-1", 1, 1), `trace.jsonl:1: timestamp is -1; expected milliseconds of at least 0`},
		"a time beyond all":  {mooncakeRow("1e18", 1, 1), `trace.jsonl:1: timestamp is 1e+18; expected milliseconds`},
		"a number too large": {mooncakeRow("1e999", 1, 1), `trace.jsonl:1: timestamp is a number 1e999; ` + form},
		"time goes back":     {row + row + mooncakeRow("2000", 1, 1), `trace.jsonl:3: timestamp 2000 is 1s before the line above; expected rows in order of time`},
		"no input":           {`{"timestamp": 0, "output_length": 1}`, `trace.jsonl:1: input_length is missing; ` + form},
		"a null":             {`{"timestamp": 0, "input_length": 1, "output_length": null}`, `trace.jsonl:1: output_length is missing; ` + form},
		"no tokens":          {row + mooncakeRow("3000", 0, 1), `trace.jsonl:2: input_length is 0; expected a whole number of at least 1`},
		"half a token":       {`{"timestamp": 0, "input_length": 1.5, "output_length": 1}`, `trace.jsonl:1: input_length is 1.5; expected a whole number of at least 1`},
		"more than 31 bits":  {`{"timestamp": 0, "input_length": 1, "output_length": 4294967296}`, `trace.jsonl:1: output_length is 4.294967296e+09; expected`},
		"empty line inside":  {row + "\n" + row, "trace.jsonl:2: the line is empty; " + form},
		"an endless line":    {row + strings.Repeat("1", 1<<21), "trace.jsonl:2: the line is longer than 1048576 bytes; " + form},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readMooncake(c.text, 1)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// Whatever the bytes: no panic, requests are possible ones in order of time, an
// error names the file and a line that exists, and it stays.
func FuzzMooncake(f *testing.F) {
	f.Add([]byte(mooncakeRow("0", 1, 1) + mooncakeRow("0", 1, 1) + mooncakeRow("2999", 2, 2)))
	f.Add([]byte(mooncakeRow("12", 1, 1) + "\r\n\n"))
	f.Add([]byte(`{"timestamp":1e300,"input_length":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := strings.Count(string(data), "\n") + 1
		checkStream(t, workload.NewMooncake(strings.NewReader(string(data)), "trace.jsonl", 1), map[string]int{"trace.jsonl": lines})
	})
}

// checkStream reads a stream to its end: possible requests in order of time, and
// an error that names a file and a line of it and stays.
func checkStream(t *testing.T, s workload.Stream, lines map[string]int) {
	t.Helper()
	last := time.Duration(0)
	for {
		r, err := s.Next()
		if err != nil {
			_, again := s.Next()
			require.Equal(t, err, again)
			if !errors.Is(err, io.EOF) {
				checkPlace(t, err, lines)
			}
			return
		}
		require.GreaterOrEqual(t, r.Arrival, last)
		require.Positive(t, r.Input)
		require.Positive(t, r.Output)
		last = r.Arrival
	}
}

// checkPlace wants an error to begin with one of the files and a line that it has.
func checkPlace(t *testing.T, err error, lines map[string]int) {
	t.Helper()
	parts := strings.SplitN(err.Error(), ":", 3)
	require.Len(t, parts, 3)
	require.Contains(t, lines, parts[0])
	line, convErr := strconv.Atoi(parts[1])
	require.NoError(t, convErr)
	require.Positive(t, line)
	require.LessOrEqual(t, line, lines[parts[0]])
}
