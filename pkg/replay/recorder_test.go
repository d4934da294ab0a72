package replay

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func TestRecordingAddsUpToTheResult(t *testing.T) {
	for _, policy := range everyPolicy {
		t.Run(policy, func(t *testing.T) {
			p := played(t, two(), hill(t), policy, 30*time.Second)
			performed := p.perform()
			require.NoError(t, performed.err)
			result, recording := performed.result, performed.recording
			assert.Equal(t, policy, recording.Policy)
			assert.Equal(t, p.load.length(), recording.Length)
			requests, met := 0, 0
			for m, model := range recording.Models {
				ofModel := 0
				require.Len(t, model.Samples, int((recording.Length+recording.Step-1)/recording.Step))
				for _, sample := range model.Samples {
					requests, met, ofModel = requests+sample.Requests, met+sample.Met, ofModel+sample.Requests
					require.LessOrEqual(t, sample.Met, sample.Requests)
				}
				for _, v := range model.Variants {
					require.Len(t, v.Wanted, len(model.Samples))
					require.Len(t, v.Ready, len(model.Samples))
				}
				asked := 0.0
				for _, minute := range p.load[m] {
					asked += float64(minute.Rate) * max(minute.Length, leastSpan).Seconds()
				}
				assert.InDelta(t, asked, float64(ofModel), 1e-6, "the load was measured with the same deal")
			}
			assert.Equal(t, result.Requests, requests)
			assert.InDelta(t, result.Attainment*float64(result.Requests), float64(met), 0.01)
			assert.Len(t, recording.Decisions, result.ScaleEvents)
		})
	}
}

func TestRecordedMovesTellTheSameStory(t *testing.T) {
	p := played(t, small(), hill(t), "hybrid", 30*time.Second)
	performed := p.perform()
	require.NoError(t, performed.err)
	recording := performed.recording
	require.True(t, slices.IsSortedFunc(recording.Moves, func(a, b simulation.Move) int { return cmp.Compare(a.At, b.At) }))
	stage, hours, since := map[string]simulation.Stage{}, time.Duration(0), map[string]time.Duration{}
	for _, m := range recording.Moves {
		require.Greater(t, m.Stage, stage[m.Replica], "%+v", m)
		stage[m.Replica] = m.Stage
		switch m.Stage {
		case simulation.Placed:
			require.Less(t, m.Node, len(recording.Nodes))
			since[m.Replica] = m.At
		case simulation.Gone:
			hours += min(m.At, recording.Length) - since[m.Replica]
			delete(since, m.Replica)
		case simulation.Created, simulation.Serving, simulation.Leaving:
		}
	}
	for _, from := range since {
		hours += max(0, recording.Length-from)
	}
	assert.InDelta(t, performed.result.ReplicaHours, hours.Hours(), 1e-6)
	// The moves also say how many served at the end of each step.
	for v, variant := range recording.Models[0].Variants {
		for i, ready := range variant.Ready {
			end, n := min(time.Duration(i+1)*recording.Step, recording.Length)-second, 0
			for _, m := range recording.Moves {
				if m.Variant.Variant != v || m.At > end {
					continue
				}
				switch m.Stage {
				case simulation.Serving:
					n++
				case simulation.Leaving:
					n--
				case simulation.Created, simulation.Placed, simulation.Gone:
				}
			}
			require.Equal(t, n, ready, "%s after %s", variant.Name, end)
		}
	}
}

func TestRecordedDecisionsFollowEachOther(t *testing.T) {
	for _, policy := range []string{"hybrid", "hpa:rps=6", "static:3"} {
		p := played(t, two(), hill(t), policy, 30*time.Second)
		performed := p.perform()
		require.NoError(t, performed.err)
		recording := performed.recording
		require.NotEmpty(t, recording.Decisions)
		wanted := map[string]int{}
		for m, initial := range p.initial() {
			for v, n := range initial {
				wanted[recording.Models[m].Variants[v].Name] = n
			}
		}
		before := time.Duration(0)
		for _, d := range recording.Decisions {
			require.GreaterOrEqual(t, d.At, before)
			require.Equal(t, wanted[d.Variant], d.From, "%+v", d)
			require.NotEqual(t, d.From, d.To)
			wanted[d.Variant], before = d.To, d.At
			if policy != "hybrid" {
				require.Empty(t, d.Reason)
				require.Empty(t, d.Steps)
				continue
			}
			require.NotEmpty(t, d.Reason)
			require.False(t, d.Message.None())
			require.NotEmpty(t, d.Steps)
			require.Equal(t, d.To, d.Steps[len(d.Steps)-1].After)
		}
		for m := range recording.Models {
			for _, v := range recording.Models[m].Variants {
				assert.Equal(t, wanted[v.Name], v.Wanted[len(v.Wanted)-1], v.Name)
			}
		}
	}
}

func TestSamplesOfARecording(t *testing.T) {
	s := small()
	s.Cluster.Nodes[0].Free.Devices = 3
	stage := staged(t, s, 25*time.Second, fleet{})
	r := stage.measure.recorder
	require.Equal(t, 10*time.Second, r.out.Step)
	for i := range 20 {
		stage.measure.outcome(answered(time.Duration(i)*time.Second, 11, float64(100+i), 20))
	}
	stage.measure.outcome(answered(3*time.Second, 1, 50_000, 0))
	for now := range 30 {
		stage.measure.beat(seconds(now))
	}
	_, recording := stage.measure.finish(stage)
	samples := recording.Models[0].Samples
	require.Len(t, samples, 3)
	running := 2.0 // one replica of the cheap variant, which the first minute needs
	least := stage.bound.CostAt(0, 0)
	assert.Positive(t, least)
	assert.Equal(t, Sample{Requests: 11, Met: 10, TTFT: 50_000, ITL: 20, Cost: running, Bound: least}, samples[0])
	assert.Equal(t, Sample{Requests: 10, Met: 10, TTFT: 119, ITL: 20, Cost: running, Bound: least}, samples[1])
	assert.Equal(t, Sample{Cost: running, Bound: least}, samples[2])
	assert.Equal(t, []int{1, 1, 1}, recording.Models[0].Variants[0].Ready)
	assert.Equal(t, []int{0, 0, 0}, recording.Models[0].Variants[1].Wanted)
	assert.Equal(t, []RecordedNode{
		{Name: "h100-00", Accelerator: "H100", Devices: 8, Others: 5}, {Name: "h200-00", Accelerator: "H200", Devices: 8},
	}, recording.Nodes)
	assert.Equal(t, capacity.SLO{TTFT: 1000, ITL: 40}, recording.Models[0].SLO)
	assert.Equal(t, capacity.Accelerator("H200"), recording.Models[0].Variants[1].Accelerator)
}

func TestStepsOfARecordingAreWholeTensOfSeconds(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		time.Second: 10 * time.Second, time.Hour: 10 * time.Second, 2 * time.Hour: 10 * time.Second,
		2*time.Hour + 12*time.Minute: 20 * time.Second, 24 * time.Hour: 2 * time.Minute, 7 * 24 * time.Hour: 14 * time.Minute,
	} {
		assert.Equal(t, want, stepOf(length), length)
		assert.LessOrEqual(t, int(length/stepOf(length)), mostSamples)
	}
}

// story is what a run did, in lines that people can read.
func story(p performed) []string {
	var lines []string
	for _, d := range p.recording.Decisions {
		lines = append(lines, fmt.Sprintf("%s %s %d to %d", d.At, d.Variant, d.From, d.To))
	}
	return lines
}

func TestAStepByHand(t *testing.T) {
	// Nine more replicas than there are devices are asked for at once and given up.
	source := short(t, workload.Point{Rate: 4}, workload.Point{At: 2 * time.Minute, Rate: 4})
	p := played(t, small(), source, "static:1", 30*time.Second)
	answers := [][]int{{1, 0}, {17, 0}, {17, 1}, {2, 1}, {1, 0}}
	performed := p.with(&scripted{every: 20 * time.Second, answer: func(round int, _ *View) Answer {
		return Answer{Replicas: [][]int{answers[min(round, len(answers)-1)]}}
	}}, [][]int{{1, 0}})
	require.NoError(t, performed.err)
	assert.Equal(t, []string{"20s cheap 1 to 17", "40s dear 0 to 1", "1m0s cheap 17 to 2", "1m20s cheap 2 to 1", "1m20s dear 1 to 0"}, story(performed))
	r := performed.result
	assert.Equal(t, []int{5, 2, 9}, []int{r.ScaleEvents, r.Flips, r.UnplaceableReplicas})
	assert.Zero(t, r.Failed)
}
