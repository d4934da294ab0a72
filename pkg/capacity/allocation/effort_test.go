package allocation

import (
	"flag"
	"fmt"
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
		writeShare(&text, fmt.Sprintf("cluster %d", seed), models, rows)
	}
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(53, seed))
		options, need := mixed(random)
		c := newCover(options, need)
		if c.rest <= 0 || !c.orderUpToBreak() {
			continue
		}
		k := newKnapsack(c)
		complete := k.run()
		fmt.Fprintf(&text, "cover %d: %d states, %d layers, complete %t, %+v\n", seed, k.made, len(k.layers), complete, k.best)
	}
	const name = "testdata/effort.txt"
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(text.String()), 0o600))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, string(want), text.String())
}

// writeShare writes what each of the clusters spends and finds.
func writeShare(text *strings.Builder, name string, models []Model, rows []float64) {
	s := newSharing(models, rows)
	s.grantMinima()
	fits := s.tryCheapest()
	fmt.Fprintf(text, "%s: %d models, the cheapest fit: %t\n", name, len(models), fits)
	for _, c := range clusters(s.groups, s.limits) {
		before := c.budget
		c.solve()
		served, cost, held, changes := 0.0, 0.0, 0.0, 0
		for _, g := range c.groups {
			served, cost, held, changes = served+g.chosen.served, cost+g.chosen.cost, held+g.held, changes+g.chosen.changes
		}
		fmt.Fprintf(text, "  %d groups, %d rows, work %d of %d: served %.9g, cost %.9g, changes %d, held %.9g\n",
			len(c.groups), c.rows, before-c.budget, before, served, cost, changes, held)
	}
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
