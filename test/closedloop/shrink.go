package closedloop

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// shrink takes parts out of a scenario as long as the same check still fails without
// them.
func shrink(s *Scenario, decide Decider, check Check) *Scenario {
	for tried, next := 0, 0; ; tried, next = tried+1, next+1 {
		parts := s.smaller()
		if tried >= len(parts) {
			return s
		}
		if smaller := parts[next%len(parts)]; run(smaller, decide, check).failed(check) {
			s, tried, next = smaller, -1, next-1
		}
	}
}

// smaller are the scenarios that are simpler by one part.
func (s *Scenario) smaller() []*Scenario {
	var all []*Scenario
	with := func(change func(c *Scenario)) {
		c := s.clone()
		change(c)
		all = append(all, c)
	}
	if s.Together > 0 {
		with(func(c *Scenario) { c.Together = 0 })
	}
	if s.Longer > 0 {
		with(func(c *Scenario) { c.Longer = 0 })
	}
	for i := range s.Models {
		if len(s.Models) > 1 {
			with(func(c *Scenario) { c.withoutModel(i) })
		}
	}
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			if len(s.Models[i].Variants) > 1 {
				with(func(c *Scenario) { c.withoutVariant(i, j) })
			}
		}
	}
	for i := range s.Faults {
		with(func(c *Scenario) { c.Faults = slices.Delete(c.Faults, i, i+1) })
	}
	s.simplerCluster(with)
	for i := range s.Models {
		s.simplerModel(i, with)
		for j := range s.Models[i].Variants {
			s.simplerVariant(i, j, with)
		}
	}
	return all
}

func (s *Scenario) withoutModel(i int) {
	s.Models = slices.Delete(s.Models, i, i+1)
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Model == i })
	for k := range s.Faults {
		if s.Faults[k].Model > i {
			s.Faults[k].Model--
		}
	}
}

func (s *Scenario) withoutVariant(i, j int) {
	s.Models[i].Variants = slices.Delete(s.Models[i].Variants, j, j+1)
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Model == i && f.Variant == j })
	for k := range s.Faults {
		if s.Faults[k].Model == i && s.Faults[k].Variant > j {
			s.Faults[k].Variant--
		}
	}
}

func (s *Scenario) simplerCluster(with func(func(*Scenario))) {
	if s.Limited {
		with(func(c *Scenario) { c.Limited = false })
	}
	if s.Hidden {
		with(func(c *Scenario) { c.Hidden = false })
	}
	if s.Grows > 0 {
		with(func(c *Scenario) { c.Grows = 0 })
	}
	if s.Hybrid {
		with(func(c *Scenario) { c.Hybrid = false })
	}
	if s.Spreads {
		with(func(c *Scenario) { c.Spreads = false })
	}
	if s.Schedules > 0 {
		with(func(c *Scenario) { c.Schedules = 0 })
	}
	if s.Quota > 0 {
		with(func(c *Scenario) { c.Quota = 0 })
	}
	if s.Saturation != (decision.Saturation{}) {
		with(func(c *Scenario) { c.Saturation = decision.Saturation{} })
	}
	if s.Share > 0 {
		with(func(c *Scenario) { c.Share = 0 })
	}
	if s.Models[0].Gateway {
		with(func(c *Scenario) {
			for i := range c.Models {
				c.Models[i].Gateway = false
			}
		})
	}
	for i := range s.Nodes {
		if len(s.Nodes) > 1 {
			with(func(c *Scenario) { c.Nodes = slices.Delete(c.Nodes, i, i+1) })
		}
		if s.Nodes[i].Nodes < 100 {
			with(func(c *Scenario) { c.Nodes[i].Nodes = 100 })
		}
	}
}

func (s *Scenario) simplerModel(i int, with func(func(*Scenario))) {
	m := &s.Models[i]
	if len(m.Load) > 1 {
		with(func(c *Scenario) { c.Models[i].Load = []Point{{Rate: m.final()}} })
	}
	if len(m.Load) > 3 {
		with(func(c *Scenario) {
			c.Models[i].Load = []Point{m.Load[0], {s.Calm - step, m.Load[0].Rate}, {s.Calm, m.final()}}
		})
	}
	if m.Clients > 0 {
		with(func(c *Scenario) { c.Models[i].Clients = 0 })
	}
	if m.Even {
		with(func(c *Scenario) { c.Models[i].Even = false })
	}
	if m.Skew > 0 {
		with(func(c *Scenario) { c.Models[i].Skew = 0 })
	}
	if m.Misses > 0 {
		with(func(c *Scenario) { c.Models[i].Misses = 0 })
	}
	if m.Patience > 0 {
		with(func(c *Scenario) { c.Models[i].Patience = 0 })
	}
	if m.Sleeps > 0 {
		with(func(c *Scenario) { c.Models[i].Sleeps = 0 })
	}
	if m.Priority != decision.LeastPriority {
		with(func(c *Scenario) { c.Models[i].Priority = decision.LeastPriority })
	}
}

func (s *Scenario) simplerVariant(i, j int, with func(func(*Scenario))) {
	v := &s.Models[i].Variants[j]
	change := func(f func(v *Variant)) {
		with(func(c *Scenario) { f(&c.Models[i].Variants[j]) })
	}
	usual := decision.DefaultVariantPolicy()
	if fingerprint(v.Policy.Up) != fingerprint(usual.Up) {
		change(func(v *Variant) { v.Policy.Up, v.OwnUp = usual.Up, false })
	}
	if fingerprint(v.Policy.Down) != fingerprint(usual.Down) {
		change(func(v *Variant) { v.Policy.Down, v.OwnDown = usual.Down, false })
	}
	if v.Policy.Min > 0 {
		change(func(v *Variant) { v.Policy.Min = 0 })
	}
	if v.Policy.Max >= 0 {
		change(func(v *Variant) { v.Policy.Max = -1 })
	}
	if v.Devices > 1 {
		change(func(v *Variant) { v.Devices = 1 })
	}
	if v.Cost != 10 {
		change(func(v *Variant) { v.Cost = 10 })
	}
	if v.Replicas > 0 {
		change(func(v *Variant) { v.Replicas = 0 })
	}
	if v.Replicas > 1 {
		change(func(v *Variant) { v.Replicas = 1 })
	}
	if v.Startup > 30*time.Second {
		change(func(v *Variant) { v.Startup = 30 * time.Second })
	}
	if !v.Seen {
		change(func(v *Variant) { v.Seen = true })
	}
	if v.Wrong > 0 {
		change(func(v *Variant) { v.Wrong = 0 })
	}
	if v.Several {
		change(func(v *Variant) { v.Several = false })
	}
	if v.Metric {
		change(func(v *Variant) { v.Metric, v.Policy.Actuation = false, decision.ActuationScale })
	}
	if v.Budget > 0 {
		change(func(v *Variant) { v.Budget = 0 })
	}
	if !v.Told {
		change(func(v *Variant) { v.Told = true })
	}
	if v.Grace > 0 {
		change(func(v *Variant) { v.Grace = 0 })
	}
	if v.Ordered {
		change(func(v *Variant) { v.Ordered, v.Settling = false, 0 })
	}
	if v.Settling > 0 {
		change(func(v *Variant) { v.Settling = 0 })
	}
	if v.Kubernetes {
		change(func(v *Variant) { v.Ordered, v.Settling, v.Kubernetes = false, 0, false })
	}
}
