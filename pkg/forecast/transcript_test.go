package forecast

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// What is believed after each count stands in transcripts, to six digits: the mean and its
// variance, the index of dispersion, what is expected in half a minute and in five, and the
// motion that is most likely.
func TestTranscripts(t *testing.T) {
	const start = 40
	courses := map[string]struct {
		rate    func(time.Duration) float64
		copies  float64
		history []History
		// lower is set where every other count misses some of the arrivals.
		lower bool
	}{
		"steady": {rate: steadily(20), copies: 1},
		"bursts": {rate: steadily(40), copies: 10},
		"step": {copies: 1, rate: func(at time.Duration) float64 {
			if at < start*countedEvery/2 {
				return 10
			}
			return 50
		}},
		"ramp":        {copies: 1, rate: func(at time.Duration) float64 { return max(0, (at-5*time.Minute).Seconds()/5) }},
		"fall":        {copies: 1, rate: func(at time.Duration) float64 { return max(0, 60-at.Seconds()/8) }},
		"half seen":   {rate: steadily(30), copies: 1, lower: true},
		"few":         {rate: steadily(0.05), copies: 1},
		"a yesterday": {rate: steadily(25), copies: 1, history: []History{rememberedAs(rand.New(rand.NewPCG(1, 2)), HistoryAgo[0], func(at time.Duration) float64 { return 20 + 40*min(1, max(0, at.Minutes()/10)) })}},
	}
	for name, c := range courses {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			var b Belief
			var text strings.Builder
			fmt.Fprintln(&text, "counted  mean  variance  dispersion   in 30s at 0.5, at 0.9   in 5m at 0.5, at 0.9   likeliest motion, its probability, that of earlier days")
			for i := range start {
				at := time.Duration(i+1) * countedEvery
				count := c.copies * poisson(random, c.rate(at-countedEvery/2)*countedEvery.Seconds()/c.copies)
				seen := Count{Rate: capacity.Rate(count / countedEvery.Seconds()), Span: countedEvery, Shape: conv}
				if c.lower && i%2 == 1 {
					seen.Rate, seen.LowerBound = seen.Rate*0.7, true
				}
				b = b.Observe(epoch.Add(at), seen, c.history)
				mean, variance := b.Moments()
				likely := 0
				for k, m := range b.Modes {
					if m.Probability > b.Modes[likely].Probability {
						likely = k
					}
				}
				fmt.Fprintf(&text, "%.4g  %.6g  %.6g  %.6g ", seen.Rate, mean, variance, b.Dispersion)
				for _, ahead := range []time.Duration{30 * time.Second, 5 * time.Minute} {
					fmt.Fprintf(&text, " %.4g %.4g ", b.Quantile(0.5, ahead, c.history), b.Quantile(risk, ahead, c.history))
				}
				fmt.Fprintf(&text, " %d %.4g %.4g\n", likely, b.Modes[likely].Probability, b.LikeEarlier())
			}
			path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
			}
			want, err := os.ReadFile(path) //nolint:gosec // a file of this package
			require.NoError(t, err)
			assert.Equal(t, string(want), text.String())
		})
	}
}

// A mean forgets by halves, and what completes more often counts for more.
func TestATokenMeanForgets(t *testing.T) {
	var m TokenMean
	m = m.Blend(epoch, capacity.TokenShape{Input: 100, Output: 10}, 2)
	assert.Equal(t, TokenMean{Time: epoch, Weight: 2, Shape: capacity.TokenShape{Input: 100, Output: 10}}, m)
	later := m.Blend(epoch.Add(tokenHalfLife), capacity.TokenShape{Input: 200, Output: 30}, 0.5)
	// Half of 2 is left, beside half a request in each of 120 seconds.
	assert.InDelta(t, 61, later.Weight, 1e-9)
	assert.InDelta(t, (100*1+200*60)/61.0, float64(later.Shape.Input), 1e-9)
	assert.InDelta(t, (10*1+30*60)/61.0, float64(later.Shape.Output), 1e-9)
	assert.InDelta(t, 3, m.Blend(epoch, m.Shape, 1).Weight, 1e-9, "two at once count for a second each")
}
