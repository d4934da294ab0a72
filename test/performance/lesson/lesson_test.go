package lesson

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// startups are the only one that is learned with.
var startups = []time.Duration{time.Minute}

func TestALessonIsOfTheVariantsAlone(t *testing.T) {
	s, err := scenario.Parse(scenario.BuiltIn(), scenario.Options{})
	require.NoError(t, err)
	short := func() (workload.Stream, error) {
		stream, _, err := workload.Named("ramp", 1)
		return workload.Limit(stream, 8*time.Minute), err
	}
	l, err := Learn(replay.TrialOptions{Scenario: s, Source: short, Startups: startups, Seed: 1})
	require.NoError(t, err)
	require.Len(t, l, 2, "of each mode")
	for _, hybrid := range []bool{true, false} {
		m := l.Of(hybrid, startups[0])
		assert.True(t, m.Time.After(time.Now()), "whatever comes is before it")
		assert.NotEmpty(t, m.Variants)
		require.Len(t, m.Models, 1)
		for _, of := range m.Models {
			assert.Equal(t, &decision.ModelMemory{Attained: of.Attained}, of, "what came then is not what comes now")
		}
	}
	_, err = Learn(replay.TrialOptions{Scenario: s, Startups: startups, Source: func() (workload.Stream, error) { return nil, errors.New("gone") }})
	require.ErrorContains(t, err, "the requests to learn from: gone")
}
