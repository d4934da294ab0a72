package decision

import (
	"cmp"
	"time"
)

// uncachedAfter is for how long replicas that are heard must show no use of a KV cache before they are
// read without it. Until then it is missing, as where a scrape drops it for a while and nobody remembers
// that it was there.
const uncachedAfter = time.Hour

// Cache is whether the replicas of a variant show how full their KV cache is. The zero value is that of
// a variant of which nothing is known.
type Cache struct {
	// Shown is set once one showed it: where it is not shown any more, it is missing.
	Shown bool
	// Lacks is since when those that are heard show none; zero where one did.
	Lacks time.Time
	// Held is the most that one of them had in service and completed: it holds so many at least.
	Held float64
}

// cacheOf adds what the replicas show. Another version may be another server.
func (r *round) cacheOf(v *variant) Cache {
	if v.in.Rolling {
		return Cache{}
	}
	seen, heard := v.old.Cache, false
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		if p.KVUse.Present {
			return Cache{Shown: true}
		}
		if !r.fresh(p.Running, p.Waiting) || r.fledgling(p) {
			continue
		}
		if heard = true; !v.odd.at(i) && r.fresh(p.Served) && p.Served.Value > 0 && r.settled(p) {
			seen.Held = max(seen.Held, p.Running.Value)
		}
	}
	if heard && !seen.Shown {
		seen.Lacks = cmp.Or(seen.Lacks, r.snapshot.Time)
	}
	return seen
}

// uncached reports whether the variant's server has no such metric, so that its queue, and what it has
// in service, say all that is known of how full it is.
func (r *round) uncached(v *variant) bool {
	c := &v.next.Cache
	return !c.Shown && !c.Lacks.IsZero() && r.snapshot.Time.Sub(c.Lacks) >= uncachedAfter
}
