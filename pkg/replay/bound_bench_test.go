package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// day is a course of 1,440 minutes of one model whose greatest load takes so many
// replicas of its least variant.
func day(replicas float64, variants int) *course {
	random := rand.New(rand.NewPCG(7, 8))
	c := &course{startup: 1.0 / 60, ends: []int{variants}, room: newRoom(nil, nil)}
	sizes := []struct{ price, serves float64 }{{15.8, 5.9}, {27.5, 9.0}, {55, 13.7}, {40, 12}}
	for _, s := range sizes[:variants] {
		c.options = append(c.options, option{price: s.price, most: 1 + int(replicas*sizes[0].serves/s.serves)})
	}
	for t := range 1440 {
		need := replicas * sizes[0].serves * (0.6 - 0.4*math.Cos(float64(t)/1440*2*math.Pi)) * (0.9 + 0.1*random.Float64())
		m := moment{hours: 1.0 / 60, need: []float64{need}}
		for _, s := range sizes[:variants] {
			m.serves = append(m.serves, s.serves*(0.8+0.2*random.Float64()))
		}
		c.moments = append(c.moments, m)
	}
	return c
}

func BenchmarkBoundOfADay(b *testing.B) {
	for _, of := range []struct {
		replicas float64
		variants int
	}{{30, 1}, {30, 3}, {300, 2}, {300, 3}} {
		b.Run(fmt.Sprintf("%.0fx%d", of.replicas, of.variants), func(b *testing.B) {
			c := day(of.replicas, of.variants)
			var p plan
			for b.Loop() {
				p = c.plan()
			}
			b.ReportMetric(100*(c.cost(p.replicas)/p.least-1), "gap%")
		})
	}
}
