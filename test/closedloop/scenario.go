package closedloop

import (
	"cmp"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Scenario is everything that happens to a cluster, from a running start to the end.
type Scenario struct {
	// Limited and Hybrid are those of the policy.
	Limited, Hybrid bool
	// Unstated is set where no object or argument says how many requests a server holds, nor
	// how much KV cache it has.
	Unstated bool
	// Whole is set where servers and gateways count whole requests, as real ones do, so that one
	// that takes minutes is seen once.
	Whole bool
	// Saturation are the user's thresholds, and Share the share of the requests that is to keep
	// the promise; zero is the default.
	Saturation decision.Saturation
	Share      float64
	// Nodes are those of the cluster; Hidden says that nobody may read them.
	Nodes  []NodeGroup
	Hidden bool
	// Spreads says that the scheduler takes the node with the most room, Schedules how long it
	// takes, and Quota how many devices all replicas may take; 0 is any number.
	Spreads   bool
	Schedules time.Duration
	Quota     int
	// Grows is how long a node autoscaler takes to bring a node for a pod that fits on
	// none; 0 is a cluster that does not grow.
	Grows  time.Duration
	Models []Model
	Faults []Fault
	// Calm is when faults and changes of the load have ended.
	Calm time.Duration
	// Together is how many requests come at once, by chance; 0 is that they come evenly. Seed
	// is what the chance begins with.
	Together float64
	Seed     uint64
	// Longer is how much longer than usual the world is watched at the end.
	Longer time.Duration
}

// NodeGroup is a number of equal nodes.
type NodeGroup struct {
	Accelerator    capacity.Accelerator
	Nodes, Devices int
}

// Model is what is asked of one model and how it is promised.
type Model struct {
	Name     string
	Priority int
	// Weight is what its share of scarce devices counts among equally important models; 0 is 1.
	Weight float64
	SLO    capacity.SLO
	Shape  capacity.TokenShape
	// Gateway says that a gateway counts the requests and keeps those that nothing
	// serves. Without one they are lost.
	Gateway bool
	// Even says that the router knows nothing of load and gives every replica the same.
	// Otherwise the least loaded gets the next request.
	Even bool
	// Skew is how many times as many requests as another replica one may get, whatever it has
	// to do already: routers send a prompt where its beginning is known. 0 is as many.
	Skew float64
	// Patience is how long clients wait before they give up; 0 is for ever.
	Patience time.Duration
	// Sleeps is the retention after which the model may scale to zero; 0 is never.
	Sleeps time.Duration
	// Misses is where the latency model is wrong, and servers tell: the share of the promised
	// rate at which as many requests miss the promise as may; 0 is that nobody tells.
	Misses float64
	// Clients is how many there are for each request per second of the load where each of them
	// sends the next request when the last is answered, as load tests do; 0 is that requests come
	// whether others are answered or not.
	Clients float64
	// Load are requests per second over time, with straight lines between the points
	// and the last one for ever.
	Load     []Point
	Variants []Variant
}

// Point is a rate at a time.
type Point struct {
	At   time.Duration
	Rate float64
}

// Variant is one way to serve a model.
type Variant struct {
	Name        string
	Accelerator capacity.Accelerator
	Devices     int
	Cost        capacity.Cost
	// Profile is what a replica truly does. Told says that the decision is given it.
	Profile serving.Profile
	Told    bool
	// Wrong is how many times as long as in truth everything takes by the profile that is
	// given; 0 is that it is right.
	Wrong float64
	// Budget is how many tokens of prompts the server takes in per iteration; more wait. The
	// decision is not told. 0 is that all are taken in.
	Budget capacity.Tokens
	// Startup is how long a replica takes to serve once a node holds it.
	Startup time.Duration
	// Seen says that such a start was seen before the beginning.
	Seen bool
	// Grace is how long a replica that goes keeps its devices.
	Grace time.Duration
	// Replicas serve in the beginning.
	Replicas int
	// Policy is the user's; OwnUp and OwnDown say that rate policies are given in that
	// direction, which replace the default ones.
	Policy         decision.VariantPolicy
	OwnUp, OwnDown bool
	// Kubernetes says that the decision may not choose which replicas go.
	Kubernetes bool
	// Several says that a replica is of several pods, for which nobody counts the room.
	Several bool
	// Metric says that the number is shown as a metric, which a HorizontalPodAutoscaler applies.
	Metric bool
	// Ordered says that it is a StatefulSet that keeps its order: replicas come and go one
	// at a time, the next one once those before it have served for Settling.
	Ordered  bool
	Settling time.Duration
	// Stuck is set where the HorizontalPodAutoscaler of mode Metric sets nothing.
	Stuck bool
}

// FaultKind is one way in which things go wrong.
type FaultKind string

// The faults.
const (
	// FaultHang: some replicas complete nothing.
	FaultHang FaultKind = "hang"
	// FaultCrash: replicas that start do not come up.
	FaultCrash FaultKind = "crash"
	// FaultRollout: a rolling update whose new pods do not come up.
	FaultRollout FaultKind = "crashing rollout"
	// FaultLoss: all replicas die at once, and new ones start in their place.
	FaultLoss FaultKind = "all replicas lost"
	// FaultCordon: the nodes of the variant's accelerator take no new pods.
	FaultCordon FaultKind = "cordon"
	// FaultFrozen: samples keep their value and their time.
	FaultFrozen FaultKind = "frozen metrics"
	// FaultGone: samples are absent.
	FaultGone FaultKind = "no metrics"
	// FaultHalf: the samples of every other replica are absent.
	FaultHalf FaultKind = "half the metrics"
	// FaultFuture: samples keep their value and the time of the fault's end.
	FaultFuture FaultKind = "metrics of the future"
	// FaultGateway: the samples of the gateway are absent.
	FaultGateway FaultKind = "no gateway metrics"
	// FaultWriter: somebody else sets the replicas, at first and then every Every.
	FaultWriter FaultKind = "another writer"
	// FaultMax: the user lowers maxReplicas to Count, for good.
	FaultMax FaultKind = "maxReplicas lowered"
	// FaultNoUp and FaultNoDown: the user disables scaling in that direction, for good.
	FaultNoUp   FaultKind = "scaleUp disabled"
	FaultNoDown FaultKind = "scaleDown disabled"
	// FaultLeader: a new leader, without memory.
	FaultLeader FaultKind = "new leader"
	// FaultPrice: replicas cost Factor times as much.
	FaultPrice FaultKind = "another price"
	// FaultPrompts: requests are Factor times as long.
	FaultPrompts FaultKind = "other lengths"
	// FaultPromise: the promised latencies are Factor times as long.
	FaultPromise FaultKind = "another promise"
	// FaultVersion: a rolling update to a version in which everything takes Factor times as
	// long, and one back at the end. With an odd count the stated profile follows.
	FaultVersion FaultKind = "another version"
	// FaultSlowStart: replicas that find their node now take Factor times as long to start.
	FaultSlowStart FaultKind = "slow starts"
	// FaultFlap: some replicas are ready and not ready in turns.
	FaultFlap FaultKind = "flapping replicas"
	// FaultSilent: some replicas serve and show no metrics.
	FaultSilent FaultKind = "silent replicas"
	// FaultNodes: Count nodes that hold replicas of the variant do not answer. These serve
	// nobody, and are made anew after a while.
	FaultNodes FaultKind = "nodes not ready"
	// FaultReclaim: Count nodes that hold replicas of the variant are taken away, and others
	// come in the end.
	FaultReclaim FaultKind = "nodes reclaimed"
	// FaultRefused: the scheduler refuses the variant's pods, for what nobody is told.
	FaultRefused FaultKind = "refused by the scheduler"
	// FaultUnread: nobody may look at the nodes.
	FaultUnread FaultKind = "nodes may not be read"
	// FaultUnmanaged: the variant is deleted, its replicas stay, and it is made anew.
	FaultUnmanaged FaultKind = "variant deleted"
	// FaultPriority: the model is the most important one.
	FaultPriority FaultKind = "another priority"
	// FaultClock: the clock of the manager is ahead by Every, which may be negative.
	FaultClock FaultKind = "the manager's clock is off"
	// FaultSlow: everything takes Factor times as long, without another version.
	FaultSlow FaultKind = "slow replicas"
	// FaultUnshown: no server of the model shows one metric, which Count says.
	FaultUnshown FaultKind = "a metric that is not shown"
	// FaultMin: minReplicas are Count more.
	FaultMin FaultKind = "minReplicas raised"
)

// Fault is something that goes wrong for a while.
type Fault struct {
	Kind           FaultKind
	From, To       time.Duration
	Model, Variant int
	Count          int
	Every          time.Duration
	Factor         float64
}

// thresholds and share are those of the policy.
func (s *Scenario) thresholds() decision.Saturation {
	return cmp.Or(s.Saturation, decision.DefaultSaturation())
}

func (s *Scenario) share() float64 { return cmp.Or(s.Share, decision.DefaultPolicy().Share) }

// rate is the load at a time.
func (m *Model) rate(at time.Duration) float64 {
	before := m.Load[0]
	for _, point := range m.Load {
		if point.At > at {
			along := float64(at-before.At) / float64(point.At-before.At)
			return before.Rate + along*(point.Rate-before.Rate)
		}
		before = point
	}
	return before.Rate
}

// final is the load that stays.
func (m *Model) final() float64 { return m.Load[len(m.Load)-1].Rate }

// hottest is the load of which every replica gets as much as the one that gets most.
func (m *Model) hottest() float64 { return m.final() * max(1, m.Skew) }

// slowest is the longest start-up, as slow as faults make it.
func (s *Scenario) slowest() (slowest time.Duration) {
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			slowest = max(slowest, s.Models[i].Variants[j].Startup)
		}
	}
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Kind == FaultSlowStart {
			slowest = max(slowest, time.Duration(float64(s.Models[f.Model].Variants[f.Variant].Startup)*f.Factor))
		}
	}
	return slowest
}

// turns is how long the longest row of replicas takes that come one after the other: a
// dozen, which is as many as the loads are drawn for, and a few more.
func (s *Scenario) turns() (longest time.Duration) {
	const row = 16
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			if v := &s.Models[i].Variants[j]; v.Ordered {
				longest = max(longest, row*(v.Startup+v.Settling))
			}
		}
	}
	return longest
}

// patience is how long a change of mind may take that starts new replicas first: three
// start-ups of the slowest variant, as not all of them may fit at a time, and ten minutes
// for windows and rounds; where replicas come in turn, a row of them more.
func (s *Scenario) patience() time.Duration { return 3*s.slowest() + s.turns() + 10*time.Minute }

// settled is when the load has been constant for long enough: an hour, and three
// start-ups of the slowest variant more; where replicas come in turn, also two rows of
// them: one to change its mind about; and where nodes come one by one, as many as the
// largest loads are drawn for.
func (s *Scenario) settled() time.Duration {
	const nodes = 40
	return (s.Calm + time.Hour + 3*s.slowest() + 2*s.turns() + nodes*s.Grows).Truncate(time.Minute)
}

// watch is how long the world is watched when it should have settled: longer than the
// windows, back-offs of pods and scrapes that could hide a cycle.
const watch = 30 * time.Minute

// end is when the scenario is over.
func (s *Scenario) end() time.Duration { return s.settled() + watch + s.Longer }

// clone copies a scenario so far that the parts of the copy can be exchanged.
func (s *Scenario) clone() *Scenario {
	c := *s
	c.Nodes = append([]NodeGroup(nil), s.Nodes...)
	c.Faults = append([]Fault(nil), s.Faults...)
	c.Models = append([]Model(nil), s.Models...)
	for i := range c.Models {
		c.Models[i].Load = append([]Point(nil), c.Models[i].Load...)
		c.Models[i].Variants = append([]Variant(nil), c.Models[i].Variants...)
	}
	return &c
}
