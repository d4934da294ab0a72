package horizontal

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// values are readings of pods that have some.
func values(all ...Milli) []Reading {
	out := make([]Reading, len(all))
	for i, v := range all {
		out[i] = Reading{Present: true, Value: v}
	}
	return out
}

func silent(n int) []Reading { return make([]Reading, n) }

func pending(n int) []Reading {
	out := make([]Reading, n)
	for i := range out {
		out[i].Pending = true
	}
	return out
}

func TestAverageReplicas(t *testing.T) {
	for _, c := range []struct {
		name    string
		pods    []Reading
		current int
		target  Milli
		want    int
	}{
		{"documented: 200m instead of 100m doubles", values(200, 200, 200), 3, 100, 6},
		{"documented: 50m instead of 100m halves", values(50, 50, 50, 50), 4, 100, 2},
		{"documented: 50 pods at 90 instead of 75 become 60", values(slices.Repeat([]Milli{90_000}, 50)...), 50, 75_000, 60},
		{"the mean of uneven pods counts", values(20_000, 10_000, 30_000), 3, 15_000, 4},
		{"five pods at 60 % become three", values(12_000, 12_000, 12_000, 12_000, 12_000), 5, 20_000, 3},
		{"a little more than a double is three", values(8_801), 1, 4_400, 3},
		{"3 % are within the tolerance", values(20_000, 21_000, 21_000), 3, 20_000, 3},
		{"exactly 10 % more are within it", values(1_100), 1, 1_000, 1},
		{"a thousandth above 10 % is not", values(1_101), 1, 1_000, 2},
		{"the mean is cut to thousandths", values(1_101, 1_100), 2, 1_000, 2},
		{"exactly 10 % less are within it", values(slices.Repeat([]Milli{900}, 20)...), 20, 1_000, 20},
		{"a thousandth below 10 % is not", values(slices.Repeat([]Milli{899}, 20)...), 20, 1_000, 18},
		{"without load one stays that is asked for by nobody", values(0, 0), 2, 1_000, 0},
		{"up: silent pods count as idle", slices.Concat(values(30_000), silent(1)), 2, 10_000, 3},
		{"up: silent pods bring it within the tolerance", slices.Concat(values(20_000), silent(1)), 2, 10_000, 2},
		{"up: silent pods would turn it around", slices.Concat(values(12_000), silent(1)), 2, 10_000, 2},
		{"down: silent pods count as loaded as wanted", slices.Concat(values(2_000, 2_000, 2_000), silent(1)), 4, 10_000, 2},
		{"down: silent pods bring it within the tolerance", slices.Concat(values(8_000), silent(3)), 4, 10_000, 4},
		{"at the target silent pods change nothing", slices.Concat(values(20_000, 19_000, 21_000), silent(2)), 5, 20_000, 5},
		{"up: pending pods count as idle", slices.Concat(values(30_000), pending(2)), 3, 10_000, 3},
		{"up: beyond all pending pods", slices.Concat(values(50_000), pending(2)), 3, 10_000, 5},
		{"up: pending and silent pods count as idle", slices.Concat(values(80_000), pending(1), silent(1)), 3, 10_000, 8},
		{"up: not below what is asked for now", slices.Concat(values(40_000), silent(1)), 6, 10_000, 6},
		{"down: pending pods do not count", slices.Concat(values(5_000, 5_000), pending(3)), 5, 10_000, 1},
		{"down: not above what is asked for now", slices.Concat(values(1_000), silent(4)), 3, 10_000, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := AverageReplicas(c.pods, c.current, c.target, Tolerance)
			assert.True(t, ok)
			assert.Equal(t, c.want, got)
		})
	}
}

// The examples are those of k8s.io/kubernetes, pkg/controller/podautoscaler,
// replica_calculator_test.go.
func TestPublishedTolerances(t *testing.T) {
	for _, c := range []struct {
		tolerance float64
		want      int
	}{{0, 4}, {0.01, 3}, {2, 3}} {
		got, ok := AverageReplicas(values(909, 1010, 1111), 3, 1000, c.tolerance)
		assert.True(t, ok)
		assert.Equal(t, c.want, got, c.tolerance)
	}
	assert.Equal(t, 4, SharedReplicas(8_600, 3, 2_800, 0.01))
	assert.Equal(t, 3, SharedReplicas(8_600, 3, 2_800, Tolerance))
	assert.Equal(t, 5, SharedReplicas(20_208, 4, 5_000, 0.01))
}

func TestAverageReplicasWithoutAnyValue(t *testing.T) {
	for name, pods := range map[string][]Reading{"no pods": nil, "silent ones": silent(2), "pending ones": pending(2)} {
		got, ok := AverageReplicas(pods, 3, 1_000, Tolerance)
		assert.False(t, ok, name)
		assert.Equal(t, 3, got, name)
	}
}

func TestSharedReplicas(t *testing.T) {
	for _, c := range []struct {
		name   string
		value  Milli
		pods   int
		target Milli
		want   int
	}{
		{"four times the target for three pods", 8_600, 3, 2_150, 4},
		{"three times the target for five pods", 8_600, 5, 2_867, 3},
		{"within the tolerance", 8_600, 3, 2_900, 3},
		{"1 % above is within it", 20_166, 4, 5_000, 4},
		{"nothing waits", 0, 4, 5_000, 0},
		{"a part of a pod is a pod", 1, 0, 5_000, 1},
		{"no pods and nothing waits", 0, 0, 5_000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, SharedReplicas(c.value, c.pods, c.target, Tolerance))
		})
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// plain is an HPA without windows whose policies are given.
func plain(up, down decision.Behavior) *Autoscaler {
	return &Autoscaler{Min: 1, Max: 1000, Behavior: &Behavior{Up: up, Down: down}, Wake: Period}
}

// follow lets an HPA reconcile at every step until the end, with a constant proposal.
func follow(h *Autoscaler, from int, start, step, end time.Duration, proposed int) []int {
	out := []int{from}
	for now := start; now <= end; now += step {
		from = h.Reconcile(now, from, func() (int, bool) { return proposed, true })
		out = append(out, from)
	}
	return out
}

func TestDocumentedScaleDownPolicies(t *testing.T) {
	// The example of the documentation: 4 pods or 10 % per minute, from 80 to 10. The share
	// is rounded up, so 8 of 72 go; from 40 on it is 4 at a time.
	policies := []decision.RatePolicy{{Pods: 4, Period: time.Minute}, {Percent: 10, Period: time.Minute}}
	h := plain(Defaults().Up, decision.Behavior{Select: decision.SelectMax, Policies: policies})
	assert.Equal(t, []int{80, 72, 64, 57, 51, 45, 40, 36, 32, 28, 24, 20, 16, 12, 10, 10},
		follow(h, 80, 0, time.Minute, 14*time.Minute, 10))

	// At the beat of HPA the same takes the same time: a period is not over before it is.
	h = plain(Defaults().Up, decision.Behavior{Select: decision.SelectMax, Policies: policies})
	assert.Equal(t, []int{80, 72, 72, 72, 72, 64, 64, 64, 64, 57}, follow(h, 80, 0, Period, seconds(120), 10))

	// With the smaller change selected the share counts, and at few replicas the pods.
	h = plain(Defaults().Up, decision.Behavior{Select: decision.SelectMin, Policies: policies})
	assert.Equal(t, []int{80, 76, 72}, follow(h, 80, 0, time.Minute, time.Minute, 10))
	assert.Equal(t, []int{20, 18}, follow(plain(Defaults().Up, h.Behavior.Down), 20, 0, time.Minute, 0, 10))
	assert.Equal(t, []int{20, 20}, follow(plain(Defaults().Up, decision.Behavior{Select: decision.SelectDisabled}), 20, 0, time.Minute, 0, 10))
}

func TestTheDefaultsUp(t *testing.T) {
	// 4 pods or 100 % per 15 s, whichever is more, at once.
	h := plain(Defaults().Up, Defaults().Down)
	assert.Equal(t, []int{1, 5, 10, 20, 40, 80, 100, 100}, follow(h, 1, 0, Period, seconds(90), 100))

	// Within the period nothing is added to what was.
	h = plain(Defaults().Up, Defaults().Down)
	assert.Equal(t, []int{1, 5, 5, 5, 10}, follow(h, 1, 0, seconds(5), seconds(15), 100))
}

func TestSmallerChangeUp(t *testing.T) {
	// One pod, 2 pods or 50 % per minute: the smaller change is one.
	up := decision.Behavior{Select: decision.SelectMin, Policies: []decision.RatePolicy{{Pods: 2, Period: time.Minute}, {Percent: 50, Period: time.Minute}}}
	assert.Equal(t, []int{1, 2}, follow(plain(up, Defaults().Down), 1, 0, time.Minute, 0, 100))
	// Without any policy nothing slows it down.
	assert.Equal(t, []int{1, 90}, follow(plain(decision.Behavior{}, Defaults().Down), 1, 0, time.Minute, 0, 90))
	assert.Equal(t, []int{90, 2}, follow(plain(Defaults().Up, decision.Behavior{}), 90, 0, time.Minute, 0, 2))
	// Five pods, the same down: two.
	assert.Equal(t, []int{5, 3}, follow(plain(Defaults().Up, up), 5, 0, time.Minute, 0, 1))
}

func TestScaleDownWindow(t *testing.T) {
	h := plain(Defaults().Up, Defaults().Down)
	got := follow(h, 6, 0, Period, seconds(300), 2)
	// What it found counts as recommended at the beginning, for the five minutes.
	assert.Equal(t, 6, got[len(got)-2], "285 s after the beginning")
	assert.Equal(t, 2, got[len(got)-1], "300 s after the beginning")

	// One high recommendation holds for its own five minutes. Less than that takes the
	// highest of those.
	h = plain(Defaults().Up, Defaults().Down)
	follow(h, 4, 0, Period, seconds(285), 1)
	h.Reconcile(seconds(300), 4, func() (int, bool) { return 3, true })
	assert.Equal(t, 3, h.Reconcile(seconds(315), 4, func() (int, bool) { return 1, true }))
	got = follow(h, 3, seconds(330), Period, seconds(600), 1)
	assert.Equal(t, 3, got[len(got)-2])
	assert.Equal(t, 1, got[len(got)-1])
}

func TestScaleUpWindow(t *testing.T) {
	up := Defaults().Up
	up.Window = time.Minute
	got := follow(plain(up, Defaults().Down), 1, 0, Period, seconds(75), 3)
	assert.Equal(t, []int{1, 1, 1, 1, 1, 3, 3}, got)
}

func TestTheBoundsOfTheObject(t *testing.T) {
	nobody := func() (int, bool) { t.Fatal("the metric counts for nothing here"); return 0, false }
	h := &Autoscaler{Min: 2, Max: 4, Behavior: new(Defaults()), Wake: seconds(30)}
	assert.Equal(t, 4, h.Reconcile(0, 7, nobody), "above the maximum")
	assert.Equal(t, 2, h.Reconcile(0, 1, nobody), "below the minimum")
	assert.Equal(t, 2, h.Reconcile(0, 0, nobody), "without replicas, when it is looked at")
	assert.Equal(t, 0, h.Reconcile(seconds(15), 0, nobody), "without replicas, when it is not")
	assert.Equal(t, 3, h.Reconcile(seconds(15), 3, func() (int, bool) { return 0, false }), "without a metric")
	assert.Equal(t, 4, h.Reconcile(seconds(30), 3, func() (int, bool) { return 9, true }), "not above the maximum")
}

// What no window and no period looks back to is forgotten, or the memory of a long replay would
// grow.
func TestWhatDoesNotCountIsForgotten(t *testing.T) {
	for name, a := range map[string]*Autoscaler{"with behavior": plain(Defaults().Up, Defaults().Down), "without": {Min: 1, Max: 90, Wake: Period}} {
		t.Run(name, func(t *testing.T) {
			current := 1
			for round := range 500 {
				current = a.Reconcile(time.Duration(round)*Period, current, func() (int, bool) { return round * 37 % 80, true })
			}
			assert.LessOrEqual(t, len(a.recommended), int(Window/Period)+2)
			assert.LessOrEqual(t, len(a.added)+len(a.removed), 4)
		})
	}
}

// An HPA whose object has no behavior does not follow the defaults of behavior: four from one,
// where they say five, and twice what there is in every round.
func TestWithoutBehavior(t *testing.T) {
	silent := func() *Autoscaler { return &Autoscaler{Min: 1, Max: 60, Wake: Period} }
	assert.Equal(t, []int{1, 4, 8, 16, 32, 60, 60}, follow(silent(), 1, 0, Period, seconds(75), 100))
	assert.Equal(t, []int{1, 4, 8, 16}, follow(silent(), 1, 0, seconds(1), seconds(2), 100), "however often it looks")

	got := follow(silent(), 6, 0, Period, seconds(315), 2)
	assert.Equal(t, 6, got[len(got)-2], "300 s after the beginning, for both ends of the window count")
	assert.Equal(t, 2, got[len(got)-1], "315 s after the beginning")

	h := silent()
	follow(h, 10, 0, Period, seconds(30), 10)
	assert.Equal(t, 4, h.Reconcile(seconds(45), 2, func() (int, bool) { return 2, true }), "what it recommended before counts up, too")
	assert.Equal(t, 1, (&Autoscaler{Min: 1, Max: 9, Wake: Period}).normalize(0, 1, 0), "not below the minimum")
}
