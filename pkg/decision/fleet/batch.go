package fleet

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// fewToAsk is how many replicas there must be for one of them to be told from the others.
const fewToAsk = 3

// BatchOf adds what the replicas show. Another version may take as many as it likes. Where there are others
// to ask, one that alone has so many in service proves nothing: it may be counted twice.
func (v *Variant) BatchOf() contract.Batch {
	seen := v.Old.Batch
	if v.In.Rolling {
		seen = contract.Batch{}
	}
	var running []float64
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		if !v.Round.Fresh(p.Running) {
			continue
		}
		running = append(running, p.Running.Value)
		if v.Round.Fresh(p.Waiting) && p.Waiting.Value > 0 {
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

// Bears reports whether what was seen bears a limit out. Who runs more than a limit has
// another one; a single request more may be one that just came or went. One that nobody stated counts once requests waited at it: until then it is a
// guess, which must not say that a replica is full.
func Bears(b *contract.Batch, limit int, source serving.BatchSource) bool {
	if limit <= 0 || b.Most > float64(limit)+1 {
		return false
	}
	return source != serving.BatchAssumed || b.Waited >= (1-signal.SettledWithin)*float64(limit)
}

// BatchLimit is the largest batch as the server's arguments, else the given profile, state it,
// as far as what was seen bears it out; 0 means unknown.
func (v *Variant) BatchLimit() int {
	seen := &v.Next.Batch
	switch own, given := v.In.BatchLimit, v.In.Profile.BatchLimit; {
	case Bears(seen, own, v.In.BatchSource):
		return own
	case Bears(seen, given, serving.BatchStated):
		return given
	}
	return 0
}
