package allocation

import (
	"iter"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Model is one model in a cluster that all models share.
type Model struct {
	// Priority is the importance; a lower number is more important.
	Priority int
	// Weight is what the model's share counts among those of the same priority: of
	// scarce devices one of weight 2 is served twice the share. What is not positive
	// is 1.
	Weight float64
	// Need is the rate that its replicas are to serve.
	Need capacity.Rate
	// Options are its variants.
	Options []Option
}

// Share returns the replicas of all models together under the limits that they share:
// of row i, the sum of Amount*(x-Now)^+ over all options is at most rows[i]. A limit
// that is no number, or negative, allows nothing beyond what exists; an endless one
// limits nothing. Doc.go says what is best.
//
// When the cheapest vectors of all models fit, they are the answer.
func Share(models []Model, rows []float64) []Vector {
	limits := make([]float64, len(rows))
	for i, limit := range rows {
		if limit > 0 {
			limits[i] = limit + roundoff(limit)
		}
	}
	buyers := make([]*buyer, len(models))
	for i, m := range models {
		buyers[i] = newBuyer(i, m, limits)
	}
	slices.SortStableFunc(buyers, compareBuyers)
	for block := range blocks(buyers) {
		heaviest := 0.0
		for _, b := range block {
			heaviest = max(heaviest, b.weight)
		}
		for _, b := range block {
			b.heaviest = heaviest
		}
		grantMinima(block, limits)
	}
	for _, b := range buyers {
		b.begin()
	}
	for _, m := range markets(buyers, limits) {
		m.solve()
	}
	result := make([]Vector, len(models))
	for _, b := range buyers {
		result[b.model] = vector(models[b.model].Options, positive(float64(models[b.model].Need)), b.replicas())
	}
	return result
}

// blocks are the buyers of one priority after the other.
func blocks(buyers []*buyer) iter.Seq[[]*buyer] {
	return func(yield func([]*buyer) bool) {
		for at := 0; at < len(buyers); {
			next := at
			for next < len(buyers) && buyers[next].priority == buyers[at].priority {
				next++
			}
			if !yield(buyers[at:next]) {
				return
			}
			at = next
		}
	}
}

// grantMinima honours the lower bounds of the buyers of one priority. Where they do not all
// fit, everybody takes a small part of what still fits, and so on until nothing does.
func grantMinima(block []*buyer, limits []float64) {
	var waiting []*holding
	all := slices.Clone(limits)
	fits := true
	for _, b := range block {
		for _, h := range b.variants {
			h.granted = min(h.least, h.now)
			take(all, h.uses, float64(h.least-h.granted))
			waiting = append(waiting, h)
		}
	}
	for _, left := range all {
		fits = fits && left >= 0
	}
	for len(waiting) > 0 {
		still := waiting[:0]
		for _, h := range waiting {
			n := min(h.least-h.granted, h.fits(limits))
			if !fits {
				n = min(n, max(1, n/(2*len(waiting))))
			}
			if n <= 0 {
				continue
			}
			take(limits, h.uses, float64(n))
			h.granted += n
			still = append(still, h)
		}
		waiting = still
	}
}
