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
			got := Compare(c.samples, step, c.startup, new(float64(10)), 0)
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

The model has no SLO, so nothing says whether the latency would have stayed as it was. `+"`kubectl wva adopt`"+` gives it one.
`, out.String())
	r.Actuation = v1alpha1.ActuationScale
	out.Reset()
	require.NoError(t, r.text(&out))
	assert.Contains(t, out.String(), "Actuation is Scale, so what was there follows")
}

// Attainment is compared where there is an SLO: what was measured with what the object would have
// had, as far as its own numbers tell.
func TestTheShareThatMeetsTheSLO(t *testing.T) {
	t.Parallel()
	const step, objective = 30 * time.Minute, 0.99
	met := func(wanted, there, least, most, requests float64) Sample {
		return Sample{Wanted: wanted, There: there, Known: true, Met: Share{Least: least, Most: most}, Requests: requests, MetKnown: true}
	}
	for name, c := range map[string]struct {
		samples       []Sample
		startup       time.Duration
		there, object *Share
	}{
		"as many":                                 {[]Sample{met(2, 2, 0.97, 0.98, 5)}, 0, &Share{0.97, 0.98}, &Share{0.97, 0.98}},
		"fewer than were there":                   {[]Sample{met(1, 4, 0.98, 1, 5)}, 0, &Share{0.98, 1}, &Share{0.98, 0.99}},
		"more than too few":                       {[]Sample{met(4, 1, 0.5, 0.6, 5)}, 0, &Share{0.5, 0.6}, &Share{0.99, 0.99}},
		"while they start":                        {[]Sample{met(1, 1, 1, 1, 5), met(2, 1, 0.5, 0.5, 15)}, step, &Share{0.625, 0.625}, &Share{0.25, 0.25}},
		"a time without requests weighs nothing":  {[]Sample{met(2, 2, 0.9, 0.9, 5), met(2, 2, 0, 0, 0)}, 0, &Share{0.9, 0.9}, &Share{0.9, 0.9}},
		"a time of which it is not known, either": {append(samples([2]float64{1, 4}), met(2, 2, 0.9, 0.9, 5)), 0, &Share{0.9, 0.9}, &Share{0.9, 0.9}},
		"nothing is known":                        {samples([2]float64{1, 4}), 0, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Compare(c.samples, step, c.startup, nil, objective)
			for side, want := range map[*Side]*Share{&got.There: c.there, &got.Object: c.object} {
				if want == nil {
					assert.Nil(t, side.Attainment)
					continue
				}
				require.NotNil(t, side.Attainment)
				assert.InDelta(t, want.Least, side.Attainment.Least, 1e-9)
				assert.InDelta(t, want.Most, side.Attainment.Most, 1e-9)
			}
		})
	}
}

// No saving is shown beside fewer requests that meet the SLO without a word about it.
func TestASavingIsToldWithItsPrice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		objective     float64
		hours         float64
		there, object *Share
		says          string
	}{
		"it keeps the SLO":             {0.99, 50, &Share{0.991, 0.991}, &Share{0.991, 0.991}, ""},
		"fewer meet it":                {0.99, 50, &Share{0.998, 0.999}, &Share{0.97, 0.98}, "The saving has a price: by the estimate 97.0 to 98.0 % of the requests meet the SLO, and 99.8 to 99.9 % did with the replicas that were there; the aim is 99 %."},
		"fewer meet it by little":      {0.99, 50, &Share{0.9924, 0.9924}, &Share{0.9904, 0.9904}, "The saving has a price: by the estimate 99.0 % of"},
		"fewer meet it without saving": {0.99, 120, &Share{1, 1}, &Share{0.9, 0.9}, "By the estimate fewer requests meet the SLO: 90.0 %, and 100.0 % did"},
		"more meet it":                 {0.99, 120, &Share{0.5, 0.5}, &Share{0.9, 0.9}, ""},
		"nobody knows":                 {0.99, 50, nil, nil, "nothing says whether the saving keeps the SLO"},
		"nobody knows, and it is dear": {0.99, 120, nil, nil, ""},
		"there is no SLO":              {0, 50, nil, nil, "The model has no SLO"},
		"no SLO and no saving":         {0, 120, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Result{Objective: c.objective, Comparison: Comparison{There: Side{ReplicaHours: 100, Attainment: c.there}, Object: Side{ReplicaHours: c.hours, Attainment: c.object}, Known: 1}}
			var out bytes.Buffer
			require.NoError(t, r.text(&out))
			if c.says == "" {
				assert.Empty(t, r.verdict())
			}
			assert.Contains(t, out.String(), c.says)
			assert.Equal(t, c.objective > 0, bytes.Contains(out.Bytes(), []byte("MET SLO")))
		})
	}
}
