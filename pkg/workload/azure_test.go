package workload_test

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

const header = workload.AzureHeader + "\n"

// readAll reads a stream to its end; an error other than that is returned.
func readAll(s workload.Stream) (all []workload.Request, err error) {
	for {
		r, err := s.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
}

func readAzure(text string) ([]workload.Request, error) {
	a, err := workload.NewAzure(strings.NewReader(text), "trace.csv")
	if err != nil {
		return nil, err
	}
	return readAll(a)
}

func TestAzureTraces(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []workload.Request
	}{
		"header only":            {header, nil},
		"header without its end": {workload.AzureHeader, nil},
		"seven fractional digits as in 2023": {
			header + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
			[]workload.Request{{Arrival: 0, Input: 374, Output: 44}, {Arrival: 4314579 * time.Microsecond, Input: 396, Output: 109}},
		},
		"a zone as in 2024": {
			header + "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:00.017335+00:00,2399,6\n",
			[]workload.Request{{Arrival: 0, Input: 2162, Output: 5}, {Arrival: 7405 * time.Microsecond, Input: 2399, Output: 6}},
		},
		"no fraction, then one digit": {
			header + "2023-11-16 18:15:46,1,1\n2023-11-16 18:15:46.5,1,1\n",
			[]workload.Request{{Arrival: 0, Input: 1, Output: 1}, {Arrival: 500 * time.Millisecond, Input: 1, Output: 1}},
		},
		"windows line ends and no last one": {
			strings.ReplaceAll(header, "\n", "\r\n") + "2023-11-16 18:15:46,7,8\r\n2023-11-16 18:15:46,9,10",
			[]workload.Request{{Arrival: 0, Input: 7, Output: 8}, {Arrival: 0, Input: 9, Output: 10}},
		},
		"empty lines at the end": {
			header + "2023-11-16 18:15:46,7,8\n\r\n\n",
			[]workload.Request{{Arrival: 0, Input: 7, Output: 8}},
		},
		"over midnight and a new year": {
			header + "2023-12-31 23:59:59.5,7,8\n2024-01-01 00:00:00.25,7,8\n",
			[]workload.Request{{Arrival: 0, Input: 7, Output: 8}, {Arrival: 750 * time.Millisecond, Input: 7, Output: 8}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAzure(c.text)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestMalformedAzureTraces(t *testing.T) {
	const row = "2023-11-16 18:15:46.5,1,1\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty file":          {"", "trace.csv:1: the file is empty; expected the header TIMESTAMP,ContextTokens,GeneratedTokens"},
		"no header":           {row, `trace.csv:1: the header is "2023-11-16 18:15:46.5,1,1"; expected TIMESTAMP,ContextTokens,GeneratedTokens`},
		"another header":      {"Timestamp,Model,Request tokens\n", `trace.csv:1: the header is "Timestamp,Model,Request tokens"; expected`},
		"two columns":         {header + "2023-11-16 18:15:46.5,1\n", `trace.csv:2: 2 columns in "2023-11-16 18:15:46.5,1"; expected 3`},
		"four columns":        {header + row + "2023-11-16 18:15:46.5,1,1,1\n", `trace.csv:3: 4 columns in`},
		"no time":             {header + "yesterday,1,1\n", `trace.csv:2: TIMESTAMP is "yesterday"; expected a time like 2023-11-16`},
		"no number":           {header + row + row + "2023-11-16 18:15:46.5,1,many\n", `trace.csv:4: GeneratedTokens is "many"; expected a whole number of at least 1`},
		"a number with space": {header + "2023-11-16 18:15:46.5, 1,1\n", `trace.csv:2: ContextTokens is " 1"; expected`},
		"a fraction":          {header + "2023-11-16 18:15:46.5,1.5,1\n", `trace.csv:2: ContextTokens is "1.5"; expected`},
		"no tokens":           {header + "2023-11-16 18:15:46.5,0,1\n", `trace.csv:2: ContextTokens is "0"; expected`},
		"negative tokens":     {header + "2023-11-16 18:15:46.5,1,-3\n", `trace.csv:2: GeneratedTokens is "-3"; expected`},
		"more than 31 bits":   {header + "2023-11-16 18:15:46.5,1,4294967296\n", `trace.csv:2: GeneratedTokens is "4294967296"; expected`},
		"time goes back":      {header + row + "2023-11-16 18:15:45.25,1,1\n", "trace.csv:3: TIMESTAMP 2023-11-16 18:15:45.25 is 1.25s before the line above; expected rows in order of time"},
		"empty line inside":   {header + row + "\n\n" + row, "trace.csv:3: the line is empty; expected"},
		"empty first row":     {header + "\n" + row, "trace.csv:2: the line is empty; expected"},
		"no trace at all":     {strings.Repeat("x", 100) + "\n", `trace.csv:1: the header is "` + strings.Repeat("x", 60) + `..."; expected`},
		"an endless line":     {header + strings.Repeat("1", 1<<20), "trace.csv:2: the line is longer than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readAzure(c.text)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestAzureReportsWhatTheReaderSays(t *testing.T) {
	text := strings.NewReader(header + "2023-11-16 18:15:46,1,1\n")
	a, err := workload.NewAzure(io.MultiReader(text, iotest.ErrReader(errors.New("the disk is gone"))), "trace.csv")
	require.NoError(t, err)
	_, err = a.Next()
	require.NoError(t, err)
	_, err = a.Next()
	require.ErrorContains(t, err, "trace.csv:3: reading the trace: the disk is gone")
	_, again := a.Next()
	assert.Equal(t, err, again, "an error stays")
}

func TestSummarize(t *testing.T) {
	a, err := workload.NewAzure(strings.NewReader(header+"2023-11-16 18:15:46,10,1\n2023-11-16 18:16:46,20,2\n"), "trace.csv")
	require.NoError(t, err)
	sum, err := workload.Summarize(a)
	require.NoError(t, err)
	assert.Equal(t, workload.Summary{Requests: 2, Last: time.Minute, Input: 30, Output: 3}, sum)
	assert.Equal(t, "2 requests in 1m0s, 15 prompt and 2 generated tokens on average", sum.String())

	a, err = workload.NewAzure(strings.NewReader(header), "trace.csv")
	require.NoError(t, err)
	_, err = workload.Summarize(a)
	assert.Error(t, err, "a trace without requests")
}

// Whatever the bytes: no panic, requests are possible ones in order of time, an
// error names the file and a line that exists, and it stays.
func FuzzAzure(f *testing.F) {
	f.Add([]byte(header + "2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\r\n"))
	f.Add([]byte(header + "2024-05-10 00:00:00.009930+00:00,2162,5\n\n"))
	f.Add([]byte(header + "2023-11-16 18:15:46,1,1\n2023-11-16 18:15:45,1,1\n"))
	f.Add([]byte("a,b\n\"x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := strings.Count(string(data), "\n") + 1
		check := func(err error) {
			var name string
			var line int
			parts := strings.SplitN(err.Error(), ":", 3)
			require.Len(t, parts, 3)
			name = parts[0]
			line, convErr := strconv.Atoi(parts[1])
			require.NoError(t, convErr)
			require.Equal(t, "trace.csv", name)
			require.Positive(t, line)
			require.LessOrEqual(t, line, lines)
		}
		a, err := workload.NewAzure(strings.NewReader(string(data)), "trace.csv")
		if err != nil {
			check(err)
			return
		}
		var last time.Duration
		for {
			r, err := a.Next()
			if err != nil {
				_, again := a.Next()
				require.Equal(t, err, again)
				if !errors.Is(err, io.EOF) {
					check(err)
				}
				return
			}
			require.GreaterOrEqual(t, r.Arrival, last)
			require.Positive(t, r.Input)
			require.Positive(t, r.Output)
			last = r.Arrival
		}
	})
}
