package shadow

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// samples are known ones from pairs of wanted and there.
func samples(pairs ...[2]float64) []Sample {
	all := make([]Sample, len(pairs))
	for i, p := range pairs {
		all[i] = Sample{Wanted: p[0], There: p[1], Known: true}
	}
	return all
}

func TestCompare(t *testing.T) {
	t.Parallel()
	const step = 30 * time.Minute
	for name, c := range map[string]struct {
		samples []Sample
		startup time.Duration
		want    Comparison
	}{
		"alike": {samples([2]float64{2, 2}, [2]float64{2, 2}), 0, Comparison{
			There: Side{ReplicaHours: 2, Mean: 2, Most: 2, Cost: new(float64(20))}, Object: Side{ReplicaHours: 2, Mean: 2, Most: 2, Cost: new(float64(20))}, Known: 1,
		}},
		"too many were there": {samples([2]float64{1, 4}, [2]float64{1, 4}), 0, Comparison{
			There: Side{ReplicaHours: 4, Mean: 4, Most: 4, Cost: new(float64(40))}, Object: Side{ReplicaHours: 1, Mean: 1, Most: 1, Cost: new(float64(10))}, Known: 1,
		}},
		"too few were there, and ours start": {samples([2]float64{1, 1}, [2]float64{3, 1}, [2]float64{3, 1}, [2]float64{3, 2}), step, Comparison{
			There:  Side{ReplicaHours: 2.5, Mean: 1.25, Most: 2, Cost: new(float64(25)), Saturated: 5400, Changes: 1},
			Object: Side{ReplicaHours: 5, Mean: 2.5, Most: 3, Cost: new(float64(50)), Saturated: 1800, Changes: 1}, Known: 1,
		}},
		"a start-up that is no multiple of the step takes the next one": {samples([2]float64{1, 1}, [2]float64{2, 2}, [2]float64{2, 2}), step + time.Second, Comparison{
			There:  Side{ReplicaHours: 2.5, Mean: 5.0 / 3, Most: 2, Cost: new(float64(25)), Changes: 1},
			Object: Side{ReplicaHours: 2.5, Mean: 5.0 / 3, Most: 2, Cost: new(float64(25)), Saturated: 3600, Changes: 1}, Known: 1,
		}},
		"what is unknown counts for neither": {append(samples([2]float64{2, 1}), Sample{}, Sample{Wanted: 9}), 0, Comparison{
			There: Side{ReplicaHours: 0.5, Mean: 1, Most: 1, Cost: new(float64(5)), Saturated: 1800}, Object: Side{ReplicaHours: 1, Mean: 2, Most: 2, Cost: new(float64(10))}, Known: 1.0 / 3,
		}},
		"nothing is known": {[]Sample{{}}, 0, Comparison{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Compare(c.samples, step, c.startup, new(float64(10)))
			assert.InDelta(t, c.want.There.Mean, got.There.Mean, 1e-9)
			assert.InDelta(t, c.want.Object.Mean, got.Object.Mean, 1e-9)
			got.There.Mean, got.Object.Mean = c.want.There.Mean, c.want.Object.Mean
			assert.Equal(t, c.want, got)
		})
	}
}

func TestTheResultForPeople(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	r := Result{
		Namespace: "chat", Name: "a", Actuation: v1alpha1.ActuationOff, From: now.Add(-24 * time.Hour), To: now, CostPerHour: new(float64(10)),
		Comparison: Comparison{
			There: Side{ReplicaHours: 96, Mean: 4, Most: 4, Cost: new(float64(960)), Saturated: 4320}, Object: Side{ReplicaHours: 72.5, Mean: 3.02, Most: 6, Cost: new(float64(725)), Changes: 8}, Known: 0.98,
		},
	}
	var out bytes.Buffer
	require.NoError(t, r.text(&out))
	assert.Equal(t, `chat/a, the last 24h, at 10.00 an hour for a replica; samples cover 98 % of the time

             REPLICA HOURS  MEAN  MOST  COST    SATURATED  CHANGES
was there    96.0           4.0   4     960.00  72m        0
this object  72.5           3.0   6     725.00  0s         8
`, out.String())
	r.Actuation = v1alpha1.ActuationScale
	out.Reset()
	require.NoError(t, r.text(&out))
	assert.Contains(t, out.String(), "Actuation is Scale, so what was there follows")
}
