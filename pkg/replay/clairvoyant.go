package replay

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// clairvoyant plays the schedule of the bound: what a minute needs is started so early
// that it serves when the minute begins. Its cost is the bound's, which does not depend
// on the luck of start-ups. What it attains proves nothing: it shows how far the capacity
// model, by which the bound is reckoned, and the simulated servers agree.
type clairvoyant struct {
	bound   *Bound
	share   float64
	startup time.Duration
}

// Next implements Policy.
func (c *clairvoyant) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + second
}

// Parameters implements Policy.
func (c *clairvoyant) Parameters() []Parameter {
	out := []Parameter{
		{"cost", "computed, not played"},
		{"schedule", "every minute"},
		{"promisedShare", fmt.Sprint(c.share)},
	}
	// What the schedule costs above the bound, and where it cannot keep the SLO either,
	// limit what the bound says.
	gap := "0, optimal"
	if c.bound.Gap > 0 {
		gap = fmt.Sprintf("%v above the cost", rounded(c.bound.Gap, 6))
	}
	return append(out, Parameter{"gap", gap}, Parameter{"overloadedMinutes", strconv.Itoa(c.bound.Overloaded)})
}

// Decide implements Policy.
func (c *clairvoyant) Decide(view *View) Answer {
	last := len(c.bound.Replicas) - 1
	from, to := min(int(view.Now/minute), last), min(int((view.Now+c.startup)/minute), last)
	wanted := make([][]int, len(view.Models))
	for m := range wanted {
		wanted[m] = slices.Clone(c.bound.Replicas[from][m])
		for k := from + 1; k <= to; k++ {
			for v, n := range c.bound.Replicas[k][m] {
				wanted[m][v] = max(wanted[m][v], n)
			}
		}
	}
	return Answer{Replicas: wanted}
}
