package replay

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
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
	scenario *Scenario
	startup  time.Duration
	// inFlight is the requests of each model at a time.
	inFlight func(model int, now time.Duration) int
	// room is how many replicas of all can start; negative means all.
	room int
	view *View
	made int
}

// toyVariant has replicas of one device that serve toyBatch requests at once.
func toyVariant(name string, cost float64, least, most int) Variant {
	return Variant{
		Name: name, Cost: capacity.Cost(cost), Policy: decision.VariantPolicy{Min: least, Max: most},
		Request: &placement.Request{Shape: capacity.Shape{Accelerator: "H100", Devices: 1, Pods: 1}},
		Profile: serving.Profile{Base: 10, BatchLimit: toyBatch, KVTokens: toyCache},
	}
}

func newToy(initial []int, variants ...Variant) *toy {
	s := &Scenario{Models: []Model{{ID: "toy", Variants: variants}}}
	t := &toy{scenario: s, startup: time.Minute, room: -1, view: &View{Scenario: s, Models: []ModelView{{Variants: make([]VariantView, len(variants))}}}}
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
		seen.Pods = append(seen.Pods, Pod{Replica: simulation.Replica{
			Name: fmt.Sprintf("pod-%04d", t.made), Stage: simulation.Created, Node: -1, Created: now, Placed: -1, Ready: -1,
		}})
	}
	seen.Pods = seen.Pods[:replicas]
}

// beat starts what has waited long enough, and scrapes every 15 s.
func (t *toy) beat(now time.Duration) {
	t.view.Now = now
	free := t.room
	t.each(func(pod *Pod) {
		if pod.Stage != simulation.Created {
			free--
		}
	})
	t.each(func(pod *Pod) {
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

func (t *toy) each(visit func(*Pod)) {
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
			pods[i].Scrapes = append(pods[i].Scrapes, Scrape{At: now, Metrics: simulation.Metrics{
				Running: min(n, toyBatch), Waiting: max(0, n-toyBatch), KVUsed: min(n, toyBatch) * toyTokens, KVCapacity: toyCache,
				Finished: ended, Input: 900 * ended, Output: 200 * ended,
			}})
		}
	}
}

// play lets a policy act until the end, and returns when the replicas of the first model
// changed, and to what.
func (t *toy) play(p Policy, end time.Duration) []string {
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

func baseline(t *testing.T, name string, s *Scenario, choice ...int) Policy {
	t.Helper()
	p, err := newBaseline(name, s, choice)
	require.NoError(t, err)
	return p
}

func TestBaselinesFollowALoad(t *testing.T) {
	// 60 requests in flight for ten minutes, and then 12. Ten fit on a replica, so six
	// serve the one and two serve the other.
	for _, c := range []struct {
		name string
		want []string
	}{
		{"static:3", []string{"0s [3 0]"}},
		// 50 wait at one replica: ten times the target. Four are allowed, then the double,
		// and what has not started yet counts as idle. With ten replicas nothing waits, which HPA takes
		// for a load of nothing: when its window is over it takes all away but one.
		{"hpa:queue", []string{"0s [4 0]", "15s [8 0]", "30s [10 0]", "6m30s [2 0]", "6m45s [4 0]", "7m0s [8 0]", "13m15s [1 0]"}},
		// A full cache is 1.25 of the target, however much waits: a quarter more whenever all
		// that was asked for serves. Of seven each uses 0.8. One uses 0.1 at the end; the
		// last replica is full again.
		{"hpa:kv", []string{"0s [2 0]", "1m15s [3 0]", "2m30s [4 0]", "3m45s [5 0]", "5m0s [7 0]", "15m0s [1 0]"}},
		// The same as the first, but what has not started yet counts for nothing.
		{"keda", []string{"0s [4 0]", "15s [8 0]", "30s [10 0]", "6m15s [4 0]", "15m0s [1 0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play := func() []string {
				y := newToy([]int{1, 0}, toyVariant("cheap", 5, 0, -1), toyVariant("dear", 9, 0, -1))
				y.inFlight = until(10*time.Minute, 60, 12)
				return y.play(baseline(t, c.name, y.scenario, 0), 15*time.Minute)
			}
			got := play()
			assert.Equal(t, c.want, got)
			assert.Equal(t, got, play(), "the same again")
		})
	}
}

func TestDrivenVariantIsTheChosenOne(t *testing.T) {
	for _, name := range []string{"hpa:queue", "hpa:kv", "keda"} {
		y := newToy([]int{2, 1, 0}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, 3), toyVariant("c", 1, 0, -1))
		y.inFlight = constant(90)
		p := baseline(t, name, y.scenario, 1)
		y.beat(0)
		answer := p.Decide(y.view)
		assert.Equal(t, []int{2, 0}, []int{answer.Replicas[0][0], answer.Replicas[0][2]}, "%s: others keep what they have", name)
		assert.Greater(t, answer.Replicas[0][1], 1, name)
		assert.LessOrEqual(t, answer.Replicas[0][1], 3, "%s: the scenario's bound", name)
		assert.Nil(t, answer.Victims)
		assert.Nil(t, answer.Plan)
	}
	y := newToy([]int{2, 1, 0}, toyVariant("a", 5, 1, -1), toyVariant("b", 9, 0, 3), toyVariant("c", 1, 0, -1))
	assert.Equal(t, [][]int{{1, 4, 0}}, baseline(t, "static:4", y.scenario, 1).Decide(y.view).Replicas, "others have their minimum")
}

func TestKEDACountsWhatWaitsAtAllReplicasOfTheModel(t *testing.T) {
	// 15 wait at each of two replicas, of which the other variant has one.
	for name, want := range map[string]int{"keda": 4, "hpa:queue": 3} {
		y := newToy([]int{1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1))
		y.inFlight = constant(50)
		y.beat(0)
		assert.Equal(t, [][]int{{want, 1}}, baseline(t, name, y.scenario, 0).Decide(y.view).Replicas, name)
	}
}

func TestTargetWithoutReplicas(t *testing.T) {
	for _, c := range []struct {
		name string
		at   time.Duration
		want int
	}{
		{"hpa:queue", 0, 1}, {"hpa:queue", seconds(15), 1},
		{"keda", 0, 1}, {"keda", seconds(15), 0}, {"keda", seconds(30), 1},
	} {
		y := newToy([]int{0}, toyVariant("a", 5, 0, -1))
		y.view.Now = c.at
		assert.Equal(t, [][]int{{c.want}}, baseline(t, c.name, y.scenario, 0).Decide(y.view).Replicas, "%s at %s", c.name, c.at)
	}
}

func TestPodsAsHPASeesThem(t *testing.T) {
	scraped := Pod{Replica: simulation.Replica{Stage: simulation.Serving}, Scrapes: []Scrape{
		{Metrics: simulation.Metrics{Waiting: 9}},
		{Metrics: simulation.Metrics{Waiting: 2, KVUsed: 2, KVCapacity: 3}},
	}}
	pods := []Pod{
		{Replica: simulation.Replica{Stage: simulation.Created}},
		{Replica: simulation.Replica{Stage: simulation.Placed}},
		{Replica: simulation.Replica{Stage: simulation.Serving}},
		scraped,
	}
	assert.Equal(t, []horizontal.Reading{{Pending: true}, {}, {}, {Present: true, Value: 2000}},
		readings(pods, func(s Scrape) float64 { return float64(s.Waiting) }), "the last scrape counts")
	assert.Equal(t, horizontal.Milli(666), readings(pods, Scrape.KVUse)[3].Value, "cut to thousandths")
	assert.Equal(t, horizontal.Milli(800), targetOf(0.8))
}

func TestModelsAreIndependent(t *testing.T) {
	two := func() *toy {
		y := newToy([]int{1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1))
		second := newToy([]int{2}, toyVariant("c", 1, 0, -1))
		y.scenario.Models = append(y.scenario.Models, second.scenario.Models[0])
		y.view.Models = append(y.view.Models, second.view.Models[0])
		y.inFlight = func(model int, _ time.Duration) int { return []int{55, 9}[model] }
		return y
	}
	for _, name := range []string{"static:2", "hpa:queue", "hpa:kv", "keda"} {
		alone := two()
		alone.scenario.Models, alone.view.Models = alone.scenario.Models[:1], alone.view.Models[:1]
		want := alone.play(baseline(t, name, alone.scenario, 0), 10*time.Minute)
		both := two()
		got := both.play(baseline(t, name, both.scenario, 0, 0), 10*time.Minute)
		assert.Equal(t, want, got, name)
		if name != "static:2" {
			assert.NotEmpty(t, got, name)
		}
	}
}

func TestPoliciesLeaveTheViewAlone(t *testing.T) {
	for _, name := range []string{"static:3", "hpa:queue", "hpa:kv", "keda"} {
		make3 := func() *toy {
			y := newToy([]int{1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1))
			y.inFlight = constant(60)
			y.beat(0)
			return y
		}
		y := make3()
		baseline(t, name, y.scenario, 0).Decide(y.view)
		assert.True(t, reflect.DeepEqual(make3().view, y.view), name)
	}
}

func TestWhenBaselinesAct(t *testing.T) {
	y := newToy([]int{1}, toyVariant("a", 5, 0, -1))
	for name, want := range map[string]time.Duration{
		"static:1": math.MaxInt64, "hpa:queue": seconds(115), "hpa:kv": seconds(115), "keda": seconds(115),
	} {
		p := baseline(t, name, y.scenario, 0)
		assert.Equal(t, time.Duration(0), p.Next(-1), name)
		assert.Equal(t, want, p.Next(seconds(100)), name)
		assert.Positive(t, p.Next(0), name)
	}
}

func TestParametersOfBaselines(t *testing.T) {
	y := newToy([]int{1, 1}, toyVariant("a", 5, 0, 8), toyVariant("b", 9, 0, -1))
	ofTheHPA := []Parameter{
		{"variant", "a"},
		{"otherVariants", "to their minimum after 5m0s"},
		{"syncPeriod", "15s"},
		{"tolerance", "0.1"},
		{"scaleUp", "to the double or to 4 per 15s, the larger"},
		{"scaleDown", "window 5m0s"},
	}
	hpa := func(metric, target string) []Parameter {
		return append([]Parameter{
			{"metric", metric}, {"metricType", "Pods"}, {"targetAverageValue", target},
			{"minReplicas", "1"}, {"maxReplicas", "8 (has no default: the variant's bound, else what empty nodes hold)"},
		}, ofTheHPA...)
	}
	for name, want := range map[string][]Parameter{
		"static:2":  {{"variant", "a"}, {"replicas", "2"}, {"otherVariants", "their minimum"}},
		"hpa:queue": hpa("vllm:num_requests_waiting", "5"),
		"hpa:kv":    hpa("vllm:kv_cache_usage_perc", "0.8"),
		"keda": append([]Parameter{
			{"query", "sum(vllm:num_requests_waiting)"}, {"metricType", "AverageValue"}, {"threshold", "5"},
			{"pollingInterval", "30s, for the first replica only"},
			{"cooldownPeriod", "5m0s, without effect: it rules the step to no replica"}, {"useCachedMetrics", "false"},
			{"minReplicaCount", "1"}, {"maxReplicaCount", "8 (100 by default, unless the variant has a bound or fewer fit)"},
		}, ofTheHPA...),
	} {
		assert.Equal(t, want, baseline(t, name, y.scenario, 0).Parameters(), name)
	}
}

func TestNamesOfBaselines(t *testing.T) {
	y := newToy([]int{1}, toyVariant("a", 5, 0, -1))
	for _, c := range []struct {
		name   string
		choice []int
		want   string
	}{
		{"hpa:cpu", []int{0}, `policy "hpa:cpu": "cpu" is not known; expected rps, intok, inflight, queue, kv, down, up, min, max, tolerance, window, variant or split`},
		{"static:", []int{0}, `policy "static:": "" is no number of replicas; expected 0 to 100000, in digits alone and without zeros before them`},
		{"static:-1", []int{0}, `policy "static:-1": "-1" is no number of replicas; expected 0 to 100000, in digits alone and without zeros before them`},
		{"static:03", []int{0}, `policy "static:03": "03" is no number of replicas; expected 0 to 100000, in digits alone and without zeros before them`},
		{"static:100001", []int{0}, `policy "static:100001": "100001" is no number of replicas; expected 0 to 100000, in digits alone and without zeros before them`},
		{"keda", nil, `policy "keda": 0 variants are chosen for 1 models; expected one for each`},
		{"keda", []int{1}, `policy "keda": variant 1 of model "toy" is chosen; expected 0 to 0`},
		{"keda", []int{-1}, `policy "keda": variant -1 of model "toy" is chosen; expected 0 to 0`},
	} {
		p, err := newBaseline(c.name, y.scenario, c.choice)
		assert.Nil(t, p)
		assert.EqualError(t, err, c.want)
	}
}

// Without a bound of its own an HPA gets what the nodes would hold if they were empty, and
// the variants that nobody drives go after a window.
func TestWhatAnHPADoesBesides(t *testing.T) {
	s := large(append(nodes("h100", "H100", 2, 8), nodes("h200", "H200", 3, 1)...)...)
	p := baseline(t, "hpa:queue", s, 2)
	assert.Contains(t, p.Parameters(), Parameter{"maxReplicas", "12 (has no default: the variant's bound, else what empty nodes hold)"})
	view := &View{Scenario: s, Models: []ModelView{{Variants: []VariantView{{Replicas: 3}, {Replicas: 1}, {Replicas: 2}}}}}
	assert.Equal(t, [][]int{{3, 1, 2}}, p.Decide(view).Replicas)
	view.Now = 5 * time.Minute
	assert.Equal(t, []int{0, 0}, p.Decide(view).Replicas[0][:2])
}

// KEDA's maxReplicaCount has a default, which binds where more fit; an HPA's has none.
func TestBoundsWithAndWithoutAPublishedDefault(t *testing.T) {
	for _, c := range []struct {
		name                 string
		nodes, least, most   int
		keda, queue, atLeast int
	}{
		{"fewer fit than the default", 12, 0, -1, 96, 96, 1},
		{"exactly the default fits, and more", 13, 0, -1, 100, 104, 1},
		{"the variant has a higher bound", 20, 0, 150, 150, 150, 1},
		{"the variant has a lower bound", 20, 2, 30, 30, 30, 2},
		{"the minimum is above the default", 20, 120, -1, 120, 160, 120},
	} {
		s := large(nodes("h100", "H100", c.nodes, 8)...)
		s.Models[0].Variants = []Variant{toyVariant("a", 5, c.least, c.most)}
		for name, want := range map[string]int{"keda": c.keda, "hpa:queue": c.queue, "hpa:kv": c.queue} {
			p := baseline(t, name, s, 0)
			var d driver
			switch p := p.(type) {
			case *keda:
				d = p.driver
			case *hpa:
				d = p.driver
			}
			require.Len(t, d.autoscalers, 1, c.name)
			assert.Equal(t, want, d.autoscalers[0].Max, "%s: %s", c.name, name)
			assert.Equal(t, c.atLeast, d.autoscalers[0].Min, "%s: %s", c.name, name)
		}
	}
}

func TestKEDAGoesToItsMaximumAndNoFurther(t *testing.T) {
	y := newToy([]int{60}, toyVariant("a", 5, 0, -1))
	y.inFlight = constant(60 * 1000)
	for range 3 {
		y.beat(0)
		replicas := baseline(t, "keda", y.scenario, 0).Decide(y.view).Replicas
		assert.LessOrEqual(t, replicas[0][0], 100)
		y.scale(0, 0, replicas[0][0], 0)
	}
	assert.Equal(t, 100, y.view.Models[0].Variants[0].Replicas)
}
