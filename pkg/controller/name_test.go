package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
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
		"elsewhere, and no namespace is named":  {[]model{llama("chat-lora", "sql-lora"), {Namespace: "x", ID: "sql-lora"}}, "", 8, 10, true, nil},
		"listed elsewhere, no namespace either": {[]model{llama("chat-lora", "sql-lora"), {Namespace: "x", ID: "other", Names: []string{"sql-lora"}}}, "", 8, 10, true, nil},
		"its own ID is listed elsewhere":        {[]model{llama("chat-lora", "sql-lora"), {Namespace: "x", ID: "other", Names: []string{"llama"}}}, "", 20, 40, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			models := map[decision.ModelKey]*model{}
			for i := range c.models {
				models[decision.ModelKey{Namespace: c.models[i].Namespace, ID: c.models[i].ID}] = &c.models[i]
			}
			key := decision.ModelKey{Namespace: "ns", ID: "llama"}
			sorted, unclear := join(models, counts20(c.where), nil, nil)
			got := sorted[slices.IndexFunc(sorted, func(m model) bool { return m.ID == "llama" })]
			assert.InDelta(t, c.rate, got.Arrival.Value, 1e-9)
			assert.InDelta(t, c.rate, got.Recent.Value, 1e-9)
			assert.InDelta(t, c.queue, got.Queue.Value, 1e-9)
			assert.Equal(t, c.told, slices.Contains(unclear, key), "%v", unclear)
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
	s := sleepers{models: map[decision.ModelKey]sleeper{key: {}}, names: namesOf([]*decision.Model{{Namespace: "n", ID: "m", Names: []string{"lora"}}}).of}
	wanted := s.wanted(noon, noon.Add(-time.Minute), map[decision.ModelKey]decision.Sample{key: sample(0, noon), lora: sample(2, noon)})
	require.Equal(t, []waiting{{asked{lora, true}, lora, sample(2, noon), true}}, wanted)
	after := readings{at: noon, models: map[decision.ModelKey]decision.Model{key: {Namespace: "n", ID: "m"}}}.withQueues(wanted)
	models := map[decision.ModelKey]*decision.Model{key: {Namespace: "n", ID: "m", Names: []string{"lora"}}}
	sorted, _ := join(models, after.models, nil, nil)
	assert.InDelta(t, 2, sorted[0].Queue.Value, 0)
}

// Whatever objects of one namespace list, what another one's models are given under their own IDs
// stays the same, and no request counts twice in a namespace.
func TestPropertyNamesTakeNothingFromOtherNamespaces(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 3))
		id := func() string { return fmt.Sprint("m", random.IntN(5)) }
		gateways, sum := map[decision.ModelKey]decision.Model{}, 0.0
		for range 6 {
			key := decision.ModelKey{Namespace: []string{"", "a", "b", "gateways"}[random.IntN(4)], ID: id()}
			if _, known := gateways[key]; !known {
				sum++
				gateways[key] = decision.Model{Namespace: key.Namespace, ID: key.ID, Arrival: sample(1, noon)}
			}
		}
		build := func() (all map[decision.ModelKey]*decision.Model) {
			all = map[decision.ModelKey]*decision.Model{}
			draw := rand.New(rand.NewPCG(seed, 5))
			for range 4 {
				key := decision.ModelKey{Namespace: []string{"a", "b"}[draw.IntN(2)], ID: fmt.Sprint("m", draw.IntN(5))}
				all[key] = &decision.Model{Namespace: key.Namespace, ID: key.ID}
			}
			return all
		}
		before, _ := join(build(), gateways, nil, nil)
		listed := build()
		for key, m := range listed {
			if key.Namespace == "b" {
				addNames(m, []string{id(), id()})
			}
		}
		after, _ := join(listed, gateways, nil, nil)
		total := map[string]float64{}
		for i := range after {
			total[after[i].Namespace] += after[i].Arrival.Value
			if after[i].Namespace == "a" {
				require.Equal(t, before[i].Arrival, after[i].Arrival, "seed %d: %s", seed, after[i].ID)
			}
		}
		require.LessOrEqual(t, max(total["a"], total["b"]), sum, "seed %d", seed)
	}
}
