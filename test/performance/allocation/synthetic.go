package allocation

import (
	"fmt"
	"math/rand/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
)

// accelerators of the random instances: price per device and hour, and how fast one
// is, both in round figures of what clouds offer.
var accelerators = []struct{ price, speed float64 }{
	{0.8, 0.25}, {1.9, 0.7}, {3.2, 1.2}, {3.7, 1.5}, {6.5, 2.9}, {8.5, 3.6}, {7.0, 3.3}, {2.3, 0.8},
}

// synthetic is a random instance. Tight ones have room for between a half and nine
// tenths of what the models would buy, loose ones for more than that, but not on the
// accelerators that they would buy it of.
func synthetic(variants int, tight bool, seed uint64) Instance {
	random := rand.New(rand.NewPCG(seed, uint64(variants)))
	kind := "loose"
	if tight {
		kind = "tight"
	}
	in := Instance{Name: fmt.Sprintf("random-%d-%s-%d", variants, kind, seed), Rows: make([]float64, len(accelerators))}
	for in.variants() < variants {
		in.Models = append(in.Models, syntheticModel(random, min(2+random.IntN(4), variants-in.variants())))
	}
	// What each would use alone says how much there is.
	for _, m := range in.Models {
		for j, n := range allocation.Cheapest(m.Options, m.Need).Replicas {
			o := m.Options[j]
			for _, u := range o.Uses {
				in.Rows[u.Row] += u.Amount * float64(max(0, n-o.Now))
			}
		}
	}
	total := 0.0
	for _, used := range in.Rows {
		total += used
	}
	for i, used := range in.Rows {
		factor := 0.5 + 0.4*random.Float64()
		even := total / float64(len(in.Rows))
		if !tight {
			factor, even = 0.6+0.6*random.Float64(), 2*even
		}
		in.Rows[i] = float64(int(factor * (0.7*used + 0.3*even)))
	}
	return in
}

func syntheticModel(random *rand.Rand, variants int) allocation.Model {
	// size is what one request asks for relative to a small model's.
	size := 0.5 * float64(int(1)<<random.IntN(4)) * (0.8 + 0.4*random.Float64())
	m := allocation.Model{Priority: 1 + random.IntN(3), Need: capacity.Rate((2 + 60*random.Float64()) / size)}
	for _, a := range random.Perm(len(accelerators))[:variants] {
		devices := min(8, float64(int(1)<<random.IntN(3))*max(1, float64(int(size/2))))
		o := allocation.Option{
			Cost: capacity.Cost(accelerators[a].price * devices), Most: -1,
			Serves: capacity.Rate(accelerators[a].speed * devices * (0.8 + 0.4*random.Float64()) / size),
			Uses:   []allocation.Use{{Row: a, Amount: devices}},
			Now:    max(0, random.IntN(6)-2),
		}
		o.Start = o.Cost * capacity.Cost(0.2*random.Float64())
		if random.IntN(4) == 0 {
			o.Least = random.IntN(o.Now + 1)
		}
		if random.IntN(4) == 0 {
			o.Most = o.Now + random.IntN(10)
		}
		m.Options = append(m.Options, o)
	}
	return m
}
