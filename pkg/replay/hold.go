package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// compact is a request in 16 bytes, so that a day of a large service fits in memory.
type compact struct {
	arrival       time.Duration
	input, output int32
}

// mostRequests bounds what is held: 3.2 GB.
const mostRequests = 200_000_000

// hold reads a source once and gives its requests out again and again, with their number:
// making or parsing them costs more than replaying them.
func hold(source Source) (int, Source, error) { return holdUpTo(source, mostRequests) }

func holdUpTo(source Source, most int) (int, Source, error) {
	stream, err := source()
	if err != nil {
		return 0, nil, err
	}
	var all []compact
	var models []uint16
	var prompts []*workload.Prompt
	for {
		r, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, nil, err
		}
		if len(all) == most {
			return 0, nil, fmt.Errorf("there are more than %d requests in the trace; expected at most so many: replay a part of it, or lower its rate", most)
		}
		if r.Input > math.MaxInt32 || r.Output > math.MaxInt32 {
			return 0, nil, fmt.Errorf("request %d has %d prompt and %d generated tokens; expected less than 2^31", len(all)+1, r.Input, r.Output)
		}
		if n := len(all); n > 0 && r.Arrival < all[n-1].arrival {
			return 0, nil, fmt.Errorf("request %d arrives at %s, before the one above at %s; expected requests in order of time", n+1, r.Arrival, all[n-1].arrival)
		}
		if model, known := modelOf(stream); known {
			models = append(models, uint16(model)) // #nosec G115: an index of a model
		}
		if r.Prompt != nil && prompts == nil {
			prompts = append([]*workload.Prompt{}, make([]*workload.Prompt, len(all))...)
		}
		if prompts != nil {
			prompts = append(prompts, r.Prompt)
		}
		all = append(all, compact{r.Arrival, int32(r.Input), int32(r.Output)}) // #nosec G115: checked above
	}
	if len(all) == 0 {
		return 0, nil, errors.New("there are no requests in the trace")
	}
	return len(all), func() (workload.Stream, error) { return &held{all: all, models: models, prompts: prompts}, nil }, nil
}

type held struct {
	all []compact
	// models are those of the requests; nil where nobody knows them.
	models []uint16
	// prompts are what they begin with; nil where nobody knows it of any.
	prompts []*workload.Prompt
	next    int
}

func (h *held) model() (int, bool) {
	if h.models == nil || h.next == 0 {
		return 0, false
	}
	return int(h.models[h.next-1]), true
}

// Next implements workload.Stream.
func (h *held) Next() (workload.Request, error) {
	if h.next == len(h.all) {
		return workload.Request{}, io.EOF
	}
	c := &h.all[h.next]
	r := workload.Request{Arrival: c.arrival, Input: int(c.input), Output: int(c.output)}
	if h.prompts != nil {
		r.Prompt = h.prompts[h.next]
	}
	h.next++
	return r, nil
}
