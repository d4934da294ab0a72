package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// counts20 are 20 req/s and 40 requests that wait, which a gateway counts under three names.
func counts20(namespace string) map[decision.ModelKey]decision.Model {
	of := func(id string, rate, queue float64) decision.Model {
		return decision.Model{Namespace: namespace, ID: id, Arrival: sample(rate, noon), Recent: sample(rate, noon), RecentSpan: 15 * time.Second, Queue: sample(queue, noon)}
	}
	all := map[decision.ModelKey]decision.Model{}
	for _, m := range []decision.Model{of("llama", 1, 0), of("sql-lora", 12, 30), of("chat-lora", 7, 10)} {
		all[decision.ModelKey{Namespace: namespace, ID: m.ID}] = m
	}
	return all
}

// What a gateway counts under the further names of a model counts for it, whatever namespace the
// gateway says; a name that is somebody else's, or may be, does not.
func TestFurtherNamesOfAModel(t *testing.T) {
	type model = decision.Model
	llama := func(names ...string) model { return model{Namespace: "ns", ID: "llama", Names: names} }
	for name, c := range map[string]struct {
		models []model
		where  string
		rate   float64
		queue  float64
		told   bool
		taken  []string
	}{
		"all listed":                            {[]model{llama("chat-lora", "sql-lora")}, "ns", 20, 40, false, nil},
		"by a gateway that names no namespace":  {[]model{llama("chat-lora", "sql-lora")}, "", 20, 40, false, nil},
		"by a gateway elsewhere":                {[]model{llama("chat-lora", "sql-lora")}, "gateways", 20, 40, false, nil},
		"none listed":                           {[]model{llama()}, "ns", 1, 0, true, nil},
		"its own ID, too":                       {[]model{llama("chat-lora", "llama", "sql-lora")}, "ns", 20, 40, false, nil},
		"one is a model of its own":             {[]model{llama("chat-lora", "sql-lora"), {Namespace: "ns", ID: "sql-lora"}}, "ns", 8, 10, false, []string{"sql-lora"}},
		"another one lists it, too":             {[]model{llama("chat-lora", "sql-lora"), {Namespace: "ns", ID: "other", Names: []string{"sql-lora"}}}, "ns", 8, 10, true, []string{"sql-lora"}},
		"a model elsewhere has it":              {[]model{llama("chat-lora", "sql-lora"), {Namespace: "x", ID: "sql-lora"}}, "ns", 20, 40, false, nil},
		"one elsewhere lists it":                {[]model{llama("chat-lora", "sql-lora"), {Namespace: "x", ID: "other", Names: []string{"sql-lora"}}}, "ns", 20, 40, false, nil},
		"elsewhere, and no namespace is named":  {[]model{llama("chat-lora", "sql-lora"), {Namespace: "x", ID: "sql-lora"}}, "", 20, 40, false, nil},
		"listed elsewhere, no namespace either": {[]model{llama("chat-lora", "sql-lora"), {Namespace: "x", ID: "other", Names: []string{"sql-lora"}}}, "", 20, 40, false, nil},
		"its own ID is listed elsewhere":        {[]model{llama("chat-lora", "sql-lora"), {Namespace: "x", ID: "other", Names: []string{"llama"}}}, "", 20, 40, false, nil},
		"by somebody who is not trusted":        {[]model{llama("chat-lora", "sql-lora")}, "x", 0, 0, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			models := map[decision.ModelKey]*model{}
			for i := range c.models {
				models[decision.ModelKey{Namespace: c.models[i].Namespace, ID: c.models[i].ID}] = &c.models[i]
			}
			key := decision.ModelKey{Namespace: "ns", ID: "llama"}
			sorted, odd := join(models, hear(pointers(c.models), []string{"gateways"}), counts20(c.where), nil, nil)
			got := sorted[slices.IndexFunc(sorted, func(m model) bool { return m.ID == "llama" })]
			assert.InDelta(t, c.rate, got.Arrival.Value, 1e-9)
			assert.InDelta(t, c.rate, got.Recent.Value, 1e-9)
			assert.InDelta(t, c.queue, got.Queue.Value, 1e-9)
			assert.Equal(t, c.told, slices.Contains(odd.strange, key), "%v", odd.strange)
			assert.Equal(t, c.rate == 0, len(odd.distrusted[key]) > 0)
			assert.Equal(t, c.taken, namesOf(pointers(c.models)).taken[key])
		})
	}
}

// What one rate lacks is unknown of the sum, and a queue that is seen wakes whoever sleeps.
func TestASumIsKnownWhereItsPartsAre(t *testing.T) {
	a := decision.Model{Arrival: sample(1, noon), Recent: sample(1, noon), RecentSpan: time.Second, Queue: sample(2, noon)}
	b := decision.Model{Arrival: sample(3, noon.Add(-time.Minute)), Queue: sample(4, noon)}
	assert.Equal(t, decision.Model{Arrival: sample(4, noon.Add(-time.Minute)), Queue: sample(6, noon)}, together([]decision.Model{a, b}))
	assert.Equal(t, a.Queue, together([]decision.Model{{}, a}).Queue)
	assert.Equal(t, a, together([]decision.Model{a}))
}

// A request for a further name wakes the model.
func TestAFurtherNameWakes(t *testing.T) {
	key, lora := decision.ModelKey{Namespace: "n", ID: "m"}, decision.ModelKey{Namespace: "n", ID: "lora"}
	m := &decision.Model{Namespace: "n", ID: "m", Names: []string{"lora"}}
	h := hear([]*decision.Model{m}, nil)
	s := sleeping(key)
	wanted := called(s, h, noon, noon.Add(-time.Minute), map[decision.ModelKey]decision.Sample{key: sample(0, noon), lora: sample(2, noon)})
	require.Equal(t, []waiting{{lora, lora, sample(2, noon), true}}, wanted)
	after := readings{at: noon, models: map[decision.ModelKey]decision.Model{key: {Namespace: "n", ID: "m"}}}.withQueues(h, wanted)
	sorted, _ := join(map[decision.ModelKey]*decision.Model{key: m}, h, after.models, nil, nil)
	assert.InDelta(t, 2, sorted[0].Queue.Value, 0)
}

// tenancy is a cluster of two namespaces, a and b, of which b is a tenant's. Gateways are in both, in
// one that is trusted, and in none that anybody knows.
type tenancy struct {
	models   map[decision.ModelKey]*decision.Model
	gateways map[decision.ModelKey]decision.Model
	history  map[decision.ModelKey][]forecast.History
	met      map[decision.ModelKey]decision.Kept
	adapters adapters
}

func tenancyOf(seed uint64) tenancy {
	random := rand.New(rand.NewPCG(seed, 3))
	c := tenancy{map[decision.ModelKey]*decision.Model{}, map[decision.ModelKey]decision.Model{}, map[decision.ModelKey][]forecast.History{}, map[decision.ModelKey]decision.Kept{}, nil}
	for range 6 {
		c.show(decision.ModelKey{Namespace: []string{"", "a", "b", "gateways"}[random.IntN(4)], ID: fmt.Sprint("m", random.IntN(5))}, 1)
	}
	for range 4 {
		c.own(decision.ModelKey{Namespace: []string{"a", "b"}[random.IntN(2)], ID: fmt.Sprint("m", random.IntN(5))}, fmt.Sprint("m", random.IntN(5)))
	}
	return c
}

func (c tenancy) show(key decision.ModelKey, value float64) {
	c.gateways[key] = decision.Model{Namespace: key.Namespace, ID: key.ID, Arrival: sample(value, noon), Queue: sample(value, noon)}
	c.history[key] = []forecast.History{{Rates: []float64{value}}}
	c.met[key] = kept(value, noon)
}

// serve has a pod of the namespace's first model show an adapter.
func (c *tenancy) serve(namespace string, adapter string) {
	for i := range 5 {
		if key := (decision.ModelKey{Namespace: namespace, ID: fmt.Sprint("m", i)}); c.models[key] != nil {
			c.adapters.see(c.variants(), map[types.NamespacedName][]string{podIn(namespace, key.ID): {adapter}}, noon)
			return
		}
	}
}

// variants are one of each model, with a pod of its name.
func (c *tenancy) variants() (all []*variant) {
	for key := range c.models {
		all = append(all, servers(key.Namespace, key.ID, key.ID))
	}
	return all
}

func (c tenancy) own(key decision.ModelKey, names ...string) {
	c.models[key] = &decision.Model{Namespace: key.Namespace, ID: key.ID}
	addNames(c.models[key], names)
}

// given is what the models of a namespace get, awake and asleep.
func (c tenancy) given(namespace string) (models []decision.Model, waits map[string]float64) {
	known := map[decision.ModelKey]*decision.Model{}
	for key, m := range c.models {
		one := *m
		known[key] = &one
	}
	c.adapters.name(known)
	h := hear(slices.Collect(maps.Values(known)), []string{"gateways"})
	all, _ := join(known, h, c.gateways, c.history, c.met)
	models = slices.DeleteFunc(all, func(m decision.Model) bool { return m.Namespace != namespace })
	s, queues := sleeping(slices.Collect(maps.Keys(c.models))...), map[decision.ModelKey]decision.Sample{}
	for key := range c.gateways {
		queues[key] = c.gateways[key].Queue
	}
	waits = map[string]float64{}
	for _, w := range called(s, h, noon, noon.Add(-time.Minute), queues) {
		if w.of.Namespace == namespace {
			waits[w.of.ID] += w.queue.Value
		}
	}
	return models, waits
}

// Whatever a tenant writes into objects and whatever its pods show, the models of another namespace
// get the same. No request counts twice in a namespace.
func TestPropertyNobodyReachesIntoAnotherNamespace(t *testing.T) {
	for seed := range uint64(2000) {
		c := tenancyOf(seed)
		c.serve("a", fmt.Sprint("m", seed%5))
		before, woken := c.given("a")
		sum := 0.0
		for key := range c.gateways {
			sum += c.gateways[key].Arrival.Value
		}
		total := 0.0
		for i := range before {
			total += before[i].Arrival.Value
		}
		require.LessOrEqual(t, total, sum, "seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 7))
		id := func() string { return fmt.Sprint("m", random.IntN(5)) }
		for range 1 + random.IntN(4) {
			switch key := (decision.ModelKey{Namespace: "b", ID: id()}); random.IntN(4) {
			case 0:
				c.own(key, id(), id())
			case 1:
				delete(c.models, key)
			case 2:
				c.serve("b", id())
			default:
				c.show(key, 1000)
			}
		}
		after, wokenAfter := c.given("a")
		require.Equal(t, before, after, "seed %d", seed)
		require.Equal(t, woken, wokenAfter, "seed %d", seed)
	}
}
