package decision

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// aRoundAhead is a round of a clock that is ahead, whose plan nobody carries out; shared
// is set when the clock of the samples is the same one.
func aRoundAhead(f *fluid, ahead time.Duration, shared bool) {
	s := f.snapshot()
	s.Time = s.Time.Add(ahead)
	for i := range s.Models {
		for _, sample := range samples(&s.Models[i]) {
			if shared && sample.Present {
				sample.Time = sample.Time.Add(ahead)
			}
		}
	}
	_, f.memory = Decide(s, f.policy, f.memory, RoundFull)
}

// After one round of a clock that ran ahead and came back, replicas go at most one
// scale-down window later than without it, to the same number; and what was not seen
// ahead delays nothing else.
func TestAClockThatRanAheadDelaysAtMostOneWindow(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, time.Hour, 24 * time.Hour} {
		for _, shared := range []bool{false, true} {
			for _, hybrid := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, samples too %v, hybrid %v", ahead, shared, hybrid), func(t *testing.T) {
					// While requests wait for the replicas of a rise.
					const rises, jumps, falls = 5 * time.Minute, 6*time.Minute + 31*time.Second, 20 * time.Minute
					run := func(jump bool) *fluid {
						policy := DefaultPolicy()
						policy.Hybrid = hybrid
						rate := func(t time.Duration) float64 { return step(falls, step(rises, 5, 20)(t), 12)(t) }
						m := &flow{id: "m", arrivals: rate, variants: []*vessel{vesselOf("web", 3)}}
						f := newFluid(machines(2), policy, m)
						f.run(jumps)
						if jump {
							aRoundAhead(f, ahead, shared)
						}
						f.run(falls + 20*time.Minute)
						return f
					}
					without, with := run(false), run(true)
					require.NotEmpty(t, without.writes)
					require.NotEmpty(t, with.writes)
					assert.Equal(t, without.models[0].variants[0].replicas, with.models[0].variants[0].replicas)
					last := func(f *fluid) time.Duration { return f.writes[len(f.writes)-1].at }
					assert.LessOrEqual(t, last(with), last(without)+DefaultVariantPolicy().Down.Window, "%v, else %v", with.writes, without.writes)
				})
			}
		}
	}
}

// No time in the memory is later than the clock that came back, wherever it stands: a
// backoff of a conflict and a pause that began before end later.
func TestNothingInTheMemoryIsLaterThanNow(t *testing.T) {
	policy := DefaultPolicy()
	policy.Hybrid, policy.Idle.Enabled, policy.Share = true, true, 0.9
	policy.Promises = map[ModelKey]Promise{}
	own := DefaultVariantPolicy()
	own.Up.Policies = []RatePolicy{{Pods: 4, Period: 30 * time.Hour}}
	policy.Variants = map[Key]VariantPolicy{{Namespace: "ns", Name: "web"}: own}
	m := &flow{id: "m", arrivals: step(5*time.Minute, 1, 12), variants: []*vessel{vesselOf("web", 1)}}
	f := newFluid(machines(2), policy, m)
	f.run(15 * time.Minute)
	now := f.now
	f.memory = *f.memory.UpTo(now)
	before := spelled(f.memory)
	assert.Equal(t, before, spelled(*f.memory.UpTo(now)), "what is not later stays")
	for range 3 {
		aRoundAhead(f, 24*time.Hour, true)
	}
	ahead := f.memory
	key, mk := Key{Namespace: "ns", Name: "web"}, ModelKey{Namespace: "ns", ID: "m"}
	late := now.Add(24 * time.Hour)
	v, of := ahead.Variants[key], ahead.Models[mk]
	v.NoPod, v.Refused, of.Cheaper = late, late, late
	v.Conflict = Conflict{Changes: []Change{{Time: late}}}
	v.Backoff = Backoff{Until: late.Add(time.Minute), Pause: time.Minute}
	text := spelled(ahead)
	found := 0
	count := func(at time.Time, where string) {
		if at.After(now) {
			found++
		}
	}
	times(reflect.ValueOf(ahead), "memory", count)
	require.Greater(t, found, 12)
	next := ahead.UpTo(now)
	times(reflect.ValueOf(*next), "memory", func(at time.Time, where string) {
		assert.False(t, at.After(now), "%s is %v", where, at)
	})
	assert.Equal(t, text, spelled(ahead), "the memory that was given is left as it is")
	assert.True(t, next.Variants[key].Curve.Known(), "what was learned stays")
}

// times calls f for every time in a value.
func times(v reflect.Value, where string, f func(time.Time, string)) {
	if at, is := v.Interface().(time.Time); is {
		f(at, where)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		times(v.Elem(), where, f)
	case reflect.Struct:
		for i := range v.NumField() {
			times(v.Field(i), where+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			times(v.MapIndex(key), where, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			times(v.Index(i), where, f)
		}
	}
}

// Rounds with the same numbers are one stretch, however many; another number begins the next.
func TestHistoryHoldsNumbersAndNotRounds(t *testing.T) {
	same := HistoryEntry{From: epoch, Until: epoch, Replicas: 3, Wanted: 4, Needed: 2, Desired: 3, Decided: true}
	for name, c := range map[string]struct {
		change func(*HistoryEntry)
		want   int
	}{
		"nothing changes":        {func(*HistoryEntry) {}, 1},
		"replicas":               {func(s *HistoryEntry) { s.Replicas++ }, 2},
		"what was wanted":        {func(s *HistoryEntry) { s.Wanted++ }, 2},
		"what was needed":        {func(s *HistoryEntry) { s.Needed++ }, 2},
		"what was planned":       {func(s *HistoryEntry) { s.Desired++ }, 2},
		"whether it was decided": {func(s *HistoryEntry) { s.Decided = false }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			next := same
			next.From, next.Until = epoch.Add(time.Minute), epoch.Add(time.Minute)
			c.change(&next)
			history := contract.Record([]HistoryEntry{same}, next, time.Hour)
			assert.Len(t, history, c.want)
			assert.Equal(t, epoch, history[0].From)
			assert.Equal(t, next.Until, history[c.want-1].Until)
		})
	}
}
