package replay

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// watched is one of our policies under the eyes of a test.
type watched struct {
	*ours
	seen func(view *View, answer Answer)
}

// Decide implements Policy.
func (w watched) Decide(view *View) Answer {
	answer := w.ours.Decide(view)
	w.seen(view, answer)
	return answer
}

// two is the small scenario with a second model and names in no order.
func two() *Scenario {
	s := small()
	other := small().Models[0]
	other.Namespace, other.ID, other.Share = "another", "tiny", 0.5
	other.Variants[0].Name, other.Variants[1].Name = "y", "x"
	s.Models = append(s.Models, other)
	return s
}

func TestRoundsOfOurs(t *testing.T) {
	for name, interval := range map[string]time.Duration{"minutes": time.Minute, "quarters": 25 * time.Second, "seconds": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := small()
			s.Policy.Interval = interval
			// The way down is not slowed, so that fast rounds would show it.
			for v := range s.Models[0].Variants {
				s.Models[0].Variants[v].Policy.Down.Window = 0
			}
			p := played(t, s, hill(t), "hybrid", 20*time.Second)
			full, last, lowered, raised := time.Duration(-1), time.Duration(-1), 0, 0
			policy := watched{newOurs(s, true), func(view *View, answer Answer) {
				require.Equal(t, at(view.Now), answer.Plan.Time)
				if last >= 0 {
					require.Equal(t, min(last+decision.FastInterval, full+interval), view.Now)
				}
				last = view.Now
				if full < 0 || view.Now == full+interval {
					require.Equal(t, decision.RoundFull, answer.Plan.Round)
					full = view.Now
				} else {
					require.Equal(t, decision.RoundFast, answer.Plan.Round)
				}
				for v, wanted := range answer.Replicas[0] {
					before := view.Models[0].Variants[v].Replicas
					if wanted < before {
						lowered++
						require.Equal(t, decision.RoundFull, answer.Plan.Round, "only full rounds lower")
						require.Len(t, answer.Victims[0][v], before-wanted, "who goes is our choice")
					}
					if wanted > before {
						raised++
					}
				}
			}}
			performed := p.with(policy, p.initial())
			require.NoError(t, performed.err)
			assert.NotZero(t, lowered)
			assert.NotZero(t, raised)
		})
	}
}

func TestSnapshotIsInTheOrderOfNames(t *testing.T) {
	s := two()
	p := played(t, s, hill(t), "hybrid", 20*time.Second)
	rounds := 0
	policy := watched{newOurs(s, true), func(view *View, answer Answer) {
		rounds++
		var models, variants []string
		for _, m := range answer.Plan.Models {
			models = append(models, m.Namespace+"/"+m.ID)
			for _, v := range m.Variants {
				variants = append(variants, v.Key.Namespace+"/"+v.Key.Name)
			}
		}
		require.Equal(t, []string{"another/tiny", "default/small"}, models)
		require.Equal(t, []string{"another/x", "another/y", "default/cheap", "default/dear"}, variants)
		// The answer is in the order of the scenario.
		require.Equal(t, [][]int{
			{*answer.Plan.Models[1].Variants[0].Desired, *answer.Plan.Models[1].Variants[1].Desired},
			{*answer.Plan.Models[0].Variants[1].Desired, *answer.Plan.Models[0].Variants[0].Desired},
		}, answer.Replicas)
	}}
	require.NoError(t, p.with(policy, p.initial()).err)
	require.NotZero(t, rounds)
}

func TestOurSnapshotTellsWhatTheManagerWouldSee(t *testing.T) {
	s := two()
	s.Policy.Interval = 20 * time.Second
	p := played(t, s, hill(t), "hybrid", 40*time.Second)
	ours, starting, shown := newOurs(s, false), 0, 0
	policy := watched{newOurs(s, true), func(view *View, _ Answer) {
		snapshot := ours.snapshot(view)
		require.Equal(t, at(view.Now), snapshot.Time)
		require.NotNil(t, snapshot.Cluster)
		for i := range snapshot.Models {
			for _, v := range snapshot.Models[i].Variants {
				require.Len(t, v.Replicas, v.Ready)
				require.True(t, slices.IsSortedFunc(v.Starting, func(a, b decision.Starting) int { return a.Since.Compare(b.Since) }), "oldest first")
				starting += len(v.Starting)
				for _, pod := range v.Starting {
					require.Equal(t, pod.Placed, pod.Node != "")
					require.Equal(t, pod.Placed, !pod.Unschedulable)
				}
				for _, replica := range v.Replicas {
					require.NotEmpty(t, replica.Node)
					if replica.Running.Present {
						shown++
						require.LessOrEqual(t, at(view.Now).Sub(replica.Running.Time), s.Collection.Scrape)
					}
				}
				if v.Startup > 0 {
					require.InDelta(t, 40, v.Startup.Seconds(), 20, "the start-ups seen")
				}
			}
		}
	}}
	require.NoError(t, p.with(policy, p.initial()).err)
	require.NotZero(t, starting)
	require.NotZero(t, shown)
}

func TestStartupIsTheMedianOfTheLatest(t *testing.T) {
	o := newOurs(small(), true)
	pod := func(name string, created, ready time.Duration) Pod {
		p := Pod{}
		p.Name, p.Created, p.Ready, p.Stage = name, created, ready, simulation.Serving
		return p
	}
	var pods []Pod
	assert.Zero(t, o.startup(index(0), []Pod{pod("initial", 0, 0)}), "what was there from the start shows none")
	for i, want := range []int{10, 10, 10, 20, 20} {
		took := []int{10, 10, 30, 20, 40}[i]
		pods = append(pods, pod(string(rune('a'+i)), time.Minute, time.Minute+seconds(took)))
		got := o.startup(index(0), pods)
		assert.Equal(t, seconds(want), got, len(pods))
		assert.Equal(t, got, o.startup(index(0), pods), "nothing counts twice")
	}
	for i := range 9 {
		pods = append(pods, pod(string(rune('k'+i)), time.Hour, time.Hour+seconds(90)))
	}
	assert.Equal(t, seconds(90), o.startup(index(0), pods), "only the latest nine count")
	assert.Zero(t, o.startup(index(1), nil), "each variant has its own")
}

func TestOrderOfTheScenarioDoesNotMatter(t *testing.T) {
	// With all the same start-up and one model, only the order of the variants differs.
	for _, policy := range []string{"hybrid", "capacity-only", "hpa:rps=6"} {
		there, back := small(), small()
		there.Variation, back.Variation = 0, 0
		slices.Reverse(back.Models[0].Variants)
		slices.Reverse(back.Cluster.Nodes)
		one, two := played(t, there, hill(t), policy, time.Minute), played(t, back, hill(t), policy, time.Minute)
		first, second := one.perform(), two.perform()
		require.NoError(t, first.err)
		require.NoError(t, second.err)
		require.Equal(t, first.result, second.result, policy)
	}
}

func TestFullClusterIsNotAskedForMoreThanItHolds(t *testing.T) {
	// Three devices are free, and the load wants some five.
	s := small()
	s.Cluster = &placement.Cluster{Nodes: append(nodes("h100", "H100", 1, 2), nodes("h200", "H200", 1, 1)...)}
	s.Policy.Limited = true
	source := short(t, workload.Point{Rate: 3}, workload.Point{At: 90 * time.Second, Rate: 3}, workload.Point{At: 100 * time.Second, Rate: 40}, workload.Point{At: 5 * time.Minute, Rate: 40})
	for _, startup := range []time.Duration{30 * time.Second} {
		for _, name := range []string{"capacity-only", "hybrid", "static:6", "hpa:queue"} {
			p := played(t, s, source, name, startup)
			policy, err := p.newPolicy()
			require.NoError(t, err)
			performed := p.with(policy, [][]int{{1, 0}})
			require.NoError(t, performed.err)
			r, where := performed.result, fmt.Sprintf("%s with a start-up of %s", name, startup)
			switch name {
			case "capacity-only", "hybrid":
				assert.Zero(t, r.UnplaceableReplicas, where)
				most := 0
				for i, n := range performed.recording.Models[0].Variants[0].Ready {
					most = max(most, n+performed.recording.Models[0].Variants[1].Ready[i])
				}
				assert.Equal(t, 3, most, "%s takes what there is", where)
			case "static:6":
				assert.Equal(t, 4, r.UnplaceableReplicas, "two of six have room on the nodes of the cheapest variant")
			default:
				assert.NotZero(t, r.UnplaceableReplicas, where)
			}
			assert.LessOrEqual(t, r.GPUHours, 3*p.load.length().Hours()+1e-6, "nobody holds more than there is")
		}
	}
}

func TestVariantsThatArePublishedOnlyStay(t *testing.T) {
	s := small()
	for v := range s.Models[0].Variants {
		s.Models[0].Variants[v].Policy.Actuation = decision.ActuationOff
	}
	p := played(t, s, hill(t), "hybrid", time.Minute)
	performed := p.perform()
	require.NoError(t, performed.err)
	assert.Zero(t, performed.result.ScaleEvents)
}

func TestOurPromisesAreThoseOfTheModels(t *testing.T) {
	s := two()
	s.Models[1].SLO = capacity.SLO{TTFT: 77}
	s.Policy.Promises = map[decision.ModelKey]decision.Promise{{Namespace: "default", ID: "small"}: {Class: "gold", Priority: 3}}
	o := newOurs(s, true)
	assert.Equal(t, map[decision.ModelKey]decision.Promise{
		{Namespace: "default", ID: "small"}: {Class: "gold", Priority: 3, SLO: s.Models[0].SLO},
		{Namespace: "another", ID: "tiny"}:  {Priority: decision.LeastPriority, SLO: capacity.SLO{TTFT: 77}},
	}, o.policy.Promises)
	assert.True(t, o.policy.Hybrid)
	assert.False(t, newOurs(s, false).policy.Hybrid)
	assert.Equal(t, s.Collection.Window, o.policy.Window)
	assert.Len(t, o.policy.Variants, 4)
	assert.Len(t, s.Policy.Promises, 1, "the scenario's own stay as they are")
}

func TestATraceOfOneRequest(t *testing.T) {
	results, _, err := Run(Options{
		Scenario: small(), Source: sourceOf(io.EOF, arrival(0, 10, 10)), Policies: everyPolicy, Startups: []time.Duration{time.Minute},
	})
	require.NoError(t, err)
	for _, r := range results {
		assert.Equal(t, 1, r.Requests, r.Policy)
		assert.InDelta(t, 1, r.Attainment, 0, r.Policy)
	}
}

// index is a variant of the first model.
func index(variant int) simulation.VariantIndex { return simulation.VariantIndex{Variant: variant} }
