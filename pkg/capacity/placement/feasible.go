package placement

import "fmt"

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
func (c *Cluster) Feasible(wants []Want) Feasibility {
	for i := range wants {
		if err := wants[i].Request.Countable(); err != nil {
			return Feasibility{Binds: err.Error()}
		}
		slots, _ := c.Slots(wants[i].Request)
		if wants[i].Count > slots {
			return Feasibility{Exact: true, Binds: fmt.Sprintf("%v: %d wanted, %d fit", wants[i].Request.Shape, wants[i].Count, slots)}
		}
	}
	trial := c.Clone()
	for i := range wants {
		for range wants[i].Count {
			if _, ok := trial.Place(wants[i].Request); !ok {
				return Feasibility{Binds: "no placement was found"}
			}
		}
	}
	return Feasibility{OK: true, Exact: true}
}
