package workload_test

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// listed is a stream of given requests, then of an error.
type listed struct {
	requests []workload.Request
	err      error
	read     int
}

func (l *listed) Next() (workload.Request, error) {
	if l.read == len(l.requests) {
		if l.err != nil {
			return workload.Request{}, l.err
		}
		return workload.Request{}, io.EOF
	}
	l.read++
	return l.requests[l.read-1], nil
}

func each(d time.Duration, n int) (all []workload.Request) {
	for i := range n {
		all = append(all, workload.Request{Arrival: time.Duration(i) * d, Input: i + 1, Output: 10})
	}
	return all
}

func rated(t *testing.T, requests []workload.Request, factor float64, spread time.Duration, seed uint64) []workload.Request {
	t.Helper()
	s, err := workload.Rate(&listed{requests: requests}, factor, spread, seed)
	require.NoError(t, err)
	all, err := readAll(s)
	require.NoError(t, err)
	return all
}

// spreads are the shortest, the default, one that is no whole number of seconds, and one
// that is longer than the traces of these tests.
var spreads = []time.Duration{workload.MinSpread, 2500 * time.Millisecond, workload.DefaultSpread, workload.MaxSpread}

func inOrder(requests []workload.Request) bool {
	return slices.IsSortedFunc(requests, func(a, b workload.Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

func TestRateOneChangesNothing(t *testing.T) {
	requests := each(137*time.Millisecond, 500)
	for _, spread := range spreads {
		assert.Equal(t, requests, rated(t, requests, 1, spread, 42))
	}
}

func TestRateSpreadOverASecondCopiesEveryRequestWithinItsSecond(t *testing.T) {
	requests := each(137*time.Millisecond, 500)
	for _, factor := range []float64{2, 3, 20} {
		got := rated(t, requests, factor, workload.MinSpread, 42)
		assert.Len(t, got, 500*int(factor))
		assert.True(t, inOrder(got), "in order of arrival")
		copies, own := map[int]int{}, 0
		for _, r := range got {
			original := requests[r.Input-1]
			copies[r.Input]++
			assert.Equal(t, original.Arrival.Truncate(time.Second), r.Arrival.Truncate(time.Second), "in its second")
			assert.Equal(t, original.Output, r.Output)
			if r.Arrival == original.Arrival {
				own++
			}
		}
		for i := range requests {
			assert.Equal(t, int(factor), copies[i+1])
		}
		assert.Equal(t, 500, own, "one copy of each keeps its time, the others are spread")
	}
}

func TestRateOfAFraction(t *testing.T) {
	requests := each(50*time.Millisecond, 20_000)
	for i, factor := range []float64{0.25, 0.9, 1.5, 2.75} {
		got := rated(t, requests, factor, spreads[i], 7)
		assert.True(t, inOrder(got))
		assert.InEpsilon(t, factor*20_000, len(got), 0.03, "factor %v", factor)
		copies := map[int]int{}
		for _, r := range got {
			copies[r.Input]++
		}
		for i := range requests {
			assert.InDelta(t, factor, copies[i+1], 1, "floor or ceiling of %v", factor)
		}
	}
}

func TestRateFollowsItsSeed(t *testing.T) {
	requests := each(333*time.Millisecond, 100)
	for _, spread := range spreads {
		once, again := rated(t, requests, 4.5, spread, 1), rated(t, requests, 4.5, spread, 1)
		assert.Equal(t, once, again)
		assert.NotEqual(t, once, rated(t, requests, 4.5, spread, 2))
	}
}

func TestRateReadsNoFurtherAheadThanItHasTo(t *testing.T) {
	for _, c := range []struct {
		spread  time.Duration
		seconds int
	}{{time.Second, 1}, {time.Minute, 90}} {
		source := &listed{requests: each(100*time.Millisecond, 20_000)}
		s, err := workload.Rate(source, 3, c.spread, 1)
		require.NoError(t, err)
		for {
			r, err := s.Next()
			require.NoError(t, err)
			if ahead := time.Duration(source.read)*100*time.Millisecond - r.Arrival; ahead > time.Duration(c.seconds+1)*time.Second {
				require.Fail(t, "reads too far ahead", "%s at %s", ahead, r.Arrival)
			}
			if source.read == len(source.requests) {
				break
			}
		}
	}
}

func TestRateHandsOutWhatCameBeforeAnError(t *testing.T) {
	broken := errors.New("trace.csv:7: broken")
	for _, spread := range spreads {
		s, err := workload.Rate(&listed{requests: each(100*time.Millisecond, 15), err: broken}, 2, spread, 1)
		require.NoError(t, err)
		got, err := readAll(s)
		assert.Len(t, got, 30)
		assert.Equal(t, broken, err)
		_, err = s.Next()
		assert.Equal(t, broken, err, "the error stays")
	}
}

func TestRateRefusesImpossibleFactors(t *testing.T) {
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(1), workload.MaxFactor + 1} {
		_, err := workload.Rate(&listed{}, factor, workload.DefaultSpread, 1)
		assert.ErrorContains(t, err, "expected a number above 0", "factor %v", factor)
	}
	for _, spread := range []time.Duration{-1, 0, time.Second - 1, workload.MaxSpread + 1} {
		_, err := workload.Rate(&listed{}, 2, spread, 1)
		assert.ErrorContains(t, err, "expected from 1s to 1h0m0s", "spread %s", spread)
	}
}

func TestLimit(t *testing.T) {
	got, err := readAll(workload.Limit(&listed{requests: each(time.Second, 100)}, 5*time.Second))
	require.NoError(t, err)
	assert.Equal(t, each(time.Second, 5), got, "one that arrives at the end is not part of it")

	source := &listed{requests: each(time.Second, 100)}
	limited := workload.Limit(source, 5*time.Second)
	_, _ = readAll(limited)
	_, err = limited.Next()
	assert.Equal(t, io.EOF, err)
	assert.Equal(t, 6, source.read, "nothing is read after the end")
}
