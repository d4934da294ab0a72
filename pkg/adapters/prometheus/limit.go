package prometheus

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// limits bound what is read, in bytes after decompression: one answer, and all those of a reading
// together.
type limits struct{ answer, reading int64 }

// defaultLimits are above what is needed: one query answers less than 2 MiB of 10,000 pods. An answer
// of which no two series share labels keeps five and a half times its size in memory while it is read
// and used (measured with 16 MiB), and the shipped limit of that is 1 GiB.
var defaultLimits = limits{answer: 64 << 20, reading: 64 << 20}

// tooLarge is the error of an answer that passes a limit.
func tooLarge(what string, limit int64) error {
	return fmt.Errorf("%s than %d MiB: some target shows far too many series; find it with "+
		"topk(5, scrape_samples_post_metric_relabeling), and set sample_limit for what Prometheus scrapes", what, limit>>20)
}

// left is the context's key of what is left of a reading, in bytes.
type left struct{}

// bounded is a context whose answers are bounded together.
func (l limits) bounded(ctx context.Context) context.Context {
	n := new(atomic.Int64)
	n.Store(l.reading)
	return context.WithValue(ctx, left{}, n)
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
	body := &boundedBody{ReadCloser: response.Body, limits: b.limits}
	body.left, _ = request.Context().Value(left{}).(*atomic.Int64)
	response.Body = body
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	limits
	read int64
	// left is what is left of the reading; nil where nothing bounds it.
	left *atomic.Int64
}

// Read is that of the answer until it is too large.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); b.read > b.answer {
		return 0, tooLarge("the answer is larger", b.answer)
	}
	if b.left != nil && b.left.Add(-int64(n)) < 0 {
		return 0, tooLarge("this answer and those before it are together larger", b.reading)
	}
	return n, err
}
