package decision

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/settle"
)

func TestTheOnlyReplicaWaitsInVain(t *testing.T) {
	for name, limited := range map[string]bool{"limited": true, "unlimited": false} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(5).snapshot()
			s.Cluster = &placement.Cluster{Nodes: nodes(4, "L40S", 8)}
			s.Models[0].Arrival = Sample{}
			a, b := &s.Models[0].Variants[0], &s.Models[0].Variants[1]
			a.Ready, a.Replicas = 0, nil
			a.Starting = []Starting{{Name: "only", Since: epoch, Unschedulable: true}}
			policy := policyFor(limited, "a-h100", "b-l40s")
			plan, memory := Decide(s, policy, Memory{}, RoundFull)
			assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired, "while it waits it says why")
			require.Equal(t, 1, *plan.Models[0].Variants[1].Desired, "another one fits and keeps the model's replica")

			b.Current, b.Starting = 1, []Starting{{Name: "b", Since: s.Time, Placed: true, Node: "L40S-0"}}
			s.Time = s.Time.Add(time.Minute)
			plan, _ = Decide(s, policy, memory, RoundFull)
			if limited {
				assert.Equal(t, 0, *plan.Models[0].Variants[0].Desired)
			}
			assert.Equal(t, 1, *plan.Models[0].Variants[1].Desired)
		})
	}
}

func TestHoldHoldsMinimaAndTheLastReplicaToo(t *testing.T) {
	for name, limited := range map[string]bool{"limited": true, "unlimited": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			w.variants = w.variants[:1]
			s := w.snapshot()
			v := &s.Models[0].Variants[0]
			v.Current, v.Ready, v.Replicas = 0, 0, nil
			policy := policyFor(limited, "a-h100")
			own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			own.Min, own.OnUnknown = 5, OnUnknownHold
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			got := plan.Models[0].Variants[0]
			assert.Equal(t, 0, *got.Desired)
			assert.Equal(t, ReasonCapacityUnknown, got.Reason)
			assert.NotContains(t, reasons(got.Facts), ReasonNoSlots, "unknown is not none")
		})
	}
}

// Nothing lets a model sleep that is not known: not what waits for it, not whether
// anything would wake it, not what a replica does that nobody sees.
func TestUnknownLetsNothingSleep(t *testing.T) {
	ago := func(s *Snapshot, d time.Duration) time.Time { return s.Time.Add(-d) }
	neighbour := func(s *Snapshot, namespace string) {
		s.Models = append(s.Models, Model{Namespace: namespace, ID: "z", Queue: Sample{Time: s.Time, Present: true}})
	}
	crashes := func(v *Variant) {
		v.Ready, v.Replicas = 0, nil
		v.Starting = []Starting{{Name: "crashes", Since: epoch, Placed: true, Failing: true}}
	}
	none := func(m *Model) { m.Queue, m.Arrival = Sample{}, Sample{} }
	const asleep, awake = 0, 1
	for name, c := range map[string]struct {
		change func(*Snapshot, *Model, *Memory)
		want   int
		told   string
	}{
		"all is known": {func(*Snapshot, *Model, *Memory) {}, asleep, ""},
		"an old queue with requests": {func(s *Snapshot, m *Model, _ *Memory) {
			m.Queue = Sample{Value: 3, Time: ago(s, 4*time.Minute), Present: true}
		}, awake, "the gateway's metrics are stale"},
		"old words of the gateway": {func(s *Snapshot, m *Model, _ *Memory) {
			m.Queue.Time, m.Arrival.Time = ago(s, 10*time.Minute), ago(s, 10*time.Minute)
		}, awake, "the gateway's metrics are stale"},
		"an ageing arrival rate": {func(s *Snapshot, m *Model, _ *Memory) {
			m.Arrival.Time = ago(s, 90*time.Second)
		}, awake, "the gateway's metrics are stale"},
		"a queue that is no number": {func(_ *Snapshot, m *Model, _ *Memory) {
			m.Queue.Value = math.NaN()
		}, awake, "the gateway's metrics are stale"},
		"its only replica crashes, and there are no data": {func(_ *Snapshot, m *Model, _ *Memory) {
			none(m)
			crashes(&m.Variants[0])
		}, awake, ""},
		"its only replica crashes, and a gateway is known by others alone": {func(s *Snapshot, m *Model, _ *Memory) {
			none(m)
			crashes(&m.Variants[0])
			neighbour(s, "ns")
		}, awake, ""},
		"its only replica crashes, and nothing waits": {func(_ *Snapshot, m *Model, _ *Memory) {
			crashes(&m.Variants[0])
		}, asleep, ""},
		"its only replica crashes, and nothing waits in a gateway that counts no arrivals": {func(_ *Snapshot, m *Model, _ *Memory) {
			crashes(&m.Variants[0])
			m.Arrival, m.Recent = Sample{}, Sample{}
		}, asleep, ""},
		"no gateway was ever seen": {func(_ *Snapshot, m *Model, _ *Memory) {
			none(m)
		}, awake, "no gateway has a queue metric for it"},
		"only gateways of other namespaces were seen": {func(s *Snapshot, m *Model, _ *Memory) {
			none(m)
			neighbour(s, "other")
		}, awake, "no gateway has a queue metric for it"},
		"it never had a request, and its namespace has a gateway": {func(s *Snapshot, m *Model, _ *Memory) {
			none(m)
			neighbour(s, "ns")
		}, asleep, ""},
		"a gateway without flow control": {func(_ *Snapshot, m *Model, _ *Memory) {
			m.Queue = Sample{}
		}, awake, "the gateway has no queue metric: flow control is off"},
		"a gateway that shows a queue only while requests wait": {func(s *Snapshot, m *Model, old *Memory) {
			m.Queue = Sample{}
			setGateway(old, Gateway{Queued: ago(s, time.Hour)})
		}, asleep, ""},
		"its gateway is gone": {func(s *Snapshot, m *Model, old *Memory) {
			none(m)
			neighbour(s, "ns")
			setGateway(old, Gateway{Queued: ago(s, time.Minute)})
		}, awake, "the gateway no longer has a queue metric for it"},
		"its gateway began anew, which knows no model before its first request": {func(s *Snapshot, m *Model, old *Memory) {
			none(m)
			neighbour(s, "ns")
			setGateway(old, Gateway{Queued: ago(s, 21*time.Minute), Unseen: ago(s, 11*time.Minute)})
		}, asleep, ""},
		"its gateway began anew just the retention ago": {func(s *Snapshot, m *Model, old *Memory) {
			none(m)
			neighbour(s, "ns")
			setGateway(old, Gateway{Queued: ago(s, 10*time.Minute), Unseen: ago(s, 11*time.Minute)})
		}, asleep, ""},
		"its gateway is back for less than the retention": {func(s *Snapshot, _ *Model, old *Memory) {
			setGateway(old, Gateway{Queued: ago(s, time.Minute), Unseen: ago(s, 9*time.Minute)})
		}, awake, ""},
		"its gateway is back for the retention": {func(s *Snapshot, _ *Model, old *Memory) {
			setGateway(old, Gateway{Queued: ago(s, time.Minute), Unseen: ago(s, 10*time.Minute)})
		}, asleep, ""},
		"one replica of five shows nothing": {func(_ *Snapshot, m *Model, _ *Memory) {
			v := &m.Variants[0]
			v.Replicas = slices.Repeat(v.Replicas, 4)
			v.Ready, v.Current = 5, 5
		}, awake, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			w.now = epoch.Add(time.Hour)
			s := w.snapshot()
			m := &s.Models[0]
			m.Variants[0].Replicas[0].Running.Value, m.Variants[0].Replicas[0].Served.Value = 0, 0
			memory := Memory{Models: map[ModelKey]*ModelMemory{{Namespace: "ns", ID: "m"}: {Active: ago(&s, 11*time.Minute)}}}
			policy := DefaultPolicy()
			policy.Idle.Enabled = true
			c.change(&s, m, &memory)
			plan, _ := Decide(s, policy, memory, RoundFull)
			v := plan.Models[0].Variants[0]
			assert.Equal(t, c.want == asleep, *v.Desired == 0, lineOf(&v))
			assert.Equal(t, c.told != "", strings.Contains(detailOf(v.Facts, ReasonMetricsPartial), "nothing would wake"), "%v", v.Facts)
			assert.Contains(t, detailOf(v.Facts, ReasonMetricsPartial), c.told)
		})
	}
}

// setGateway remembers what was seen of the gateway of the model m.
func setGateway(m *Memory, g Gateway) {
	key := ModelKey{Namespace: "ns", ID: "m"}
	of := m.Models[key]
	of.Gateway = g
	m.Models[key] = of
}

// A model that sleeps says when it is not known that anything would wake it.
func TestASleeperWithoutAGatewaySaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		queue Sample
		told  string
	}{
		"its queue is seen":     {Sample{Time: epoch, Present: true}, ""},
		"its queue is not seen": {Sample{}, "the model sleeps and a request may not wake it: no gateway has a queue metric for it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Time: epoch, Models: []Model{{Namespace: "ns", ID: "m", Queue: c.queue, Variants: []Variant{{Name: "v", Request: request("H100", 1)}}}}}
			policy := DefaultPolicy()
			policy.Idle.Enabled = true
			v := first(s, policy).Models[0].Variants[0]
			assert.Zero(t, *v.Desired)
			assert.Equal(t, c.told, detailOf(v.Facts, ReasonMetricsPartial))
		})
	}
}

// A gateway whose samples are ageing is still there; stale ones are a gap.
func TestWhatIsAgeingIsNoGapOfTheGateway(t *testing.T) {
	at := func(age time.Duration) Sample { return Sample{Time: epoch.Add(-age), Present: true} }
	for name, c := range map[string]struct {
		queue, arrival Sample
		gap            bool
	}{
		"a fresh queue":               {queue: at(time.Second)},
		"an ageing queue":             {queue: at(90 * time.Second)},
		"a stale queue":               {queue: at(3 * time.Minute), gap: true},
		"a stale queue, and arrivals": {queue: at(3 * time.Minute), arrival: at(time.Second), gap: true},
		"ageing arrivals alone":       {arrival: at(90 * time.Second)},
		"stale arrivals alone":        {arrival: at(3 * time.Minute), gap: true},
		"nothing":                     {gap: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v"})
			m.In.Queue, m.In.Arrival = c.queue, c.arrival
			assert.Equal(t, c.gap, !settle.GatewayOf(r, within(r, m)).Unseen.IsZero())
		})
	}
}

// A model may sleep after ten minutes without requests. Its manager is paused for twenty minutes
// (the API server did not answer, or its machine stood still), in which the model was asked all the
// time but for the last two. Nobody saw it idle for ten minutes.
func TestAMissedTimeIsNoIdleTime(t *testing.T) {
	w, policy, memory := newWorld(5), DefaultPolicy(), Memory{}
	policy.Horizon = 0
	policy.Idle = Idle{Enabled: true, Retention: 10 * time.Minute}
	decide := func() (total int, last string) {
		s := w.snapshot()
		for i := range s.Models[0].Variants {
			for j := range s.Models[0].Variants[i].Replicas {
				p := &s.Models[0].Variants[i].Replicas[j]
				if p.Since = epoch; w.arrival == 0 {
					p.Running, p.Served, p.KVUse = w.sample(0), w.sample(0), w.sample(0)
				}
			}
		}
		var plan Plan
		plan, memory = Decide(s, policy, memory, RoundFull)
		for _, v := range plan.Models[0].Variants {
			total += *v.Desired
			if *v.Desired < v.Current {
				last = textOf(v.Message)
			}
		}
		return total, last
	}
	for range 10 {
		w.now = w.now.Add(30 * time.Second)
		total, _ := decide()
		assert.Equal(t, 1, total)
	}
	w.now, w.arrival = w.now.Add(20*time.Minute), 0
	total, last := decide()
	assert.Equal(t, 1, total, "it was last looked at twenty minutes ago, and was busy: %s", last)
}
