package round

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// rounds lets a clock go for a while, with events at the given seconds. It tells which round
// began when.
func rounds(interval, length time.Duration, events map[int]Urgency) (began []string) {
	var c Clock
	for second := range int(length / time.Second) {
		c.Event(events[second])
		if round, wait := c.Next(after(second), interval); wait == 0 {
			c.Begin(round, after(second))
			c.Looked()
			began = append(began, fmt.Sprintf("%d %s", second, round))
		}
	}
	return began
}

func TestClock(t *testing.T) {
	cases := []struct {
		name     string
		interval time.Duration
		events   map[int]Urgency
		want     []string
	}{
		{"the first full round comes at once, fast rounds fill the time between", 25 * time.Second, nil,
			[]string{"0 Full", "10 Fast", "20 Fast", "25 Full", "35 Fast"}},
		{"an interval below ten seconds needs no fast rounds", 8 * time.Second, nil,
			[]string{"0 Full", "8 Full", "16 Full", "24 Full", "32 Full"}},
		{"the first event is answered at once, those that follow become one", time.Minute, map[int]Urgency{6: Soon, 7: Soon, 9: Soon},
			[]string{"0 Full", "6 Event", "10 Fast", "20 Fast", "30 Fast"}},
		{"events keep five seconds apart", time.Minute, map[int]Urgency{11: Soon, 16: Soon, 17: Soon},
			[]string{"0 Full", "10 Fast", "15 Event", "20 Fast", "30 Fast"}},
		{"what a user waits for keeps one second apart", time.Minute, map[int]Urgency{11: Urgent, 12: Urgent, 13: Soon, 14: Urgent},
			[]string{"0 Full", "10 Fast", "11 Event", "12 Event", "14 Event", "20 Fast", "30 Fast"}},
		{"a full round answers the events before it", 20 * time.Second, map[int]Urgency{18: Soon, 19: Soon},
			[]string{"0 Full", "10 Fast", "18 Event", "20 Full", "30 Fast"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, rounds(c.interval, 36*time.Second, c.events))
		})
	}
}

func TestClockSaysHowLongToWait(t *testing.T) {
	var c Clock
	c.Begin(decision.RoundFull, noon)
	round, wait := c.Next(after(3), time.Minute)
	assert.Equal(t, decision.RoundFast, round)
	assert.Equal(t, 7*time.Second, wait)
	c.Event(Soon)
	round, wait = c.Next(after(3), time.Minute)
	assert.Equal(t, decision.RoundEvent, round)
	assert.Equal(t, 2*time.Second, wait)
	round, _ = c.Next(noon.Add(time.Hour), time.Minute)
	assert.Equal(t, decision.RoundFull, round, "of several that are overdue the one that may do most")
}

func TestAnEventOutlivesTheReadingThatBeginsBeforeItsAnswer(t *testing.T) {
	var c Clock
	c.Begin(decision.RoundFull, noon)
	c.Looked()
	c.Event(Urgent)
	c.Begin(decision.RoundFull, noon.Add(500*time.Millisecond))
	wait, pending := c.NextEvent(noon.Add(500 * time.Millisecond))
	assert.True(t, pending, "the reading may hang, and nobody has looked yet")
	assert.Equal(t, UrgentSpacing, wait)
	c.Looked()
	_, pending = c.NextEvent(noon.Add(501 * time.Millisecond))
	assert.False(t, pending)
}
