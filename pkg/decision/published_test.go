package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

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

func TestFreshnessClasses(t *testing.T) {
	policy := DefaultPolicy()
	r := &round{snapshot: &Snapshot{Time: epoch}, policy: &policy}
	for _, tc := range []struct {
		old  time.Duration
		want age
	}{
		{-time.Second, ageFresh}, {0, ageFresh}, {59 * time.Second, ageFresh}, {time.Minute, ageAgeing},
		{119 * time.Second, ageAgeing}, {2 * time.Minute, ageStale}, {5 * time.Minute, ageAbsent},
	} {
		assert.Equal(t, tc.want, r.age(Sample{Time: epoch.Add(-tc.old), Present: true}), tc.old)
	}
	assert.Equal(t, ageAbsent, r.age(Sample{Time: epoch}), "a zero sample is absent, not zero")
}

func TestBehavior(t *testing.T) {
	pods := func(n int) []RatePolicy { return []RatePolicy{{Pods: n, Period: time.Minute}} }
	percent := func(n int) []RatePolicy { return []RatePolicy{{Percent: n, Period: time.Minute}} }
	for name, tc := range map[string]struct {
		up, down        Behavior
		current, wanted int
		recommended     []Recommendation
		changed         []Change
		want            int
		reason          Reason
	}{
		"free to go up":                          {current: 2, wanted: 9, want: 9},
		"free to go down":                        {current: 9, wanted: 2, want: 2},
		"pods per minute":                        {up: Behavior{Policies: pods(3)}, current: 2, wanted: 9, want: 5, reason: ReasonRateLimited},
		"pods already added count":               {up: Behavior{Policies: pods(3)}, current: 4, wanted: 9, changed: []Change{{epoch, 2}}, want: 5, reason: ReasonRateLimited},
		"changes older than the period":          {up: Behavior{Policies: pods(3)}, current: 4, wanted: 9, changed: []Change{{epoch.Add(-2 * time.Minute), 2}}, want: 7, reason: ReasonRateLimited},
		"percent rounds up":                      {up: Behavior{Policies: percent(50)}, current: 3, wanted: 9, want: 5, reason: ReasonRateLimited},
		"down by percent":                        {down: Behavior{Policies: percent(50)}, current: 8, wanted: 1, want: 4, reason: ReasonRateLimited},
		"down by pods":                           {down: Behavior{Policies: pods(1)}, current: 8, wanted: 1, want: 7, reason: ReasonRateLimited},
		"the larger change by default":           {up: Behavior{Policies: append(pods(1), percent(100)...)}, current: 4, wanted: 20, want: 8, reason: ReasonRateLimited},
		"the smaller change when asked":          {up: Behavior{Select: SelectMin, Policies: append(pods(1), percent(100)...)}, current: 4, wanted: 20, want: 5, reason: ReasonRateLimited},
		"the larger way down by default":         {down: Behavior{Policies: append(pods(1), percent(50)...)}, current: 8, wanted: 1, want: 4, reason: ReasonRateLimited},
		"the smaller way down when asked":        {down: Behavior{Select: SelectMin, Policies: append(pods(1), percent(50)...)}, current: 8, wanted: 1, want: 7, reason: ReasonRateLimited},
		"up is disabled":                         {up: Behavior{Select: SelectDisabled}, current: 4, wanted: 20, want: 4, reason: ReasonRateLimited},
		"down is disabled":                       {down: Behavior{Select: SelectDisabled}, current: 4, wanted: 1, want: 4, reason: ReasonRateLimited},
		"within the tolerance":                   {up: Behavior{Tolerance: 0.1}, current: 20, wanted: 22, want: 20, reason: ReasonWithinTolerance},
		"beyond the tolerance":                   {up: Behavior{Tolerance: 0.1}, current: 20, wanted: 23, want: 23},
		"an uncovered window holds":              {down: Behavior{Window: time.Minute}, current: 5, wanted: 1, want: 5, reason: ReasonStabilized},
		"the highest of the window holds":        {down: Behavior{Window: time.Minute}, current: 5, wanted: 1, recommended: []Recommendation{{epoch.Add(-70 * time.Second), 9}, {epoch.Add(-30 * time.Second), 3}}, want: 3, reason: ReasonStabilized},
		"never up while stabilising down":        {down: Behavior{Window: time.Minute}, current: 5, wanted: 1, recommended: []Recommendation{{epoch.Add(-70 * time.Second), 1}, {epoch.Add(-30 * time.Second), 8}}, want: 5, reason: ReasonStabilized},
		"the lowest of the window on the way up": {up: Behavior{Window: time.Minute}, current: 2, wanted: 9, recommended: []Recommendation{{epoch.Add(-30 * time.Second), 4}}, want: 4, reason: ReasonStabilized},
	} {
		t.Run(name, func(t *testing.T) {
			key := Key{"ns", "v"}
			policy := DefaultPolicy()
			r := &round{
				snapshot: &Snapshot{Time: epoch}, policy: &policy, kind: RoundFull, next: Memory{}.withMaps(),
				old: &Memory{
					Recommendations: map[Key][]Recommendation{key: tc.recommended},
					Changes:         map[Key][]Change{key: tc.changed},
				},
			}
			v := &variant{in: &Variant{Name: "v", Current: tc.current}, key: key, managed: true, target: tc.wanted}
			v.policy = VariantPolicy{Max: -1, Up: tc.up, Down: tc.down}
			behavior(r, &model{variants: []*variant{v}})
			assert.Equal(t, tc.want, v.target)
			assert.Equal(t, tc.reason, v.plan.Reason)
		})
	}
}

func TestBehaviorSlowsNoBound(t *testing.T) {
	percent := []RatePolicy{{Percent: 50, Period: time.Minute}}
	for name, tc := range map[string]struct {
		policy          VariantPolicy
		current, wanted int
		want            int
	}{
		"a share of nothing lets one begin":         {VariantPolicy{Max: -1, Up: Behavior{Policies: percent}}, 0, 5, 1},
		"a minimum passes the policies":             {VariantPolicy{Min: 4, Max: -1, Up: Behavior{Policies: percent}}, 0, 2, 4},
		"a minimum passes a disabled direction":     {VariantPolicy{Min: 2, Max: -1, Up: Behavior{Select: SelectDisabled}}, 0, 0, 2},
		"a maximum passes an uncovered window":      {VariantPolicy{Max: 2, Down: Behavior{Window: time.Hour}}, 5, 4, 2},
		"a maximum passes a disabled direction too": {VariantPolicy{Max: 2, Down: Behavior{Select: SelectDisabled}}, 5, 5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			policy := DefaultPolicy()
			r := &round{snapshot: &Snapshot{Time: epoch}, policy: &policy, kind: RoundFull, next: Memory{}.withMaps(), old: &Memory{}}
			v := &variant{in: &Variant{Name: "v", Current: tc.current}, managed: true, target: tc.wanted, policy: tc.policy}
			m := &model{variants: []*variant{v}}
			bounds(r, m)
			behavior(r, m)
			assert.Equal(t, tc.want, v.target)
		})
	}
}

func TestTrendIgnoresNoise(t *testing.T) {
	points := func(rates ...float64) []Observation {
		var list []Observation
		for i, r := range rates {
			list = append(list, Observation{Time: epoch.Add(time.Duration(i) * 10 * time.Second), Rate: capacity.Rate(r)})
		}
		return list
	}
	for name, tc := range map[string]struct {
		points []Observation
		want   float64
	}{
		"too few":           {points(1, 9), 0},
		"constant":          {points(5, 5, 5, 5), 0},
		"noise":             {points(10, 10.5, 9.8, 10.6), 0},
		"a ramp":            {points(10, 20, 30, 40), 1},
		"falling":           {points(40, 30, 20, 10), 0},
		"up and down again": {points(5, 20, 35, 50, 12), 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.InDelta(t, tc.want, trend(tc.points, time.Minute), 1e-9)
		})
	}
}
