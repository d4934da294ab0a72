package placement

import (
	"fmt"
	"strings"
)

// Want is a number of replicas of one request.
type Want struct {
	Request *Request
	Count   int
}

// Feasibility is the answer to whether several numbers of replicas fit together.
type Feasibility struct {
	// OK is set when a placement of all of them was found.
	OK bool
	// Exact is set when the answer is proven. An answer that is not is cautious: OK is
	// false although nothing rules a placement out, or OK is true for pods that ask for
	// more than the model knows.
	Exact bool
	// Binds names what binds, with numbers, when OK is false or when not Exact.
	Binds string
}

// Feasible says whether all of the wanted replicas fit now, together.
//
// Three things are tried. Bounds that every placement must keep prove that there is
// none; a placement that is found proves that there is one; between the two, small
// instances are searched through. Where only devices bind, the sizes divide each
// other and the wants share their nodes, one of the first two always decides: for
// every size s, what is wanted in pieces of s must not exceed the sum over nodes of
// floor(free/s), and largest first then never fails.
func (c *Cluster) Feasible(wants []Want) Feasibility {
	var bounds []string
	for i := range wants {
		w := &wants[i]
		if w.Count <= 0 {
			continue
		}
		slots, err := c.Slots(w.Request)
		if err != nil {
			return Feasibility{Binds: err.Error()}
		}
		if slots < w.Count {
			return Feasibility{Exact: true, Binds: c.shortage(w, slots)}
		}
		if b := w.Request.Bound; b != "" {
			bounds = append(bounds, fmt.Sprintf("%v: %s", w.Request.Shape, b))
		}
	}
	answer := Feasibility{OK: true, Exact: true}
	for _, p := range c.problems(wants) {
		switch part := p.solve(); {
		case part.Exact && !part.OK:
			return part
		case !part.OK && answer.OK:
			answer = part
		}
	}
	if answer.OK && len(bounds) > 0 {
		return Feasibility{OK: true, Binds: strings.Join(bounds, "; ")}
	}
	return answer
}

// solve answers one problem.
func (p *problem) solve() Feasibility {
	if binds := p.exceeded(); binds != "" {
		return Feasibility{Exact: true, Binds: binds}
	}
	if p.packs() {
		return Feasibility{OK: true, Exact: true}
	}
	switch p.search() {
	case found:
		return Feasibility{OK: true, Exact: true}
	case exhausted:
		return Feasibility{Exact: true, Binds: p.together() + ": each fits alone, and no arrangement holds them all"}
	default:
		return Feasibility{Binds: p.together() + ": each fits alone, and no arrangement of them all was found, nor ruled out"}
	}
}

// together names what is wanted: "3 of 2xH100 and 1 of 8xH100".
func (p *problem) together() string {
	parts := make([]string, len(p.items))
	for i := range p.items {
		parts[i] = fmt.Sprintf("%d of %v", p.items[i].count, p.items[i].shape)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
