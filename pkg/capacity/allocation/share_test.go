package allocation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// crowd is a random cluster of models with three or four variants each on eight kinds
// of devices, of which there is as much as a share of what all would buy.
func crowd(random *rand.Rand, variants int, share float64) ([]Model, []float64) {
	var models []Model
	rows := make([]float64, 8)
	for n := 0; n < variants; {
		m := Model{Priority: 1 + random.IntN(3), Need: capacity.Rate(5 + 60*random.Float64())}
		for _, row := range random.Perm(len(rows))[:min(3+random.IntN(2), variants-n)] {
			devices := float64(int(1) << random.IntN(4))
			m.Options = append(m.Options, Option{
				Cost: capacity.Cost(devices * (1 + float64(row))), Serves: capacity.Rate(devices * (0.5 + float64(row)) * (0.7 + 0.6*random.Float64()) / 2),
				Now: max(0, random.IntN(6)-3), Most: -1, Start: capacity.Cost(0.1 * devices), Uses: []Use{{row, devices}},
			})
		}
		n += len(m.Options)
		for j, x := range Cheapest(m.Options, m.Need).Replicas {
			for _, u := range m.Options[j].Uses {
				rows[u.Row] += share * u.Amount * float64(max(0, x-m.Options[j].Now))
			}
		}
		models = append(models, m)
	}
	return models, rows
}

func BenchmarkShare(b *testing.B) {
	for _, variants := range []int{200, 5000} {
		for _, share := range []float64{2, 0.6} {
			random := rand.New(rand.NewPCG(1, uint64(variants)))
			models, rows := crowd(random, variants, share)
			b.Run(fmt.Sprintf("%dVariants%.0fPercent", variants, 100*share), func(b *testing.B) {
				for b.Loop() {
					Share(models, rows)
				}
			})
		}
	}
}
