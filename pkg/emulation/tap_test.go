package emulation_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

func TestATapGivesRequestsAtItsRateUntilItIsClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tap := emulation.NewTap(ctx, 16, 28)
	// Nothing comes while nothing is asked; a rate that is set meanwhile counts at once.
	time.AfterFunc(time.Millisecond, func() { tap.Set(1000) })
	last := time.Duration(-1)
	for range 20 {
		r, err := tap.Next()
		require.NoError(t, err)
		assert.Equal(t, []int{16, 28}, []int{r.Input, r.Output})
		assert.LessOrEqual(t, r.Arrival, time.Since(tap.Start()), "no request is given before it is due")
		if last >= 0 {
			assert.GreaterOrEqual(t, r.Arrival-last, time.Millisecond)
		}
		last = r.Arrival
	}
	tap.Set(0)
	time.AfterFunc(time.Millisecond, cancel)
	_, err := tap.Next()
	assert.ErrorIs(t, err, io.EOF)
}
