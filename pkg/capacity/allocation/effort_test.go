package allocation

import (
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

var update = flag.Bool("update", false, "Write testdata/effort.txt anew.")

// What the searches find on fixed clusters, and how much work that takes. Bounds, budgets
// and tolerances decide how long a search looks and where; most of what could be wrong
// with them costs time, or a little of the answer, and nothing that another test sees.
// Who changes a search on purpose writes the file anew (-update) and says what it gained.
func TestTheEffortOfTheSearches(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors multiply and add in one step, and so round otherwise")
	}
	var text strings.Builder
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(51, seed))
		share := []float64{0.3, 0.6, 0.9, 0.97}[seed%4]
		models, rows := crowd(random, []int{12, 24, 36}[seed%3], share)
		if seed%5 == 4 {
			models, rows = packed(random, 12)
		}
		if seed%2 == 1 {
			for i := range models {
				models[i].Weight = []float64{0.5, 1, 2, 4}[random.IntN(4)]
			}
		}
		writeShare(&text, fmt.Sprintf("cluster %d", seed), models, rows)
	}
	for seed := range uint64(60) {
		models, rows := short(rand.New(rand.NewPCG(52, seed)))
		writeShare(&text, fmt.Sprintf("small cluster %d", seed), models, rows)
	}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(55, seed))
		sum := fnv.New32a()
		for range 20 {
			models, rows := odd(random)
			writeShare(sum, "", models, rows)
		}
		fmt.Fprintf(&text, "twenty small clusters with odd numbers, %d: %08x\n", seed, sum.Sum32())
	}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(53, seed))
		options, need := mixed(random)
		fmt.Fprintf(&text, "cover %d: ", seed)
		writeCover(&text, options, need)
	}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(54, seed))
		sum := fnv.New32a()
		for range 100 {
			options, need := alike(random)
			writeCover(sum, options, need)
		}
		fmt.Fprintf(&text, "a hundred covers among which many cost the same, %d: %08x\n", seed, sum.Sum32())
	}
	const name = "testdata/effort.txt"
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(text.String()), 0o600))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, string(want), text.String())
}

// writeCover writes what the search for the cheapest cover makes, and finds.
func writeCover(out io.Writer, options []Option, need float64) {
	c := newCover(options, need)
	if c.rest == 0 || !c.orderUpToBreak() {
		_, _ = fmt.Fprintf(out, "without a search: %v\n", c.replicas)
		return
	}
	k := newKnapsack(c, stateBudget)
	complete := k.run()
	left := 0
	for _, layer := range k.layers {
		left += len(layer)
	}
	_, _ = fmt.Fprintf(out, "%d states, %d of them left in %d layers, complete %t: %+v\n", k.made, left, len(k.layers), complete, k.best)
}

// writeShare writes what each of the clusters spends and finds.
func writeShare(text io.Writer, name string, models []Model, rows []float64) {
	s := newSharing(models, rows)
	s.grantMinima()
	fits := s.tryCheapest()
	_, _ = fmt.Fprintf(text, "%s: %d models, the cheapest fit: %t\n", name, len(models), fits)
	for _, c := range clusters(s.groups, s.limits) {
		before := c.budget
		c.solve()
		served, cost, held, changes := 0.0, 0.0, 0.0, 0
		counts := fnv.New32a()
		for _, g := range c.groups {
			_, _ = fmt.Fprintln(counts, g.chosen.counts)
			served, cost, held, changes = served+g.chosen.served, cost+g.chosen.cost, held+g.held, changes+g.chosen.changes
		}
		_, _ = fmt.Fprintf(text, "  %d groups, %d rows, work %d of %d: served %.9g, cost %.9g, changes %d, held %.9g, counts %08x\n",
			len(c.groups), c.rows, before-c.budget, before, served, cost, changes, held, counts.Sum32())
	}
}

// odd is a small cluster with what may be and is rare: variants that cost nothing or serve
// nothing, minimums above what exists, weights.
func odd(random *rand.Rand) ([]Model, []float64) {
	models, rows := short(random)
	for i := range models {
		models[i].Weight = []float64{0.5, 1, 3}[random.IntN(3)]
		for j := range models[i].Options {
			o := &models[i].Options[j]
			switch random.IntN(6) {
			case 0:
				o.Cost, o.Start = 0, 0
			case 1:
				o.Serves = 0
			case 2:
				o.Least = o.Now + random.IntN(3)
			}
		}
	}
	return models, rows
}

// mixed are options of one model, some of which exist, and what it needs.
func mixed(random *rand.Rand) ([]Option, float64) {
	options := make([]Option, 2+random.IntN(6))
	for i := range options {
		devices := float64(int(1) << random.IntN(4))
		options[i] = Option{
			Cost: capacity.Cost(devices * float64(1+random.IntN(6))), Serves: capacity.Rate(devices * (1 + float64(random.IntN(9))/4)),
			Now: max(0, random.IntN(9)-4), Most: random.IntN(30), Start: capacity.Cost(float64(random.IntN(3)) / 10),
		}
	}
	return options, 5 + 120*random.Float64()
}

// alike are options of few different costs and rates, among which many choices cost the
// same.
func alike(random *rand.Rand) ([]Option, float64) {
	options := make([]Option, 2+random.IntN(5))
	for i := range options {
		size := 1 + random.IntN(3)
		options[i] = Option{
			Cost: capacity.Cost(max(0, size-1+random.IntN(3))), Serves: capacity.Rate(size * (1 + random.IntN(2))), Now: random.IntN(4), Most: 3 + random.IntN(9),
			Start: capacity.Cost(random.IntN(2) / 2),
		}
	}
	return options, float64(1 + random.IntN(40))
}
