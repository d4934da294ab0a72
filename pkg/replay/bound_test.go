package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// reference finds the least costly schedule by trying every vector in every minute, one
// transition at a time, with nothing of the search's own but the rules.
type reference struct{ *course }

// vectors are those that may serve a minute.
func (r reference) vectors(t int) [][]int {
	var all [][]int
	var grow func(x []int)
	grow = func(x []int) {
		if i := len(x); i < len(r.options) {
			for n := r.options[i].least; n <= r.options[i].most; n++ {
				grow(append(slices.Clip(x), n))
			}
			return
		}
		if r.room.holds(x) {
			all = append(all, x)
		}
	}
	grow(nil)
	least := math.Inf(1)
	for _, x := range all {
		least = min(least, r.missing(t, x))
	}
	return slices.DeleteFunc(all, func(x []int) bool { return r.missing(t, x) > least+1e-9 })
}

func (r reference) missing(t int, x []int) float64 {
	sum, i := 0.0, 0
	for m, end := range r.ends {
		serves, count := 0.0, 0
		for ; i < end; i++ {
			serves += r.moments[t].serves[i] * float64(x[i])
			count += x[i]
		}
		if need := r.moments[t].need[m]; need > 0 {
			sum += max(0, 1-serves/need)
		}
		if count == 0 {
			sum++
		}
	}
	return sum
}

func (r reference) least() float64 {
	costs := map[int]float64{}
	var before [][]int
	for t := range r.moments {
		next, now := map[int]float64{}, r.vectors(t)
		for k, x := range now {
			best := math.Inf(1)
			for j, y := range before {
				cost := costs[j]
				for i := range x {
					cost += r.startup * r.options[i].price * float64(max(0, x[i]-y[i]))
				}
				best = min(best, cost)
			}
			if t == 0 {
				best = 0
			}
			for i := range x {
				best += r.moments[t].hours * r.options[i].price * float64(x[i])
			}
			next[k] = best
		}
		before, costs = now, next
	}
	least := math.Inf(1)
	for _, cost := range costs {
		least = min(least, cost)
	}
	return least
}

// randomCourse is a small one on a small cluster.
func randomCourse(random *rand.Rand, models, variants int) *course {
	c := &course{startup: float64(random.IntN(6)) / 60 * random.Float64() * 2}
	cluster := &placement.Cluster{}
	for range 1 + random.IntN(3) {
		cluster.Nodes = append(cluster.Nodes, node("H100", 1+random.IntN(8)))
	}
	var requests []*placement.Request
	for range models {
		for range 1 + random.IntN(variants) {
			request := asks("H100", 1<<random.IntN(3))
			most, err := cluster.Slots(request)
			if err != nil {
				panic(err)
			}
			c.options = append(c.options, option{price: float64(1 + random.IntN(9)), most: min(most, 5)})
			requests = append(requests, request)
		}
		c.ends = append(c.ends, len(c.options))
	}
	c.room = newRoom(cluster, requests)
	for range 2 + random.IntN(7) {
		m := moment{hours: 1.0 / 60}
		for range c.ends {
			m.need = append(m.need, float64(random.IntN(12)))
		}
		for range c.options {
			m.serves = append(m.serves, float64(random.IntN(6)))
		}
		c.moments = append(c.moments, m)
	}
	c.moments[len(c.moments)-1].hours /= 2
	return c
}

func node(accelerator capacity.Accelerator, devices int) placement.Node {
	r := placement.Resources{Devices: devices, MilliCPU: 1 << 30, MemoryBytes: 1 << 50, Pods: 110}
	return placement.Node{Accelerator: accelerator, Allocatable: r, Free: r}
}

func asks(accelerator capacity.Accelerator, devices int) *placement.Request {
	return &placement.Request{Shape: capacity.Shape{Accelerator: accelerator, Devices: devices, Pods: 1}}
}

func TestTheScheduleIsTheBestOfAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tight, short := 0, 0
	for range 1500 {
		c := randomCourse(random, 1, 1+random.IntN(2))
		want := reference{c}.least()
		got := c.plan()
		require.True(t, got.optimal)
		require.InDelta(t, want, got.least, 1e-9, "%+v", c)
		require.InDelta(t, want, c.cost(got.replicas), 1e-9)
		if !c.room.holds(c.everything().high) {
			tight++
		}
		if c.unserved(&c.moments[0], got.replicas[0]) > 0 {
			short++
		}
	}
	assert.Greater(t, tight, 100)
	assert.Greater(t, short, 100)
}

var _ = time.Second
