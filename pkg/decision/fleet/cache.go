package fleet

import (
	"cmp"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// uncachedAfter is for how long replicas that are heard must show no use of a KV cache before they are
// read without it. Until then it is missing, as where a scrape drops it for a while and nobody remembers
// that it was there.
const uncachedAfter = time.Hour

// cacheOf adds what the replicas show. Another version may be another server.
func (v *Variant) cacheOf() contract.Cache {
	if v.In.Rolling {
		return contract.Cache{}
	}
	seen, heard := v.Old.Cache, false
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		if p.KVUse.Present {
			return contract.Cache{Shown: true}
		}
		if !v.Round.Fresh(p.Running, p.Waiting) || v.Round.Fledgling(p) {
			continue
		}
		if heard = true; !v.Odd.At(i) && v.Round.Fresh(p.Served) && p.Served.Value > 0 && v.Round.Settled(p) {
			seen.Held = max(seen.Held, p.Running.Value)
		}
	}
	if heard && !seen.Shown {
		seen.Lacks = cmp.Or(seen.Lacks, v.Round.Snapshot.Time)
	}
	return seen
}

// Uncached reports whether the variant's server has no such metric, so that its queue, and what it has
// in service, say all that is known of how full it is.
func (v *Variant) Uncached() bool {
	c := &v.Next.Cache
	return !c.Shown && !c.Lacks.IsZero() && v.Round.Snapshot.Time.Sub(c.Lacks) >= uncachedAfter
}
