package demo

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// A replay has the demo's world and settings; a test of test/integration proves that it
// does the same.
func TestReplaysAreTheDemo(t *testing.T) {
	all, err := Replays([]string{"--duration", "40s", "--startup", "7s", "--seed", "3"})
	require.NoError(t, err)
	require.Len(t, all, 2)
	for i, o := range all {
		m := scenario()[i]
		assert.Equal(t, []time.Duration{7 * time.Second}, o.Startups)
		assert.EqualValues(t, 3, o.Seed)
		s := o.Scenario
		assert.Len(t, s.Cluster.Nodes, len(nodes()))
		assert.Equal(t, replay.Collection{Scrape: 5 * time.Second, Window: 20 * time.Second, Gateway: true}, s.Collection)
		assert.Equal(t, 15*time.Second, s.Policy.Interval)
		assert.True(t, s.Policy.Limited)
		assert.Equal(t, time.Minute, s.Drain)
		require.Len(t, s.Models, 1)
		assert.Equal(t, m.ID, s.Models[0].ID)
		assert.Equal(t, m.SLO, s.Models[0].SLO)
		require.Len(t, s.Models[0].Variants, len(m.Variants))
		for j, v := range s.Models[0].Variants {
			want := m.Variants[j]
			assert.Equal(t, want.Profile, v.Profile)
			assert.InEpsilon(t, float64(fourParameters(want.Profile, m.tokens()).Profile().PerRequest), float64(v.Given.PerRequest), 1e-5)
			assert.Equal(t, want.TokenBudget, v.TokenBudget)
			assert.Equal(t, 30*time.Second, v.Policy.Down.Window)
			assert.Equal(t, initialReplicas(j), v.Initial)
			slots, err := s.Cluster.Slots(v.Request)
			require.NoError(t, err)
			assert.Equal(t, map[string]int{
				"llama-8b-h100": 32, "llama-8b-l40s": 8, "llama-70b-h100": 8, "llama-70b-a100": 2,
			}[v.Name], slots, v.Name)
		}
		first, err := o.Source()
		require.NoError(t, err)
		again, err := o.Source()
		require.NoError(t, err)
		a, err := first.Next()
		require.NoError(t, err)
		b, err := again.Next()
		require.NoError(t, err)
		assert.Equal(t, a, b, "every source begins at the beginning")
	}
}

func TestReplaysTakeTheDemosArguments(t *testing.T) {
	for _, args := range [][]string{{"--no-such-flag"}, {"--duration", "0s"}, {"--trace", "no-such-file"}} {
		_, err := Replays(args)
		assert.Error(t, err, "%v", args)
	}
}

// The bound of the page is that of the traffic: something in each of its minutes, and nothing
// after them.
func TestBoundsOfADemo(t *testing.T) {
	o, err := parse([]string{"--duration", "90s"}, io.Discard)
	require.NoError(t, err)
	bounds, err := plan{Options: o, models: scenario()}.bounds()
	require.NoError(t, err)
	require.Len(t, bounds, 2)
	for i, own := range bounds {
		require.Len(t, own, 3, scenario()[i].ID)
		assert.Zero(t, own[2], scenario()[i].ID)
		for _, cost := range own[:2] {
			assert.Positive(t, float64(cost))
		}
	}
}
