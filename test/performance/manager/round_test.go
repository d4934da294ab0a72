package manager

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

var begin = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func at(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }

func written(seconds float64, subresource string, code int32) localcluster.Request {
	return localcluster.Request{Received: at(seconds - 0.25), At: at(seconds), Subresource: subresource, Code: code}
}

func TestRoundsAreReadingsAndTheirWrites(t *testing.T) {
	queries := []query{
		// Side by side, and answered in another order.
		{at(0.25), at(0.75)}, {at(0), at(1)},
		{at(10), at(10.5)},
		// One query is late, but of the same reading.
		{at(20), at(23)}, {at(23.5), at(24)},
	}
	requests := []localcluster.Request{
		written(1.5, "scale", 200), written(2, "status", 200), written(3, "scale", 409), written(4, "", 200),
		written(21, "status", 200),
	}
	assert.Equal(t, []round{
		{From: at(0), Queries: 2, Read: 1, Scales: 1, Statuses: 1, Scaled: 1.5, Seconds: 2},
		{From: at(10), Queries: 1, Read: 0.5, Scaled: 0.5, Seconds: 0.5},
		{From: at(20), Queries: 2, Read: 4, Statuses: 1, Scaled: 4, Seconds: 4},
	}, roundsOf(queries, requests))
	assert.Empty(t, roundsOf(nil, requests))
}

func TestARoundIsShownWhenTheObjectsThatItScaledAre(t *testing.T) {
	of := func(name string, r localcluster.Request) localcluster.Request {
		r.Name = name
		return r
	}
	requests := []localcluster.Request{
		of("a", written(1, "status", 200)), of("a", written(3, "scale", 200)), of("b", written(3.5, "scale", 200)),
		of("c", written(3.75, "status", 200)), of("a", written(4, "status", 200)), of("b", written(5, "status", 409)),
		of("b", written(6, "status", 200)), of("a", written(9, "status", 200)),
		of("d", written(8, "scale", 200)), of("d", written(9, "status", 200)),
	}
	seconds, objects := shown(requests, round{From: at(2)}, at(7))
	assert.InDelta(t, 4, seconds, 0)
	assert.Equal(t, 2, objects)
}

func TestQuantiles(t *testing.T) {
	assert.InDelta(t, 2, middle([]float64{3, 1, 2}), 0)
	assert.InDelta(t, 1, middle([]float64{1}), 0)
	require.Zero(t, middle(nil))
}

func TestWhatWasNotMeasuredIsNotTold(t *testing.T) {
	var out strings.Builder
	(&results{Variants: 10, FirstRound: 2, Begin: weight{Manager: 1 << 20}}).print(&out)
	assert.Contains(t, out.String(), "first round after a start   2.00 s\n  memory of the manager          1 MiB after its first round\n")
	assert.NotContains(t, out.String(), "goal")
	assert.NotContains(t, out.String(), "0.00 s")
}

func TestMistakesInTheArguments(t *testing.T) {
	for _, args := range [][]string{{"--variants=3"}, {"--nodes=1"}, {"--replicas=0"}, {"--namespaces=0"}, {"--interval=1ms"}, {"more"}} {
		call := &harness.Call{Args: append(args, "--out="), Out: io.Discard, Log: io.Discard}
		require.Error(t, Run(t.Context(), call), args)
	}
}
