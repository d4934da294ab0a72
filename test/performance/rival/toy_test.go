package rival

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// toyCache is the KV cache of a replica of a toy, toyBatch the requests that one serves
// at once, and toyTokens what each of those holds.
const (
	toyCache  = 10000
	toyBatch  = 10
	toyTokens = 1000
)

// toy is a cluster of arithmetic: a model has so many requests in flight, shared evenly
// by the replicas that serve, and what is more than toyBatch at a replica waits there.
type toy struct {
	scenario *replay.Scenario
	startup  time.Duration
	// inFlight is the requests of each model at a time.
	inFlight func(model int, now time.Duration) int
	// room is how many replicas of all can start; negative means all.
	room int
	view *replay.View
	made int
}

// toyVariant has replicas of one device that serve toyBatch requests at once.
func toyVariant(name string, cost float64, least, most int) replay.Variant {
	return replay.Variant{
		Name: name, Cost: capacity.Cost(cost), Policy: decision.VariantPolicy{Min: least, Max: most},
		Request: &placement.Request{Shape: capacity.Shape{Accelerator: "H100", Devices: 1, Pods: 1}},
		Profile: serving.Profile{Base: 10, BatchLimit: toyBatch, KVTokens: toyCache},
	}
}

// elsewhere puts a variant on another accelerator.
func elsewhere(v replay.Variant) replay.Variant {
	v.Request = &placement.Request{Shape: capacity.Shape{Accelerator: "H200", Devices: 1, Pods: 1}}
	return v
}

func newToy(initial []int, variants ...replay.Variant) *toy {
	s := &replay.Scenario{Models: []replay.Model{{ID: "toy", Variants: variants}}}
	t := &toy{scenario: s, startup: time.Minute, room: -1, view: &replay.View{Scenario: s, Models: []replay.ModelView{{Variants: make([]replay.VariantView, len(variants))}}}}
	for v, n := range initial {
		t.scale(0, v, n, 0)
		for i := range t.view.Models[0].Variants[v].Pods {
			pod := &t.view.Models[0].Variants[v].Pods[i]
			pod.Stage, pod.Ready = simulation.Serving, 0
		}
	}
	return t
}

func (t *toy) scale(model, v, replicas int, now time.Duration) {
	seen := &t.view.Models[model].Variants[v]
	seen.Replicas = replicas
	for len(seen.Pods) < replicas {
		t.made++
		seen.Pods = append(seen.Pods, replay.Pod{Replica: simulation.Replica{
			Name: fmt.Sprintf("pod-%04d", t.made), Stage: simulation.Created, Node: -1, Created: now, Placed: -1, Ready: -1,
		}})
	}
	seen.Pods = seen.Pods[:replicas]
}

// beat starts what has waited long enough, and scrapes every 15 s.
func (t *toy) beat(now time.Duration) {
	t.view.Now = now
	free := t.room
	t.each(func(pod *replay.Pod) {
		if pod.Stage != simulation.Created {
			free--
		}
	})
	t.each(func(pod *replay.Pod) {
		if pod.Stage == simulation.Created && (t.room < 0 || free > 0) {
			pod.Stage, pod.Placed, pod.Node = simulation.Placed, now, 0
			free--
		}
		if pod.Stage == simulation.Placed && now >= pod.Placed+t.startup {
			pod.Stage, pod.Ready = simulation.Serving, now
		}
	})
	for m := range t.view.Models {
		if now%(15*time.Second) == 0 {
			t.scrape(m, now)
		}
	}
}

func (t *toy) each(visit func(*replay.Pod)) {
	for m := range t.view.Models {
		for v := range t.view.Models[m].Variants {
			for i := range t.view.Models[m].Variants[v].Pods {
				visit(&t.view.Models[m].Variants[v].Pods[i])
			}
		}
	}
}

func (t *toy) scrape(model int, now time.Duration) {
	serving := 0
	for _, v := range t.view.Models[model].Variants {
		serving += v.Ready()
	}
	for v := range t.view.Models[model].Variants {
		pods := t.view.Models[model].Variants[v].Pods
		for i := range pods {
			if pods[i].Stage != simulation.Serving {
				continue
			}
			n := t.inFlight(model, now) / serving
			ended := uint64(now / time.Second)
			pods[i].Scrapes = append(pods[i].Scrapes, replay.Scrape{At: now, Metrics: simulation.Metrics{
				Running: min(n, toyBatch), Waiting: max(0, n-toyBatch), KVUsed: min(n, toyBatch) * toyTokens, KVCapacity: toyCache,
				Finished: ended, Input: 900 * ended, Output: 200 * ended,
			}})
		}
	}
}

// play lets a policy act until the end, and returns when the replicas of the first model
// changed, and to what.
func (t *toy) play(p replay.Policy, end time.Duration) []string {
	var out []string
	next := p.Next(-1)
	for now := time.Duration(0); now <= end; now += time.Second {
		t.beat(now)
		if now < next {
			continue
		}
		answer := p.Decide(t.view)
		if fmt.Sprint(answer.Replicas[0]) != fmt.Sprint(t.view.Asked()[0]) {
			out = append(out, fmt.Sprintf("%s %v", now, answer.Replicas[0]))
		}
		for m := range answer.Replicas {
			for v, n := range answer.Replicas[m] {
				t.scale(m, v, n, now)
			}
		}
		next = p.Next(now)
	}
	return out
}

// constant is always the same number of requests in flight.
func constant(n int) func(int, time.Duration) int {
	return func(int, time.Duration) int { return n }
}

// until is a number of requests in flight up to a time, and another one after it.
func until(end time.Duration, before, after int) func(int, time.Duration) int {
	return func(_ int, now time.Duration) int {
		if now < end {
			return before
		}
		return after
	}
}

// baseline is one of the rivals.
func baseline(t *testing.T, name string, s *replay.Scenario, choice ...int) replay.Policy {
	t.Helper()
	p, err := newBaseline(name, s, choice)
	require.NoError(t, err)
	return p
}

func newBaseline(name string, s *replay.Scenario, choice []int) (replay.Policy, error) {
	spec, err := replay.ParseSpec(name)
	if err != nil {
		return nil, err
	}
	family, _, _ := strings.Cut(spec.Family, ":")
	i := slices.IndexFunc(rivals, func(f *replay.Family) bool { return f.Name == family })
	return rivals[i].New(s, spec, choice)
}

// spec is a policy that people write so.
func spec(t *testing.T, text string) replay.Spec {
	t.Helper()
	s, err := replay.ParseSpec(text)
	require.NoError(t, err)
	return s
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// said is what one replica said at a second: requests that ended, their prompt tokens, and
// those that run and wait.
func said(second int, ended, tokens uint64, running, waiting int) replay.Scrape {
	return replay.Scrape{At: seconds(second), Metrics: simulation.Metrics{Finished: ended, Input: tokens, Running: running, Waiting: waiting}}
}
