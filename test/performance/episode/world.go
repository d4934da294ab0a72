package episode

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// phase is a time of constant load.
type phase struct {
	// rate is in requests per second.
	rate   float64
	length time.Duration
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// pause lies between two phases: the published load generator (github.com/kubernetes-sigs/
// inference-perf at 0167ee6, run_stage) begins a phase when all requests of the one before have
// ended. How long that takes depends on the policy. Here it is always about what a request of
// 1,000 tokens takes, so that all policies get the same requests.
const pause = 30 * time.Second

// The published phases: those that are scored (scored-config.yml), and those before, in which
// whoever learns may learn (ip-burnin-config.yml).
var (
	scored = []phase{{2, seconds(330)}, {4, seconds(360)}, {6, seconds(360)}, {8, seconds(360)}, {10, seconds(360)}, {4, seconds(360)}, {1, seconds(300)}}
	burnIn = []phase{{2, seconds(240)}, {6, seconds(360)}, {9, seconds(300)}, {3, seconds(240)}}
)

// The published world.
const (
	model    = "Qwen/Qwen3-32B"
	devices  = 2
	least    = 3
	most     = 8
	startup  = 100 * time.Second
	scrape   = 5 * time.Second
	ttft     = capacity.Milliseconds(3000)
	tpot     = capacity.Milliseconds(100)
	drain    = 15 * time.Minute
	variance = 0.1
)

// lengths of prompts and answers are normal, cut off at both ends by drawing again.
type lengths struct{ least, most, mean, deviation float64 }

var (
	prompts = lengths{3500, 4500, 4000, 300}
	answers = lengths{900, 1100, 1000, 80}
)

func (l lengths) draw(random *rand.Rand) int {
	for {
		if n := l.mean + l.deviation*random.NormFloat64(); n >= l.least && n <= l.most {
			return int(n + 0.5)
		}
	}
}

// load are requests at even distances within each phase. One last request of one token comes
// so much later, for who has to see the time until then.
type load struct {
	phases []phase
	after  time.Duration
	random *rand.Rand
	// at is the place in the phase that began at from.
	at    int
	from  time.Duration
	ended bool
}

func newLoad(phases []phase, after time.Duration, seed uint64) *load {
	return &load{phases: phases, after: after, random: rand.New(rand.NewPCG(seed, 0))}
}

// Next implements workload.Stream.
func (l *load) Next() (workload.Request, error) {
	for len(l.phases) > 0 {
		p := l.phases[0]
		if arrival := time.Duration(float64(l.at) / p.rate * float64(time.Second)); arrival < p.length {
			l.at++
			return workload.Request{Arrival: l.from + arrival, Input: prompts.draw(l.random), Output: answers.draw(l.random)}, nil
		}
		l.phases, l.at, l.from = l.phases[1:], 0, l.from+p.length+pause
	}
	if l.ended || l.after == 0 {
		return workload.Request{}, io.EOF
	}
	l.ended = true
	return workload.Request{Arrival: l.from + l.after, Input: 1, Output: 1}, nil
}

// length is that of some phases, each with its pause.
func length(phases []phase) time.Duration {
	var sum time.Duration
	for _, p := range phases {
		sum += p.length + pause
	}
	return sum
}

// profile is that of one replica, by the published figures of model and devices alone.
func profile() (serving.Profile, error) {
	arguments := serving.Arguments{TensorParallel: devices}
	figures := serving.FiguresOf(model, arguments)
	p, known := serving.Reckoned(figures, shape())
	if !known {
		return p, fmt.Errorf("the published figures do not say how fast %s is on %d H100", model, devices)
	}
	const gib = 80
	p.KVTokens, _ = serving.KVCapacity(serving.CacheConfig{}, arguments, serving.MemoryOf(figures, arguments, gib, devices))
	if p.KVTokens == 0 {
		return p, errors.New("the published figures do not say how large the KV cache is")
	}
	return p, nil
}

func shape() capacity.Shape {
	return capacity.Shape{Accelerator: "H100", Devices: devices, Pods: 1, MilliCPU: 1000, MemoryBytes: 1 << 30}
}

// world is the scenario: nodes for all replicas, of which three serve at the beginning.
func world() (*replay.Scenario, error) {
	p, err := profile()
	if err != nil {
		return nil, err
	}
	policy := decision.DefaultVariantPolicy()
	policy.Min, policy.Max = least, most
	s := &replay.Scenario{
		Name: "episode", Cluster: &placement.Cluster{}, Policy: decision.DefaultPolicy(), Variation: variance, Drain: 2 * time.Minute,
		Collection: replay.Collection{Scrape: scrape, Window: time.Minute, Gateway: true},
		Models: []replay.Model{{
			Namespace: "default", ID: model, SLO: capacity.SLO{TTFT: ttft, ITL: tpot},
			Variants: []replay.Variant{{
				// Who profiles its servers beforehand, as the planner, is given what that finds. Ours
				// is not, because it begins with its lesson.
				Name: "h100-2", Cost: 1, Profile: p, Given: p, TokenBudget: simulation.LargeTokenBudget, Policy: policy, Initial: least,
				Request: &placement.Request{Shape: shape()},
			}},
		}},
	}
	const each = 8
	for i := range most * devices / each {
		whole := placement.Resources{Devices: each, MilliCPU: 192_000, MemoryBytes: 2 << 40, Pods: 110}
		s.Cluster.Nodes = append(s.Cluster.Nodes, placement.Node{Name: fmt.Sprintf("h100-%d", i), Accelerator: "H100", Allocatable: whole, Free: whole})
	}
	return s, nil
}
