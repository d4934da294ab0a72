package conditiontest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tick is the time between two looks.
const tick = 20 * time.Millisecond

// Eventually waits for a state, and says what the last look found.
func Eventually(t *testing.T, limit time.Duration, what string, look func() (found string, ok bool)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		found, ok := look()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			require.Failf(t, "it never came", "%s within %s; last seen:\n%s", what, limit, found)
		}
		<-ticker.C
	}
}

// Throughout looks again and again for that long.
func Throughout(t *testing.T, span time.Duration, what string, look func() (found string, ok bool)) {
	t.Helper()
	end := time.Now().Add(span)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for time.Now().Before(end) {
		found, ok := look()
		require.True(t, ok, "%s: %s", what, found)
		<-ticker.C
	}
}

// Every calls do at intervals until the test ends, and waits for the last call.
func Every(t *testing.T, interval time.Duration, do func(ctx context.Context, at time.Time)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case at := <-ticker.C:
				do(ctx, at)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
