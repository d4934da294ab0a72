package demo

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Replays is what a demo with these arguments does, for virtual time: one replay per
// model, in the order of the demo. Everything comes from what the demo itself uses: its
// nodes, pod templates, objects, settings and requests. The models do not share a replay
// because a replay deals one trace to its models: two of them must not need each other's room.
func Replays(args []string) ([]replay.Options, error) {
	o, err := parse(args, io.Discard)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return nil, err
	}
	return plan{Options: o, models: scenario()[:o.Models]}.replays()
}

func (p plan) replays() ([]replay.Options, error) {
	requests, err := p.requests()
	if err != nil {
		return nil, err
	}
	all := make([]replay.Options, 0, len(p.models))
	for i, m := range p.models {
		s, err := p.replayed(m)
		if err != nil {
			return nil, err
		}
		all = append(all, replay.Options{
			Scenario: s, Source: requests[i], Policies: []string{p.Mode},
			Startups: []time.Duration{p.Startup}, Seed: p.Seed, Record: true,
		})
	}
	return all, nil
}

// bounds are the least price per hour of the load in each minute of the traffic, and in one
// without, by model: what the page compares the cost with.
func (p plan) bounds() ([][]capacity.Cost, error) {
	requests, err := p.requests()
	if err != nil {
		return nil, err
	}
	all := make([][]capacity.Cost, 0, len(p.models))
	for i, m := range p.models {
		s, err := p.replayed(m)
		if err != nil {
			return nil, err
		}
		load, err := replay.Measure(s, requests[i], p.Seed)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.ID, err)
		}
		load[0] = append(load[0], replay.Minute{Length: time.Minute})
		bound, err := s.Bound(load)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.ID, err)
		}
		var own []capacity.Cost
		for minute := range load[0] {
			own = append(own, capacity.Cost(bound.CostAt(minute, 0)))
		}
		all = append(all, own)
	}
	return all, nil
}

// requests are those of every model.
func (p plan) requests() ([]replay.Source, error) {
	streams, done, err := p.streams()
	if err != nil {
		return nil, err
	}
	defer done()
	all := make([]replay.Source, 0, len(streams))
	for _, stream := range streams {
		var own []workload.Request
		for {
			r, err := stream.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			own = append(own, r)
		}
		all = append(all, func() (workload.Stream, error) { return &listed{requests: own}, nil })
	}
	return all, nil
}

// listed is a stream of requests that are in memory.
type listed struct{ requests []workload.Request }

// Next implements workload.Stream.
func (l *listed) Next() (workload.Request, error) {
	if len(l.requests) == 0 {
		return workload.Request{}, io.EOF
	}
	r := l.requests[0]
	l.requests = l.requests[1:]
	return r, nil
}

// replayed is the demo with one of its models, seen through what the manager sees it
// through.
func (p plan) replayed(m model) (*replay.Scenario, error) {
	configuration, err := config.Load(config.Sources{Lookup: p.lookUp})
	if err != nil {
		return nil, err
	}
	var made []*corev1.Node
	for _, n := range nodes() {
		made = append(made, n.Node)
	}
	stock := inventory.Read(made, nil)
	served := replay.Model{Namespace: namespace, ID: m.ID, SLO: m.SLO}
	for i, v := range m.Variants {
		one, err := replayedVariant(m, v, stock)
		if err != nil {
			return nil, fmt.Errorf("variant %s: %w", v.Name, err)
		}
		one.Initial = initialReplicas(i)
		served.Variants = append(served.Variants, one)
	}
	return &replay.Scenario{
		Name: "demo", Cluster: stock.Cluster, Models: []replay.Model{served},
		Policy: configuration.Policy(), Drain: gracePeriod * time.Second,
		Collection: replay.Collection{Scrape: scrapeInterval, Window: configuration.MetricsWindow, Gateway: true},
	}, nil
}

// lookUp finds a setting that the demo gives the manager. The address of Prometheus,
// which only a running cluster has, is made up.
func (p plan) lookUp(name string) (string, bool) {
	for _, setting := range append(managerSettings(p.Mode), "PROMETHEUS_BASE_URL=https://prometheus") {
		if value, found := strings.CutPrefix(setting, name+"="); found {
			return value, true
		}
	}
	return "", false
}

func replayedVariant(m model, v variant, stock *inventory.Inventory) (replay.Variant, error) {
	object := autoscaling(m, v)
	policy, err := config.VariantPolicy(&object.Spec)
	if err != nil {
		return replay.Variant{}, err
	}
	given, _, err := object.Spec.Profile()
	if err != nil {
		return replay.Variant{}, err
	}
	request, err := requestOf(m, v, stock)
	return replay.Variant{
		Name: v.Name, Cost: v.cost(), Request: request,
		Profile: v.Profile, Given: given.Profile(), TokenBudget: v.TokenBudget, Policy: policy,
	}, err
}

// requestOf is what a replica takes, as the pods of its Deployment say it once they are made.
func requestOf(m model, v variant, stock *inventory.Inventory) (*placement.Request, error) {
	template := admitted(m, v)
	template.Namespace = namespace
	request, err := stock.Request(template, inventory.PodOf(template), inventory.Normalize(string(v.Accelerator)))
	if err != nil {
		return nil, err
	}
	request.Shape.Pods = 1
	return request, nil
}
