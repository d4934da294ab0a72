package feasibility

import "llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"

// Want is a number of replicas of one request.
type Want struct {
	Request *placement.Request
	Count   int
}

// Answer says whether several numbers of replicas fit together.
type Answer struct {
	// OK is set when a placement of all of them was found.
	OK bool
	// Exact is set when the answer is proven. An answer that is not is cautious: OK is
	// false although nothing rules a placement out, or OK is true for pods that ask for
	// more than is looked at here.
	Exact bool
}

// Of says whether all of the wanted replicas fit now, together.
//
// Three things are tried. Bounds that every placement must keep prove that there is
// none; a placement that is found proves that there is one; between the two, small
// instances are searched through. Where only devices bind, the sizes divide each
// other and the wants share their nodes, one of the first two always decides: for
// every size s, what is wanted in pieces of s must not exceed the sum over nodes of
// floor(free/s), and largest first then never fails.
func Of(c *placement.Cluster, wants []Want) Answer {
	exact := true
	for _, w := range wants {
		if w.Count <= 0 {
			continue
		}
		slots, err := c.Slots(w.Request)
		switch {
		case err != nil:
			return Answer{}
		case slots < w.Count:
			return Answer{Exact: true}
		}
		exact = exact && w.Request.Bound == ""
	}
	answer := Answer{OK: true, Exact: true}
	for _, p := range problemsOf(c, wants) {
		part := p.solve()
		if part.Exact && !part.OK {
			return part
		}
		if !part.OK {
			answer = part
		}
	}
	answer.Exact = answer.Exact && exact
	return answer
}

// solve answers one problem.
func (p *problem) solve() Answer {
	if p.exceeded() {
		return Answer{Exact: true}
	}
	if p.packs() {
		return Answer{OK: true, Exact: true}
	}
	outcome := p.search()
	return Answer{OK: outcome == found, Exact: outcome != undecided}
}
