package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// diary remembers what it is told to.
type diary struct {
	loads map[decision.ModelKey][]forecast.History
	err   error
	asked []time.Time
}

func (d *diary) Earlier(_ context.Context, at time.Time) (map[decision.ModelKey][]forecast.History, error) {
	d.asked = append(d.asked, at)
	return d.loads, d.err
}

func TestTheLoadOfEarlierDaysIsReadOnceAnHour(t *testing.T) {
	a, b := decision.ModelKey{Namespace: "x", ID: "a"}, decision.ModelKey{Namespace: "x", ID: "b"}
	of := func(rate float64) []forecast.History { return []forecast.History{{Ago: day, Rates: []float64{rate}}} }
	d := &diary{loads: map[decision.ModelKey][]forecast.History{a: of(1), b: of(2)}}
	p := past{earlier: d.Earlier, arrived: make(chan found[[]forecast.History], 1)}
	// read lets the past read what is due at a minute, and reports whether anything was.
	read := func(minute int) bool {
		before := p.due
		p.begin(t.Context(), noon.Add(time.Duration(minute)*time.Minute))
		if p.due.Equal(before) {
			return false
		}
		p.take(t.Context(), <-p.arrived)
		return true
	}
	require.True(t, read(0))
	assert.Equal(t, d.loads, p.known)
	assert.False(t, read(59))

	d.loads, d.err = map[decision.ModelKey][]forecast.History{a: of(3)}, errors.New("query timed out")
	require.True(t, read(60))
	assert.Equal(t, map[decision.ModelKey][]forecast.History{a: of(3), b: of(2)}, p.known, "what is known stays")
	assert.False(t, read(69))

	d.loads, d.err = map[decision.ModelKey][]forecast.History{b: of(4)}, nil
	require.True(t, read(70), "a failure is mended sooner")
	assert.Equal(t, d.loads, p.known)
	assert.Equal(t, []time.Time{noon, noon.Add(time.Hour), noon.Add(70 * time.Minute)}, d.asked)
}

const day = 24 * time.Hour

func TestNobodyNeedsToRememberEarlierDays(t *testing.T) {
	p := past{}
	p.begin(t.Context(), noon)
	assert.Empty(t, p.arrived)
	assert.Nil(t, p.known)
}

// The name of a model in what is remembered is found as that in what gateways count.
func TestAModelGetsItsOwnHistory(t *testing.T) {
	of := func(rate float64) []forecast.History { return []forecast.History{{Ago: day, Rates: []float64{rate}}} }
	models := map[decision.ModelKey]*decision.Model{}
	for _, key := range []decision.ModelKey{{Namespace: "a", ID: "own"}, {Namespace: "a", ID: "bare"}, {Namespace: "a", ID: "twice"}, {Namespace: "b", ID: "twice"}, {Namespace: "b", ID: "none"}} {
		models[key] = &decision.Model{Namespace: key.Namespace, ID: key.ID}
	}
	sorted, _ := join(models, hear(slices.Collect(maps.Values(models)), []string{"c"}), nil, map[decision.ModelKey][]forecast.History{
		{Namespace: "a", ID: "own"}: of(1), {ID: "bare"}: of(2), {ID: "twice"}: of(3), {Namespace: "b", ID: "twice"}: of(4), {Namespace: "c", ID: "else"}: of(5),
	}, nil)
	got := map[decision.ModelKey][]forecast.History{}
	for _, m := range sorted {
		got[decision.ModelKey{Namespace: m.Namespace, ID: m.ID}] = m.History
	}
	assert.Equal(t, map[decision.ModelKey][]forecast.History{
		{Namespace: "a", ID: "own"}: of(1), {Namespace: "a", ID: "bare"}: of(2), {Namespace: "a", ID: "twice"}: of(3),
		{Namespace: "b", ID: "twice"}: of(4), {Namespace: "b", ID: "none"}: nil,
	}, got)
}
