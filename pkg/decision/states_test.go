package decision

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// Random states, and the rounds that follow when what is decided is carried out: each plan keeps the
// rules, and the same states give the same plans.
func TestRandomStatesKeepTheRules(t *testing.T) {
	for seed := range uint64(cases()) {
		told := tellState(t, seed)
		require.NotContains(t, told, "next try in 0s", "whoever is not left alone is tried now")
		require.NotContains(t, told, "%!", "what stands in a sentence is of the type that it is said for")
		require.Equal(t, told, tellState(t, seed))
	}
}

// drawScene draws what a random state is made of.
func drawScene(random *rand.Rand, seed uint64) scene {
	return scene{
		seed: seed, models: 1 + int(seed%3), load: []float64{0.3, 0.8, 1, 1.4, 3}[random.IntN(5)],
		limited: random.IntN(2) == 0, hybrid: random.IntN(2) == 0, plain: random.IntN(4) == 0,
	}
}

// tellState plays four rounds of a random state: what was planned is carried out, some
// minutes go by, and the pods come or do not. It returns all that the plans say.
func tellState(t *testing.T, seed uint64) string {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 12))
	c := drawScene(random, seed)
	s, policy := c.build()
	disturb(random, &s, &policy)
	memory := Memory{}
	var whole strings.Builder
	for i, kind := range []Round{RoundFull, RoundFast, RoundFull, RoundFull} {
		plan, next := Decide(s, policy, memory, kind)
		memory = next
		line := fmt.Sprintf("%d.%d", seed, i+1)
		keepsTheRules(t, &s, &policy, &plan, line)
		fmt.Fprintln(&whole, line)
		for j := range plan.Models {
			tellPlan(&whole, &plan.Models[j])
			for k, v := range plan.Models[j].Variants {
				if v.Desired != nil {
					s.Models[j].Variants[k].Current = *v.Desired
				}
			}
		}
		advance(random, &s, some(random, 10, 30, 60, 120, 300, 600, 10+random.IntN(400)))
	}
	return whole.String()
}

// some is one of these numbers of seconds: most of them are just where something ends, which
// random ones never are.
func some(random *rand.Rand, seconds ...int) time.Duration {
	return time.Duration(seconds[random.IntN(len(seconds))]) * time.Second
}

func tellPlan(text *strings.Builder, m *ModelPlan) {
	if d := m.Demand; d != nil {
		fmt.Fprintf(text, "  %s: %.3f now, %.3f expected, %.1f wait, %.1f later\n", m.ID, d.Arrival, d.Forecast, d.Backlog, d.BacklogAtReady)
	}
	for i := range m.Variants {
		v := &m.Variants[i]
		desired := "-"
		if v.Desired != nil {
			desired = fmt.Sprint(*v.Desired)
		}
		fmt.Fprintf(text, "  %s: %d (%d ready, %d start, %d of them unschedulable) -> %s (%s), serves %.3f; %s",
			v.Key.Name, v.Current, v.Ready, v.Starting, v.Unschedulable, desired, v.Reason, v.ServesEach, textOf(v.Message))
		if textOf(v.BoundBy) != "" {
			fmt.Fprintf(text, "; %s", textOf(v.BoundBy))
		}
		if v.Desired != nil {
			fmt.Fprintf(text, "; shows %d", v.Shown())
		}
		if v.Slots != nil {
			fmt.Fprintf(text, "; %d fit", v.Slots.Count)
		}
		if v.Unplaced > 0 {
			fmt.Fprintf(text, "; %d unplaced", v.Unplaced)
		}
		if len(v.Victims) > 0 {
			fmt.Fprintf(text, "; goes: %s", strings.Join(v.Victims, " "))
		}
		fmt.Fprintln(text)
		for _, f := range v.Facts {
			fmt.Fprintf(text, "    %s: %s\n", f.Reason, textOf(f.Detail))
		}
		for _, step := range v.Steps {
			fmt.Fprintf(text, "    %s: %d -> %d (%s), %s\n", step.Stage, step.Before, step.After, step.Reason, textOf(step.Detail))
		}
	}
	if len(m.Variants) > 0 && textOf(m.Variants[0].Alternative) != "" {
		fmt.Fprintf(text, "  else %s\n", textOf(m.Variants[0].Alternative))
	}
}

// disturb does to a random state what clusters and their users do.
func disturb(random *rand.Rand, s *Snapshot, policy *Policy) {
	one := func(n int) bool { return random.IntN(n) == 0 }
	if one(3) {
		quota := placement.Quota{Namespace: "ns", Name: "q", Resource: "requests.nvidia.com/gpu", Hard: int64(4 + random.IntN(30))}
		if !one(3) {
			quota.Left = int64(random.IntN(int(quota.Hard) + 1))
		}
		s.Cluster.Quotas = append(s.Cluster.Quotas, quota)
	}
	if one(6) {
		s.Cluster.Nodes[random.IntN(len(s.Cluster.Nodes))].Out = placement.NodeNotReady
	}
	if one(12) {
		s.Cluster = nil
	}
	policy.Idle.Enabled = one(3)
	for i := range s.Models {
		m := &s.Models[i]
		key := ModelKey{Namespace: m.Namespace, ID: m.ID}
		if one(3) {
			policy.Promises[key] = Promise{Class: "c", Priority: 1 + random.IntN(3), SLO: policy.Promises[key].SLO, Weight: 1 + 3*random.Float64()}
		}
		if one(3) {
			m.Met = Exactly(Sample{Value: 0.5 + random.Float64()/2, Time: s.Time.Add(-3 * time.Second), Present: true})
			if one(4) {
				m.Met.Value = []float64{0, 0.99, 1, 1.01}[random.IntN(4)]
			}
		}
		if one(6) {
			m.Queue, m.Arrival = Sample{Value: float64(random.IntN(3)), Time: s.Time.Add(-3 * time.Second), Present: true}, Sample{}
			for j := range m.Variants {
				v := &m.Variants[j]
				v.Current, v.Ready, v.Replicas, v.Starting = 0, 0, nil, nil
			}
		}
		if one(8) {
			m.Arrival.Time = s.Time.Add(-some(random, 60, 120, 300, random.IntN(400)))
		}
		for j := range m.Variants {
			disturbVariant(random, s, &m.Variants[j], policy)
		}
	}
}

func disturbVariant(random *rand.Rand, s *Snapshot, v *Variant, policy *Policy) {
	one := func(n int) bool { return random.IntN(n) == 0 }
	own := policy.Variants[Key{Namespace: "ns", Name: v.Name}]
	switch random.IntN(10) {
	case 0:
		own.Up.Select = SelectDisabled
	case 1:
		own.Down.Select = SelectDisabled
	case 2:
		own.Up.Policies = []RatePolicy{{Pods: 1 + random.IntN(3), Period: time.Minute}}
	case 3:
		own.Up.Window = time.Minute
	case 4:
		own.Down.Window = 5 * time.Minute
	case 5:
		own.Up.Tolerance, own.Down.Tolerance = 0.2, 0.2
	case 6:
		own.Actuation = []Actuation{ActuationOff, ActuationMetric}[random.IntN(2)]
	}
	own.OnUnknown = []OnUnknown{"", "", OnUnknownAllow, OnUnknownHold}[random.IntN(4)]
	policy.Variants[Key{Namespace: "ns", Name: v.Name}] = own
	if one(4) {
		v.Cost = 0
	}
	if one(4) {
		v.Startup = 0
	}
	if one(3) {
		v.Profile = serving.Profile{}
	}
	if one(4) {
		v.BatchLimit = 0
	}
	if one(6) {
		v.KVTokens, v.KVSource = 300000, serving.CacheComputed
	}
	if one(15) {
		v.Target = []TargetState{TargetMissing, TargetForbidden, TargetShared, TargetConflict}[random.IntN(4)]
	}
	if one(5) {
		v.Ordered, v.Settling = true, some(random, 0, 30)
	}
	if one(8) {
		v.Rolling = true
	}
	for k := range v.Starting {
		p := &v.Starting[k]
		p.Since = s.Time.Add(-some(random, 30, 60, 120, 180, 600, random.IntN(900)))
		p.Failing, p.Held, p.Pending = one(5), one(8), one(5)
		if p.Placed && s.Cluster != nil {
			p.Node = s.Cluster.Nodes[random.IntN(len(s.Cluster.Nodes))].Name
		}
	}
	if one(5) {
		v.ChoosesVictims = false
	}
	if one(6) {
		v.Surge = 1
	}
	if s.Cluster != nil && len(s.Cluster.Quotas) > 0 && one(2) {
		v.Request.Charges = []placement.Amount{{Index: 0, Count: int64(v.Request.Shape.Devices)}}
		if one(6) {
			v.Request.Charges[0].Count = s.Cluster.Quotas[0].Hard
		}
	}
	for k := range v.Replicas {
		p := &v.Replicas[k]
		age := s.Time.Add(-some(random, 60, 120, 300, random.IntN(500), random.IntN(500)))
		if one(8) {
			p.Since = s.Time.Add(-some(random, 20, 60, 300))
		}
		switch random.IntN(18) {
		case 0:
			p.Running.Time, p.Served.Time = age, age
		case 1:
			p.KVUse.Time = age
		case 2:
			p.Waiting.Value, p.Served.Value = 20, 0
		case 3:
			p.KVUse.Value = 0.95
		case 4:
			p.InService = Sample{}
		case 5:
			p.Input, p.Output = Sample{}, Sample{}
		case 6:
			p.KVTokens = Sample{}
		case 7:
			p.Recent, p.RecentSpan = Sample{Value: p.Served.Value * 1.2, Time: p.Served.Time, Present: true}, scrapeEvery
		case 8:
			p.KVUse.Value, p.Waiting.Value = []float64{0, rate.LeastKVUse, 0.7, 0.8}[random.IntN(4)], []float64{0, 2, 5}[random.IntN(3)]
		case 9:
			p.Running.Value = []float64{0, 0.8, 1}[random.IntN(3)] * float64(v.BatchLimit)
		case 10:
			p.Waiting = Sample{}
		case 11:
			p.Marked = true
		}
	}
}

// advance lets time go by: samples are as fresh as before, and of the replicas that are
// asked for some come, some wait for a node and some are not there.
func advance(random *rand.Rand, s *Snapshot, by time.Duration) {
	s.Time = s.Time.Add(by)
	for i := range s.Models {
		m := &s.Models[i]
		for _, p := range samples(m) {
			if p.Time.Add(time.Minute).After(s.Time.Add(-by)) {
				p.Time = p.Time.Add(by)
			}
		}
		for j := range m.Variants {
			v := &m.Variants[j]
			v.Starting = nil
			missing := v.Current - v.Ready
			for k := range max(0, missing-random.IntN(2)) {
				refused := random.IntN(3) == 0
				v.Starting = append(v.Starting, Starting{
					Name: fmt.Sprint(v.Name, "-n", k), Since: s.Time.Add(-some(random, 30, 60, 180, 600, int(by.Seconds()/2))),
					Placed: !refused, Unschedulable: refused && random.IntN(4) > 0, Failing: !refused && random.IntN(5) == 0,
				})
			}
			if missing < 0 {
				v.Ready = v.Current
				v.Replicas = v.Replicas[:min(len(v.Replicas), v.Current)]
			}
		}
	}
}
