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
	{Name: "kpa", Triggers: knativeTriggers, Trigger: triggerInflight, Settings: slices.Concat(knativeSettings, replay.DrivenSettings(true)), New: func(s *replay.Scenario, spec replay.Spec, choice []int) (replay.Policy, error) {
		return made(newKPA(s, spec, choice))
	}},
	{Name: "saturation-v1", Settings: slices.Concat(saturationSettings, saturationV1Settings),
		New: func(s *replay.Scenario, spec replay.Spec, _ []int) (replay.Policy, error) {
			return newSaturation(s, spec, newSaturationV1(s, spec)), nil
		}},
	{Name: "saturation-v2", Settings: slices.Concat(saturationSettings, saturationV2Settings),
		New: func(s *replay.Scenario, spec replay.Spec, _ []int) (replay.Policy, error) {
			return newSaturation(s, spec, newSaturationV2(s, spec)), nil
		}},
	{Name: "planner", Settings: slices.Concat(plannerSettings, replay.DrivenSettings(false)), New: func(s *replay.Scenario, spec replay.Spec, choice []int) (replay.Policy, error) {
		return made(newPlanner(s, spec, choice))
	}},
}

func init() {
	for _, r := range rivals {
		replay.Register(r)
	}
}

// made is a policy that was made without an error.
func made[P replay.Policy](p P, err error) (replay.Policy, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
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
