package decision

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
)

// plain serves 2.5 requests/s at 11.2 of 16 in service, which is the load that the
// default triggers allow, and 3.57 at most: 4.48 s for the 211 tokens of each.
var plain = serving.Profile{Base: 4480.0 / 211, KVTokens: 100000, BatchLimit: 16}

func vesselOf(name string, replicas int) *vessel {
	return &vessel{name: name, profile: plain, cost: 6.88, request: request("H100", 1),
		startup: 110 * time.Second, seen: 110 * time.Second, replicas: replicas}
}

func machines(n int) *placement.Cluster { return &placement.Cluster{Nodes: nodes(n, "H100", 8)} }

func step(at time.Duration, before, after float64) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		if t < at {
			return before
		}
		return after
	}
}

func allowed(p serving.Profile) float64 {
	return float64(p.Steady(0.7*float64(p.BatchLimit), conv).Rate)
}

func most(p serving.Profile) capacity.Rate {
	return p.Steady(float64(p.BatchLimit), conv).Rate
}

// A step from 1 to 20 requests/s where a replica carries 2.5 and starts in 110 s, at
// every phase of scrapes and rounds: it is answered within 30 s, both with scrapes every
// 5 s, as the manager's own are, and with those of Prometheus.
func TestSurge(t *testing.T) {
	for _, every := range []time.Duration{5 * time.Second, scrapeEvery} {
		for phase := range 12 {
			if !thorough && phase%4 != 0 {
				continue
			}
			t.Run(fmt.Sprintf("scrapes every %v, %d s after a full round", every, 5*phase), func(t *testing.T) {
				surge(t, every, 5*time.Minute+time.Duration(5*phase)*time.Second, phase == 0 && every == scrapeEvery)
			})
		}
	}
}

// However long replicas take to start, and also those of a variant that nobody buys, a
// step is asked for at once and in full.
func TestSurgeOfSlowStarters(t *testing.T) {
	const rate = 20.0
	for _, startup := range []time.Duration{110 * time.Second, 121 * time.Second, 5 * time.Minute, 10 * time.Minute} {
		for _, hybrid := range []bool{false, true} {
			for _, beside := range []bool{false, true} {
				for _, every := range []time.Duration{5 * time.Second, scrapeEvery} {
					for phase := 0; phase < 12; phase += 4 {
						at := 5*time.Minute + time.Duration(5*phase)*time.Second
						web := vesselOf("web", 1)
						web.startup, web.seen = startup, startup
						m := &flow{id: "m", arrivals: step(at, 1, rate), variants: []*vessel{web}}
						if beside {
							web.startup, web.seen = time.Minute, time.Minute
							dear := vesselOf("dear", 0)
							dear.cost, dear.startup, dear.seen = 100, startup, startup
							m.variants = append(m.variants, dear)
						}
						policy := DefaultPolicy()
						policy.Hybrid = hybrid
						f := newFluid(machines(8), policy, m)
						f.every = every
						f.run(at + 30*time.Second)
						what := fmt.Sprintf("start-up %v, hybrid %v, beside %v, scrapes every %v, phase %d: %v", startup, hybrid, beside, every, phase, f.writes)
						require.GreaterOrEqual(t, float64(web.replicas), rate/allowed(plain), what)
						require.LessOrEqual(t, len(f.writes), 2, what)
					}
				}
			}
		}
	}
}

func surge(t *testing.T, every, at time.Duration, told bool) {
	const rate, within = 20.0, 30 * time.Second
	m := &flow{id: "m", arrivals: step(at, 1, rate), variants: []*vessel{vesselOf("web", 1)}}
	f := newFluid(machines(8), DefaultPolicy(), m)
	f.every = every
	web := m.variants[0]
	require.InDelta(t, 2.5, allowed(plain), 1e-9)
	f.run(at - time.Minute)
	s := tell(f)
	f.run(at)
	require.Empty(t, f.writes)
	f.run(at + within + time.Second)
	require.NotEmpty(t, f.writes)
	require.LessOrEqual(t, len(f.writes), 2, "%v", f.writes)
	asked, met := web.replicas, 0.0
	for web.count(serves) == 1 {
		met = m.queue
		f.step()
	}
	// Nobody knows to the second when a replica begins to serve.
	needed := func(met float64) int {
		return int(math.Ceil((rate + met/f.policy.Drain.Seconds()) / allowed(plain)))
	}
	least := needed(met - 2*rate)
	if every == scrapeEvery {
		// Within that time there is one count, and the step fell into it.
		least--
	}
	assert.GreaterOrEqual(t, asked, least, "%.0f requests wait when the replicas begin to serve", met)
	assert.LessOrEqual(t, asked, atMost(needed(met)))

	ups, gone := len(f.writes), time.Duration(0)
	for f.elapsed() < at+75*time.Minute {
		f.step()
		if gone == 0 && m.queue < 1 {
			gone = f.elapsed()
		}
		require.LessOrEqual(t, web.replicas, atMost(needed(met)))
	}
	require.Greater(t, len(f.writes), ups)
	require.LessOrEqual(t, len(f.writes), ups+2, "what was bought to be sure goes first, then the rest: %v", f.writes)
	down := f.writes[len(f.writes)-1]
	assert.Greater(t, down.at, gone)
	assert.Less(t, down.at, gone+8*time.Minute)
	assert.Equal(t, int(math.Ceil(need.LowerHeadroom*rate/allowed(plain))), down.to)
	assert.Greater(t, f.elapsed()-down.at, time.Hour, "and no write for an hour")
	if told {
		s.is(t, "surge")
	}
}

// atMost is the most that may be asked for where so many are needed: one more because nobody
// knows to the second when a replica begins to serve, and one because what is sized for is a
// quantile of the forecast and not its mean.
func atMost(need int) int { return need + 2 }

// Without a gateway the requests wait where they were sent, so that no new replica
// serves them: what must hold is that the step is answered at once, and that neither
// the queue of the first replica nor the spread of the load over new ones is taken for
// more arrivals.
func TestSurgeWithoutAGateway(t *testing.T) {
	const at, rate = 5 * time.Minute, 20.0
	m := &flow{id: "m", arrivals: step(at, 1, rate), direct: true, variants: []*vessel{vesselOf("web", 1)}}
	f := newFluid(machines(8), DefaultPolicy(), m)
	f.run(at + 31*time.Second)
	asked := m.variants[0].replicas
	needed := int(math.Ceil((rate + (rate-float64(most(plain)))*115/f.policy.Drain.Seconds()) / allowed(plain)))
	assert.GreaterOrEqual(t, asked, needed-1)
	assert.LessOrEqual(t, asked, atMost(needed))
	for f.elapsed() < at+2*time.Hour {
		f.step()
		require.LessOrEqual(t, m.variants[0].replicas, atMost(needed), "%v", f.writes)
	}
	assert.Equal(t, int(math.Ceil(need.LowerHeadroom*rate/allowed(plain))), m.variants[0].replicas)
}

// What a replica serves is not stated here but seen, at loads up to the triggers: the
// step is met as well, but for what curves err by.
func TestSurgeOfALearnedVariant(t *testing.T) {
	const at, rate = time.Hour, 20.0
	m := &flow{id: "m", variants: []*vessel{vesselOf("web", 1)}, arrivals: func(t time.Duration) float64 {
		if t < at {
			return 1.3 + 0.7*math.Sin(t.Minutes()/8)
		}
		return rate
	}}
	web := m.variants[0]
	web.unstated = true
	f := newFluid(machines(8), DefaultPolicy(), m)
	f.run(at + 41*time.Second)
	assert.GreaterOrEqual(t, web.replicas, 13)
	assert.LessOrEqual(t, web.replicas, atMost(15)+2)
	require.LessOrEqual(t, len(f.writes), 3, "%v", f.writes)
	f.run(at + 2*time.Hour)
	assert.LessOrEqual(t, len(f.writes), 5, "up, and down: %v", f.writes)
	assert.InDelta(t, 10, web.replicas, 1)
}

// A new leader in the middle of a surge asks for nothing again that starts already.
func TestFailoverInASurge(t *testing.T) {
	const at = 5 * time.Minute
	for _, after := range []int{15, 25, 50, 100, 130, 180} {
		web := vesselOf("web", 1)
		m := &flow{id: "m", arrivals: step(at, 1, 20), variants: []*vessel{web}}
		f := newFluid(machines(8), DefaultPolicy(), m)
		f.run(at + time.Duration(after)*time.Second)
		f.memory = Memory{}
		f.run(at + 30*time.Minute)
		assert.LessOrEqual(t, highest(f.writes), atMost(15)+1, "after %d s: %v", after, f.writes)
		assert.LessOrEqual(t, len(f.writes), 5, "after %d s: %v", after, f.writes)
		assert.Equal(t, 10, web.replicas)
	}
}

// A model that starts for the first time, and takes six minutes for it: nothing is
// bought twice while it starts, and then its start-up is known.
func TestSlowStart(t *testing.T) {
	const at = 5 * time.Minute
	web := vesselOf("web", 1)
	web.startup, web.seen = 6*time.Minute, 0
	m := &flow{id: "m", arrivals: func(t time.Duration) float64 {
		switch {
		case t < at:
			return 1
		case t < 40*time.Minute:
			return 6
		}
		return 9
	}, variants: []*vessel{web}}
	f := newFluid(machines(8), DefaultPolicy(), m)
	f.run(at - time.Minute)
	s := tell(f)
	f.run(at + 31*time.Second)
	require.NotEmpty(t, f.writes)
	f.run(39 * time.Minute)
	peak := highest(f.writes)
	assert.LessOrEqual(t, peak, 7, "6 requests/s, and the 900 that wait when the first replicas serve: %v", f.writes)
	assert.InDelta(t, 6*time.Minute, web.seen, float64(15*time.Second), "the start-up is known now")
	assert.Equal(t, 3, web.replicas)
	f.run(80 * time.Minute)
	assert.LessOrEqual(t, highest(f.writes[1:]), peak+1, "%v", f.writes)
	assert.InDelta(t, 4.5, web.replicas, 0.5, "9 requests/s at 2.5 each, and the published distance")
	s.is(t, "slow-start")
}

// highest is the largest number of replicas that was asked for.
func highest(writes []write) int {
	most := 0
	for _, w := range writes {
		most = max(most, w.to)
	}
	return most
}

// The cheaper variant's pods find no node although the nodes look free, or crash: their
// demand moves to the dearer one, and the cheaper one is left alone for longer and
// longer, until it recovers.
func TestStuckPods(t *testing.T) {
	const at = 5 * time.Minute
	for name, fail := range map[string]func(*vessel){
		"no-node": func(v *vessel) { v.refused = true },
		"crashes": func(v *vessel) { v.crashing = true },
	} {
		t.Run(name, func(t *testing.T) {
			cheap, dear := vesselOf("cheap", 1), vesselOf("dear", 0)
			cheap.cost, dear.request = 3, request("L40S", 1)
			m := &flow{id: "m", arrivals: step(at, 1, 9), variants: []*vessel{cheap, dear}}
			cluster := &placement.Cluster{Nodes: append(nodes(4, "H100", 8), nodes(4, "L40S", 8)...)}
			policy := DefaultPolicy()
			policy.Limited = true
			f := newFluid(cluster, policy, m)
			f.run(at - time.Minute)
			s := tell(f)
			fail(cheap)
			f.run(at + 31*time.Second)
			assert.Greater(t, cheap.replicas, 3)
			assert.Zero(t, dear.replicas)
			f.run(at + 3*time.Minute + 30*time.Second)
			assert.GreaterOrEqual(t, dear.replicas, 3, "the demand moves on")
			f.run(at + 40*time.Minute)
			assert.Less(t, m.queue, 10.0)
			assert.LessOrEqual(t, dear.replicas, 5)
			f.run(at + 41*time.Minute)
			cheap.refused, cheap.crashing = false, false
			f.run(at + 3*time.Hour)
			assert.Less(t, dear.replicas, 3, "it has recovered, and costs less")
			s.is(t, "unhealthy-pods-"+name)
		})
	}
}

// Prometheus stops in the middle of a load that falls: nothing is removed, what is
// shown never falls, and when it comes back the window has to be covered anew.
func TestStaleMetrics(t *testing.T) {
	m := &flow{id: "m", arrivals: step(5*time.Minute, 12, 2), variants: []*vessel{vesselOf("web", 6)}}
	f := newFluid(machines(8), DefaultPolicy(), m)
	web := m.variants[0]
	f.run(4 * time.Minute)
	require.Equal(t, 6, web.replicas, "%v", f.writes)
	s := tell(f)
	heard := f.told
	f.told = func(in *Snapshot, plan *Plan) {
		heard(in, plan)
		v := plan.Models[0].Variants[0]
		if age := in.Time.Sub(in.Models[0].Queue.Time); age >= f.policy.Freshness.Ageing {
			require.NotNil(t, v.Fallback, "after %v without a scrape", age)
			assert.GreaterOrEqual(t, v.Fallback.Replicas, 6)
			assert.Equal(t, FallbackPrevious, v.Fallback.Source)
		}
	}
	f.run(6 * time.Minute)
	f.unscraped = true
	f.run(20 * time.Minute)
	assert.Empty(t, f.writes)
	f.unscraped = false
	back := f.elapsed()
	f.run(40 * time.Minute)
	require.Len(t, f.writes, 1, "%v", f.writes)
	assert.GreaterOrEqual(t, f.writes[0].at, back)
	assert.Equal(t, 1, web.replicas)
	s.is(t, "stale-metrics")
}

// A new leader knows nothing of before: it writes nothing at a constant peak, and
// lowers nothing within a window after it began.
func TestFailover(t *testing.T) {
	web := vesselOf("web", 12)
	m := &flow{id: "m", arrivals: step(time.Hour, 20, 5), variants: []*vessel{web}}
	f := newFluid(machines(8), DefaultPolicy(), m)
	f.run(30 * time.Minute)
	f.writes = nil
	s := tell(f)
	f.memory = Memory{}
	f.run(59 * time.Minute)
	assert.Empty(t, f.writes, "at a constant peak")
	f.run(64 * time.Minute)
	f.memory = Memory{}
	f.run(69*time.Minute - time.Second)
	assert.Empty(t, f.writes, "within a window after the second change of leaders")
	f.run(90 * time.Minute)
	assert.Len(t, f.writes, 1, "%v", f.writes)
	s.is(t, "failover")
}

// Two models want more than eight free devices: the important one gets what it needs,
// the other what is left, and says what it lacks; no pod waits for a node.
func TestShortage(t *testing.T) {
	const at = 5 * time.Minute
	model := func(id string) *flow {
		return &flow{id: id, arrivals: step(at, 1, 12), variants: []*vessel{vesselOf(id, 1)}}
	}
	batch, chat := model("batch"), model("chat")
	policy := DefaultPolicy()
	policy.Limited = true
	policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "chat"}: {Class: "premium", Priority: 1}, {Namespace: "ns", ID: "batch"}: {Class: "free", Priority: 10}}
	f := newFluid(machines(1), policy, batch, chat)
	f.run(at - time.Minute)
	s := tell(f)
	heard := f.told
	lacks := false
	f.told = func(in *Snapshot, plan *Plan) {
		heard(in, plan)
		lacks = lacks || detailOf(plan.Models[0].Variants[0].Facts, ReasonNoSlots) != ""
		assert.Empty(t, detailOf(plan.Models[1].Variants[0].Facts, ReasonStartupOverdue))
	}
	for f.elapsed() < at+40*time.Minute {
		f.step()
		for _, m := range f.models {
			for _, p := range m.variants[0].pods {
				require.GreaterOrEqual(t, p.node, 0, "a pod waits for a node")
			}
		}
	}
	assert.True(t, lacks)
	assert.GreaterOrEqual(t, chat.variants[0].replicas, 5)
	assert.Less(t, chat.queue, 10.0)
	assert.Positive(t, batch.variants[0].replicas)
	s.is(t, "shortage")
}

// A cheaper variant has no room until its nodes come back: then it takes over within
// the horizon, and the dearer one leaves when it serves.
func TestCheaperVariantGetsRoom(t *testing.T) {
	const at = 10 * time.Minute
	cheap, dear := vesselOf("cheap", 0), vesselOf("dear", 4)
	cheap.cost, dear.request = 3, request("L40S", 1)
	cluster := &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(4, "L40S", 8)...)}
	cluster.Nodes[0].Out, cluster.Nodes[1].Out = "cordoned", "cordoned"
	m := &flow{id: "m", arrivals: constant(6), variants: []*vessel{cheap, dear}}
	f := newFluid(cluster, DefaultPolicy(), m)
	f.run(at)
	s := tell(f)
	cluster.Nodes[0].Out, cluster.Nodes[1].Out = "", ""
	for f.elapsed() < at+time.Hour {
		f.step()
		require.GreaterOrEqual(t, float64(cheap.count(serves)+dear.count(serves))*allowed(plain), 6.0, "what serves suffices at every moment")
	}
	assert.Zero(t, dear.replicas)
	assert.Equal(t, 3, cheap.replicas)
	assert.LessOrEqual(t, len(f.writes), 4, "%v", f.writes)
	quiet := f.elapsed() - f.writes[len(f.writes)-1].at
	assert.Greater(t, quiet, 40*time.Minute)
	s.is(t, "cheaper-variant")
}

// A switch whose start-up does not pay within the horizon is not made.
func TestCheaperVariantThatDoesNotPay(t *testing.T) {
	cheap, dear := vesselOf("cheap", 0), vesselOf("dear", 4)
	dear.request = request("L40S", 1)
	cheap.cost, cheap.seen, cheap.startup = 0.9*dear.cost, 20*time.Minute, 20*time.Minute
	cluster := &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(4, "L40S", 8)...)}
	m := &flow{id: "m", arrivals: constant(8), variants: []*vessel{cheap, dear}}
	f := newFluid(cluster, DefaultPolicy(), m)
	f.run(time.Hour)
	assert.Empty(t, f.writes)
}

// The load ends; the model sleeps after its retention, and is woken by the gateway's
// queue within seconds, on its cheapest variant alone, and is not put to sleep again
// within a grace.
func TestZeroAndBack(t *testing.T) {
	const ends, again, last = 10 * time.Minute, 40 * time.Minute, 41 * time.Minute
	cheap, dear := vesselOf("cheap", 1), vesselOf("dear", 0)
	cheap.cost, dear.request = 3, request("L40S", 1)
	m := &flow{id: "m", variants: []*vessel{cheap, dear}, arrivals: func(t time.Duration) float64 {
		if t < ends || again <= t && t < last {
			return 1
		}
		return 0
	}}
	policy := DefaultPolicy()
	policy.Idle.Enabled = true
	f := newFluid(&placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(2, "L40S", 8)...)}, policy, m)
	f.run(ends - time.Minute)
	s := tell(f)
	f.run(again)
	require.Len(t, f.writes, 1)
	slept := f.writes[0]
	assert.Equal(t, 0, slept.to)
	assert.GreaterOrEqual(t, slept.at, ends+policy.Idle.Retention)
	assert.LessOrEqual(t, slept.at, ends+policy.Idle.Retention+4*time.Minute)
	f.run(again + 6*time.Second)
	require.Len(t, f.writes, 2, "woken within 5 s")
	assert.Equal(t, write{f.writes[1].at, "cheap", 0, 1}, f.writes[1])
	f.run(2 * time.Hour)
	require.GreaterOrEqual(t, len(f.writes), 3)
	awake := f.writes[len(f.writes)-1]
	assert.Equal(t, 0, awake.to)
	assert.GreaterOrEqual(t, awake.at-last, policy.Idle.Retention, "the retention counts from the last request")
	assert.LessOrEqual(t, highest(f.writes), 2, "%v", f.writes)
	s.is(t, "zero-and-back")
}

// A rolling update with a surge of one while the load falls: nothing goes before the
// update is over, and nobody gets the room that the surge needs.
func TestRollingUpdate(t *testing.T) {
	const at = 10 * time.Minute
	web, other := vesselOf("web", 6), vesselOf("other", 1)
	policy := DefaultPolicy()
	policy.Limited = true
	first := &flow{id: "a", arrivals: step(at+time.Minute, 12, 3), variants: []*vessel{web}}
	second := &flow{id: "b", arrivals: step(at, 1, 12), variants: []*vessel{other}}
	f := newFluid(machines(1), policy, first, second)
	f.run(at - time.Minute)
	require.Empty(t, f.writes)
	s := tell(f)
	f.run(at)
	web.version, web.surge = 1, 1
	require.True(t, web.rolling())
	for {
		f.step()
		if !web.rolling() {
			break
		}
		require.Equal(t, 6, web.replicas)
		require.Equal(t, 1, other.replicas, "the only free device is the surge's")
		require.Less(t, f.elapsed(), at+time.Hour)
	}
	f.run(at + time.Hour)
	assert.Less(t, web.replicas, 6)
	assert.Greater(t, other.replicas, 4)
	s.is(t, "rolling-update")
}

// Arrivals that scatter as independent ones do, and by twice that, are no reason to
// write: after a beginning with too many or too few replicas the number stands.
func TestNoiseMovesNothing(t *testing.T) {
	for _, rate := range []float64{0.7, 6, 40} {
		if !thorough && rate != 6 {
			continue
		}
		for _, burst := range []float64{1, 2} {
			for _, direct := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v requests/s, scatter %v, gateway %v", rate, burst, !direct), func(t *testing.T) {
					random := rand.New(rand.NewPCG(uint64(10*rate+burst), 1))
					arrivals := func(time.Duration) float64 {
						return max(0, rate+burst*math.Sqrt(rate)*random.NormFloat64())
					}
					begin := 1 + int(need.LowerHeadroom*rate/allowed(plain))
					m := &flow{id: "m", arrivals: arrivals, direct: direct, variants: []*vessel{vesselOf("web", begin)}}
					f := newFluid(machines(8), DefaultPolicy(), m)
					f.run(3 * time.Hour)
					assert.LessOrEqual(t, len(f.writes), 2, "%v", f.writes)
					assert.GreaterOrEqual(t, m.variants[0].replicas, int(math.Ceil(0.95*rate/allowed(plain))))
				})
			}
		}
	}
}
