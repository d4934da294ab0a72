package workload_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// disk has files by path and knows which are open.
type disk struct {
	files map[string]string
	open  []string
	// closing is what closing a file says.
	closing error
}

func (d *disk) Open(path string) (io.ReadCloser, error) {
	text, ok := d.files[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	d.open = append(d.open, path)
	return &opened{Reader: strings.NewReader(text), path: path, disk: d}, nil
}

type opened struct {
	io.Reader
	path string
	disk *disk
}

func (o *opened) Close() error {
	i := slices.Index(o.disk.open, o.path)
	if i < 0 {
		return errors.New("closed twice")
	}
	o.disk.open = slices.Delete(o.disk.open, i, i+1)
	return o.disk.closing
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

const (
	azureRows = "2023-11-16 18:15:46,10,1\n2023-11-16 18:15:47,20,2\n2023-11-16 18:15:49,30,3\n"
	seconds   = `{"timestamp": 1100, "input_length": 10, "output_length": 1, "hash_ids": [1]}` + "\n" +
		`{"timestamp": 2100, "input_length": 20, "output_length": 2}` + "\n" +
		`{"timestamp": 4100, "input_length": 30, "output_length": 3}` + "\n"
)

func TestOpenKnowsAFormatByItsContent(t *testing.T) {
	rate, clients, lengths := steady(1, 0.1, "Gamma,1,1").texts()
	three := []time.Duration{0, time.Second, 3 * time.Second}
	for name, c := range map[string]struct {
		files  map[string]string
		path   string
		format string
		// arrivals are nil for a ServeGen trace of 60 requests.
		arrivals []time.Duration
	}{
		"Azure":                  {map[string]string{"a.txt": header + azureRows}, "a.txt", "an Azure trace", three},
		"Azure from Windows":     {map[string]string{"a": strings.ReplaceAll(header+azureRows, "\n", "\r\n")}, "a", "an Azure trace", three},
		"Azure, compressed":      {map[string]string{"a.csv": zipped(header + azureRows)}, "a.csv", "an Azure trace", three},
		"Azure without requests": {map[string]string{"a": workload.AzureHeader}, "a", "an Azure trace", []time.Duration{}},
		"Mooncake":               {map[string]string{"m": seconds}, "m", "a Mooncake trace", three},
		"Mooncake, compressed":   {map[string]string{"m.gz": zipped(seconds)}, "m.gz", "a Mooncake trace", three},
		"Mooncake, a long line": {
			map[string]string{"m": strings.Replace(seconds, "[1]", "["+strings.Repeat("1,", 20_000)+"1]", 1)}, "m", "a Mooncake trace", three,
		},
		"ServeGen": {
			map[string]string{"d/x_rate.csv": rate, "d/x_clients.csv.gz": zipped(clients), "d/x_lengths.csv.gz": zipped(lengths)},
			"d/x_rate.csv", "a ServeGen trace", nil,
		},
		"ServeGen, plain": {
			map[string]string{"x_rate.csv": rate, "x_clients.csv": clients, "x_lengths.csv": lengths}, "x_rate.csv", "a ServeGen trace", nil,
		},
		"ServeGen, compressed": {
			map[string]string{"x_rate.csv.gz": zipped(rate), "x_clients.csv": clients, "x_lengths.csv.gz": zipped(lengths)},
			"x_rate.csv.gz", "a ServeGen trace", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &disk{files: c.files}
			trace, err := workload.Open(d.Open, c.path, workload.OpenOptions{})
			require.NoError(t, err)
			assert.Equal(t, c.format, trace.Format)
			all, err := readAll(trace)
			require.NoError(t, err)
			if c.arrivals == nil {
				assert.Len(t, all, 60)
			} else {
				require.Len(t, all, len(c.arrivals))
			}
			for i, at := range c.arrivals {
				assert.Equal(t, workload.Request{Arrival: at, Input: 10 * (i + 1), Output: i + 1}, all[i])
			}
			assert.Empty(t, d.open, "all files are closed at the end of the stream")
			require.NoError(t, trace.Close(), "a second time does nothing")
			_, err = trace.Next()
			assert.Equal(t, io.EOF, err)
		})
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	rate, clients, lengths := steady(1, 0.1, "Gamma,1,1").texts()
	d := &disk{files: map[string]string{
		"empty": "", "notes.txt": "hello\n", "broken.gz": zipped(header + azureRows)[:3], "cut.gz": zipped(header + azureRows)[:25],
		"x_rate.csv": rate, "x_clients.csv": clients, "x_lengths.csv": lengths,
		"rates": rate, "y_rate.csv": rate, "z_rate.csv": rate, "z_clients.csv": clients,
		"bad_rate.csv": rate, "bad_clients.csv.gz": zipped(clients + "1\n"), "bad_lengths.csv": lengths,
		"azure": header + "x,1,1\n",
	}}
	for path, want := range map[string]string{
		"none":           "open none: file does not exist",
		"empty":          `empty:1: the first line is ""; expected that of an Azure trace, TIMESTAMP,ContextTokens,GeneratedTokens, of the rate file of a ServeGen trace, window_start_s`,
		"notes.txt":      `notes.txt:1: the first line is "hello"; expected`,
		"broken.gz":      "broken.gz:1: decompressing: ",
		"cut.gz":         "cut.gz:1: reading the trace: unexpected EOF",
		"x_clients.csv":  "x_clients.csv:1: this is not the main file of a ServeGen trace; expected the file PREFIX_rate.csv next to it",
		"x_lengths.csv":  "x_lengths.csv:1: this is not the main file",
		"rates":          "rates:1: this is the rate file of a ServeGen trace; expected its name to end in _rate.csv",
		"y_rate.csv":     "y_rate.csv:1: the ServeGen trace has no file y_clients.csv; expected it there, or with .gz at its end",
		"z_rate.csv":     "z_rate.csv:1: the ServeGen trace has no file z_lengths.csv;",
		"bad_rate.csv":   `bad_clients.csv.gz:3: 1 columns in "1"; expected 7`,
		"synthetic:wave": `there is no synthetic load "wave"; expected one of code, chat, diurnal, step, ramp, burst, on-off`,
	} {
		_, err := workload.Open(d.Open, path, workload.OpenOptions{})
		require.ErrorContains(t, err, want, path)
		assert.Empty(t, d.open, "%s: what was opened is closed", path)
	}

	trace, err := workload.Open(d.Open, "azure", workload.OpenOptions{})
	require.NoError(t, err)
	_, err = trace.Next()
	require.ErrorContains(t, err, `azure:2: TIMESTAMP is "x"`)
	assert.Empty(t, d.open, "an error is the end of the stream")
	_, again := trace.Next()
	assert.Equal(t, err, again)
}

func TestOpenRefusesImpossibleOptions(t *testing.T) {
	d := &disk{files: map[string]string{"a": header + azureRows}}
	for want, o := range map[string]workload.OpenOptions{
		"read from -1s on; expected at least 0":              {From: -time.Second},
		"the length of a trace is -1s; expected":             {Length: -time.Second},
		"with probability -0.1; expected a number above 0":   {Thin: -0.1},
		"with probability 1.5; expected a number above 0 an": {Thin: 1.5},
	} {
		_, err := workload.Open(d.Open, "a", o)
		assert.ErrorContains(t, err, want)
		_, err = workload.NewServeGen(workload.ServeGenFiles{}, o)
		assert.ErrorContains(t, err, want)
	}
}

func TestOpenCutsThePartOut(t *testing.T) {
	rate, clients, lengths := steady(2, 1, "Gamma,1,1").texts()
	d := &disk{files: map[string]string{
		"azure": header + azureRows, "mooncake": seconds, "x_rate.csv": rate, "x_clients.csv": clients, "x_lengths.csv": lengths,
	}}
	part := workload.OpenOptions{From: time.Second, Length: 2 * time.Second}
	for _, path := range []string{"azure", "mooncake"} {
		trace, err := workload.Open(d.Open, path, part)
		require.NoError(t, err)
		all, err := readAll(trace)
		require.NoError(t, err)
		assert.Equal(t, []workload.Request{{Arrival: 0, Input: 20, Output: 2}}, all, "from one second on, and one that arrives at the end is not part of it")
		assert.Empty(t, d.open)
	}
	for path, c := range map[string]struct {
		from, length time.Duration
		want         float64
	}{
		"x_rate.csv":       {5 * time.Minute, 10 * time.Minute, 600},
		"synthetic:ramp":   {30 * time.Minute, 10 * time.Minute, 30_000},
		"synthetic:on-off": {15 * time.Minute, 15 * time.Minute, 0},
	} {
		o := workload.OpenOptions{From: c.from, Length: c.length, Seed: 3}
		for _, o.Thin = range []float64{0, 0.2} {
			trace, err := workload.Open(d.Open, path, o)
			require.NoError(t, err)
			all, err := readAll(trace)
			require.NoError(t, err)
			want := c.want
			if o.Thin > 0 {
				want *= o.Thin
			}
			assert.InEpsilon(t, want+1, len(all)+1, 0.2, "%s thinned by %v", path, o.Thin)
			for _, r := range all {
				require.Less(t, r.Arrival, c.length)
				require.GreaterOrEqual(t, r.Arrival, time.Duration(0))
			}
		}
	}
}

func TestOpenReadsAStreamAsAStream(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		read  int
	}{
		"Azure":    {[]string{header, "2023-11-16 18:15:46,10,1\n", "2023-11-16 18:15:47,20,2\n"}, 2},
		"Mooncake": {strings.SplitAfter(seconds, "\n")[:3], 2},
	} {
		t.Run(name, func(t *testing.T) {
			lines := &byLine{lines: c.lines, err: errors.New("read too far")}
			closed := &disk{open: []string{"trace"}}
			trace, err := workload.Open(func(string) (io.ReadCloser, error) {
				return &opened{Reader: lines, path: "trace", disk: closed}, nil
			}, "trace", workload.OpenOptions{})
			require.NoError(t, err)
			assert.Equal(t, 1, lines.read, "the first line tells the format")
			_, err = trace.Next()
			require.NoError(t, err)
			assert.Equal(t, c.read, lines.read)

			require.NoError(t, trace.Close())
			assert.Empty(t, closed.open)
			_, err = trace.Next()
			assert.EqualError(t, err, "the trace is closed")
		})
	}
}

func TestOpenReportsWhatFilesSay(t *testing.T) {
	gone := errors.New("the disk is gone")
	_, err := workload.Open(func(string) (io.ReadCloser, error) {
		return io.NopCloser(iotest.ErrReader(gone)), nil
	}, "trace", workload.OpenOptions{})
	require.ErrorIs(t, err, gone)
	require.ErrorContains(t, err, "trace:1: reading the trace: ")

	d := &disk{files: map[string]string{"a": header + azureRows}, closing: gone}
	trace, err := workload.Open(d.Open, "a", workload.OpenOptions{})
	require.NoError(t, err)
	all, err := readAll(trace)
	assert.Len(t, all, 3)
	assert.ErrorIs(t, err, gone, "a file that cannot be closed")
}

func TestFrom(t *testing.T) {
	source := &listed{requests: each(time.Second, 10)}
	got, err := readAll(workload.From(source, 2500*time.Millisecond))
	require.NoError(t, err)
	require.Len(t, got, 7)
	assert.Equal(t, workload.Request{Arrival: 500 * time.Millisecond, Input: 4, Output: 10}, got[0])

	got, err = readAll(workload.From(&listed{requests: each(time.Second, 3)}, 2*time.Second))
	require.NoError(t, err)
	assert.Equal(t, []workload.Request{{Arrival: 0, Input: 3, Output: 10}}, got, "one that arrives at that time is part of it")
}

// Spreadsheet programs put a mark before a file.
func TestAByteOrderMarkIsNoMistake(t *testing.T) {
	text := "\ufeff" + workload.AzureHeader + "\n2023-11-16 18:15:46.6805900,100,10\n"
	files := func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	trace, err := workload.Open(files, "marked.csv", workload.OpenOptions{})
	require.NoError(t, err)
	r, err := trace.Next()
	require.NoError(t, err)
	assert.Equal(t, workload.Request{Input: 100, Output: 10}, r)
	direct, err := workload.NewAzure(strings.NewReader(text), "marked.csv")
	require.NoError(t, err)
	_, err = direct.Next()
	require.NoError(t, err)
}
