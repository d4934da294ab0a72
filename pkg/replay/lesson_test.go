package replay

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// taught is a trial whose lesson goes through all that one replica can be asked.
func taught(t *testing.T) *Trial {
	t.Helper()
	morning := short(t, workload.Point{Rate: 1}, workload.Point{At: 8 * time.Minute, Rate: 40}, workload.Point{At: 16 * time.Minute, Rate: 1})
	trial, err := NewTrial(TrialOptions{Scenario: small(), Source: hill(t), Lesson: morning, Startups: []time.Duration{time.Minute}, Seed: 3})
	require.NoError(t, err)
	return trial
}

// Who learned knows within the first minute what a replica serves within the promise, like
// who was told. Who has neither does not.
func TestALessonIsKnownFromTheFirstRequestOn(t *testing.T) {
	trial := taught(t)
	soon := func(o *ours) (rate capacity.Rate) {
		policy := watched{o, func(view *View, _ Answer) {
			if view.Now == 40*time.Second {
				rate = o.memory.OfVariant(decision.Key{Namespace: "default", Name: "cheap"}).Sizing.Rate
			}
		}}
		p := play{Trial: trial, policy: policyHybrid, startup: time.Minute}
		require.NoError(t, p.with(policy, p.initial()).err)
		return rate
	}
	told, pupil := soon(newOurs(small(), true)), newOurs(small(), true)
	trial.lesson.teach(pupil, time.Minute)
	for _, m := range pupil.memory.Models {
		assert.Equal(t, &decision.ModelMemory{Attained: m.Attained}, m, "what came then is not what comes now")
		assert.Positive(t, m.Attained.Requests)
	}
	assert.Len(t, pupil.memory.Models, 1)
	learned := soon(pupil)
	assert.InEpsilon(t, float64(told), float64(learned), 0.3)
	assert.NotEqual(t, told, learned)
	assert.Zero(t, soon(newOurs(small().untold(), true)))
}

func TestALessonChangesNothingElse(t *testing.T) {
	told, trial := tried(t), taught(t)
	play := func(trial *Trial, policy string) Result {
		result, _, err := trial.Play(Play{Policy: policy, Startup: time.Minute})
		require.NoError(t, err)
		return result
	}
	assert.Contains(t, play(told, "hybrid").Parameters, Parameter{"profile", "given"})
	for _, policy := range []string{"hybrid", "capacity-only", "hybrid:down=30s"} {
		first := play(trial, policy)
		assert.Contains(t, first.Parameters, Parameter{"profile", "learned"}, policy)
		assert.Equal(t, play(told, policy).Requests, first.Requests, "nothing of the lesson counts")
		assert.Equal(t, first, play(trial, policy), "it is over")
	}
	for _, policy := range []string{"hpa:rps=2", "keda"} {
		assert.Equal(t, play(told, policy), play(trial, policy), "%s is a rival, or knows all anyway", policy)
	}
}

func TestALessonThatCannotBeRead(t *testing.T) {
	_, err := NewTrial(TrialOptions{Scenario: small(), Source: hill(t), Startups: []time.Duration{time.Minute}, Lesson: func() (workload.Stream, error) {
		return nil, errors.New("gone")
	}})
	require.ErrorContains(t, err, "the requests to learn from: gone")
}
