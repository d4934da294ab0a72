package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// SyntheticPrefix comes before the name of a synthetic load where the path of a
// trace is expected.
const SyntheticPrefix = "synthetic:"

// Files opens a file by its path. It says that there is none with fs.ErrNotExist.
type Files func(path string) (io.ReadCloser, error)

// OpenOptions say which part of a trace is wanted.
type OpenOptions struct {
	// From is where in the trace the stream begins; arrivals count from there.
	From time.Duration
	// Length ends the stream before the first request that arrives at that time or
	// later; 0 means at the end of the trace.
	Length time.Duration
	// Thin keeps every request with that probability; 0 means 1.
	Thin float64
	// Seed decides every random number.
	Seed uint64
	// Prompts asks for what prompts begin with, which Mooncake traces say. A trace of
	// another format has requests of which nobody knows it.
	Prompts bool
}

func (o OpenOptions) check() error {
	switch {
	case o.From < 0:
		return fmt.Errorf("a trace is read from %s on; expected at least 0", o.From)
	case o.Length < 0:
		return fmt.Errorf("the length of a trace is %s; expected at least 0", o.Length)
	case !(o.Thin >= 0) || o.Thin > 1:
		return fmt.Errorf("requests are kept with probability %v; expected a number above 0 and at most 1", o.Thin)
	}
	return nil
}

// Trace is an opened trace. It closes its file when the stream ends; Close does
// so before.
type Trace struct {
	// Format says in a few words what the trace is.
	Format string

	stream Stream
	closer io.Closer
	err    error
}

// Next implements Stream.
func (t *Trace) Next() (Request, error) {
	if t.err != nil {
		return Request{}, t.err
	}
	r, err := t.stream.Next()
	if err != nil {
		t.err = err
		if closing := t.closer.Close(); closing != nil && errors.Is(err, io.EOF) {
			t.err = fmt.Errorf("closing the trace: %w", closing)
		}
		return Request{}, t.err
	}
	return r, nil
}

// Close closes the file of the trace; after the end of the stream it does
// nothing.
func (t *Trace) Close() error {
	if t.err == nil {
		t.err = errors.New("the trace is closed")
		return t.closer.Close()
	}
	return nil
}

// Open opens a trace by its path: a plain CSV or JSON lines file, an Azure CSV file, a Mooncake JSONL file, or the
// rate file of a ServeGen trace, whose client and length files stand next to it;
// each may be compressed with gzip. The first line tells the format. A path with
// SyntheticPrefix names a synthetic load and opens no file.
func Open(files Files, path string, o OpenOptions) (*Trace, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if name, ok := strings.CutPrefix(path, SyntheticPrefix); ok {
		s, _, err := Named(name, o.Seed)
		if err != nil {
			return nil, err
		}
		return o.trace("a synthetic load", s, io.NopCloser(nil))
	}
	file, err := openFile(files, path)
	if err != nil {
		return nil, err
	}
	t, err := openFormat(files, path, file, o)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return t, nil
}

// openFormat reads on as the first line says.
func openFormat(files Files, path string, file *file, o OpenOptions) (*Trace, error) {
	first, err := file.peekLine()
	if err != nil {
		return nil, fmt.Errorf("%s:1: reading the trace: %w", path, err)
	}
	switch {
	case first == PlainHeader:
		s, err := NewPlainCSV(file, path)
		if err != nil {
			return nil, err
		}
		return o.trace("a plain trace", s, file)
	case strings.HasPrefix(first, "{") && isPlainRow(first):
		return o.trace("a plain trace", NewPlainJSON(file, path), file)
	case strings.HasPrefix(first, "{"):
		m := NewMooncake(file, path, o.Seed)
		if o.Prompts {
			m.Prompts()
		}
		return o.trace("a Mooncake trace", m, file)
	case first == ServeGenRateHeader:
		s, err := openServeGen(files, path, file, o)
		if err != nil {
			return nil, err
		}
		// It has been read as a whole.
		return &Trace{Format: "a ServeGen trace", stream: s, closer: file}, nil
	case first == ServeGenClientsHeader, first == ServeGenLengthsHeader:
		return nil, fmt.Errorf("%s:1: this is not the main file of a ServeGen trace; expected the file PREFIX%s next to it, with the header %s",
			path, rateSuffix, ServeGenRateHeader)
	case first == AzureHeader:
		s, err := NewAzure(file, path)
		if err != nil {
			return nil, err
		}
		return o.trace("an Azure trace", s, file)
	}
	return nil, fmt.Errorf("%s:1: the first line is %q; expected that of an Azure trace, %s, of the rate file of a ServeGen trace, %s, of a Mooncake trace, %s, or of a plain trace, %s or %s",
		path, short(first), AzureHeader, ServeGenRateHeader, MooncakeRow, PlainHeader, PlainRow)
}

// trace cuts the wanted part out of a stream.
func (o OpenOptions) trace(format string, s Stream, c io.Closer) (*Trace, error) {
	if o.From > 0 {
		s = From(s, o.From)
	}
	if o.Length > 0 {
		s = Limit(s, o.Length)
	}
	if o.Thin > 0 && o.Thin < 1 {
		var err error
		if s, err = Rate(s, o.Thin, MinSpread, o.Seed); err != nil {
			return nil, err
		}
	}
	return &Trace{Format: format, stream: s, closer: c}, nil
}

// The ends of the names of the files of a ServeGen trace, after the same prefix
// and without that of compression.
const (
	rateSuffix    = "_rate.csv"
	clientsSuffix = "_clients.csv"
	lengthsSuffix = "_lengths.csv"
	gzipSuffix    = ".gz"
)

// openServeGen reads the three files and closes the two that it opens.
func openServeGen(files Files, path string, rate io.Reader, o OpenOptions) (Stream, error) {
	prefix, ok := strings.CutSuffix(strings.TrimSuffix(path, gzipSuffix), rateSuffix)
	if !ok {
		return nil, fmt.Errorf("%s:1: this is the rate file of a ServeGen trace; expected its name to end in %s, so that its client and length files are found next to it",
			path, rateSuffix)
	}
	clients, err := openSibling(files, prefix+clientsSuffix, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = clients.Close() }()
	lengths, err := openSibling(files, prefix+lengthsSuffix, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lengths.Close() }()
	return NewServeGen(ServeGenFiles{
		Rate:    File{Name: path, Reader: rate},
		Clients: File{Name: clients.name, Reader: clients},
		Lengths: File{Name: lengths.name, Reader: lengths},
	}, o)
}

// openSibling opens a file with or without compression.
func openSibling(files Files, path, of string) (*file, error) {
	for _, name := range []string{path + gzipSuffix, path} {
		f, err := openFile(files, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("%s:1: the ServeGen trace has no file %s; expected it there, or with %s at its end", of, path, gzipSuffix)
}

// file is an opened file, decompressed.
type file struct {
	*bufio.Reader
	name   string
	closer io.Closer
}

// peekMost is how far the first line is looked for: a Mooncake trace is known by
// its first byte, the others have short ones.
const peekMost = maxLine

func openFile(files Files, path string) (*file, error) {
	c, err := files(path)
	if err != nil {
		return nil, err
	}
	f := &file{Reader: bufio.NewReaderSize(c, peekMost), name: path, closer: c}
	if magic, err := f.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(f.Reader)
		if err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("%s:1: decompressing: %w", path, err)
		}
		f.Reader = bufio.NewReaderSize(plain, peekMost)
	}
	if mark, err := f.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = f.Discard(len(byteOrderMark))
	}
	return f, nil
}

// Close implements io.Closer.
func (f *file) Close() error { return f.closer.Close() }

// peekLine returns the first line, or as much of it as fits, and leaves it to be
// read. It reads no further than the end of that line needs.
func (f *file) peekLine() (string, error) {
	for n := 1; ; n = min(max(n+1, f.Buffered()), peekMost) {
		text, err := f.Peek(n)
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			return strings.TrimSuffix(string(text[:i]), "\r"), nil
		}
		if errors.Is(err, io.EOF) || n == peekMost {
			return string(text), nil
		}
		if err != nil {
			return "", err
		}
	}
}
