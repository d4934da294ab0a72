package serving

import (
	"cmp"
	"slices"
)

// minimize finds a local minimum of f from start by the method of Nelder and Mead
// (reflection 1, expansion 2, contraction and shrinking 1/2). It is deterministic:
// the first simplex is start with each coordinate moved by step. It stops when the
// values of the simplex differ by less than tolerance or after limit steps.
func minimize(f func([]float64) float64, start []float64, step, tolerance float64, limit int) []float64 {
	type vertex struct {
		x []float64
		v float64
	}
	size := len(start)
	simplex := make([]vertex, size+1)
	for i := range simplex {
		x := append([]float64(nil), start...)
		if i > 0 {
			x[i-1] += step
		}
		simplex[i] = vertex{x, f(x)}
	}
	byValue := func(a, b vertex) int { return cmp.Compare(a.v, b.v) }
	for range limit {
		slices.SortStableFunc(simplex, byValue)
		best, worst := simplex[0], simplex[size]
		if worst.v-best.v < tolerance {
			break
		}
		along := func(factor float64) vertex {
			x := make([]float64, size)
			for j := range x {
				centre := 0.0
				for i := range size {
					centre += simplex[i].x[j] / float64(size)
				}
				x[j] = centre + factor*(worst.x[j]-centre)
			}
			return vertex{x, f(x)}
		}
		switch reflected := along(-1); {
		case reflected.v < best.v:
			if expanded := along(-2); expanded.v < reflected.v {
				reflected = expanded
			}
			simplex[size] = reflected
		case reflected.v < simplex[size-1].v:
			simplex[size] = reflected
		default:
			if contracted := along(0.5); contracted.v < worst.v {
				simplex[size] = contracted
				continue
			}
			for i := 1; i <= size; i++ {
				for j := range simplex[i].x {
					simplex[i].x[j] = (simplex[i].x[j] + best.x[j]) / 2
				}
				simplex[i].v = f(simplex[i].x)
			}
		}
	}
	slices.SortStableFunc(simplex, byValue)
	return simplex[0].x
}
