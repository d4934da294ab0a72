package simulation

import "time"

// place is one request in the batch. What an iteration looks at of each lies together here.
type place struct {
	*sequence
	// finish is the number of iterations that have ended when it has its last token; 0 while its
	// prompt is not done.
	finish uint64
}

// sequence is one request on its way through the engine.
type sequence struct {
	// generated is the number of tokens it had when it entered the batch;
	// while it decodes, the finish of its place says how many it has.
	generated int
	// target is the number of tokens to prefill, computed how many are done, with
	// the chunk of the running iteration.
	target, computed int
	request          Request
	times            Times
	// last is when its latest token came, if it was preempted since.
	last time.Duration
	// kept are the blocks of its prompt that it holds in the prefix cache, from the first
	// on; sharing is the number of their tokens.
	kept    []*block
	sharing int
}

// prefill takes the next chunk of the prompt, at most the given number of tokens, and
// says how many came before it.
func (s *sequence) prefill(most int) (chunk, before int) {
	chunk, before = min(max(most, 0), s.target-s.computed), s.computed
	s.computed += chunk
	return chunk, before
}

func (e *Engine) newSequence() *sequence {
	if n := len(e.spare); n > 0 {
		s := e.spare[n-1]
		e.spare = e.spare[:n-1]
		return s
	}
	return new(sequence)
}

func (e *Engine) recycle(s *sequence) { e.spare = append(e.spare, s) }

// prompted gives a request whose prompt is done its next token, the first one unless it was
// preempted, and says in which step it gets the last one: in this one where no more come.
func (e *Engine) prompted(s *sequence) uint64 {
	s.generated++
	e.counts.Generated++
	if s.generated == 1 {
		s.times.FirstToken = e.start
		e.counts.Prompted += uint64(s.request.Input)
		e.emit(FirstToken, s)
	} else {
		e.emit(Resumed, s)
	}
	if s.generated == s.request.Output {
		e.free(s, s.target)
		return e.step
	}
	e.decoding++
	e.resident += s.target
	return e.step + uint64(s.request.Output-s.generated)
}
