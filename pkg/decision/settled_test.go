package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// taught is what a window teaches: how much a replica serves, and of its latencies, too.
type taught int

const (
	nothing taught = iota
	rates
	everything
)

// inFlight has a replica serve ten requests per second, of which so many are in service and wait in
// the mean, when these grow by so many per second.
func inFlight(running, waiting, grows float64) func(*Replica) {
	return func(p *Replica) {
		p.Served.Value, p.Running.Value, p.InService.Value = 10, running, running/10
		p.Waiting.Value, p.InFlightGrowth.Value, p.Recent.Value = waiting, grows, 10+grows
	}
}

// What a window shows in which the load changed, or the replica hung for a part of it, is
// not how a replica does at the mean number in service.
func TestNothingIsLearnedFromAWindowOfTwoStates(t *testing.T) {
	w := newWorld(10)
	for name, c := range map[string]struct {
		change func(*Replica)
		learns taught
	}{
		"one state": {func(*Replica) {}, everything},
		"requests were in service for six times as long as Little's law says": {func(p *Replica) { p.InService.Value *= 6 }, nothing},
		"in service for a quarter longer":                                     {func(p *Replica) { p.InService.Value /= 0.76 }, everything},
		"in service for more than that":                                       {func(p *Replica) { p.InService.Value /= 0.74 }, nothing},
		"in service for a quarter less":                                       {func(p *Replica) { p.InService.Value /= 1.24 }, everything},
		"in service for less than that":                                       {func(p *Replica) { p.InService.Value /= 1.26 }, nothing},
		"an old time in service":                                              {func(p *Replica) { p.InService = Sample{Value: 6, Time: epoch, Present: true} }, everything},
		"nobody knows the time in service":                                    {func(p *Replica) { p.InService = Sample{} }, everything},
		"nothing arrived last":                                                {func(p *Replica) { p.Recent.Value = 0 }, nothing},
		"twice as much arrived last":                                          {func(p *Replica) { p.Recent.Value *= 2 }, nothing},
		"as much more as chance explains":                                     {func(p *Replica) { p.Recent.Value += 2.37 }, everything}, // 3*sqrt(10*16)/16
		"a little more than that":                                             {func(p *Replica) { p.Recent.Value += 2.38 }, nothing},
		"as much less":                                                        {func(p *Replica) { p.Recent.Value -= 2.37 }, everything},
		"less than that":                                                      {func(p *Replica) { p.Recent.Value -= 2.38 }, nothing},
		"nobody knows what arrived last":                                      {func(p *Replica) { p.Recent = Sample{} }, everything},
		"nor what arrives":                                                    {func(p *Replica) { p.InFlightGrowth, p.Recent.Value = Sample{}, 50 }, everything},
		"what is in flight grows as it does":                                  {func(p *Replica) { p.InFlightGrowth.Value, p.Recent.Value = 5, 15 }, rates},
		"what is in flight grew before":                                       {func(p *Replica) { p.InFlightGrowth.Value = 5 }, nothing},
		"it grew by as much as chance explains":                               {inFlight(100, 0, 1.5), everything}, // 3*sqrt(100) within 20 s
		"by more than that":                                                   {inFlight(100, 0, 1.51), rates},
		"it fell by as much as chance explains":                               {inFlight(100, 0, -1.5), everything},
		"fell by more than that":                                              {inFlight(100, 0, -1.51), rates},
		"of many it grew by a quarter":                                        {inFlight(400, 0, 5), everything},
		"of many by more":                                                     {inFlight(400, 0, 5.01), rates},
		"a queue that was there all the time":                                 {inFlight(100, 131, 3), everything},
		"a queue that may not have been there":                                {inFlight(100, 130, 3), rates},
		"a queue that falls and does not end":                                 {inFlight(100, 131, -3), everything},
		"a queue of which no end can be excluded":                             {inFlight(100, 130, -3), rates},
		"more completes than was there":                                       {func(p *Replica) { p.InFlightGrowth.Value, p.Recent.Value = -20, 0 }, rates},
	} {
		t.Run(name, func(t *testing.T) {
			s := w.snapshot()
			v := &s.Models[0].Variants[0]
			v.Profile = serving.Profile{}
			p := &v.Replicas[0]
			p.ITL, p.TTFT = w.sample(0.02), w.sample(0.1)
			p.InService = w.sample(p.Running.Value / p.Served.Value)
			p.Recent, p.RecentSpan = w.sample(p.Served.Value), 16*time.Second
			c.change(p)
			policy := demoPolicy()
			policy.Hybrid, policy.Promises = true, map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {SLO: capacity.SLO{ITL: 50}}}
			_, memory := Decide(s, policy, Memory{}, RoundFull)
			key := Key{Namespace: "ns", Name: "a-h100"}
			assert.Equal(t, c.learns != nothing, memory.Variants[key].Curve.Known())
			assert.Equal(t, c.learns == everything, len(memory.Variants[key].Latency.Learned.Seen) > 0)
		})
	}
}

// A replica whose queue feeds it does the same whatever arrives. Long prompts keep it from a
// larger batch; what it completes then is all that it can, however little a profile says that is.
func TestAQueueFeedsAReplicaWhateverArrives(t *testing.T) {
	w := newWorld(10)
	for waiting, learns := range map[float64]bool{0: false, 10: false, 1000: true} {
		s := w.snapshot()
		p := &s.Models[0].Variants[0].Replicas[0]
		p.Running, p.Waiting, p.Served, p.InService = w.sample(20), w.sample(waiting), w.sample(6), w.sample(20.0/6)
		p.Recent, p.RecentSpan = w.sample(60), 5*time.Second
		_, memory := Decide(s, demoPolicy(), Memory{}, RoundFull)
		v := memory.Variants[Key{Namespace: "ns", Name: "a-h100"}]
		assert.Equal(t, learns, v.Curve.Known())
		if learns {
			assert.InEpsilon(t, 6, float64(v.Curve.Rate(20, w.tokens, onH100)), 1e-6)
		}
	}
}

// A latency model stands as long as the replicas show about the same, and is made anew,
// once in a minute, when they show something else.
func TestALatencyModelStandsWhileNothingElseIsSeen(t *testing.T) {
	key := Key{Namespace: "ns", Name: "a-h100"}
	policy := demoPolicy()
	policy.Hybrid, policy.Promises = true, map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {SLO: capacity.SLO{ITL: 50}}}
	memory := Memory{}
	fitted := func(after time.Duration, itl float64) time.Duration {
		w := newWorld(10)
		w.now = w.now.Add(after)
		s := w.snapshot()
		p := &s.Models[0].Variants[0].Replicas[0]
		p.ITL, p.TTFT = w.sample(itl), w.sample(0.1)
		p.InService = w.sample(p.Running.Value / p.Served.Value)
		_, memory = Decide(s, policy, memory, RoundFull)
		return memory.Variants[key].Latency.Fitted.Sub(epoch.Add(time.Hour))
	}
	assert.Zero(t, fitted(0, 0.02))
	assert.Zero(t, fitted(2*time.Minute, 0.02), "the same")
	assert.Zero(t, fitted(3*time.Minute, 0.0203), "about the same")
	assert.Equal(t, 4*time.Minute, fitted(4*time.Minute, 0.0205), "something else")
	assert.Equal(t, 4*time.Minute, fitted(4*time.Minute+59*time.Second, 0.03), "too early")
	assert.Equal(t, 5*time.Minute, fitted(5*time.Minute, 0.03))
}
