package decision

import (
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// world is a fluid model of one served model in steady state, the slow reference
// that the decision is tried against: replicas share the load so that each has the
// same number of requests in service, and start after a delay.
type world struct {
	now      time.Time
	tokens   capacity.TokenShape
	arrival  float64
	backlog  float64
	startup  time.Duration
	variants []*worldVariant
	cluster  *placement.Cluster
	gateway  bool
}

type worldVariant struct {
	name    string
	profile serving.Profile
	// told is the profile that the object states.
	told     serving.Profile
	cost     capacity.Cost
	request  *placement.Request
	replicas int
	created  []time.Time
}

var (
	epoch    = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	conv     = capacity.TokenShape{Input: 1155, Output: 211}
	onH100   = serving.Profile{Base: 6.46, PerResidentToken: 4.71e-5, PerPrefillToken: 0.022, KVTokens: 447936, BatchLimit: 128}
	on2xL40S = serving.Profile{Base: 12.5, PerResidentToken: 9.1e-5, PerPrefillToken: 0.030, KVTokens: 500000, BatchLimit: 128}
)

func request(accelerator capacity.Accelerator, devices int) *placement.Request {
	return &placement.Request{Shape: capacity.Shape{Accelerator: accelerator, Devices: devices, Pods: 1}}
}

// nodes is a cluster of n nodes with that many free devices each.
func nodes(n int, accelerator capacity.Accelerator, devices int) []placement.Node {
	list := make([]placement.Node, n)
	for i := range list {
		size := placement.Resources{Devices: devices, MilliCPU: 1 << 30, MemoryBytes: 1 << 50, Pods: 110}
		list[i] = placement.Node{Name: fmt.Sprintf("%s-%d", accelerator, i), Accelerator: accelerator, Allocatable: size, Free: size}
	}
	return list
}

func newWorld(arrival float64) *world {
	w := &world{now: epoch, tokens: conv, arrival: arrival, startup: 15 * time.Second, gateway: true}
	w.variants = []*worldVariant{
		{name: "a-h100", profile: onH100, told: onH100, cost: 6.88, request: request("H100", 1)},
		{name: "b-l40s", profile: on2xL40S, told: on2xL40S, cost: 3.72, request: request("L40S", 2)},
	}
	w.setReplicas(0, 1)
	w.now = w.now.Add(time.Hour)
	return w
}

func (w *world) setReplicas(i, n int) {
	v := w.variants[i]
	for len(v.created) < n {
		v.created = append(v.created, w.now)
	}
	v.created = v.created[:n]
	v.replicas = n
}

func (w *world) ready(v *worldVariant) int {
	n := 0
	for _, c := range v.created {
		if w.now.Sub(c) >= w.startup {
			n++
		}
	}
	return n
}

// inService is the number of requests in service per replica at which the ready
// replicas serve the arrivals, or the batch limit.
func (w *world) inService() (n float64, saturated bool) {
	rate := func(n float64) float64 {
		sum := 0.0
		for _, v := range w.variants {
			sum += float64(w.ready(v)) * float64(v.profile.Steady(n, w.tokens).Rate)
		}
		return sum
	}
	limit := 128.0
	if rate(limit) < w.arrival {
		return limit, true
	}
	low, high := 0.0, limit
	for range 60 {
		if mid := (low + high) / 2; rate(mid) < w.arrival {
			low = mid
		} else {
			high = mid
		}
	}
	return high, false
}

func (w *world) sample(v float64) Sample {
	return Sample{Value: v, Time: w.now.Add(-3 * time.Second), Present: true}
}

func (w *world) snapshot() Snapshot {
	n, saturated := w.inService()
	waiting, replicas := 0.0, 0
	for _, v := range w.variants {
		replicas += w.ready(v)
	}
	if saturated && replicas > 0 {
		waiting = 20 + w.backlog/float64(replicas)
	}
	m := Model{Namespace: "ns", ID: "m"}
	if w.gateway {
		m.Arrival, m.Queue = w.sample(w.arrival), w.sample(0)
	}
	for _, v := range w.variants {
		s := Variant{
			Name: v.name, Current: v.replicas, Ready: w.ready(v), Request: v.request,
			Cost: v.cost, Profile: v.told, BatchLimit: 128, BatchSource: serving.BatchStated, Startup: w.startup,
		}
		for i, c := range v.created {
			if w.now.Sub(c) < w.startup {
				s.Starting = append(s.Starting, Starting{Name: fmt.Sprint(v.name, i), Since: c, Placed: true})
			}
		}
		for i := range s.Ready {
			at := v.profile.Steady(n, w.tokens)
			s.Replicas = append(s.Replicas, Replica{
				Name:           fmt.Sprint(v.name, "-", i),
				KVUse:          w.sample(n * float64(w.tokens.Input+w.tokens.Output/2) / float64(v.profile.KVTokens)),
				Waiting:        w.sample(waiting),
				Running:        w.sample(n),
				Served:         w.sample(float64(at.Rate)),
				InFlightGrowth: w.sample(0),
				Input:          w.sample(float64(w.tokens.Input)),
				Output:         w.sample(float64(w.tokens.Output)),
			})
		}
		m.Variants = append(m.Variants, s)
	}
	return Snapshot{Time: w.now, Models: []Model{m}, Cluster: w.cluster}
}

// apply acts on a plan and reports whether anything changed.
func (w *world) apply(p Plan) bool {
	changed := false
	for i, v := range p.Models[0].Variants {
		if v.Desired != nil && *v.Desired != w.variants[i].replicas {
			w.setReplicas(i, *v.Desired)
			changed = true
		}
	}
	return changed
}

// eachServes is what one replica of a variant serves at the load that the triggers
// allow.
func (w *world) eachServes(i int) float64 {
	return float64(w.variants[i].profile.Steady(0.7*128, w.tokens).Rate)
}

// serves is the rate at which the model's replicas, once started, are as full as
// the triggers allow.
func (w *world) serves() float64 {
	sum := 0.0
	for _, v := range w.variants {
		sum += float64(v.replicas) * float64(v.profile.Steady(0.7*128, w.tokens).Rate)
	}
	return sum
}

func demoPolicy() Policy {
	p := DefaultPolicy()
	p.Interval, p.Window = 15*time.Second, 20*time.Second
	// Switches have tests of their own.
	p.Horizon = 0
	down := DefaultVariantPolicy()
	down.Down.Window = 30 * time.Second
	p.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "a-h100"}: down, {Namespace: "ns", Name: "b-l40s"}: down}
	return p
}
