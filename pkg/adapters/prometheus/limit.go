package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
)

// limits bound what is read, in bytes after decompression: one answer, and all those of a reading
// together.
type limits struct{ answer, reading int64 }

// leastLimit is enough for 20,000 pods: all answers of a reading together take some 2.7 KiB of a pod.
const leastLimit = 64 << 20

// limitsFor are those of a process that may take so much memory, in bytes. An answer of which no two
// series share labels keeps five and a half times its size while it is read and used (measured with
// 16 MiB). So a sixteenth of the memory is a third of it meanwhile: 64 MiB of the shipped 1 GiB.
func limitsFor(memory int64) limits {
	if memory == math.MaxInt64 {
		// Nobody set a limit.
		memory = 0
	}
	most := max(leastLimit, memory/16)
	return limits{answer: most, reading: most}
}

// toLimit names the settings of a scrape without which one target can make answers too large or too slow:
// few series with long labels pass any sample_limit.
const toLimit = "set sample_limit, label_value_length_limit and body_size_limit for what Prometheus scrapes"

// sizeError is the error of an answer that passes a limit.
type sizeError struct {
	what  string
	limit int64
}

// Error implements error.
func (e sizeError) Error() string {
	return fmt.Sprintf("%s than %d MiB: some target shows far too long labels, or far too many series, as "+
		"topk(5, scrape_samples_post_metric_relabeling) shows; %s", e.what, e.limit>>20, toLimit)
}

// readingKey is the context's key of a reading.
type readingKey struct{}

// bounded is a context whose answers are bounded together, unless they are already.
func (l limits) bounded(ctx context.Context) context.Context {
	if readingOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, readingKey{}, &reading{left: l.reading})
}

// readingOf is the reading that an answer belongs to; nil for none.
func readingOf(ctx context.Context) *reading {
	r, _ := ctx.Value(readingKey{}).(*reading)
	return r
}

// boundedAnswers ends answers that are too large. Whoever can make a pod that is scraped can make them
// as large as the Prometheus server permits.
type boundedAnswers struct {
	http.RoundTripper
	limits
}

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body := &boundedBody{ReadCloser: response.Body, limits: b.limits, of: readingOf(request.Context())}
	if body.of != nil {
		body.taken = body.of.begin()
	}
	response.Body = body
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	limits
	read int64
	// of is nil where nothing bounds it but its own limit.
	of    *reading
	taken *taken
	rows  rows
	// ended says that there is no more to read. The answer may be closed while it is read.
	ended atomic.Bool
}

// Read is that of the answer until it is too large.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	enough := true
	if b.of != nil {
		enough = b.of.take(b.taken, &b.rows, p[:n])
	}
	if b.read += int64(n); b.read > b.answer {
		return 0, sizeError{"the answer is larger", b.answer}
	}
	if !enough {
		return 0, sizeError{"this answer and those before it are together larger", b.reading}
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	if b.of != nil {
		b.of.end(b.taken, !b.ended.Load())
	}
	return b.ReadCloser.Close()
}
