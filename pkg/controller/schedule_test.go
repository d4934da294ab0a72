package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// run lets a schedule go for a while. Events happen at the given seconds; the result
// says which round began when.
func runSchedule(interval, length time.Duration, events map[int]urgency) []string {
	var s schedule
	var began []string
	for now := noon; now.Before(noon.Add(length)); now = now.Add(time.Second) {
		second := int(now.Sub(noon).Seconds())
		s.event(events[second])
		if round, wait := s.next(now, interval); wait == 0 {
			s.begin(round, now)
			s.looked()
			began = append(began, fmt.Sprintf("%d %s", second, round))
		}
	}
	return began
}

func TestSchedule(t *testing.T) {
	cases := []struct {
		name     string
		interval time.Duration
		events   map[int]urgency
		want     []string
	}{
		{"the first full round comes at once, fast rounds fill the time between", 25 * time.Second, nil,
			[]string{"0 Full", "10 Fast", "20 Fast", "25 Full", "35 Fast"}},
		{"an interval below ten seconds needs no fast rounds", 8 * time.Second, nil,
			[]string{"0 Full", "8 Full", "16 Full", "24 Full", "32 Full"}},
		{"the first event is answered at once, those that follow become one", time.Minute, map[int]urgency{6: soon, 7: soon, 9: soon},
			[]string{"0 Full", "6 Event", "10 Fast", "20 Fast", "30 Fast"}},
		{"events keep five seconds apart", time.Minute, map[int]urgency{11: soon, 16: soon, 17: soon},
			[]string{"0 Full", "10 Fast", "15 Event", "20 Fast", "30 Fast"}},
		{"what a user waits for keeps one second apart", time.Minute, map[int]urgency{11: urgent, 12: urgent, 13: soon, 14: urgent},
			[]string{"0 Full", "10 Fast", "11 Event", "12 Event", "14 Event", "20 Fast", "30 Fast"}},
		{"a full round answers the events before it", 20 * time.Second, map[int]urgency{18: soon, 19: soon},
			[]string{"0 Full", "10 Fast", "18 Event", "20 Full", "30 Fast"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, runSchedule(c.interval, 36*time.Second, c.events))
		})
	}
}

func TestScheduleSaysHowLongToWait(t *testing.T) {
	var s schedule
	s.begin(decision.RoundFull, noon)
	round, wait := s.next(noon.Add(3*time.Second), time.Minute)
	assert.Equal(t, decision.RoundFast, round)
	assert.Equal(t, 7*time.Second, wait)
	s.event(soon)
	round, wait = s.next(noon.Add(3*time.Second), time.Minute)
	assert.Equal(t, decision.RoundEvent, round)
	assert.Equal(t, 2*time.Second, wait)
	round, _ = s.next(noon.Add(time.Hour), time.Minute)
	assert.Equal(t, decision.RoundFull, round, "of several that are overdue the one that may do most")
}

func TestAnEventOutlivesTheReadingThatBeginsBeforeItsAnswer(t *testing.T) {
	var s schedule
	s.begin(decision.RoundFull, noon)
	s.looked()
	s.event(urgent)
	s.begin(decision.RoundFull, noon.Add(500*time.Millisecond))
	wait, pending := s.nextEvent(noon.Add(500 * time.Millisecond))
	assert.True(t, pending, "the reading may hang, and nobody has looked yet")
	assert.Equal(t, urgentSpacing, wait)
	s.looked()
	_, pending = s.nextEvent(noon.Add(501 * time.Millisecond))
	assert.False(t, pending)
}

func TestTriggerMakesOneOfMany(t *testing.T) {
	trigger := newTrigger()
	for _, u := range []urgency{soon, urgent, soon} {
		trigger.poke(u)
	}
	<-trigger.wake
	assert.Equal(t, urgent, trigger.take())
	assert.Equal(t, calm, trigger.take())
	assert.Empty(t, trigger.wake)
}
