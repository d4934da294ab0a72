package decision

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// fewToAsk is how many replicas there must be for one of them to be told from the others.
const fewToAsk = 3

// Batch is what was seen of how many requests a replica takes into service at once. The zero
// value is that of a variant of which nothing was seen.
type Batch struct {
	// Most is the most that one had in service, or two of them where there were more, and Waited the most beside which requests
	// waited.
	Most, Waited float64
}

// batchOf adds what the replicas show. Another version may take as many as it likes. Where there are others
// to ask, one that alone has so many in service proves nothing: it may be counted twice.
func (r *round) batchOf(v *variant) Batch {
	seen := v.old.Batch
	if v.in.Rolling {
		seen = Batch{}
	}
	var running []float64
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		if !r.fresh(p.Running) {
			continue
		}
		running = append(running, p.Running.Value)
		if r.fresh(p.Waiting) && p.Waiting.Value > 0 {
			seen.Waited = max(seen.Waited, p.Running.Value)
		}
	}
	slices.Sort(running)
	if n := len(running); n >= fewToAsk {
		running = running[:n-1]
	}
	if n := len(running); n > 0 {
		seen.Most = max(seen.Most, running[n-1])
	}
	return seen
}

// bears reports whether what was seen bears a limit out. Who runs more than a limit has
// another one; a single request more may be one that just came or went. One that nobody stated counts once requests waited at it: until then it is a
// guess, which must not say that a replica is full.
func (b *Batch) bears(limit int, source serving.BatchSource) bool {
	if limit <= 0 || b.Most > float64(limit)+1 {
		return false
	}
	return source != serving.BatchAssumed || b.Waited >= (1-settledWithin)*float64(limit)
}

// batchLimit is the largest batch as the server's arguments, else the given profile, state it,
// as far as what was seen bears it out; 0 means unknown.
func (v *variant) batchLimit() int {
	seen := &v.next.Batch
	switch own, given := v.in.BatchLimit, v.in.Profile.BatchLimit; {
	case seen.bears(own, v.in.BatchSource):
		return own
	case seen.bears(given, serving.BatchStated):
		return given
	}
	return 0
}
