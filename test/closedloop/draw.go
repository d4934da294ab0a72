package closedloop

import (
	"fmt"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// devices are the accelerators of the scenarios, with how much slower than the first
// one each is.
var devices = []struct {
	name   capacity.Accelerator
	slower float64
}{{"H100", 1}, {"A100", 1.6}, {"L40S", 2.6}}

// drawScenario makes a scenario of bytes.
func drawScenario(data []byte) *Scenario {
	d := &dice{data: data}
	s := &Scenario{Hybrid: d.chance(0.6), Limited: d.chance(0.25)}
	s.Calm = d.span(5*time.Minute, 30*time.Minute)
	models := 1
	if d.chance(0.2) {
		models = pick(d, 2, 2, 3, 4)
	}
	// All models share a namespace, and what is seen of one's gateway counts for all.
	gateway := d.chance(0.5)
	for i := range models {
		m := drawModel(d, i, s)
		m.Gateway = gateway
		s.Models = append(s.Models, m)
	}
	drawCluster(d, s)
	for range d.below(4) {
		s.Faults = append(s.Faults, drawFault(d, s))
	}
	if d.chance(0.05) {
		s.Longer = 3 * time.Hour
	}
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			drawOrder(d, &s.Models[i].Variants[j])
		}
	}
	for i := range s.Models {
		if d.chance(0.3) {
			s.Models[i].Misses = pick(d, d.between(0.8, 1), d.between(0.8, 1), d.between(0.5, 1.5))
			if d.chance(0.2) {
				// What is learned of misses moves for hours.
				s.Longer = 6 * time.Hour
			}
		}
	}
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			if v := &s.Models[i].Variants[j]; d.chance(0.1) {
				v.Wrong = d.scaled(0.4, 2.5)
			}
		}
	}
	drawEdits(d, s)
	if d.chance(0.05) {
		s.Together, s.Seed, s.Longer = pick(d, 1.0, 1, 4, 16), uint64(d.below(1000)), max(s.Longer, time.Hour)
	}
	drawBudgets(d, s)
	for i := range s.Models {
		if d.chance(0.15) {
			s.Models[i].Skew = pick(d, 1.3, 2.0, 4.0)
		}
	}
	drawMetrics(d, s)
	drawNodeFaults(d, s)
	drawSettings(d, s)
	drawRules(d, s)
	if d.chance(0.05) {
		f := drawFault(d, s)
		f.Kind = FaultUnshown
		s.Faults = append(s.Faults, f)
	}
	s.Unstated, s.Whole = d.chance(0.3), d.chance(0.5)
	drawClients(d, s)
	return s
}

// drawClients has the requests of some models come from so many clients as keep about the
// replicas busy that the load would. Those of shorter requests send several within a step.
func drawClients(d *dice, s *Scenario) {
	for i := range s.Models {
		if m := &s.Models[i]; d.chance(0.15) {
			c := newCurve(m.Variants[0].Profile, m, m.Variants[0].Budget)
			if clients := d.between(0.5, 2) * c.limit / c.max; c.n[0]/c.rate[0] >= step.Seconds() {
				m.Clients = clients
			}
		}
	}
}

// drawSettings draws what users may set for all models.
func drawSettings(d *dice, s *Scenario) {
	if d.chance(0.15) {
		at, queue := d.between(0.4, 0.98), float64(1+d.below(20))
		s.Saturation = decision.Saturation{
			KVCacheThreshold: at, KVSpareTrigger: d.between(0.02, 0.6) * at,
			QueueLengthThreshold: queue, QueueSpareTrigger: d.between(0.1, 1) * queue,
		}
	}
	if d.chance(0.1) {
		s.Share = pick(d, 0.5, 0.9, 0.999)
	}
}

// drawMetrics leaves some variants to HorizontalPodAutoscalers, which have no minimum of zero and
// ask nobody which replicas go.
func drawMetrics(d *dice, s *Scenario) {
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			if v := &s.Models[i].Variants[j]; d.chance(0.05) {
				v.Metric, v.Kubernetes, v.Policy.Actuation = true, true, decision.ActuationMetric
				v.Policy.Min = max(1, v.Policy.Min)
				if v.Policy.Max >= 0 {
					v.Policy.Max = max(v.Policy.Max, v.Policy.Min)
				}
			}
		}
	}
}

// drawBudgets bounds what servers of some models take in per iteration. More of long prompts
// wait while few requests are in service.
func drawBudgets(d *dice, s *Scenario) {
	for i := range s.Models {
		bounded := d.chance(0.15)
		for j := range s.Models[i].Variants {
			if bounded {
				s.Models[i].Variants[j].Budget = capacity.Tokens(pick(d, 512, 1024, 2048, 8192))
			}
		}
	}
}

// drawOrder makes some variants StatefulSets that keep their order, whose youngest replica
// goes, whatever is chosen. A row of slow replicas would last for many hours.
func drawOrder(d *dice, v *Variant) {
	ordered, settling := d.chance(0.15), pick(d, 0, 0, 10*time.Second, time.Minute)
	if ordered && v.Startup <= 3*time.Minute {
		v.Ordered, v.Settling, v.Kubernetes = true, settling, true
	}
}

func drawModel(d *dice, index int, s *Scenario) Model {
	m := Model{
		Name:     fmt.Sprintf("model-%d", index),
		Priority: pick(d, decision.LeastPriority, decision.LeastPriority, 50, 1),
		Shape: capacity.TokenShape{
			Input:  capacity.Tokens(int(d.scaled(64, 4096))),
			Output: capacity.Tokens(int(d.scaled(16, 1024))),
		},
	}
	if d.chance(0.3) {
		m.Patience = time.Minute
	}
	if d.chance(0.07) {
		m.Sleeps = d.span(2*time.Minute, 20*time.Minute)
	}
	told := 1.0
	if d.chance(0.07) {
		told = pick(d, 0.5, 0.0)
	}
	for j := range 1 + d.below(4) {
		m.Variants = append(m.Variants, drawVariant(d, j, told))
	}
	if len(m.Variants) == 1 {
		m.Even = d.chance(0.3)
	}
	m.SLO = drawSLO(d, &m)
	m.Load = drawLoad(d, &m, s)
	return m
}

func drawVariant(d *dice, index int, told float64) Variant {
	device := devices[d.below(len(devices))]
	v := Variant{
		Name:        string(rune('a' + index)),
		Accelerator: device.name,
		Devices:     pick(d, 1, 1, 2, 4, 8),
		Told:        d.unit() < told,
		Startup:     time.Duration(d.scaled(float64(5*time.Second), float64(pick(d, 2*time.Minute, 2*time.Minute, 20*time.Minute)))).Truncate(step),
		Seen:        !d.chance(0.4),
		Replicas:    d.below(4),
		Kubernetes:  d.chance(0.2),
		Grace:       pick(d, 0, 0, 30*time.Second),
	}
	v.Cost = capacity.Cost(v.Devices) * capacity.Cost(pick(d, 10.0, 10.0, 4.0, 25.0, 0.0, -1.0))
	if v.Cost < 0 {
		v.Cost = capacity.Cost(d.scaled(0.1, 100))
	}
	v.Profile = drawProfile(d, device.slower*d.between(0.7, 1.4), v.Devices)
	v.Policy, v.OwnUp, v.OwnDown = drawPolicy(d)
	return v
}

// drawProfile draws a server: like measured ones in proportion, from small models on one
// device to large ones on several.
func drawProfile(d *dice, slower float64, devices int) serving.Profile {
	if d.chance(0.2) {
		return withCache(serving.FourParameter{
			Alpha:        capacity.Milliseconds(slower * d.scaled(5, 25)),
			Beta:         capacity.Milliseconds(slower * d.scaled(0.02, 0.4)),
			Gamma:        capacity.Milliseconds(slower * d.scaled(2, 50)),
			Delta:        capacity.Milliseconds(slower * d.scaled(0.0003, 0.01)),
			MaxBatchSize: int(d.scaled(16, 256)),
		}.Profile(), d, devices)
	}
	return withCache(serving.Profile{
		Base:             capacity.Milliseconds(slower * d.scaled(5, 25)),
		PerRequest:       capacity.Milliseconds(slower * d.scaled(0.01, 0.2)),
		PerResidentToken: capacity.Milliseconds(slower * d.scaled(1e-6, 5e-5)),
		PerPrefillToken:  capacity.Milliseconds(slower * d.scaled(0.005, 0.08)),
		BatchLimit:       int(d.scaled(16, 512)),
	}, d, devices)
}

// withCache gives a server a KV cache, which holds at least a few of the longest
// requests.
func withCache(p serving.Profile, d *dice, devices int) serving.Profile {
	p.KVTokens = capacity.Tokens(int(d.scaled(30_000, 600_000))) * capacity.Tokens(devices)
	return p
}

func drawPolicy(d *dice) (policy decision.VariantPolicy, ownUp, ownDown bool) {
	policy = decision.DefaultVariantPolicy()
	policy.Min = pick(d, 0, 0, 0, 1, 2)
	policy.Max = pick(d, -1, -1, -1, 1, 4, 12)
	if policy.Max >= 0 {
		policy.Max = max(policy.Max, policy.Min)
	}
	if d.chance(0.3) {
		ownUp = drawBehavior(d, &policy.Up)
	}
	if d.chance(0.3) {
		ownDown = drawBehavior(d, &policy.Down)
	}
	return policy, ownUp, ownDown
}

// drawBehavior changes the rules of one direction. It reports whether they have rate
// policies of their own then. All are fast enough for a dozen replicas within an hour.
func drawBehavior(d *dice, b *decision.Behavior) (own bool) {
	switch d.below(6) {
	case 0:
		b.Window = d.span(0, 10*time.Minute)
	case 1:
		b.Policies = []decision.RatePolicy{{Pods: 1 + d.below(4), Period: d.span(15*time.Second, 3*time.Minute)}}
		own = true
	case 2:
		b.Policies = []decision.RatePolicy{
			{Pods: 1 + d.below(4), Period: d.span(15*time.Second, 3*time.Minute)},
			{Percent: 10 + d.below(91), Period: d.span(15*time.Second, 3*time.Minute)},
		}
		b.Select = pick(d, decision.SelectMax, decision.SelectMin)
		own = true
	case 3:
		b.Tolerance = d.between(0.05, 0.5)
	default:
		b.Select = decision.SelectDisabled
	}
	return own
}

// drawSLO draws a promise relative to what the variants do: none, one that is kept
// easily, hardly, only at the edge, or never.
func drawSLO(d *dice, m *Model) capacity.SLO {
	kind := d.below(7)
	if kind == 0 {
		return capacity.SLO{}
	}
	p := m.Variants[d.below(len(m.Variants))].Profile
	limit := p.Concurrency(m.Shape)
	idle, half, tenth := p.Steady(1, m.Shape), p.Steady(max(1, limit/2), m.Shape), p.Steady(max(1, limit/10), m.Shape)
	switch kind {
	case 1:
		return capacity.SLO{TTFT: 10 * half.TTFT, ITL: 1.3 * half.ITL}
	case 2:
		return capacity.SLO{TTFT: 3 * tenth.TTFT, ITL: 1.2 * tenth.ITL}
	case 3:
		return capacity.SLO{ITL: half.ITL}
	case 4:
		return capacity.SLO{TTFT: capacity.Milliseconds(d.between(2, 20)) * half.TTFT}
	case 5:
		return capacity.SLO{TTFT: 5 * half.TTFT, ITL: idle.ITL * capacity.Milliseconds(d.scaled(1.0005, 1.1))}
	default:
		return capacity.SLO{TTFT: 5 * half.TTFT, ITL: 0.8 * idle.ITL}
	}
}

// drawLoad draws what happens before the calm, and the constant load of the calm, in
// replicas of the variant that serves the least: up to a dozen.
func drawLoad(d *dice, m *Model, s *Scenario) []Point {
	unit := 0.0
	for j := range m.Variants {
		t := newTruth(m, &m.Variants[j], s, 0)
		each := t.saturation.most
		if t.promised && t.keeps() {
			each = t.promise.most
		}
		if unit == 0 || each < unit {
			unit = each
		}
	}
	level := func() float64 {
		if d.chance(0.12) {
			return 0
		}
		return unit * d.scaled(0.05, 12)
	}
	at := func() time.Duration { return d.span(0, s.Calm) }
	last := level()
	steady := Point{At: s.Calm, Rate: last}
	switch d.below(6) {
	case 0: // constant from the beginning
		return []Point{{Rate: last}}
	case 1: // one step
		first, when := level(), at()
		return []Point{{Rate: first}, {when, first}, {when + step, last}}
	case 2: // a ramp
		from := at()
		first := level()
		return []Point{{Rate: first}, {from, first}, steady}
	case 3: // a burst
		from := at()
		high := 4 * level()
		to := min(from+d.span(step, 5*time.Minute), s.Calm-2*step)
		if to <= from {
			return []Point{{Rate: last}}
		}
		return []Point{{Rate: last}, {from, last}, {from + step, high}, {to + step, high}, {to + 2*step, last}}
	case 4: // on and off
		low, high, period := level(), level(), d.span(time.Minute, 10*time.Minute)
		points := []Point{{Rate: low}}
		for t := period; t < s.Calm-step; t += period {
			low, high = high, low
			points = append(points, Point{t, points[len(points)-1].Rate}, Point{t + step, low})
		}
		return append(points, Point{s.Calm, points[len(points)-1].Rate}, Point{s.Calm + step, last})
	default: // silence, then the load
		when := at()
		return []Point{{Rate: 0}, {when, 0}, {when + step, last}}
	}
}

// drawCluster draws nodes that hold the replicas of the beginning: hardly more, some
// more, or as good as endless room.
func drawCluster(d *dice, s *Scenario) {
	const endless = 20 * 8
	room := pick(d, endless, endless, 16, 6, 0)
	each := pick(d, 8, 8, 4)
	for _, device := range devices {
		need, largest := 0, 0
		for i := range s.Models {
			for j := range s.Models[i].Variants {
				v := &s.Models[i].Variants[j]
				if v.Accelerator == device.name {
					// Whole nodes for what does not divide a node, so that all of it finds a place.
					need += v.Replicas * v.Devices
					largest = max(largest, v.Devices)
				}
			}
		}
		if largest == 0 {
			continue
		}
		size := max(each, largest)
		nodes := (need+size-1)/size + (d.below(room+1)+size-1)/size
		if nodes > 0 {
			s.Nodes = append(s.Nodes, NodeGroup{device.name, nodes, size})
		}
	}
	if !s.Limited {
		s.Hidden = d.chance(0.65)
		if d.chance(0.4) {
			s.Grows = d.span(time.Minute, 6*time.Minute)
		}
	}
}

func drawFault(d *dice, s *Scenario) Fault {
	f := Fault{
		Kind: pick(d, FaultHang, FaultCrash, FaultRollout, FaultCordon, FaultFrozen, FaultGone, FaultHalf, FaultFuture,
			FaultGateway, FaultWriter, FaultMax, FaultNoUp, FaultNoDown, FaultLeader),
		Model: d.below(len(s.Models)),
		Count: 1 + d.below(3),
		Every: pick(d, 0, 5*time.Minute, 11*time.Minute),
	}
	f.Variant = d.below(len(s.Models[f.Model].Variants))
	f.From = d.span(time.Minute, max(2*time.Minute, s.Calm-2*time.Minute))
	f.To = min(f.From+d.span(30*time.Second, 30*time.Minute), s.Calm)
	return f
}
