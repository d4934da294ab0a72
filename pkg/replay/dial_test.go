package replay

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// changeable takes one setting.
type changeable struct{ policy decision.Policy }

func (c changeable) Over(changes []Parameter) (decision.Policy, error) {
	for _, p := range changes {
		if p != (Parameter{"share", "0.5"}) {
			return decision.Policy{}, errors.New(p.Name + " is no setting")
		}
		c.policy.Share = 0.5
		c.policy.Window = 10 * time.Minute
	}
	return c.policy, nil
}

func TestOurSettings(t *testing.T) {
	s := two()
	s.Settings = changeable{s.Policy}
	own := func(text string) *ours {
		p, err := s.own(spec(t, text))
		require.NoError(t, err)
		return p.(*ours)
	}
	plain := own("hybrid")
	assert.True(t, plain.policy.Hybrid)
	assert.False(t, own("capacity-only").policy.Hybrid)
	assert.InDelta(t, 0.5, own("hybrid:share=0.5").policy.Share, 0)
	assert.Equal(t, plain.policy.Variants, own("hybrid:share=0.5").policy.Variants, "the behaviour stays")
	_, back := own("hybrid:share=0.5").Looks()
	assert.Equal(t, 10*time.Minute, back, "scrapes are kept for its window")

	changed := own("capacity-only:down=120s,up=30s")
	for key, before := range plain.policy.Variants {
		after := changed.policy.Variants[key]
		assert.Equal(t, 2*time.Minute, after.Down.Window)
		assert.Equal(t, 30*time.Second, after.Up.Window)
		assert.False(t, after.Down.Adaptive, "who sets a window gets it")
		after.Down, after.Up.Window = before.Down, before.Up.Window
		assert.Equal(t, before, after, "nothing else changes")
	}
	assert.Contains(t, changed.Parameters(), Parameter{"scaleDown", "window 2m0s"})
	assert.Equal(t, 5*time.Minute, s.Models[0].Variants[0].Policy.Down.Window, "the scenario stays as it was")

	_, err := s.own(spec(t, "hybrid:risk=3"))
	require.EqualError(t, err, `policy "hybrid:risk=3": risk is no setting`)
	s.Settings = nil
	_, err = s.own(spec(t, "hybrid:share=0.5"))
	require.EqualError(t, err, `policy "hybrid:share=0.5": the scenario has no configuration of the manager to change; expected down and up alone`)
}

func TestScaleDownWindowOfOursHasAnEffect(t *testing.T) {
	cost := map[string]float64{}
	falls := short(t, workload.Point{Rate: 40}, workload.Point{At: 10 * time.Minute, Rate: 40}, workload.Point{At: 12 * time.Minute, Rate: 2}, workload.Point{At: 40 * time.Minute, Rate: 2})
	results, _, err := Run(Options{
		Scenario: small(), Source: falls, Policies: []string{"hybrid", "hybrid:down=0s", "hybrid:down=1200s"}, Startups: []time.Duration{0}, Seed: 1,
	})
	require.NoError(t, err)
	for _, r := range results {
		cost[r.Policy] = r.Cost
	}
	require.Len(t, cost, 3)
	assert.Less(t, cost["hybrid:down=0s"], cost["hybrid"])
	assert.Less(t, cost["hybrid"], cost["hybrid:down=1200s"])
}
