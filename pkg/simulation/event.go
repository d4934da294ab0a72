package simulation

import "time"

// Kind says what happened to a request.
type Kind int

// What can happen to a request.
const (
	// FirstToken: its prompt is done and its first token is there.
	FirstToken Kind = iota + 1
	// Resumed: after a preemption it has its next token.
	Resumed
	// Finished: it has its last token.
	Finished
)

// Event is something that happened to one request.
type Event struct {
	Kind    Kind
	At      time.Duration
	Request Request
	Times   Times
	// Gap is, for Resumed alone, the time since the request's token before. All
	// other gaps between tokens of one request are the length of an iteration.
	Gap time.Duration
}

// Times are the stations of one request. Those that it has not reached yet are 0.
type Times struct {
	// Arrived is when it was submitted.
	Arrived time.Duration
	// Started is the begin of the iteration in which its service first began.
	Started time.Duration
	// FirstToken and Finished are when its first and its last token came.
	FirstToken, Finished time.Duration
	// Preemptions is how often it lost its place in the KV cache.
	Preemptions int
}

// Iteration is one iteration of the engine.
type Iteration struct {
	Start, End time.Duration
	// Running is the number of requests in the batch, Decoding the number of
	// those that decoded a token: the time since their token before is the
	// length of this iteration.
	Running, Decoding int
	// Resident is the number of tokens that decoding had to read.
	Resident int
	// Prefill is the number of prompt tokens computed.
	Prefill int
	// Held is the number of tokens with a place in the KV cache.
	Held int
}

// State is the engine at one instant.
type State struct {
	// Running is the number of requests in the batch, Waiting that in the queue.
	Running, Waiting int
	// KVUsed is the number of tokens that have a place in the KV cache: whole
	// prompts from the moment that their service begins, and every token that was
	// decoded.
	KVUsed int
	// KVCapacity is the size of the KV cache in tokens; 0 means unknown.
	KVCapacity int
	Counts
}

// Counts add up from the start of the engine.
type Counts struct {
	// Finished is the number of requests that have all their tokens.
	Finished uint64
	// Preemptions is how often a request lost its place in the KV cache.
	Preemptions uint64
	// Prompted is the number of tokens in the prompts that are done, each counted
	// once, when its first token comes.
	Prompted uint64
	// Prefilled is the number of tokens that were prefilled, those again that a
	// preemption made necessary, and those of the running iteration.
	Prefilled uint64
	// Found is the number of tokens of prompts that did not have to be computed, because
	// they were in the prefix cache.
	Found uint64
	// Generated is the number of tokens that were handed out.
	Generated uint64
	// Iterations is the number of iterations that have ended.
	Iterations uint64
}

// State describes the engine as of the latest call that named a time.
func (e *Engine) State() State {
	return State{
		Running:    len(e.running),
		Waiting:    e.waiting.len(),
		KVUsed:     e.held,
		KVCapacity: int(e.profile.KVTokens),
		Counts:     e.counts,
	}
}
