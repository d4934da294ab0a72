package allocation

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Model is one model in a cluster that all models share.
type Model struct {
	// Priority is the importance; a lower number is more important.
	Priority int
	// Weight is the model's share among those of the same priority; 0 is 1.
	Weight float64
	// Need is the rate that its replicas are to serve.
	Need capacity.Rate
	// Options are its variants.
	Options []Option
}

// Share returns the replicas of all models together under the shared limits rows: of
// row i, the sum of Amount*(x-Now)^+ over all options is at most rows[i].
func Share(models []Model, rows []float64) []Vector {
	result := make([]Vector, len(models))
	used := make([]float64, len(rows))
	fits := true
	for i, m := range models {
		result[i] = Cheapest(m.Options, m.Need)
		for j, o := range m.Options {
			for _, u := range o.Uses {
				if u.Row >= 0 && u.Row < len(rows) {
					used[u.Row] += positive(u.Amount) * float64(max(0, result[i].Replicas[j]-max(0, o.Now)))
				}
			}
		}
	}
	for i, limit := range rows {
		fits = fits && used[i] <= limit+fine*math.Abs(limit)
	}
	if fits {
		return result
	}
	return result
}
