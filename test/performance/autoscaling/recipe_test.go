package autoscaling

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
)

func entryOf(name string, points ...front.Point) front.Entry {
	return front.Entry{Family: name, Setting: name, Runs: points}
}

func TestOursAgainstRecipes(t *testing.T) {
	c := judgeRecipes("somewhere", entryOf("hybrid", front.Point{Attainment: 0.9, Cost: 2}), []front.Entry{
		entryOf("poor", front.Point{Attainment: 0.8, Cost: 1}), entryOf("enough", front.Point{Attainment: 1, Cost: 4}),
		entryOf("dear", front.Point{Attainment: 0.95, Cost: 5}),
	})
	require.NotNil(t, c.Ratio)
	assert.InDelta(t, 0.8, *c.Ratio, 1e-9, "half-way between 80 % at 1 and 100 % at 4")
	assert.Equal(t, "enough", c.Cheapest)
	assert.InDelta(t, 0.5, *c.RatioToIt, 1e-9)

	c = judgeRecipes("somewhere", entryOf("hybrid", front.Point{Attainment: 0.9, Cost: 2}), []front.Entry{
		entryOf("poor", front.Point{Attainment: 0.5, Cost: 1}), entryOf("less poor", front.Point{Attainment: 0.8, Cost: 4}),
	})
	assert.Equal(t, front.Above, c.Is, "none attains as much")
	assert.Equal(t, "less poor", c.Cheapest)
}

func TestTheMeanOverTheRecipes(t *testing.T) {
	other := []front.Entry{entryOf("enough", front.Point{Attainment: 0.9, Cost: 4}, front.Point{Attainment: 0.9, Cost: 4})}
	one := judgeRecipes("a", entryOf("hybrid", front.Point{Attainment: 0.9, Cost: 2}, front.Point{Attainment: 0.9, Cost: 2}), other)
	two := judgeRecipes("b", entryOf("hybrid", front.Point{Attainment: 0.9, Cost: 4}, front.Point{Attainment: 0.9, Cost: 4}), other)
	r := shippedResults{Seeds: 2, Cases: []shippedCase{one, two}}
	r.judge()
	assert.InDelta(t, 0.707107, *r.Mean.Ratio, 1e-6, "the root of 0.5 times 1")
	assert.Equal(t, r.Mean, r.Reached)
	assert.InDelta(t, 0.707107, *r.ToCheapest, 1e-6)
	assert.Equal(t, front.Holds, r.Answer)

	// A case in which no recipe attains as much bounds the mean, and says nothing of the others.
	r.Cases = append(r.Cases, judgeRecipes("c", entryOf("hybrid", front.Point{Attainment: 0.95, Cost: 12}, front.Point{Attainment: 0.95, Cost: 12}), other))
	r.judge()
	assert.InDelta(t, 1.144714, *r.Mean.Ratio, 1e-6, "the cube root of 0.5 times 1 times 3")
	assert.Equal(t, front.Above, r.Mean.Is)
	assert.Equal(t, 2, r.Reached.Cases)
	assert.InDelta(t, 0.707107, *r.Reached.Ratio, 1e-6)
	assert.Equal(t, front.NotShown, r.Answer)
}

// Each recipe is a policy that is written in one way, and the runs are kept and taken over.
func TestRecipesOnATrace(t *testing.T) {
	for _, name := range recipes {
		spec, err := replay.ParseSpec(name)
		require.NoError(t, err)
		assert.Equal(t, name, spec.String())
		assert.Equal(t, replay.KindBaseline, replay.KindOf(name))
	}
	data, folder := madeTrace(t, 1, 1, 2, 1), t.TempDir()
	target, kept := filepath.Join(folder, "out.json"), filepath.Join(folder, "runs")
	arguments := []string{"--data", data, "--out", target, "--only", "azure-conversation aws full", "--recipes", "--seeds", "2", "--commit", "abc", "--runs", kept}
	var first, again, progress strings.Builder
	require.NoError(t, run(arguments, &first, &progress))
	for _, name := range recipes {
		assert.Contains(t, first.String(), "   "+name)
	}
	assert.Contains(t, first.String(), "aim, at most 0.80: ")
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	var numbers shippedResults
	require.NoError(t, json.Unmarshal(text, &numbers))
	require.Len(t, numbers.Cases, 1)
	assert.Len(t, numbers.Cases[0].All, len(recipes))
	before, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.NoError(t, run(arguments, &again, &progress))
	assert.Equal(t, first.String(), again.String())
	after, err := os.ReadFile(kept)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after), "nothing was played again")
}
