package rival

import (
	"math"
	"slices"
	"strconv"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// rivals are the rules, in the order in which people read them.
var rivals = []*replay.Family{
	{Name: "kpa", Triggers: knativeTriggers, Trigger: triggerInflight, Settings: slices.Concat(knativeSettings, replay.DrivenSettings(true)), New: maker(newKPA)},
	{Name: "saturation-v1", Settings: slices.Concat(saturationSettings, saturationV1Settings), New: maker(newV1)},
	{Name: "saturation-v2", Settings: slices.Concat(saturationSettings, saturationV2Settings), New: maker(newV2)},
	{Name: "planner", Settings: slices.Concat(plannerSettings, replay.DrivenSettings(false)), New: maker(newPlanner)},
	{Name: "llmd-queue", Settings: recipeSettings, New: maker(newQueueRecipe)},
	{Name: "llmd-saturation", Settings: recipeSettings, New: maker(newSaturationRecipe)},
	{Name: "llmd-tokens", Settings: slices.Concat(tokenSettings, recipeSettings), New: maker(newTokenRecipe)},
	{Name: "llmd-slo", Settings: slices.Concat(sloSettings, recipeSettings), New: maker(newSLORecipe)},
}

func init() {
	for _, r := range rivals {
		replay.Register(r)
	}
}

// maker makes policies of one type.
func maker[P replay.Policy](create func(*replay.Scenario, replay.Spec, []int) (P, error)) func(*replay.Scenario, replay.Spec, []int) (replay.Policy, error) {
	return func(s *replay.Scenario, spec replay.Spec, choice []int) (replay.Policy, error) {
		p, err := create(s, spec, choice)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
}

// The names of the triggers of kpa.
const triggerInflight, triggerRPS = "inflight", "rps"

// Bounds of what anybody may set.
const (
	mostTarget    = 1e12
	longestWindow = time.Hour
	perModelHelp  = ", or one number for each model with + between them"
)

// unset stands for a number that nobody gives.
const unset = -1

// after is the next time at a beat.
func after(now, every time.Duration) time.Duration { return now - now%every + every }

// number has as many digits as it takes to read the same value again; an infinite one is
// none.
func number(value float64) string {
	if math.IsInf(value, 0) {
		return "none"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}
