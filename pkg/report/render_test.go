package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "run with -update when the change is meant")
}

// sample is a small run with everything in it that rendering treats specially.
func sample() Demo { return New(observed()) }

// observed is what the run of sample saw.
func observed() Observation {
	s := time.Second
	served := func(at time.Duration) Outcome {
		return Outcome{Model: "meta-llama/Llama-3.1-8B-Instruct", Arrived: at, Completed: true, TTFT: 41.2, EndToEnd: 291.2, OutputTokens: 11}
	}
	return Observation{
		Trace: Synthetic, Rate: 1, KubernetesVersion: "v1.36.3", Mode: "hybrid", Aim: 0.99, Profiles: true, Traffic: 180 * s, End: 240 * s,
		Models: []ObservedModel{
			{ID: "meta-llama/Llama-3.1-8B-Instruct", SLO: promise, Comparison: &Comparison{
				Own: Compared{Policy: "hybrid", Attainment: 0.95123, CostOverBound: 1.0649},
				HPA: Compared{Policy: "hpa:inflight=16,down=30s", Attainment: 0.962, CostOverBound: 1.7063},
			}},
			{ID: "meta-llama/Llama-3.1-70B-Instruct", SLO: promise},
		},
		Variants: []ObservedVariant{
			{Name: "llama-8b-h100", Model: "meta-llama/Llama-3.1-8B-Instruct", Accelerator: "H100", Devices: 1, Cost: 6.88,
				Replicas: []ReplicaState{{Desired: 1, Ready: 1}, {At: 20 * s, Desired: 4, Ready: 1}, {At: 36 * s, Desired: 4, Ready: 4}, {At: 200 * s, Desired: 1, Ready: 1}},
				Held:     []Span{{Open: true}, {From: 20 * s, To: 200 * s}}},
			{Name: "llama-70b-a100", Model: "meta-llama/Llama-3.1-70B-Instruct", Accelerator: "A100", Devices: 8, Cost: 27.44},
		},
		Outcomes: []Outcome{
			served(10 * s), served(40 * s),
			{Model: "meta-llama/Llama-3.1-8B-Instruct", Arrived: 12 * s},
		},
		Placements: []Placement{
			{Pod: "llama-8b-h100-b", Variant: "llama-8b-h100", Node: "cpu-0", Scheduler: "variant-scheduler"},
			{Pod: "llama-8b-h100-a", Variant: "llama-8b-h100", Node: "h100-0", Accelerator: "H100", Scheduler: "variant-scheduler"},
		},
		Decisions: []Decision{
			{T: 198.5, Variant: "llama-8b-h100", From: 4, To: 1, Reason: "SpareCapacity: 1 replica carries 3.1 req/s"},
			{T: 20, Variant: "llama-8b-h100", From: 1, To: 4, Reason: "Saturated: KV use 0.83 of 0.80 <&>"},
		},
		Nodes: []ObservedNode{{Name: "h100-0", Accelerator: "H100", Devices: 8}, {Name: "cpu-0"}},
		Moves: []ObservedMove{
			{At: -9 * s, Pod: "llama-8b-h100-old", Variant: "llama-8b-h100", Stage: simulation.Placed, Node: "h100-0"},
			{At: -8 * s, Pod: "llama-8b-h100-a", Variant: "llama-8b-h100", Stage: simulation.Placed, Node: "h100-0"},
			{At: -5 * s, Pod: "llama-8b-h100-old", Variant: "llama-8b-h100", Stage: simulation.Gone, Node: "h100-0"},
			{At: -1 * s, Pod: "llama-8b-h100-a", Variant: "llama-8b-h100", Stage: simulation.Serving, Node: "h100-0"},
			{At: 20 * s, Pod: "llama-8b-h100-b", Variant: "llama-8b-h100", Stage: simulation.Created},
			{At: 21 * s, Pod: "llama-8b-h100-b", Variant: "llama-8b-h100", Stage: simulation.Placed, Node: "cpu-0"},
			{At: 21 * s, Pod: "unknown", Variant: "of nobody", Stage: simulation.Created},
			{At: 36 * s, Pod: "llama-8b-h100-b", Variant: "llama-8b-h100", Stage: simulation.Serving, Node: "cpu-0"},
			{At: 200 * s, Pod: "llama-8b-h100-b", Variant: "llama-8b-h100", Stage: simulation.Leaving, Node: "cpu-0"},
			{At: 999 * s, Pod: "llama-8b-h100-b", Variant: "llama-8b-h100", Stage: simulation.Gone, Node: "cpu-0"},
		},
	}
}

func TestTheClockSaysWhatGoesBeyondTheEnd(t *testing.T) {
	l := Live{At: 25 * time.Second, Of: 25 * time.Second, Phase: "tail, without traffic"}
	assert.Equal(t, "0:25 of 0:25  tail, without traffic", l.Block()[0])
	l.At, l.Phase = 32*time.Second, "finishing the requests in flight"
	assert.Equal(t, "0:25 + 0:07  finishing the requests in flight", l.Block()[0])
}

func picture() Live {
	return Live{
		At: 75 * time.Second, Of: 4 * time.Minute, Phase: "traffic",
		Models: []LiveModel{
			{Model: "meta-llama/Llama-3.1-8B-Instruct", SLO: SLO{500, 50}, Arrival: new(82.37), Queue: new(0.0), Attainment: new(0.97)},
			{Model: "meta-llama/Llama-3.1-70B-Instruct", SLO: SLO{2000, 100}, Attainment: new(0.42)},
		},
		Variants: []LiveVariant{
			{Name: "llama-8b-h100", Model: "meta-llama/Llama-3.1-8B-Instruct", Shape: "1xH100", CostPerReplicaHour: 6.88,
				Desired: 4, Ready: 2, Pending: 1, KVUse: new(0.416), Waiting: new(3.0), TTFT: new(612.0), ITL: new(31.26)},
			{Name: "a-variant-with-a-very-long-name", Model: "meta-llama/Llama-3.1-70B-Instruct", Shape: "8xA100", CostPerReplicaHour: 27.44},
		},
		Decisions: []Decision{
			{T: 1, Variant: "forgotten", From: 1, To: 2},
			{T: 2, Variant: "llama-8b-h100", From: 1, To: 2, Reason: "Saturated"},
			{T: 3, Variant: "llama-8b-h100", From: 2, To: 3, Reason: strings.Repeat("a very long reason ", 9)},
			{T: 4, Variant: "llama-8b-h100", From: 3, To: 4, Reason: "Saturated"},
			{T: 5, Variant: "llama-8b-h100", From: 4, To: 3, Reason: "SpareCapacity"},
			{T: 61, Variant: "llama-8b-h100", From: 3, To: 4, Reason: "Saturated"},
		},
	}
}

func TestRendering(t *testing.T) {
	join := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	tests := map[string]string{
		"table.txt":         join(picture().Table(Style{})),
		"table-color.txt":   join(picture().Table(Style{Color: true})),
		"block.txt":         join(picture().Block()),
		"table-empty.txt":   join(Live{Phase: "starting"}.Table(Style{})),
		"summary.txt":       join(sample().Summary(Style{}, "variant-scheduler")),
		"summary-color.txt": join(sample().Summary(Style{Color: true}, "variant-scheduler")),
	}
	colors := regexp.MustCompile("\x1b\\[[0-9]*m")
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			golden(t, name, text)
			if strings.Contains(name, "block") {
				return
			}
			for line := range strings.Lines(text) {
				shown := colors.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
				assert.LessOrEqual(t, utf8.RuneCountInString(shown), DefaultWidth, line)
			}
		})
	}
	assert.Equal(t, tests["table.txt"], colors.ReplaceAllString(tests["table-color.txt"], ""), "colours change nothing else")
}

func TestJSON(t *testing.T) {
	var first, second bytes.Buffer
	require.NoError(t, sample().WriteJSON(&first))
	require.NoError(t, sample().WriteJSON(&second))
	assert.Equal(t, first.String(), second.String())
	golden(t, "report.json", first.String())
}

func TestAnEmptyRunHasListsAndNoNulls(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, New(Observation{}).WriteJSON(&b))
	assert.NotContains(t, b.String(), "null")
}

func TestLatencyKeepsThreeDigits(t *testing.T) {
	for want, ms := range map[string]float64{
		"0.4 ms": 0.4, "31.3 ms": 31.26, "99.9 ms": 99.94, "100 ms": 99.96, "999 ms": 999.4, "1.00 s": 999.6, "12.3 s": 12345,
	} {
		assert.Equal(t, want, latency(&ms))
	}
	assert.Equal(t, "-", latency(nil))
}
