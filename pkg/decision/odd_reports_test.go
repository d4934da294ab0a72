package decision

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// oddly has the first replica of a fleet show something else.
func oddly(f *fluid, web *vessel, change func(*Replica)) {
	name := web.pods[0].name
	f.change = func(s *Snapshot) {
		replicas := s.Models[0].Variants[0].Replicas
		for i := range replicas {
			if p := &replicas[i]; p.Name == name {
				change(p)
			}
		}
	}
}

// countsIn are what a replica counts of its requests.
func countsIn(p *Replica) []*Sample {
	return []*Sample{&p.Running, &p.Waiting, &p.Served, &p.Recent, &p.InFlightGrowth}
}

// What people report of single replicas, or of some of them, at a constant load: no more than a few are
// asked for in their place, none goes that the others need, and in the end there are about as many as before.
func TestReportsOfOddReplicas(t *testing.T) {
	const at = calm + 30*time.Minute
	for name, c := range map[string]struct {
		begin func(f *fluid, web *vessel)
		// bad are as many as are unlike the others, and more is how many more may be asked for.
		bad  func(replicas int) int
		more int
	}{
		"it refuses what it gets at once, and counts none of that": {func(f *fluid, web *vessel) {
			web.pods[0].hollow = true
			oddly(f, web, func(p *Replica) {
				for _, s := range append(countsIn(p), &p.KVUse) {
					s.Value = 0
				}
				p.InService, p.TTFT, p.ITL, p.Input, p.Output = Sample{}, Sample{}, Sample{}, Sample{}, Sample{}
			})
		}, oneBad, 2},
		"it refuses what it gets at once, and counts it as done": {func(f *fluid, web *vessel) {
			web.pods[0].hollow = true
			oddly(f, web, func(p *Replica) { p.Output.Value, p.TTFT, p.ITL = 0, Sample{}, Sample{} })
		}, oneBad, 1},
		"half of them take twice as long since a change of the nodes": {func(_ *fluid, web *vessel) {
			for i := range len(web.pods) / 2 {
				web.pods[i].pace = 2
			}
		}, func(n int) int { return n / 2 }, 2},
		"its server starts anew, and its counts with it": {func(_ *fluid, web *vessel) {
			web.pods[0].done, web.pods[0].running, web.pods[0].waiting = 0, 0, 0
		}, noneBad, 0},
		"it shows no numbers": {func(f *fluid, web *vessel) {
			oddly(f, web, func(p *Replica) {
				for _, s := range append(countsIn(p), &p.KVUse) {
					s.Value = math.NaN()
				}
			})
		}, noneBad, 0},
		"it shows numbers below zero": {func(f *fluid, web *vessel) {
			oddly(f, web, func(p *Replica) {
				for _, s := range append(countsIn(p), &p.KVUse) {
					s.Value = -1
				}
			})
		}, noneBad, 0},
		"its completions count twice": {func(f *fluid, web *vessel) {
			oddly(f, web, func(p *Replica) { p.Served.Value, p.Recent.Value = 2*p.Served.Value, 2*p.Recent.Value })
		}, noneBad, 0},
		"each of its counts is doubled": {func(f *fluid, web *vessel) {
			oddly(f, web, func(p *Replica) {
				for _, s := range countsIn(p) {
					s.Value *= 2
				}
			})
		}, noneBad, 1},
		"it is stuck for a while": {func(f *fluid, web *vessel) {
			stuck, since := web.pods[0], f.elapsed()
			stuck.frozen = true
			f.told = func(*Snapshot, *Plan) { stuck.frozen = stuck.frozen && f.elapsed() < since+8*time.Minute }
		}, oneBad, 1},
	} {
		for i, way := range ways {
			for j, n := range []int{4, 10} {
				if !thorough && (i+j)%2 == 1 {
					continue
				}
				t.Run(name+", "+way, func(t *testing.T) {
					f, web := oddFleet(n, way, 0.6)
					f.models[0].direct = thorough && i == 0 || j == 0
					f.run(at)
					before, writes := web.replicas, len(f.writes)
					bad := c.bad(before)
					c.begin(f, web)
					most, least := before, before
					for f.elapsed() < at+90*time.Minute {
						f.step()
						most, least = max(most, web.replicas), min(least, web.healthy())
					}
					course := f.writes[writes:]
					assert.LessOrEqual(t, most, before+c.more, "%d: %v", before, course)
					assert.GreaterOrEqual(t, least, before-bad, "%d: %v", before, course)
					assert.LessOrEqual(t, len(course), 3, "%d: %v", before, course)
					assert.LessOrEqual(t, web.replicas, before+1, "%d: %v", before, course)
					assert.Less(t, f.waits(), 5.0, "%d: %v", before, course)
				})
			}
		}
	}
}

func oneBad(int) int  { return 1 }
func noneBad(int) int { return 0 }

// waits is how many requests wait for the first model.
func (f *fluid) waits() float64 {
	waiting := f.models[0].queue
	for _, v := range f.models[0].variants {
		for _, p := range v.pods {
			waiting += p.waiting
		}
	}
	return waiting
}
