package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

var promise = capacity.SLO{TTFT: 500, ITL: 50}

func TestMeetsReadsThePromiseAsTheRequestSeesIt(t *testing.T) {
	tests := map[string]struct {
		outcome Outcome
		want    bool
	}{
		"both at their targets": {
			outcome: Outcome{Completed: true, TTFT: 500, EndToEnd: 1000, OutputTokens: 11}, want: true},
		"first token late": {
			outcome: Outcome{Completed: true, TTFT: 500.1, EndToEnd: 600, OutputTokens: 11}},
		"further tokens slow": {
			outcome: Outcome{Completed: true, TTFT: 100, EndToEnd: 601, OutputTokens: 11}},
		"the first token is not a further one": {
			outcome: Outcome{Completed: true, TTFT: 450, EndToEnd: 470, OutputTokens: 2}, want: true},
		"a single token has no ITL": {
			outcome: Outcome{Completed: true, TTFT: 499, EndToEnd: 499, OutputTokens: 1}, want: true},
		"failed, whatever its latencies": {
			outcome: Outcome{TTFT: 1, EndToEnd: 2, OutputTokens: 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, test.outcome.Meets(promise))
		})
	}
	assert.True(t, Outcome{Completed: true, TTFT: 9e9, EndToEnd: 9e9, OutputTokens: 9}.Meets(capacity.SLO{}),
		"no promise, nothing to miss")
}

func TestWarmSince(t *testing.T) {
	at := func(seconds, desired, ready int) ReplicaState {
		return ReplicaState{At: time.Duration(seconds) * time.Second, Desired: desired, Ready: ready}
	}
	variant := func(states ...ReplicaState) ObservedVariant {
		return ObservedVariant{Model: "m", Replicas: states}
	}
	tests := map[string]struct {
		variants []ObservedVariant
		want     time.Duration
		never    bool
	}{
		"no scale-up: always": {
			variants: []ObservedVariant{variant(at(-5, 1, 1), at(60, 0, 0))}, want: -1 << 63},
		"what rose before the traffic is where it starts from": {
			variants: []ObservedVariant{variant(at(-9, 0, 0), at(-5, 1, 0), at(-3, 1, 1))}, want: -1 << 63},
		"ready replicas of the first rise, later rises do not matter": {
			variants: []ObservedVariant{variant(at(0, 1, 1), at(30, 3, 1), at(40, 3, 2), at(45, 6, 2), at(50, 6, 3), at(90, 6, 6))},
			want:     50 * time.Second, never: false},
		"lowered before it was there": {
			variants: []ObservedVariant{variant(at(0, 1, 1), at(30, 3, 1), at(40, 2, 1), at(50, 2, 2))}, want: 50 * time.Second},
		"never ready": {
			variants: []ObservedVariant{variant(at(0, 1, 1), at(30, 2, 1))}, never: true},
		"two variants in one decision: the later one": {
			variants: []ObservedVariant{
				variant(at(0, 1, 1), at(30, 2, 1), at(45, 2, 2)),
				variant(at(0, 0, 0), at(30, 1, 0), at(55, 1, 1)),
			}, want: 55 * time.Second},
		"the variant that rose later is another scale-up": {
			variants: []ObservedVariant{
				variant(at(0, 1, 1), at(30, 2, 1), at(45, 2, 2)),
				variant(at(0, 0, 0), at(33, 1, 0)),
			}, want: 45 * time.Second},
		"other models do not count": {
			variants: []ObservedVariant{{Model: "other", Replicas: []ReplicaState{at(0, 1, 1), at(30, 2, 1)}}}, want: -1 << 63},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			since, ok := WarmSince(test.variants, "m")
			assert.Equal(t, test.never, !ok)
			if !test.never {
				assert.Equal(t, test.want, since)
			}
		})
	}
}

func TestPercentilesAreByNearestRank(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	tests := map[string]struct {
		values        []float64
		p50, p95, p99 float64
	}{
		"one value is every percentile": {[]float64{7}, 7, 7, 7},
		"two values":                    {[]float64{2, 1}, 1, 2, 2},
		"1 to 100, unsorted":            {hundred, 50, 95, 99},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := percentiles(test.values)
			assert.Equal(t, []float64{test.p50, test.p95, test.p99}, []float64{*got.P50, *got.P95, *got.P99})
		})
	}
	assert.Equal(t, Percentiles{}, percentiles(nil), "unknown, not zero")
}

func TestNewCountsWritesHoursAndCost(t *testing.T) {
	s := time.Second
	got := New(Observation{
		Traffic: time.Hour, End: 2 * time.Hour,
		Variants: []ObservedVariant{{
			Name: "v", Model: "m", Accelerator: "L40S", Devices: 2, Cost: 4,
			Replicas: []ReplicaState{
				{At: -9 * s, Desired: 1}, {At: -2 * s, Desired: 1, Ready: 1},
				{At: 60 * s, Desired: 3, Ready: 1}, {At: 80 * s, Desired: 3, Ready: 3},
				{At: 4000 * s, Desired: 1, Ready: 1}, {At: 9000 * s, Desired: 0, Ready: 0},
			},
			Held: []Span{
				{From: -time.Minute, Open: true},                  // 2 h of the run
				{From: 30 * time.Minute, To: 60 * time.Minute},    // 0.5 h
				{From: -5 * time.Minute, To: -4 * time.Minute},    // before it
				{From: 115 * time.Minute, To: 1000 * time.Minute}, // 5 min of it
			},
		}},
	})
	require.Len(t, got.Variants, 1)
	v := got.Variants[0]
	assert.Equal(t, []ReplicaPoint{
		{T: 0, Desired: 1, Ready: 1}, {T: 60, Desired: 3, Ready: 1}, {T: 80, Desired: 3, Ready: 3},
		{T: 4000, Desired: 1, Ready: 1}, {T: 7200, Desired: 1, Ready: 1},
	}, v.Replicas, "from 0 to the end; what came before is the state at 0")
	assert.Equal(t, 2, v.ScaleWrites)
	hours := 2 + 0.5 + 5.0/60
	assert.InDelta(t, 2*hours, v.GPUHours, 1e-6)
	assert.InDelta(t, 4*hours, v.Cost, 1e-6)
}

func TestNewSplitsRequestsByModelAndWarmth(t *testing.T) {
	met := func(model string, at time.Duration) Outcome {
		return Outcome{Model: model, Arrived: at, Completed: true, TTFT: 10, EndToEnd: 30, OutputTokens: 3}
	}
	late := met("m", 10*time.Second)
	late.TTFT, late.EndToEnd = 900, 920
	got := New(Observation{
		Models: []ObservedModel{{ID: "m", SLO: promise}, {ID: "idle", SLO: promise}},
		Variants: []ObservedVariant{{Model: "m", Replicas: []ReplicaState{
			{Desired: 1, Ready: 1}, {At: 20 * time.Second, Desired: 2, Ready: 1}, {At: 35 * time.Second, Desired: 2, Ready: 2}}}},
		Outcomes: []Outcome{
			met("m", 0), late, met("m", 36*time.Second), {Model: "m", Arrived: 12 * time.Second}, met("m", 35*time.Second),
			met("other", 0),
		},
	})
	assert.Equal(t, Requests{Total: 6, Completed: 5, Failed: 1}, got.Requests)
	assert.InDelta(t, 0.6, *got.Models[0].Attainment, 1e-9, "a failed request has not met it")
	assert.InDelta(t, 1, *got.Models[0].AttainmentWarm, 1e-9)
	assert.InDelta(t, 10, *got.Models[0].ITL.P99, 1e-9)
	assert.InDelta(t, 900, *got.Models[0].TTFT.P99, 1e-9)
	assert.Nil(t, got.Models[1].Attainment, "no requests: unknown, not zero")
	assert.Nil(t, got.Models[1].AttainmentWarm)
}

func TestMisplacedIsTheWrongAcceleratorOrScheduler(t *testing.T) {
	demo := Demo{
		Variants: []Variant{{Name: "v", Accelerator: "H100"}},
		Placements: []Placement{
			{Pod: "right", Variant: "v", Accelerator: "H100", Scheduler: "ours"},
			{Pod: "wrong-type", Variant: "v", Accelerator: "A100", Scheduler: "ours"},
			{Pod: "no-devices", Variant: "v", Scheduler: "ours"},
			{Pod: "wrong-scheduler", Variant: "v", Accelerator: "H100", Scheduler: "default-scheduler"},
		},
	}
	var pods []string
	for _, p := range demo.Misplaced("ours") {
		pods = append(pods, p.Pod)
	}
	assert.Equal(t, []string{"wrong-type", "no-devices", "wrong-scheduler"}, pods)
}
