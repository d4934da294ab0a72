package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Where the promised latency is kept watch on, what starts slowly is held for two of its
// start-ups, and for two windows at most.
func TestWhatStartsSlowlyIsHeldLonger(t *testing.T) {
	for name, c := range map[string]struct {
		hybrid                bool
		window, startup, want time.Duration
	}{
		"it starts fast":                  {true, 5 * time.Minute, time.Minute, 5 * time.Minute},
		"as long as half of the window":   {true, 5 * time.Minute, 150 * time.Second, 5 * time.Minute},
		"longer than that":                {true, 5 * time.Minute, 200 * time.Second, 400 * time.Second},
		"very slowly":                     {true, 5 * time.Minute, time.Hour, 10 * time.Minute},
		"slowly, and nobody looks at it":  {false, 5 * time.Minute, time.Hour, 5 * time.Minute},
		"whoever wants no window gets it": {true, 0, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			policy := DefaultPolicy()
			policy.Hybrid = c.hybrid
			r, _, v := bare(policy, Memory{}, &Variant{Name: "v", Startup: c.startup})
			v.policy.Down.Window = c.window
			assert.Equal(t, c.want, r.downWindow(v))
		})
	}
}

// A jump is believed before the window shows it only where replicas start so fast that
// they meet it.
func TestAJumpIsForFastStarts(t *testing.T) {
	for startup, want := range map[time.Duration]capacity.Rate{
		30 * time.Second: 20, 2 * time.Minute: 20, 3 * time.Minute: 5,
	} {
		r, m, _ := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Startup: startup})
		m.in.Arrival = Sample{Value: 5, Time: epoch, Present: true}
		m.in.Recent, m.in.RecentSpan = Sample{Value: 20, Time: epoch, Present: true}, 15*time.Second
		got, known := r.arrival(m, &demand{dispersion: 1})
		assert.True(t, known)
		assert.Equal(t, want, got.rate, "a start takes %s", startup)
	}
}
