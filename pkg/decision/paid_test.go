package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// crossing is a load of 8 requests/s on two variants of one kind, of which the first one costs 6 and
// the second one what is told for each time. It returns what they cost in some hours, per hour, and
// how often one took over.
func crossing(hours int, price func(time.Duration) float64) (cost float64, f *fluid) {
	a, b := vesselOf("a", 4), vesselOf("b", 0)
	a.cost, b.cost, b.request = 6, 6, request("L40S", 1)
	cluster := &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(2, "L40S", 8)...)}
	f = newFluid(cluster, DefaultPolicy(), &flow{id: "m", arrivals: constant(8), variants: []*vessel{a, b}})
	for f.elapsed() < time.Duration(hours)*time.Hour {
		b.cost = capacity.Cost(price(f.elapsed()))
		for _, v := range f.models[0].variants {
			cost += float64(v.cost) * float64(len(v.pods)) / 3600
		}
		f.step()
	}
	return cost / float64(hours), f
}

// Prices that cross every few minutes make nobody go back and forth: it costs little more than to stay.
// Where they cross so seldom that a switch pays there and back they are followed.
func TestPricesThatCross(t *testing.T) {
	const hours, stays = 12, 4 * 6.
	for _, every := range []time.Duration{5 * time.Minute, 10 * time.Minute, 12 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour} {
		for _, low := range []float64{2, 3, 4} {
			if !thorough && (low != 2 || every == 12*time.Minute || every == 30*time.Minute) {
				continue
			}
			t.Run(fmt.Sprintf("every %v, %v", every, low), func(t *testing.T) {
				cost, f := crossing(hours, func(at time.Duration) float64 {
					if at/every%2 == 1 {
						return low
					}
					return 12 - low
				})
				assert.LessOrEqual(t, cost, 1.1*stays, "%d writes: %v", len(f.writes), f.writes[:min(12, len(f.writes))])
				if every == time.Hour && low == 2 {
					assert.LessOrEqual(t, cost, 0.9*stays, "%v", f.writes)
				}
			})
		}
	}
}
