package contract

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// Memory is what must survive from one round to the next. It is a value: Decide returns the
// next one and changes nothing in the one that it was given, nor does anybody else.
type Memory struct {
	// Time is when it was written.
	Time time.Time
	// Variants and Models hold what is known of each that the last round saw.
	Variants map[Key]*VariantMemory
	Models   map[ModelKey]*ModelMemory
}

// OfVariant is what is remembered of a variant; the zero value where nothing is.
func (m *Memory) OfVariant(key Key) *VariantMemory {
	if v := m.Variants[key]; v != nil {
		return v
	}
	return &VariantMemory{}
}

// Wrote records that what was planned for a variant in the last round was written.
func (m *Memory) Wrote(key Key) {
	if v := m.Variants[key]; v != nil {
		next := *v
		next.Written = true
		m.Variants[key] = &next
	}
}

// On is the memory for a variant of that shape: what was learned on other hardware says
// nothing of it.
func (m *VariantMemory) On(shape capacity.Shape) *VariantMemory {
	shape.MilliCPU, shape.MemoryBytes = 0, 0
	if m.Hardware == shape {
		return m
	}
	next := *m
	if next.Hardware != (capacity.Shape{}) {
		next.Curve, next.Holds, next.Full, next.Latency, next.Sizing = serving.Curve{}, 0, ObservedLimit{}, LatencyMemory{}, Sizing{}
	}
	next.Hardware = shape
	return &next
}

// Of is the memory for a variant on that target: what another one asked for, and came to,
// says nothing of it.
func (m *VariantMemory) Of(target string) *VariantMemory {
	if target == "" || m.TargetUID == "" || m.TargetUID == target {
		return m
	}
	next := *m
	next.History, next.Conflict, next.Written = nil, Conflict{}, false
	next.NoPod, next.Refused, next.StartupWait, next.Backoff = time.Time{}, time.Time{}, StartupWait{}, Backoff{}
	return &next
}

// OfModel is the same of a model.
func (m *Memory) OfModel(key ModelKey) *ModelMemory {
	if v := m.Models[key]; v != nil {
		return v
	}
	return &ModelMemory{}
}

// VariantMemory is what is remembered of one variant. A new leader starts with the zero
// value; each field says what that costs.
type VariantMemory struct {
	// Curve is the throughput learned from the replicas. Until it is learned anew the
	// profile is used, or one observation.
	Curve serving.Curve
	// Holds is how many requests in service a replica was last seen to hold; 0 means never.
	// It is seen anew with the first replica that serves.
	Holds float64
	// Full is what a full replica was seen to do. A new leader has to see a queue again.
	Full ObservedLimit
	// Batch is what was seen of how many requests a replica takes at once. A new leader takes
	// a limit that nobody stated for none until requests wait at it.
	Batch Batch
	// Cache is whether they show how full their KV cache is. A new leader takes one that is not shown for
	// missing for an hour.
	Cache Cache
	// Latency is what the replicas showed of their latency. Until enough is seen anew
	// the given profile is used, or one that is borrowed.
	Latency LatencyMemory
	// Sizing is the rate that one replica serves within the promise. It is found anew.
	Sizing Sizing
	// Hardware is the shape on which all of that was learned, without its CPU and memory. A new
	// leader takes the one that it sees for it.
	Hardware capacity.Shape
	// History is what the target asked for and what was wanted of it, oldest first. A
	// new leader holds scale-down for one stabilization window, counts the periods of
	// rate policies anew, and takes the replicas as they are for its own.
	History []HistoryEntry
	// TargetUID is the target whose History and Conflict that is. A new leader takes the one
	// that it sees for it.
	TargetUID string
	// Written is set when what the last round planned was written: the number before it is
	// somebody else's then. A new leader takes the replicas as they are for its own.
	Written bool
	// NoPod is since when the target asks for replicas of which there is no pod. A new
	// leader waits once more for them.
	NoPod time.Time
	// Refused is since when the scheduler finds no node for a pod that the capacity
	// model would place. A new leader keeps room for it once more for a while.
	Refused time.Time
	// Lacked is when the model last lacked one more replica for want of room. A new leader
	// has to see it lack one.
	Lacked time.Time
	// Nominated is where other models make room for more replicas, one each. A new leader may
	// see somebody else take it.
	Nominated []ReservedRoom
	// Lowered is how many replicas the model's last scale-down left, and TooFew how many one did
	// that had to be undone. A new leader does not know.
	Lowered, TooFew int
	// Odd are the replicas that were unlike the others, by name. A new leader counts them for what
	// the others do until it has seen them for a metrics window.
	Odd []Odd
	// Stuck are the replicas whose requests nobody serves, by name. A new leader counts them as busy
	// for some metrics windows more.
	Stuck []Stuck
	// StartupWait is what is known of start-ups while none was ever seen to end. A new leader
	// gives them the start-up deadline once more.
	StartupWait StartupWait
	// Backoff is set once replicas found no node, or did not start. A new leader may try
	// the variant again at once.
	Backoff Backoff
	// Conflict is what others did to the target's replicas. A new leader has to see
	// a fight begin again.
	Conflict Conflict
}

// ModelMemory is what is remembered of one model.
type ModelMemory struct {
	// Forecast is what is believed of the rate at which work arrives. A new leader begins
	// with one count, and learns within minutes how it moves.
	Forecast forecast.Belief
	// Seen is what waited and served lately, oldest first. A new leader sees no change
	// before the second.
	Seen []Observation
	// Attained is how well the promise was kept. A new leader counts on what the latency
	// models say until it has seen how well that does.
	Attained Attained
	// Balance holds the gateway's count against that of the replicas. A new leader takes the
	// gateway's for the whole until they have differed for a metrics window.
	Balance Balance
	// StuckQueue is a queue in the gateway from which nothing comes. A new leader takes it for demand
	// for some metrics windows more.
	StuckQueue StuckQueue
	// Tokens is the slow mean of the token shape. A new leader does without until
	// requests complete, then follows the newest mean alone.
	Tokens forecast.TokenMean
	// Cheaper is since when another mix of variants would serve for less. A new leader
	// waits once more before it switches.
	Cheaper time.Time
	// ShownCheaper is the same of all variants, where some are in mode Off and others are not. A new
	// leader shows such a switch later.
	ShownCheaper time.Time
	// Lowered is the last scale-down, and TooFew one that had to be undone. A new leader may make one
	// again that it would know to be undone.
	Lowered Lowered
	TooFew  TooFew
	// Switched is the last switch to another mix. A new leader may switch back at once.
	Switched Switched
	// Active is when something was last asked of the model. A new leader counts the
	// retention period anew.
	Active time.Time
	// Gateway is what was seen of the model's gateway. A new leader lets no model sleep
	// before the gateway shows its queue, or one of its namespace shows another's.
	Gateway Gateway
}

// Switched is a switch to another mix of variants: when it was, which variants grew, and for how long no
// other one is made. Where prices cross again and again, each switch costs more than it saves.
type Switched struct {
	At    time.Time
	Pause time.Duration
	To    []string
}

// HistoryEntry is a time during which the numbers of a variant stayed the same.
type HistoryEntry struct {
	// From and Until are the first and the last round of it.
	From, Until time.Time
	// Replicas is what the target asked for, Wanted what was wanted before behavior, Needed
	// the part of that which the load of the time needed, and Desired what was planned, or
	// shown while there was nothing to decide by.
	Replicas, Wanted, Needed, Desired int
	// Decided is set when Wanted was decided; else the variant was held.
	Decided bool
}

// Lowered is a scale-down: the work that was to be carried, the most since, and how many requests the
// replicas had. Short is set where more was wanted all the same, by the promise, so that a trigger alone
// says later that too few were left.
type Lowered struct {
	InFlight   float64
	Load, Most capacity.Rate
	Short      bool
}

// TooFew is that what a scale-down left did not suffice for a load within a promise.
type TooFew struct {
	At time.Time
	// Pause is how long it is believed. It may have been for a reason that passed, so it is tried
	// again then; where that is undone, too, it is believed twice as long.
	Pause time.Duration
	Load  capacity.Rate
	SLO   capacity.SLO
}

// Observation is what was seen in one round.
type Observation struct {
	Time time.Time
	// Sampled is the time of the newest sample in it.
	Sampled time.Time
	// Backlog is the number of requests that waited, Queue of those in the gateway, and Ready the
	// number of replicas that served.
	Backlog, Queue float64
	Ready          int
	// InFlight is how many requests the replicas had, and Again how many that arrived were taken
	// for those of replicas that went.
	InFlight, Again float64
}

// Gateway is what was seen of a model's gateway.
type Gateway struct {
	// Queued is when it last showed a queue of the model; the zero time means never.
	Queued time.Time
	// Unseen is when it was last not known what waits there.
	Unseen time.Time
}

// StartupWait is how long replicas were given to start, of which none did.
type StartupWait struct {
	// Now is how long the oldest starts, and Before the longest that one was given before.
	Now, Before time.Duration
}

// ReservedRoom is a node on which room is made, by a variant that is to go down to so many replicas
// for it.
type ReservedRoom struct {
	Node string
	At   time.Time
	By   Key
	To   int
}

// Backoff says until when a variant is left alone after its replicas found no node.
type Backoff struct {
	Until time.Time
	// Pause is how long it was left alone; the next time, twice as long.
	Pause time.Duration
	// Ready is the number of its replicas that served when the pause began, Rolling is set
	// where it began in a rolling update, and Full where the nodes had no room then.
	Ready         int
	Rolling, Full bool
}

// Before is the variant's last stretch, if there is one.
func (m *VariantMemory) Before() (HistoryEntry, bool) {
	if len(m.History) == 0 {
		return HistoryEntry{}, false
	}
	return m.History[len(m.History)-1], true
}

// Record is the history with one more round, without what ended longer than span ago; but
// for the last of these, which shows that the span is covered. It shares nothing with the
// history before.
func Record(history []HistoryEntry, now HistoryEntry, span time.Duration) []HistoryEntry {
	first := 0
	for i := range history {
		if now.From.Sub(history[i].Until) >= span {
			first = i
		}
	}
	next := make([]HistoryEntry, len(history)-first, len(history)-first+1)
	copy(next, history[first:])
	if n := len(next); n > 0 {
		last, same := &next[n-1], now
		if same.From, same.Until = last.From, last.Until; same == *last {
			last.Until = now.Until
			return next
		}
	}
	return append(next, now)
}

// UpTo is the memory for a round at a time. One that was written later is of a clock that
// ran ahead and came back, and its times would hold everything until they are reached: of
// that only what was learned stays, as if it were of now, and the rest is as with a new
// leader. The memory itself is left as it is.
func (m *Memory) UpTo(now time.Time) *Memory {
	if !m.Time.After(now) {
		return m
	}
	next := Memory{Time: now, Variants: make(map[Key]*VariantMemory, len(m.Variants)), Models: make(map[ModelKey]*ModelMemory, len(m.Models))}
	for key, v := range m.Variants {
		kept := &VariantMemory{Curve: v.Curve, Holds: v.Holds, Full: v.Full, Latency: LatencyMemory{Estimate: v.Latency.Estimate}, Sizing: v.Sizing, Hardware: v.Hardware}
		kept.Full.Fed = Earlier(v.Full.Fed, now)
		kept.Curve.Updated, kept.Sizing.Found = Earlier(v.Curve.Updated, now), Earlier(v.Sizing.Found, now)
		next.Variants[key] = kept
	}
	for key, v := range m.Models {
		kept := &ModelMemory{Forecast: v.Forecast, Attained: v.Attained, Tokens: v.Tokens}
		kept.Attained.Sampled, kept.Attained.Short = Earlier(v.Attained.Sampled, now), Earlier(v.Attained.Short, now)
		kept.Forecast.Sampled, kept.Tokens.Time = Earlier(v.Forecast.Sampled, now), Earlier(v.Tokens.Time, now)
		next.Models[key] = kept
	}
	return &next
}

// Earlier is the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}
