package decision

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// estate is a cluster of as many nodes as variants, two variants for each model, and
// ten ready replicas for each variant, under the share of the load that they carry at
// the triggers.
func estate(variants int, share float64) (Snapshot, Policy) {
	s := Snapshot{Time: epoch.Add(2 * time.Hour)}
	policy := DefaultPolicy()
	policy.Limited = true
	policy.Promises = map[ModelKey]Promise{}
	for i := range variants / 2 {
		w := newWorld(1)
		w.setReplicas(0, 10)
		w.setReplicas(1, 10)
		w.now = s.Time
		// No two models are alike.
		w.tokens.Input += capacity.Tokens(i % 97)
		w.arrival = share * w.serves() * (1 - float64(i%31)/200)
		m := w.snapshot().Models[0]
		m.ID = fmt.Sprintf("m%05d", i)
		for j := range m.Variants {
			v := &m.Variants[j]
			v.Name = fmt.Sprintf("%s-%05d", v.Name, i)
			for k := range v.Replicas {
				r := &v.Replicas[k]
				r.Name = fmt.Sprintf("%s-%d", v.Name, k)
				r.ITL, r.TTFT = Sample{Value: 0.01 + r.Running.Value/1e4, Time: r.Running.Time, Present: true}, Sample{Value: 0.1, Time: r.Running.Time, Present: true}
			}
		}
		s.Models = append(s.Models, m)
		policy.Promises[ModelKey{Namespace: "ns", ID: m.ID}] = Promise{Class: "c", Priority: 1 + i%5, SLO: capacity.SLO{TTFT: 1000, ITL: 30}}
	}
	s.Cluster = &placement.Cluster{Nodes: append(nodes(variants/2, "H100", 8), nodes(variants/2, "L40S", 8)...)}
	return s, policy
}

// BenchmarkDecide is one full round of a big cluster: in a steady state, at loads that
// have every model grow (with room, without, and while pods of all wait for nodes) or
// shrink, and in hybrid mode, for a leader of long standing and for a new one. What
// memory and plan hold beside the inputs is reported as live-MB.
func BenchmarkDecide(b *testing.B) {
	for _, variants := range []int{1250, 2500, 5000} {
		for _, c := range []struct {
			name          string
			share         float64
			hybrid, fresh bool
			change        func(*Snapshot)
		}{
			{name: "steady", share: 0.95},
			{name: "all-grow", share: 1.4},
			{name: "crowded", share: 1.4, change: crowd},
			{name: "all-wait", share: 1.4, change: wait},
			{name: "all-shrink", share: 0.3},
			{name: "hybrid", share: 0.95, hybrid: true},
			{name: "hybrid-new-leader", share: 0.95, hybrid: true, fresh: true},
		} {
			b.Run(fmt.Sprintf("variants=%d/%s", variants, c.name), func(b *testing.B) {
				s, policy := estate(variants, c.share)
				policy.Hybrid = c.hybrid
				if c.change != nil {
					c.change(&s)
				}
				benchmarkRounds(b, s, policy, c.fresh)
			})
		}
	}
}

// BenchmarkDecideCrisis is one full round in which nothing suffices, as it first comes, by the
// number of variants: what it takes should grow about as they do, but for thousands of models of
// different shapes, of which each looks at what all others leave (docs/limits.md).
func BenchmarkDecideCrisis(b *testing.B) {
	for _, c := range []struct {
		name  string
		build func(variants int) (Snapshot, Policy)
	}{
		{"five-priorities", fivePriorities},
		{"thirty-variants", func(variants int) (Snapshot, Policy) { return thirtyVariants(variants, 1) }},
		{"thirty-variants-grow", func(variants int) (Snapshot, Policy) { return thirtyVariants(variants, 2.1) }},
		{"backed-off", backedOff},
		{"quota-bound", quotaBound},
		{"all-switch", allSwitch},
		{"distinct-shapes", distinctShapes},
	} {
		for _, variants := range []int{320, 640, 1280, 2560, 5120} {
			b.Run(fmt.Sprintf("%s/variants=%d", c.name, variants), func(b *testing.B) {
				s, policy := c.build(variants)
				benchmarkRounds(b, s, policy, true)
			})
		}
	}
}

// fivePriorities are models of five priorities, all of which lack room and have requests that
// wait at the gateway, on nodes without a free device.
func fivePriorities(variants int) (Snapshot, Policy) {
	s, policy := estate(variants, 1.4)
	devices := [2]int{}
	for i := range s.Models {
		s.Models[i].Queue = Sample{Value: 500, Time: s.Models[i].Arrival.Time, Present: true}
		for j := range s.Models[i].Variants {
			devices[j] += len(s.Models[i].Variants[j].Replicas) * s.Models[i].Variants[j].Request.Shape.Devices
		}
	}
	lists := [2][]placement.Node{nodes((devices[0]+7)/8, "H100", 8), nodes((devices[1]+7)/8, "L40S", 8)}
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			v, list := &s.Models[i].Variants[j], lists[j]
			v.ChoosesVictims = true
			for k := range v.Replicas {
				// Those of a model are on several nodes, and those of several models on one.
				at := (i*len(v.Replicas) + k) * 7 % len(list)
				for list[at].Free.Devices < v.Request.Shape.Devices {
					at = (at + 1) % len(list)
				}
				list[at].Free.Devices -= v.Request.Shape.Devices
				v.Replicas[k].Node = list[at].Name
			}
		}
	}
	s.Cluster = &placement.Cluster{Nodes: append(lists[0], lists[1]...)}
	return s, policy
}

// thirtyVariants are models of thirty variants with about the same price per request, under a
// share of the load that they carry, and a cluster in which each of the variants finds some room
// and all together find little.
func thirtyVariants(variants int, share float64) (Snapshot, Policy) {
	const each, replicas = 30, 3
	models := max(1, variants/each)
	s, policy := estate(2*models, share)
	for i := range s.Models {
		m := &s.Models[i]
		two := m.Variants
		m.Variants = nil
		for j := range each {
			v := two[j%2]
			v.Name, v.ChoosesVictims = fmt.Sprintf("%s-%02d", v.Name, j), true
			v.Current, v.Ready, v.Replicas = replicas, replicas, slices.Clone(v.Replicas[:replicas])
			for k := range v.Replicas {
				v.Replicas[k].Name = fmt.Sprintf("%s-%d", v.Name, k)
			}
			v.Cost += 0.013 * capacity.Cost(j*j%29)
			v.Request = request(v.Request.Shape.Accelerator, 1+j%4)
			m.Variants = append(m.Variants, v)
		}
		m.Arrival.Value *= each * replicas / 20.
	}
	s.Cluster = &placement.Cluster{Nodes: append(nodes(models*each/2, "H100", 8), nodes(models*each/2, "L40S", 8)...)}
	for i := range s.Cluster.Nodes {
		s.Cluster.Nodes[i].Free.Devices = max(0, 4-i%4*4)
	}
	return s, policy
}

// crowd leaves few devices free.
func crowd(s *Snapshot) {
	for i := range s.Cluster.Nodes {
		s.Cluster.Nodes[i].Free.Devices = max(0, i%9-6)
	}
}

// wait has two pods of each variant wait for a node in a crowded cluster.
func wait(s *Snapshot) {
	crowd(s)
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			v := &s.Models[i].Variants[j]
			v.Current += 2
			for k := range 2 {
				v.Starting = append(v.Starting, Starting{Name: fmt.Sprint(v.Name, "-s", k), Since: s.Time.Add(-time.Minute), Unschedulable: k == 0})
			}
		}
	}
}

func benchmarkRounds(b *testing.B, s Snapshot, policy Policy, fresh bool) {
	_, memory := Decide(s, policy, Memory{}, RoundFull)
	before := live()
	b.ReportAllocs()
	var plan Plan
	for b.Loop() {
		// Every round sees new samples.
		s.Time = s.Time.Add(policy.Interval)
		for i := range s.Models {
			for _, sample := range samples(&s.Models[i]) {
				sample.Time = s.Time
			}
		}
		if fresh {
			memory = Memory{}
		}
		plan, memory = Decide(s, policy, memory, RoundFull)
	}
	b.StopTimer()
	after := live()
	require.Len(b, plan.Models, len(s.Models))
	require.NotEmpty(b, memory.Variants)
	b.ReportMetric(max(0, after-before)/(1<<20), "live-MB")
}

// live is the memory in use after a collection.
func live() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// backedOff are models all of whose pods wait for nodes in vain, so that each of them is left alone.
func backedOff(variants int) (Snapshot, Policy) {
	s, policy := estate(variants, 1.4)
	wait(&s)
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			for k := range s.Models[i].Variants[j].Starting {
				started := &s.Models[i].Variants[j].Starting[k]
				started.Since, started.Unschedulable = s.Time.Add(-time.Hour), true
			}
		}
	}
	return s, policy
}

// quotaBound are models of which each has a quota that takes two more of its replicas.
func quotaBound(variants int) (Snapshot, Policy) {
	s, policy := estate(variants, 1.4)
	for i := range s.Models {
		s.Cluster.Quotas = append(s.Cluster.Quotas, placement.Quota{Namespace: "ns", Name: s.Models[i].ID, Resource: "requests.nvidia.com/gpu", Hard: 100, Left: 4})
		for j := range s.Models[i].Variants {
			q := s.Models[i].Variants[j].Request
			q.Charges = []placement.Amount{{Index: i, Count: int64(q.Shape.Devices)}}
		}
	}
	return s, policy
}

// allSwitch are models whose replicas are all of the variant that has become the dear one.
func allSwitch(variants int) (Snapshot, Policy) {
	s, policy := estate(variants, 0.95)
	for i := range s.Models {
		dear, cheap := &s.Models[i].Variants[0], &s.Models[i].Variants[1]
		dear.Cost, cheap.Cost = 20, 1
		cheap.Current, cheap.Ready, cheap.Replicas = 0, 0, nil
		s.Models[i].Arrival.Value /= 2
	}
	return s, policy
}

// distinctShapes are variants of which no two ask for the same CPU, and all want to grow.
func distinctShapes(variants int) (Snapshot, Policy) {
	s, policy := estate(variants, 1.4)
	for i := range s.Cluster.Nodes {
		n := &s.Cluster.Nodes[i]
		n.Free.MilliCPU, n.Allocatable.MilliCPU = 1<<40, 1<<40
	}
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			s.Models[i].Variants[j].Request.Shape.MilliCPU = int64(1000 + 2*i + j)
		}
	}
	return s, policy
}
