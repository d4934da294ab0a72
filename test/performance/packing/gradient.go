package main

import "math"

// popular is the part of the pods whose classes the gradient looks at.
const popular = 0.95

// gradient is the published fragmentation gradient, written here from its description.
// What a class cannot use of a node's free devices is its fragmentation,
//
//	F(x) = sum over classes t of p_t * (all that is free if t does not fit, else what is
//	       free on devices with less than t's share),
//
// and a pod goes where 100 * sigmoid((F(x) - F(x')) / 1000), cut to a whole number, is
// largest. A pod without devices uses none of them, so it counts all of them. The classes
// are the most popular ones that make up 95 % of the pods of the list, their p_t scaled
// to sum to 1.
type gradient struct {
	study   *Study
	typical []Class
	cluster *Cluster
	// scores of each node and class, valid for one version of the node.
	scores []gradientScore
	before []float64
}

type gradientScore struct {
	version int32
	points  int32
	free    uint16
}

func newGradient(s *Study) *gradient {
	g := &gradient{study: s}
	sum := 0.0
	for _, c := range s.Classes {
		g.typical = append(g.typical, c)
		if sum += c.Popularity; sum >= popular-1e-12 {
			break
		}
	}
	for i := range g.typical {
		g.typical[i].Popularity /= sum
	}
	return g
}

func (g *gradient) Start(c *Cluster, _ uint64) {
	g.cluster = c
	g.scores = make([]gradientScore, len(c.Members)*len(g.study.Classes))
	g.before = make([]float64, len(c.Members))
	for i := range c.Members {
		g.before[i] = g.fragmentation(&c.Members[i].State)
	}
}

func (g *gradient) Placed(node int, _ *State) {
	g.before[node] = g.fragmentation(&g.cluster.Members[node].State)
}

func (g *gradient) Choose(p *Pod, class int) (Choice, bool) {
	c := &g.study.Classes[class]
	best, choice := int32(-1), Choice{}
	for i := range g.cluster.Members {
		m := &g.cluster.Members[i]
		if !m.fits(c, p) {
			continue
		}
		score := &g.scores[i*len(g.study.Classes)+class]
		if score.version != m.Version {
			score.version = m.Version
			score.points, score.free = g.points(m, c, g.before[i])
		}
		if score.points > best {
			best, choice = score.points, Choice{Node: i, Free: score.free}
		}
	}
	return choice, best >= 0
}

// points is the best score on the node and for a share the free thousandths of the
// device that has it, the first device where several do.
func (g *gradient) points(m *Member, c *Class, before float64) (int32, uint16) {
	best, free := int32(-1), uint16(0)
	if !c.partial() {
		return g.pointsOf(&m.State, c, 0, before), 0
	}
	for _, f := range m.Order[:m.Count] {
		if int(f) < c.Share {
			continue
		}
		device := 0
		for m.Free[device] != f {
			device++
		}
		if points := g.pointsOf(&m.State, c, device, before); points > best {
			best, free = points, f
		}
	}
	return best, free
}

func (g *gradient) pointsOf(s *State, c *Class, device int, before float64) int32 {
	after := *s
	after.take(c, device)
	lost := before - g.fragmentation(&after)
	return int32(100 / (1 + math.Exp(-lost/whole)))
}

// fragmentation is F of the state, in thousandths of a device.
func (g *gradient) fragmentation(s *State) float64 {
	free, sum := float64(s.free()), 0.0
	for i := range g.typical {
		t := &g.typical[i]
		if t.Devices == 0 || !s.fits(t) {
			sum += t.Popularity * free
			continue
		}
		for _, d := range s.devices() {
			if int(d) >= t.Share {
				break
			}
			sum += t.Popularity * float64(d)
		}
	}
	return sum
}
