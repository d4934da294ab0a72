package simulation_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// seventy is about what a model of 70 billion parameters takes on four H100.
var seventy = serving.Profile{
	Base: 15, PerRequest: 0.05, PerResidentToken: 0.00004, PerPrefillToken: 0.03,
	BatchLimit: 256, KVTokens: 1_000_000,
}

// busy is a world of so many replicas, and a function that has the next request of a
// load of 1000 prompt and 200 generated tokens on average arrive, of which there are
// rate in a second.
func busy(t testing.TB, replicas int, rate float64) (*simulation.World, func()) {
	t.Helper()
	cluster := &placement.Cluster{}
	for range replicas {
		cluster.Nodes = append(cluster.Nodes, nodes(8).Nodes...)
	}
	w := world(t, simulation.WorldOptions{Cluster: cluster, Done: func(simulation.Outcome) {}}, simulation.ServedVariant{
		Name: "large", Profile: seventy, TokenBudget: 8192, Request: of(4), Max: -1, Initial: replicas,
	})
	random := rand.New(rand.NewPCG(1, 2))
	at := time.Duration(0)
	return w.World, func() {
		at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
		a := simulation.Arrival{}
		a.Arrival, a.Input, a.Output = at, 1+random.IntN(2000), 1+random.IntN(400)
		if err := w.Arrive(a); err != nil {
			t.Fatal(err)
		}
	}
}

// The time is for one request.
func BenchmarkWorld(b *testing.B) {
	for _, c := range []struct {
		name     string
		replicas int
		rate     float64
	}{
		{"20 requests a second on 8 replicas", 8, 20},
		{"200 requests a second on 30 replicas", 30, 200},
	} {
		b.Run(c.name, func(b *testing.B) {
			w, next := busy(b, c.replicas, c.rate)
			for range 1000 {
				next()
			}
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
			b.ReportMetric(float64(w.Now())/float64(b.Elapsed()), "times-real-time")
		})
	}
}
