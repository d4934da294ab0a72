package main

import "math/rand/v2"

// randomPolicy takes any node that fits, and of it any device that does.
type randomPolicy struct {
	study   *Study
	cluster *Cluster
	random  *rand.Rand
	fitting []int
	devices []uint16
}

func (r *randomPolicy) Start(c *Cluster, seed uint64) {
	r.cluster, r.random = c, rand.New(rand.NewPCG(seed, 0x7a4d))
}

func (r *randomPolicy) Placed(int, *State) {}

func (r *randomPolicy) Choose(p *Pod, class int) (Choice, bool) {
	c := &r.study.Classes[class]
	r.fitting = r.fitting[:0]
	for i := range r.cluster.Members {
		if r.cluster.Members[i].fits(c, p) {
			r.fitting = append(r.fitting, i)
		}
	}
	if len(r.fitting) == 0 {
		return Choice{}, false
	}
	choice := Choice{Node: r.fitting[r.random.IntN(len(r.fitting))]}
	if c.partial() {
		r.devices = r.devices[:0]
		for _, free := range r.cluster.Members[choice.Node].devices() {
			if int(free) >= c.Share {
				r.devices = append(r.devices, free)
			}
		}
		choice.Free = r.devices[r.random.IntN(len(r.devices))]
	}
	return choice, true
}

// bestFit takes the node with the least CPU and devices left, in whole points: a
// hundred times one less the mean of both, each over the largest node of the study;
// a share goes to the tightest device.
type bestFit struct {
	study   *Study
	cluster *Cluster
}

// The study's largest node, in thousandths.
const (
	largestCPU     = 128_000
	largestDevices = 8_000
)

func (b *bestFit) Start(c *Cluster, _ uint64) { b.cluster = c }

func (b *bestFit) Placed(int, *State) {}

func (b *bestFit) Choose(p *Pod, class int) (Choice, bool) {
	c := &b.study.Classes[class]
	best, points := -1, 0
	for i := range b.cluster.Members {
		m := &b.cluster.Members[i]
		if !m.fits(c, p) {
			continue
		}
		left := 0.5*float64(int64(m.MilliCPU)-c.MilliCPU)/largestCPU + 0.5*float64(int64(m.free())-p.Demand())/largestDevices
		if score := int((1 - left) * 100); best < 0 || score > points {
			best, points = i, score
		}
	}
	if best < 0 {
		return Choice{}, false
	}
	choice := Choice{Node: best}
	for _, free := range b.cluster.Members[best].devices() {
		if int(free) >= c.Share {
			choice.Free = free
			break
		}
	}
	return choice, true
}
