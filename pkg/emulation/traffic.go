package emulation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// maxInFlight bounds the memory of one Traffic. Requests beyond it are sent later;
// as their latencies count from their arrival, that cannot hide.
const maxInFlight = 20_000

// Traffic plays a workload of one model through a router in real time, and
// measures what a client sees. Requests are sent when they arrive, whatever
// became of those before.
type Traffic struct {
	// URL is the base address of the router, such as "http://127.0.0.1:8080".
	URL string
	// Model is the name that is asked for.
	Model string
	// Requests is what to play.
	Requests workload.Stream
	// Start is the instant that arrivals count from; zero means when Play begins.
	Start time.Time
	// Drain is how long requests may take after the last one was sent; what is still
	// in flight then is cut off and has failed. 0 means as long as it takes.
	Drain time.Duration
	// Observe, if set, is called with every outcome as it becomes known, by one
	// goroutine at a time.
	Observe func(Outcome)
}

// Outcome is what became of one request.
type Outcome struct {
	Model string
	// Arrival is when the request was due, since the start of the traffic.
	Arrival time.Duration
	// Input and Output are its tokens.
	Input, Output int
	// Failed is set when there was no complete answer; the latencies are then 0.
	Failed bool
	// TTFT is the time from arrival to the first token, EndToEnd to the last one.
	TTFT, EndToEnd time.Duration
}

// ITL is the mean time per further token; false when there was none.
func (o Outcome) ITL() (time.Duration, bool) {
	if o.Failed || o.Output < 2 {
		return 0, false
	}
	return (o.EndToEnd - o.TTFT) / time.Duration(o.Output-1), true
}

// Play sends all requests and returns their outcomes in order of arrival when the
// last one is known. When the context ends, requests in flight are cut off, have
// failed, and the error is the context's; a stream that breaks off is an error
// after its requests are done. The outcomes are valid in any case.
func (t Traffic) Play(ctx context.Context) ([]Outcome, error) {
	sending, cut := context.WithCancel(ctx)
	defer cut()
	p, err := newPlay(t)
	if err != nil {
		return nil, err
	}
	defer p.client.CloseIdleConnections()
	err = p.send(sending)
	if t.Drain > 0 {
		timer := time.AfterFunc(t.Drain, cut)
		defer timer.Stop()
	}
	p.wait.Wait()
	slices.SortStableFunc(p.outcomes, func(a, b Outcome) int { return cmp.Compare(a.Arrival, b.Arrival) })
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return p.outcomes, fmt.Errorf("traffic of %s: %w", t.Model, err)
	}
	return p.outcomes, nil
}

// play is one run of a Traffic.
type play struct {
	Traffic
	client *http.Client
	url    string
	// head and middle are what stands before and after the prompt in a body.
	head  string
	words string
	slots chan struct{}
	wait  sync.WaitGroup

	mu       sync.Mutex
	outcomes []Outcome
}

func newPlay(t Traffic) (*play, error) {
	if t.Start.IsZero() {
		t.Start = time.Now()
	}
	model, err := json.Marshal(t.Model)
	if err != nil {
		return nil, fmt.Errorf("traffic of %s: %w", t.Model, err)
	}
	return &play{
		Traffic: t,
		client: &http.Client{Transport: &http.Transport{
			DisableCompression:  true,
			MaxIdleConnsPerHost: 4096,
			IdleConnTimeout:     30 * time.Second,
			ReadBufferSize:      2 << 10,
			WriteBufferSize:     2 << 10,
		}},
		url:   strings.TrimSuffix(t.URL, "/") + "/v1/completions",
		head:  fmt.Sprintf(`{"model":%s,"stream":true,"ignore_eos":true,"prompt":"`, model),
		slots: make(chan struct{}, maxInFlight),
	}, nil
}

// send starts every request when it is due.
func (p *play) send(ctx context.Context) error {
	for {
		r, err := p.Requests.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if wait := time.Until(p.Start.Add(r.Arrival)); wait > 0 && !pause(ctx, wait) {
			return nil
		}
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		body := p.body(r)
		p.wait.Go(func() {
			p.record(p.ask(ctx, r, body))
			<-p.slots
		})
	}
}

// body makes a prompt of as many words as the request has prompt tokens.
func (p *play) body(r workload.Request) string {
	if need := 2 * r.Input; len(p.words) < need {
		p.words = strings.Repeat("a ", max(need, 2*len(p.words))/2)
	}
	return fmt.Sprintf(`%s%s","max_tokens":%d}`, p.head, p.words[:2*r.Input-1], r.Output)
}

func (p *play) record(o Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outcomes = append(p.outcomes, o)
	if p.Observe != nil {
		p.Observe(o)
	}
}

// ask sends one request and follows its answer.
func (p *play) ask(ctx context.Context, r workload.Request, body string) Outcome {
	o := Outcome{Model: p.Model, Arrival: r.Arrival, Input: r.Input, Output: r.Output, Failed: true}
	due := p.Start.Add(r.Arrival)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(body))
	if err != nil {
		return o
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return o
	}
	defer func() { _ = response.Body.Close() }()
	first, last, complete := follow(response)
	if complete {
		o.Failed = false
		o.TTFT, o.EndToEnd = first.Sub(due), last.Sub(due)
	}
	return o
}

// streamEnd is the last event of a complete answer.
var streamEnd = []byte("data: [DONE]\n\n")

// follow reads a streamed answer: when it began, when it ended, and whether it
// is complete.
func follow(response *http.Response) (first, last time.Time, complete bool) {
	if response.StatusCode != http.StatusOK {
		return first, last, false
	}
	var tail [64]byte
	kept := 0
	buffer := make([]byte, 2<<10)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			last = time.Now()
			if first.IsZero() {
				first = last
			}
			kept = keepTail(tail[:], kept, buffer[:n])
		}
		if err != nil {
			return first, last, errors.Is(err, io.EOF) && bytes.HasSuffix(tail[:kept], streamEnd)
		}
	}
}

// keepTail keeps the last bytes of what was read, as many as fit.
func keepTail(tail []byte, kept int, more []byte) int {
	if len(more) >= len(tail) {
		return copy(tail, more[len(more)-len(tail):])
	}
	if over := kept + len(more) - len(tail); over > 0 {
		copy(tail, tail[over:kept])
		kept -= over
	}
	return kept + copy(tail[kept:], more)
}
