package round

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		name                            string
		interval, usual, longest, wants time.Duration
	}{
		{"the interval is not known", 0, time.Minute, 5 * time.Minute, time.Minute},
		{"four scrapes fit", 15 * time.Second, time.Minute, 5 * time.Minute, time.Minute},
		{"two fit exactly", 30 * time.Second, time.Minute, 5 * time.Minute, time.Minute},
		{"two fit but for what is seen of the interval", 31 * time.Second, time.Minute, 5 * time.Minute, time.Minute},
		{"two fit no more", 33 * time.Second, time.Minute, 5 * time.Minute, 150 * time.Second},
		{"two fit into the next one exactly", 75 * time.Second, time.Minute, 5 * time.Minute, 150 * time.Second},
		{"two fit into the widest one", 2 * time.Minute, time.Minute, 5 * time.Minute, 5 * time.Minute},
		{"two fit nowhere", 4 * time.Minute, time.Minute, 5 * time.Minute, 5 * time.Minute},
		{"the widest is longer than what is kept", 80 * time.Second, time.Minute, 4 * time.Minute, 4 * time.Minute},
		{"the usual one is longer than what is kept", time.Minute, time.Minute, 30 * time.Second, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.wants, Window(c.interval, c.usual, c.longest)) })
	}
}

func TestCovered(t *testing.T) {
	scrapes := []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second, 60 * time.Second}
	for _, c := range []struct {
		name string
		now  time.Duration
		want []time.Duration
	}{
		{"what lies at its beginning is not in it", time.Minute, scrapes[1:]},
		{"what lies after its beginning is", 59 * time.Second, scrapes[:4]},
		{"what lies at its end is", 45 * time.Second, scrapes[:4]},
		{"what comes after its end is not", 20 * time.Second, scrapes[:2]},
		{"the newest moves out last", 119 * time.Second, scrapes[4:]},
		{"nothing is scraped any more", 2 * time.Minute, []time.Duration{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Covered(scrapes, func(at time.Duration) time.Duration { return at }, c.now, time.Minute)
			assert.Equal(t, c.want, got)
		})
	}
	assert.Empty(t, Covered(nil, func(at time.Duration) time.Duration { return at }, 0, time.Minute))
}
