package decision

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// However many requests a broken exporter counts, no number is asked for that a scale
// subresource cannot hold, wherever the replicas may be bought.
func TestNoNumberIsBeyondAScaleTarget(t *testing.T) {
	for _, queue := range []float64{1e9, 1e15, 1e300, math.Inf(1), math.NaN()} {
		for name, change := range map[string]func(*Snapshot, *Policy){
			"nodes that are unknown": func(s *Snapshot, _ *Policy) { s.Cluster = nil },
			"a guess": func(s *Snapshot, p *Policy) {
				s.Cluster, p.Variants = nil, map[Key]VariantPolicy{}
				for _, name := range []string{"a-h100", "b-l40s"} {
					own := DefaultVariantPolicy()
					own.OnUnknown = OnUnknownAllow
					p.Variants[Key{Namespace: "ns", Name: name}] = own
				}
			},
			"a few nodes that may become more": func(s *Snapshot, _ *Policy) {
				s.Cluster = &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(2, "L40S", 8)...)}
			},
			"a full target": func(s *Snapshot, _ *Policy) {
				s.Models[0].Variants[0].Current, s.Models[0].Queue.Value = math.MaxInt32, 1e15
			},
			"a full target of which nothing comes up": func(s *Snapshot, _ *Policy) {
				v := &s.Models[0].Variants[0]
				s.Models[0].Queue.Value = 1e15
				v.Current, v.Ready, v.Replicas = math.MaxInt32, 0, nil
				v.Starting = []Starting{{Name: "failing", Since: epoch, Placed: true, Failing: true}}
			},
		} {
			t.Run(fmt.Sprintf("%g in the queue, %s", queue, name), func(t *testing.T) {
				s, policy := newWorld(5).snapshot(), demoPolicy()
				s.Cluster = machines(1)
				s.Models[0].Queue.Value = queue
				change(&s, &policy)
				var memory Memory
				for range 2 {
					var plan Plan
					plan, memory = Decide(s, policy, memory, RoundFull)
					for _, v := range plan.Models[0].Variants {
						assert.LessOrEqual(t, *v.Desired, math.MaxInt32, lineOf(&v))
						assert.GreaterOrEqual(t, *v.Desired, 0)
					}
				}
			})
		}
	}
}
