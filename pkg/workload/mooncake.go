package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

const (
	// MooncakeRow is the form of a line in the public Mooncake traces, without what
	// is not read here.
	MooncakeRow = `{"timestamp": MILLISECONDS, "input_length": TOKENS, "output_length": TOKENS}`

	// MooncakePromptRow is the same with the blocks of the prompt.
	MooncakePromptRow = `{"timestamp": MILLISECONDS, "input_length": TOKENS, "output_length": TOKENS, "hash_ids": [NUMBER, ...]}`

	// MooncakeStep is the grain of the recorded time in these traces: twelve thousand
	// conversations stand at some twelve hundred times.
	MooncakeStep = 3 * time.Second

	// mooncakeSlack is how far a step may stand from a multiple of MooncakeStep: some
	// stand a millisecond before it. In the one trace with times of its own for every
	// request few come so near, and those move by less than one arrival.
	mooncakeSlack = 5 * time.Millisecond

	// maxMooncakeLine leaves room for the blocks of a prompt: a million tokens have 65,536
	// of 16 tokens.
	maxMooncakeLine = 1 << 20

	// maxMooncakeStep bounds the requests of one step, which are held together.
	maxMooncakeStep = 1 << 20
)

// Mooncake reads a trace in the format of the public Mooncake traces: one JSON
// object per line. Requests that stand at the same step of the recorded time
// arrive evenly at random within that step; one that stands between the steps
// arrives where it stands. Arrivals count from the first row.
type Mooncake struct {
	lines  *lines
	random *rand.Rand
	// Its times are recorded ones, as they stand in the file.
	order

	// ready holds the requests of one time in order of arrival, from next on.
	ready []Request
	next  int
	// ahead is the first request of a later time.
	ahead    Request
	hasAhead bool
	// prompts says that the blocks of the prompts are wanted.
	prompts bool
	err     error
}

// NewMooncake starts to read a trace. The name, usually that of the file, stands
// in every error, together with the number of the line. The seed decides where
// requests stand within their step.
func NewMooncake(r io.Reader, name string, seed uint64) *Mooncake {
	return &Mooncake{
		lines:  newLines(r, name, MooncakeRow, maxMooncakeLine),
		random: rand.New(rand.NewPCG(seed, randomSteps)),
	}
}

// Prompts has the stream say what prompts begin with. Every row must have the blocks of
// its prompt then. It returns the stream.
func (m *Mooncake) Prompts() *Mooncake {
	m.prompts, m.lines.want = true, MooncakePromptRow
	return m
}

// Next implements Stream.
func (m *Mooncake) Next() (Request, error) {
	for m.next == len(m.ready) {
		if m.err != nil {
			return Request{}, m.err
		}
		m.fill()
	}
	r := m.ready[m.next]
	m.next++
	return r, nil
}

// fill reads all rows of one time and the first of a later one. An error ends the
// stream only after what was read before it.
func (m *Mooncake) fill() {
	m.ready, m.next = m.ready[:0], 0
	if !m.hasAhead {
		if m.ahead, m.err = m.read(); m.err != nil {
			return
		}
	}
	at, until := m.ahead.Arrival, m.ahead.Arrival+MooncakeStep
	m.ready, m.hasAhead = append(m.ready, m.ahead), false
	for {
		r, err := m.read()
		if err != nil {
			m.err = err
			break
		}
		if r.Arrival > at {
			m.ahead, m.hasAhead = r, true
			until = min(until, r.Arrival)
			break
		}
		if len(m.ready) == maxMooncakeStep {
			m.err = m.lines.fail("more than %d requests at the timestamp %d; expected fewer in %s",
				maxMooncakeStep, (at + m.first).Milliseconds(), MooncakeStep)
			break
		}
		m.ready = append(m.ready, r)
	}
	m.spread(at, until)
}

// spread moves the requests of one step to times within it, in their order.
func (m *Mooncake) spread(at, until time.Duration) {
	off := (at + m.first) % MooncakeStep
	if off > mooncakeSlack && off < MooncakeStep-mooncakeSlack {
		return
	}
	times := make([]time.Duration, len(m.ready))
	for i := range times {
		times[i] = at + time.Duration(m.random.Int64N(int64(until-at)))
	}
	slices.Sort(times)
	for i := range times {
		m.ready[i].Arrival = times[i]
	}
}

// read returns the next row. Its arrival is the recorded time.
func (m *Mooncake) read() (Request, error) {
	text, err := m.lines.row()
	if err != nil {
		return Request{}, err
	}
	// Pointers tell a missing field from a zero.
	var row struct {
		Timestamp *float64 `json:"timestamp"`
		Input     *float64 `json:"input_length"`
		Output    *float64 `json:"output_length"`
		Blocks    blocks   `json:"hash_ids"`
	}
	row.Blocks.wanted = m.prompts
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return Request{}, m.lines.fail("%s; expected %s", mooncakeError(err, text), MooncakeRow)
	}
	at, err := m.time(row.Timestamp)
	if err != nil {
		return Request{}, err
	}
	input, err := m.tokens("input_length", row.Input)
	if err != nil {
		return Request{}, err
	}
	output, err := m.tokens("output_length", row.Output)
	if err != nil {
		return Request{}, err
	}
	r := Request{Arrival: at, Input: input, Output: output}
	if m.prompts {
		if row.Blocks.err != nil {
			return Request{}, m.lines.fail("hash_ids is not a list of whole numbers of at least 0; expected %s", MooncakePromptRow)
		}
		if len(row.Blocks.numbers) == 0 {
			return Request{}, m.lines.fail("hash_ids is missing, so that nothing says what the prompt begins with; expected %s", MooncakePromptRow)
		}
		if r.Prompt, err = NewPrompt(input, row.Blocks.numbers); err != nil {
			return Request{}, m.lines.fail("hash_ids has %s", err)
		}
	}
	return r, nil
}

// blocks are the numbers of a prompt's blocks, read where they are wanted.
type blocks struct {
	wanted  bool
	numbers []uint64
	err     error
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *blocks) UnmarshalJSON(text []byte) error {
	if b.wanted {
		b.err = json.Unmarshal(text, &b.numbers)
	}
	return nil
}

// mooncakeError words what the parser of JSON says about a line.
func mooncakeError(err error, text string) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Sprintf("%s is a %s", wrong.Field, wrong.Value)
	}
	return fmt.Sprintf("%q is not a JSON object", short(text))
}

// time checks the recorded time of a row and counts it from the first one.
func (m *Mooncake) time(milliseconds *float64) (time.Duration, error) {
	// A century in milliseconds: a Unix time fits.
	const most = 100 * 366 * 24 * 3600 * 1000
	switch {
	case milliseconds == nil:
		return 0, m.lines.fail("timestamp is missing; expected %s", MooncakeRow)
	case *milliseconds < 0 || *milliseconds > most:
		return 0, m.lines.fail("timestamp is %v; expected milliseconds of at least 0", *milliseconds)
	}
	at := time.Duration(math.Round(*milliseconds * float64(time.Millisecond)))
	return m.arrival(m.lines, "timestamp "+strconv.FormatFloat(*milliseconds, 'f', -1, 64), at)
}

func (m *Mooncake) tokens(field string, n *float64) (int, error) {
	switch {
	case n == nil:
		return 0, m.lines.fail("%s is missing; expected %s", field, MooncakeRow)
	case *n < 1 || *n > math.MaxInt32 || *n != math.Trunc(*n):
		return 0, m.lines.fail("%s is %v; expected a whole number of at least 1", field, *n)
	}
	return int(*n), nil
}
