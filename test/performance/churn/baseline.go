package churn

import (
	"math"
	"math/rand/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// scored takes the node with the best score; chance decides between equal ones, as
// the stock scheduler does.
type scored struct {
	score  func(w *world, v *variant, node int) float64
	chance *rand.Rand
}

func (scored) begin(*world) {}

func (p scored) place(w *world, v *variant) int {
	best, bestScore, equal := -1, math.Inf(-1), 0
	for i := range w.cluster.Nodes {
		if _, ok := w.fits(v, i); !ok {
			continue
		}
		switch score := p.score(w, v, i); {
		case score > bestScore:
			best, bestScore, equal = i, score, 1
		case score == bestScore:
			equal++
			if p.chance.IntN(equal) == 0 {
				best = i
			}
		}
	}
	return best
}

// A score of the stock scheduler goes up to 100 and has no fractions.
const mostScore = 100

// spreading is the stock profile, which looks at CPU: the more of it is left, the
// better. Where CPU plays no part it is taken to go with the devices.
func spreading(w *world, v *variant, node int) float64 {
	n := &w.cluster.Nodes[node]
	if n.Allocatable.MilliCPU == 0 {
		return math.Floor(mostScore * float64(n.Free.Devices-v.kind.devices) / float64(n.Allocatable.Devices))
	}
	return math.Floor(mostScore * float64(n.Free.MilliCPU-v.kind.milliCPU()) / float64(n.Allocatable.MilliCPU))
}

// mostAllocated is the stock scheduler's packing strategy, on devices alone.
func mostAllocated(w *world, v *variant, node int) float64 {
	n := &w.cluster.Nodes[node]
	return math.Floor(mostScore * float64(n.Allocatable.Devices-n.Free.Devices+v.kind.devices) / float64(n.Allocatable.Devices))
}

// gradient is the published fragmentation gradient for whole devices: how much
// smaller the fragmentation gets, then the tightest fit. The fragmentation of a node
// is its free devices, each by the part of the expected mix that cannot use it because
// the node does not hold a pod of it. The mix is the one that the scenario has on
// average, by devices: that is kinder to the gradient than a mix by pods, and so is
// leaving its score unrounded.
type gradient struct {
	classes []fragmentClass
}

// fragmentClass is one kind of the mix with its part of the expected devices.
type fragmentClass struct {
	kind *kind
	part float64
}

func newGradient(w *world) gradient {
	g, sum := gradient{}, 0.0
	for _, v := range w.variants {
		devices := v.wave.mean * float64(v.kind.devices)
		sum += devices
		if last := len(g.classes) - 1; last >= 0 && g.classes[last].kind == v.kind {
			g.classes[last].part += devices
			continue
		}
		g.classes = append(g.classes, fragmentClass{v.kind, devices})
	}
	for i := range g.classes {
		g.classes[i].part /= sum
	}
	return g
}

func (g gradient) score(w *world, v *variant, node int) float64 {
	before := w.cluster.Nodes[node]
	after := before
	after.Free = after.Free.Minus(v.takes())
	// Steps that only rounding makes must not come before the tightest fit.
	const step = 1e6
	less := math.Round(step * (g.fragments(&before) - g.fragments(&after)))
	return less - float64(after.Free.Devices)/float64(1+after.Allocatable.Devices)
}

// fragments is the expected number of free devices that the next pod cannot use.
func (g gradient) fragments(n *placement.Node) float64 {
	sum := 0.0
	for _, c := range g.classes {
		if c.kind.devices > n.Free.Devices || c.kind.milliCPU() > n.Free.MilliCPU || c.kind.order(n.Accelerator) < 0 {
			sum += c.part * float64(n.Free.Devices)
		}
	}
	return sum
}
