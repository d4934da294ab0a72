package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// The gateway counts 10 requests/s all the time. Of none of the latest any replica told how long it
// was: they are all in service still, or the servers do not tell any more. The very first request of
// the model was a ping, or a book.
func TestRequestsOfUnknownLengthAreTakenForUsualOnes(t *testing.T) {
	for name, first := range map[string]capacity.TokenShape{
		"as all others": conv, "a ping": {Input: 10, Output: 2}, "a book": {Input: 60000, Output: 500},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(10)
			var memory Memory
			var plan Plan
			for i := range 80 {
				if w.tokens = conv; i < 4 {
					w.tokens = first
				}
				s := w.snapshot()
				m := &s.Models[0]
				m.Recent, m.RecentSpan = w.sample(10), scrapeEvery
				if i >= 76 {
					for j := range m.Variants[0].Replicas {
						p := &m.Variants[0].Replicas[j]
						p.Input, p.Output = Sample{}, Sample{}
					}
				}
				plan, memory = Decide(s, demoPolicy(), memory, RoundFull)
				w.now = w.now.Add(15 * time.Second)
			}
			assert.InDelta(t, 10, float64(plan.Models[0].Demand.Arrival), 1, "10 requests/s arrive as before")
		})
	}
}
