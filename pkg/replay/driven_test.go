package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

func TestSplitStandsBesideTheDrivenVariant(t *testing.T) {
	y := newToy([]int{1, 1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1), toyVariant("c", 9, 0, -1))
	y.inFlight = constant(90)
	y.beat(0)
	// 30 at each: the driven one alone is asked.
	p := baseline(t, "hpa:inflight=10,variant=b,split=a:4", y.scenario, 0)
	assert.Equal(t, [][]int{{4, 3, 1}}, p.Decide(y.view).Replicas)
	y.view.Now = 5 * time.Minute
	assert.Equal(t, [][]int{{4, 3, 0}}, p.Decide(y.view).Replicas, "what nobody names goes")
	assert.Contains(t, p.Parameters(), Parameter{"variant", "b"})
	assert.Contains(t, p.Parameters(), Parameter{"otherVariants", "a:4, else to their minimum after 5m0s"})

	for name, want := range map[string][][]int{
		"static:3":                         {{3, 0, 0}},
		"static:3,variant=c":               {{0, 0, 3}},
		"static:3,split=b:2":               {{3, 2, 0}},
		"static:split=a:1+c:2":             {{1, 0, 2}},
		"keda:inflight=10,split=b:0+c:0":   {{4, 0, 0}},
		"keda:inflight=30,min=0,split=b:2": {{3, 2, 1}},
	} {
		y.view.Now = 0
		assert.Equal(t, want, baseline(t, name, y.scenario, 0).Decide(y.view).Replicas, name)
	}
}

// Of the flow of a model, the driven variant is held to what its replicas get.
func TestFlowIsSharedWithTheSplit(t *testing.T) {
	y := newToy([]int{1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1))
	model := &y.view.Models[0]
	y.view.Now, y.scenario.Collection.Window = seconds(60), time.Minute
	model.Gateway = []GatewayScrape{{At: seconds(30)}, {At: seconds(60), Gateway: simulation.Gateway{Dispatched: 1200}}}
	model.Variants[0].Pods[0].Scrapes = []Scrape{said(30, 0, 0, 0, 0), said(60, 290, 0, 10, 0)}
	model.Variants[1].Pods[0].Scrapes = []Scrape{said(30, 0, 0, 0, 0), said(60, 890, 0, 10, 0)}
	for name, want := range map[string][][]int{
		"hpa:rps=10":                     {{4, 1}}, // 40 per second; four more at once
		"hpa:rps=10,variant=b":           {{1, 4}},
		"hpa:rps=10,variant=b,split=a:1": {{1, 3}}, // three quarters of them
	} {
		p := baseline(t, name, y.scenario, 0)
		assert.Equal(t, want, p.Decide(y.view).Replicas, name)
	}
}

func TestModelsHaveTargetsOfTheirOwn(t *testing.T) {
	y := newToy([]int{1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1))
	second := newToy([]int{1}, toyVariant("c", 1, 0, -1))
	second.scenario.Models[0].ID = "second"
	y.scenario.Models = append(y.scenario.Models, second.scenario.Models[0])
	y.view.Models = append(y.view.Models, second.view.Models[0])
	y.inFlight = constant(40)
	y.beat(0)
	p := baseline(t, "hpa:inflight=10+20,variant=b,max=2+9,min=1+2", y.scenario, 0, 0)
	assert.Equal(t, [][]int{{1, 2}, {2}}, p.Decide(y.view).Replicas)
	assert.Contains(t, p.Parameters(), Parameter{"targetAverageValue", "toy: 10; second: 20"})
	assert.Contains(t, p.Parameters(), Parameter{"maxReplicas", "b: 2; c: 9"})
	assert.Equal(t, [][]int{{0, 3}, {5}}, baseline(t, "static:3+5,variant=b", y.scenario, 0, 0).Decide(y.view).Replicas)
	_, err := newBaseline("hpa:inflight=1+2+3", y.scenario, []int{0, 0})
	require.ErrorContains(t, err, "inflight has 3 values, and the scenario 2 models; expected one value, or one for each model")
}

func TestVariantsOfOneNameInTwoNamespaces(t *testing.T) {
	s := &Scenario{Models: []Model{
		{Namespace: "x", ID: "m", Variants: []Variant{toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1)}},
		{Namespace: "y", ID: "m", Variants: []Variant{toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1)}},
	}}
	_, err := newBaseline("hpa:rps=4,variant=b", s, []int{0, 0})
	require.ErrorContains(t, err, "variant: 2 variants are named b; expected NAMESPACE/NAME")
	p := baseline(t, "hpa:rps=4,variant=y/b", s, 0, 0)
	assert.Contains(t, p.Parameters(), Parameter{"variant", "a, b"})
}

// Whoever names variants begins with them.
func TestRunsBeginWithTheVariantsThatAreNamed(t *testing.T) {
	p := played(t, small(), hill(t), "hpa:rps=9", time.Minute)
	begin := func(name string) [][]int {
		p.policy = name
		policy, err := p.newPolicy()
		require.NoError(t, err)
		return p.startOf(policy, p.initial())
	}
	assert.Equal(t, p.dearest(2), begin("hpa:rps=9"), "nobody is named: what the first minutes need")
	assert.Equal(t, [][]int{{0, 3}}, begin("hpa:rps=9,variant=dear"))
	assert.Equal(t, [][]int{{3, 0}}, begin("hpa:rps=9,variant=cheap"))
	assert.Equal(t, [][]int{{3, 1}}, begin("hpa:rps=9,variant=dear,split=cheap:3"), "what stands beside it counts, but one is there")
	p.scenario.Models[0].Variants[0].Initial = 5
	assert.Equal(t, [][]int{{5, 3}}, begin("hpa:rps=9,variant=dear"), "what the scenario says stays")
}

func TestKEDAWakesAndSleeps(t *testing.T) {
	// The rules are those of pkg/scaling/executor of kedacore/keda and of its page on scaling
	// deployments: 10 replicas that were never active go at once.
	gateway := func(y *toy, queue int) {
		y.view.Models[0].Gateway = []GatewayScrape{{At: y.view.Now, Gateway: simulation.Gateway{Queue: queue}}}
	}
	y := newToy([]int{10}, toyVariant("a", 5, 0, -1))
	p := baseline(t, "keda:min=0,polling=20s,cooldown=60s,activation=2", y.scenario, 0)
	assert.Equal(t, 15*time.Second, p.Next(0))
	assert.Equal(t, 20*time.Second, p.Next(seconds(15)), "at every poll, too")
	steps := []struct {
		at, queue, replicas, want int
		name                      string
	}{
		{0, 0, 10, 0, "published: never active"},
		{15, 9, 0, 0, "only at a poll"},
		{20, 2, 0, 0, "not above the activation"},
		{40, 3, 0, 1, "the first replica"},
		{60, 9, 1, 2, "active: the HPA asks the same query"},
		{80, 0, 1, 1, "cooling down"},
		{120, 0, 1, 2, "until it is over the HPA wants what it wanted at 60 s"},
		{140, 0, 1, 0, "longer than the cooldown"},
	}
	for _, s := range steps {
		y.view.Now = seconds(s.at)
		y.view.Models[0].Variants[0].Replicas = s.replicas
		y.view.Models[0].Variants[0].Pods = nil
		gateway(y, s.queue)
		assert.Equal(t, [][]int{{s.want}}, p.Decide(y.view).Replicas, "%ds: %s", s.at, s.name)
	}
	assert.Contains(t, p.Parameters(), Parameter{"activationThreshold", "2"})
	assert.Contains(t, p.Parameters(), Parameter{"pollingInterval", "20s"})
	assert.Contains(t, p.Parameters(), Parameter{"cooldownPeriod", "1m0s"})
	assert.Contains(t, p.Parameters(), Parameter{"minReplicaCount", "0"})
}

func TestKEDAComesToItsDocumentedCounts(t *testing.T) {
	// A pod handles 10 messages and 30 are there: 3 pods (keda.sh/docs, queueLength of the SQS
	// scaler). Here 15 wait at each of two replicas.
	y := newToy([]int{1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1))
	y.inFlight = constant(50)
	y.beat(0)
	assert.Equal(t, [][]int{{3, 1}}, baseline(t, "keda:queue=10", y.scenario, 0).Decide(y.view).Replicas)
	// With 40 messages, a threshold of 10 and an activation of 50 there are none, though the
	// HPA asks for 4; an activation of 40 is not exceeded by 40, one of 0 is by 1 (keda.sh/docs,
	// activating and scaling thresholds).
	for _, c := range []struct {
		activation               string
		queue, replicas, expects int
	}{
		{"50", 40, 2, 0},
		{"40", 40, 2, 0},
		{"39", 40, 2, 4},
		{"0", 40, 2, 4},
		{"0", 1, 0, 1},
		{"0", 0, 0, 0},
		{"0", 0, 2, 0},
	} {
		y := newToy([]int{c.replicas}, toyVariant("a", 5, 0, -1))
		y.view.Models[0].Gateway = []GatewayScrape{{Gateway: simulation.Gateway{Queue: c.queue}}}
		p := baseline(t, "keda:queue=10,min=0,activation="+c.activation, y.scenario, 0)
		assert.Equal(t, [][]int{{c.expects}}, p.Decide(y.view).Replicas, "%+v", c)
	}
}
