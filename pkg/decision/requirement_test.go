package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestASaturatedReplicaAndAShortfallTriggerBesideIdleOnes(t *testing.T) {
	w := newWorld(60)
	w.setReplicas(1, 1)
	w.now = w.now.Add(time.Hour)
	s := w.snapshot()
	s.Models[0].Variants[1].Replicas[0].Running.Value = 3
	s.Models[0].Variants[1].Replicas[0].Waiting.Value = 0
	s.Models[0].Variants[1].Replicas[0].KVUse.Value = 0.01
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.True(t, plan.Models[0].Triggered, "the idle one has only just come; 60 requests/s are more than both serve")
	s.Models[0].Arrival.Value = 20
	plan, _ = Decide(s, demoPolicy(), Memory{}, RoundFast)
	assert.False(t, plan.Models[0].Triggered, "20 are not")
}

// The worked examples that the published saturation analyzer is described with, at
// its default thresholds 0.80 / 5 / 0.10 / 3. They say which direction is right.
func TestPublishedWorkedExamples(t *testing.T) {
	type replica struct{ kv, queue float64 }
	for name, tc := range map[string]struct {
		replicas  []replica
		triggered bool
		lower     bool
	}{
		"kv 0.75 and 0.76, queue 2":        {[]replica{{0.75, 2}, {0.76, 2}}, true, false},
		"kv 0.5, queue 3 and 3":            {[]replica{{0.5, 3}, {0.5, 3}}, true, false},
		"kv 0.5, queue 1, two replicas":    {[]replica{{0.5, 1}, {0.5, 1}}, false, false},
		"kv 0.2, 0.3, 0.25, queue 1":       {[]replica{{0.2, 1}, {0.3, 1}, {0.25, 1}}, false, true},
		"kv 0.70 and 0.75":                 {[]replica{{0.70, 0}, {0.75, 0}}, true, false},
		"one idle replica":                 {[]replica{{0, 0}}, false, false},
		"all saturated":                    {[]replica{{0.9, 0}, {0.1, 7}}, true, false},
		"a saturated one beside idle ones": {[]replica{{0.9, 0}, {0.1, 0}, {0.1, 0}}, false, false},
		"kv 0.35 at two is just safe":      {[]replica{{0.35, 0}, {0.35, 0}}, false, true},
		"kv 0.36 at two is not":            {[]replica{{0.36, 0}, {0.36, 0}}, false, false},
		"kv 0.46 at three is safe":         {[]replica{{0.46, 0}, {0.46, 0}, {0.46, 0}}, false, true},
		"kv 0.47 at three is not":          {[]replica{{0.47, 0}, {0.47, 0}, {0.47, 0}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := Model{Namespace: "ns", ID: "m", Variants: []Variant{{
				Name: "v", Current: len(tc.replicas), Ready: len(tc.replicas), Request: request("H100", 1), Cost: 10,
			}}}
			sample := func(v float64) Sample { return Sample{Value: v, Time: epoch, Present: true} }
			for i, r := range tc.replicas {
				// What a replica serves grows with its load, so that the load alone
				// decides.
				m.Variants[0].Replicas = append(m.Variants[0].Replicas, Replica{
					Name: fmt.Sprint(i), KVUse: sample(r.kv), Waiting: sample(r.queue), Running: sample(100 * r.kv),
					Served: sample(10 * r.kv), InFlightGrowth: sample(0), Input: sample(1), Output: sample(1),
				})
			}
			policy := DefaultPolicy()
			now := DefaultVariantPolicy()
			now.Down.Window = 0
			policy.Variants = map[Key]VariantPolicy{{"ns", "v"}: now}
			policy.Drain = time.Hour * 1000
			plan, _ := Decide(Snapshot{Time: epoch, Models: []Model{m}}, policy, Memory{}, RoundFull)
			assert.Equal(t, tc.triggered, plan.Models[0].Triggered)
			v := plan.Models[0].Variants[0]
			assert.Equal(t, tc.triggered, *v.Desired > v.Current)
			if !tc.lower {
				assert.GreaterOrEqual(t, *v.Desired, v.Current)
			}
			if tc.lower && tc.replicas[0].kv < 0.3 {
				assert.Less(t, *v.Desired, v.Current)
			}
		})
	}
}
