package replay

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// onAndOff is a burst of a minute every half an hour.
func onAndOff(bursts int) []workload.Request {
	var out []workload.Request
	for b := range bursts {
		for i := range 60 {
			out = append(out, arrival(float64(b)*1800+7.4+float64(i), 100, 50))
		}
	}
	return out
}

func TestModelsThatSleepWakeWithinSeconds(t *testing.T) {
	const startup = 40 * time.Second
	for _, name := range []string{policyCapacityOnly, policyHybrid} {
		for _, gateway := range []bool{true, false} {
			s := small()
			s.Variation, s.Collection.Gateway = 0, gateway
			s.Policy.Idle = decision.Idle{Enabled: true, Retention: 5 * time.Minute}
			requests := onAndOff(4)
			p := played(t, s, sourceOf(io.EOF, requests...), name, startup)
			policy := newOurs(s, name == policyHybrid)
			rounds := map[decision.Round]int{}
			performed := p.with(watched{policy, func(_ *View, answer Answer) {
				if answer.Plan != nil {
					rounds[answer.Plan.Round]++
				}
			}}, [][]int{{1, 0}})
			require.NoError(t, performed.err)
			if !gateway {
				assert.Zero(t, rounds[decision.RoundEvent], "nobody counts what waits")
				continue
			}
			assert.Equal(t, 3, rounds[decision.RoundEvent], "one for each burst that finds no replica")
			began := 0
			for _, d := range performed.recording.Decisions {
				if d.From > 0 || d.To == 0 {
					continue
				}
				began++
				late := d.At - requests[60*began].Arrival
				assert.True(t, 0 <= late && late <= second, "woken %s after the first request", late)
			}
			assert.Equal(t, 3, began)
			// Those that came first waited longest.
			assert.Less(t, performed.result.TTFT.P99, milliseconds(startup+2*second))
		}
	}
}

// A model sleeps while nothing of it is asked to run, unless nobody may wake it.
func TestWhichModelsOfAReplaySleep(t *testing.T) {
	s := two()
	for v := range s.Models[1].Variants {
		s.Models[1].Variants[v].Policy.Actuation = decision.ActuationOff
	}
	o := newOurs(s, true)
	assert.Empty(t, o.asleep([][]int{{0, 1}, {1, 0}}))
	assert.Equal(t, []decision.ModelKey{s.Models[0].key()}, o.asleep([][]int{{0, 0}, {0, 0}}))
	o.sleepers.Settle(o.asleep([][]int{{0, 0}, {0, 0}}))
	view := &View{Models: []ModelView{{Queue: 3}, {Queue: 1}}}
	var rounds []int
	for now := range 12 {
		view.Now = seconds(now)
		if queued := o.look(view); len(queued) > 0 {
			assert.Equal(t, []int{0}, queued, "nobody may wake the second")
			rounds = append(rounds, now)
		}
	}
	assert.Equal(t, []int{0, 5, 10}, rounds)
}
