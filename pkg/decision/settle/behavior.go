package settle

import (
	"cmp"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// ApplyBehavior applies the way down of the variant's behavior, with the meaning that the
// HorizontalPodAutoscaler gives to it, and keeps rounds that are not full from lowering.
// The way up is part of what is bought; ideal is what no window of scaleUp would have held.
func ApplyBehavior(r *limit.Round, m *limit.Model, ideal, giveBack map[*limit.Variant]int, idle bool) {
	// All before any is restrained: what one keeps serves no other's load tomorrow.
	signal.Each(m.Variants, func(v *limit.Variant) {
		v.Wanted = max(v.Target, ideal[v])
		v.Needed = NeededOf(m, v)
	})
	signal.Each(m.Variants, func(v *limit.Variant) {
		asked := v.Target
		if from := v.From(); v.Target < from {
			restrainDown(r, m, v, from, giveBack[v], idle)
		}
		if v.Target == asked {
			v.Note(contract.StageBehavior, contract.ReasonSteady, contract.SaysNoFurtherLimit.With())
		}
	})
}

// NeededOf is how many of the variant's replicas the present load alone needs of those that
// are wanted, at the rate at which the promise is just kept. What is wanted beyond that is
// headroom and forecast: the scale-down window does not hold it. Where that is not known, or
// saturation alone sizes, all of it is needed.
func NeededOf(m *limit.Model, v *limit.Variant) int {
	supply := rate.Served(m.Variants, func(v *limit.Variant) int { return v.Target })
	if !m.Sized || !m.Demand.Known || m.Evidence != signal.EvidenceFull || supply <= 0 {
		return v.Wanted
	}
	share := min(1, float64((m.Demand.Now+m.Need.Queued)/supply))
	return int(math.Ceil(share*float64(v.Wanted) - signal.Precision))
}

// heldFor is for how long what the load needed is not given up: the window, but not where nobody
// chose one, latency sizes, and the load is not likely to jump back within it to where it was.
// What the forecast asks for then suffices.
func heldFor(m *limit.Model, v *limit.Variant) time.Duration {
	b := v.Policy.Down
	if b.Adaptive && m.Sized && m.Demand.Known && m.Demand.Forecast.Lately.Returns(b.Window) <= 1-m.Demand.Risk {
		return 0
	}
	return b.Window
}

// HighestNeeded is the highest number that was needed within the window, now included, and
// for how long such a number is held. What was wanted, also for a forecast alone, is given one
// start-up, the time in which it would have started.
func HighestNeeded(r *limit.Round, m *limit.Model, v *limit.Variant, past []contract.HistoryEntry) (highest int, started, held time.Duration) {
	started = min(cmp.Or(v.In.Startup, m.Lead), v.Policy.Down.Window)
	highest, held = v.Target, heldFor(m, v)
	for _, s := range past {
		switch age := r.Snapshot.Time.Sub(s.Until); {
		case age <= started:
			highest = max(highest, s.Wanted)
		case age < held:
			highest = max(highest, s.Needed)
		}
	}
	return highest, started, held
}

// HistoryOf is that of the variant with this round, as far back as any window or period
// looks.
func HistoryOf(r *limit.Round, v *limit.Variant) []contract.HistoryEntry {
	span := max(v.Policy.Up.Window, v.Policy.Down.Window, fleet.PodPatience)
	for _, b := range []contract.Behavior{v.Policy.Up, v.Policy.Down} {
		for _, p := range b.Policies {
			span = max(span, p.Period)
		}
	}
	past, shown := v.Old.History, v.Target
	if v.Anew {
		past = nil
	}
	if v.Plan.Fallback != nil {
		shown = v.Plan.Fallback.Replicas
	}
	now := r.Snapshot.Time
	return contract.Record(past, contract.HistoryEntry{From: now, Until: now, Replicas: v.Plan.Current, Wanted: v.Wanted, Needed: v.Needed, Desired: shown, Decided: v.Managed}, span)
}

// restrainDown slows down what goes, from a number on; but not what goes because nothing is
// asked of the model, or never served, or is above maxReplicas.
func restrainDown(r *limit.Round, m *limit.Model, v *limit.Variant, from, giveBack int, idle bool) {
	switch {
	case r.Kind != contract.RoundFull:
		v.Step(contract.StageBehavior, from, contract.ReasonRoundMayNotLower, contract.SaysOnlyFullRounds.With())
		return
	case v.Rolling():
		v.Step(contract.StageBehavior, from, contract.ReasonRollingUpdate, contract.SaysRollingUpdate.With())
		return
	case v.Policy.Actuation == contract.ActuationMetric && m.Evidence != signal.EvidenceFull:
		v.Step(contract.StageBehavior, from, contract.ReasonMetricsPartial, contract.SaysShownHeld.With())
	case !idle || v.Policy.Down.Select == contract.SelectDisabled:
		SlowDown(r, m, v, from)
	}
	if without := max(v.In.Current-giveBack, min(v.Policy.Min, v.In.Current)); giveBack > 0 && v.Target > without {
		v.Step(contract.StageBehavior, without, v.Fleet.LostTo(), contract.SaysNeverReady.With())
	}
	if most := v.Bounded(v.Target); most < v.Target {
		v.Step(contract.StageBehavior, most, contract.ReasonMaxReplicas, contract.SaysMaximumBypasses.With())
	}
}

// SlowDown applies the window, the policies and the tolerance of the way down.
func SlowDown(r *limit.Round, m *limit.Model, v *limit.Variant, from int) {
	b, past, window := v.Policy.Down, v.Decided(), v.Policy.Down.Window
	if window > 0 && (len(past) == 0 || r.Snapshot.Time.Sub(past[0].From) < window) {
		v.Step(contract.StageBehavior, from, contract.ReasonStabilized, contract.SaysFullWindow.With(window))
		return
	}
	highest, started, held := HighestNeeded(r, m, v, past)
	if highest = min(highest, from-v.Yields); highest > v.Target {
		says := contract.SaysWindowKeeps
		if held < started {
			says = contract.SaysStartupKeeps
		}
		v.Step(contract.StageBehavior, highest, contract.ReasonStabilized, says.With(max(started, held).Round(time.Second), highest))
	}
	if b.Select == contract.SelectDisabled && v.Target < from {
		v.Step(contract.StageBehavior, from, contract.ReasonRateLimited, contract.SaysDownDisabled.With())
	} else if limit := r.RateLimit(v, b, -1); v.Target < limit {
		v.Step(contract.StageBehavior, min(limit, from), contract.ReasonRateLimited, contract.SaysDownPolicies.With(limit))
	}
	if v.Tolerates(b, v.Target) {
		v.Step(contract.StageBehavior, from, contract.ReasonWithinTolerance, contract.SaysDownTolerance.With(contract.Share(b.Tolerance)))
	}
}
