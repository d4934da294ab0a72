package closedloop

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// Check names what was asserted.
type Check string

// What must hold in every round.
const (
	// CheckPure: the same inputs give the same plan and memory, and are not altered.
	CheckPure Check = "pure"
	// CheckWhole: every variant whose target is there gets an answer.
	CheckWhole Check = "whole"
	// CheckBounds: minReplicas and maxReplicas are kept.
	CheckBounds Check = "bounds"
	// CheckGrowth: no write adds more than the growth limit.
	CheckGrowth Check = "growth limit"
	// CheckShrink: no write takes more away than the user's policies allow.
	CheckShrink Check = "scale-down policy"
	// CheckRound: only a full round lowers a count.
	CheckRound Check = "fast round lowers"
	// CheckUnknown: unknown, stale or half-covered data lower no count.
	CheckUnknown Check = "unknown lowers"
	// CheckLeader: a new leader lowers nothing within the first scale-down window.
	CheckLeader Check = "new leader lowers"
	// CheckVictims: as many replicas are chosen as go.
	CheckVictims Check = "victims"
	// CheckRetry: what the scheduler refused and was given back is not asked for at once again.
	CheckRetry Check = "asked again at once"
	// CheckLimited: limited mode asks for no more than fits.
	CheckLimited Check = "limited mode asks for more than fits"
)

// failure is an assertion that did not hold.
type failure struct {
	check Check
	at    time.Duration
	text  string
}

func (w *world) fail(check Check, format string, values ...any) {
	for _, f := range w.story.failures {
		if f.check == check {
			return
		}
	}
	f := failure{check, w.now, fmt.Sprintf(format, values...)}
	w.story.failures = append(w.story.failures, f)
	w.story.happened(w.now, fmt.Sprintf("FAILED %s: %s", check, f.text))
}

// pureEvery is how often a round is asked a second time: always would double the work.
const pureEvery = 41

// ask asks for the plan of a round, now and then twice.
func (w *world) ask(snapshot decision.Snapshot, kind decision.Round) decision.Plan {
	w.rounds++
	memory := w.memory
	if w.rounds%pureEvery != 0 {
		var plan decision.Plan
		plan, w.memory = w.decide(snapshot, w.policy, memory, kind)
		return plan
	}
	before := fingerprint(snapshot, w.policy, memory)
	plan, next := w.decide(snapshot, w.policy, memory, kind)
	if fingerprint(snapshot, w.policy, memory) != before {
		w.fail(CheckPure, "Decide altered its inputs")
	}
	again, nextAgain := w.decide(snapshot, w.policy, memory, kind)
	if fingerprint(plan, next) != fingerprint(again, nextAgain) {
		w.fail(CheckPure, "Decide gave two answers to one question")
	}
	w.memory = next
	return plan
}

// checkRound asserts what every plan must keep.
func (w *world) checkRound(snapshot *decision.Snapshot, plan *decision.Plan, kind decision.Round) {
	planned := map[decision.Key]*decision.VariantPlan{}
	for i := range plan.Models {
		for j := range plan.Models[i].Variants {
			planned[plan.Models[i].Variants[j].Key] = &plan.Models[i].Variants[j]
		}
	}
	more, waiting := map[*variantState]int{}, map[*variantState]int{}
	for _, m := range w.models {
		unknown := ""
		for i := range snapshot.Models {
			if snapshot.Models[i].ID == m.Name {
				unknown = unknownLoad(snapshot, &snapshot.Models[i])
			}
		}
		for _, v := range w.managed(m) {
			p := planned[v.key]
			if p == nil || p.Desired == nil {
				w.fail(CheckWhole, "%s has no answer", v.key.Name)
				continue
			}
			w.checkVariant(v, seenVariant(snapshot, v), p, kind, unknown)
			raise, _ := v.asked()
			if *p.Desired > raise {
				more[v] = *p.Desired - raise
			}
			// What a HorizontalPodAutoscaler was shown holds its room before it is applied.
			if n := v.unscheduled() + v.waitTheirTurn(w) + raise - v.target - max(0, v.target-*p.Desired); n > 0 {
				waiting[v] = n
			}
		}
	}
	w.checkLimited(more, waiting)
}

func (w *world) checkVariant(v *variantState, seen *decision.Variant, p *decision.VariantPlan, kind decision.Round, unknown string) {
	desired := *p.Desired
	raise, lower := v.asked()
	bounded := func(n int) int {
		if v.policy.Max >= 0 {
			n = min(n, v.policy.Max)
		}
		return max(n, v.policy.Min)
	}
	v.highest = max(v.highest, desired)
	v.said = p.ServesEach
	v.why = string(p.Reason) + ": " + sentence.Of(p.Message)
	if fighting(p) {
		// Nothing is written while somebody else writes again and again.
		v.fights++
		v.bounded, v.fought = w.now, w.now
	} else {
		w.checkBounds(v, desired)
	}
	// A rolling update has pods beyond the target's replicas, which go with the others.
	if goes := max(0, min(v.target, v.own())-desired); !v.Kubernetes && len(p.Victims) > 0 && (len(p.Victims) < goes || len(p.Victims) > goes+len(v.pods)-v.own()) {
		w.fail(CheckVictims, "%s goes from %d to %d, and %d replicas are chosen", v.key.Name, v.target, desired, len(p.Victims))
	}
	if desired > raise {
		w.checkGrowth(v, desired)
		return
	}
	// Replicas that cannot come up are known to serve nothing, whatever the load is:
	// taking them back is not lowering what serves. Those that start are counted only
	// while they can be hoped for.
	hopeful := min(lower, v.hopeful(w))
	if !w.scenario.Limited || hopeful > v.policy.Min {
		hopeful = bounded(hopeful)
	}
	if desired >= min(lower, hopeful) {
		return
	}
	w.checkShrink(v, desired)
	if kind != decision.RoundFull {
		w.fail(CheckRound, "%s goes from %d to %d in a %s round", v.key.Name, v.target, desired, kind)
	}
	if unknown != "" {
		w.fail(CheckUnknown, "%s goes from %d to %d, of which %d serve: %s", v.key.Name, v.target, desired, seen.Ready, unknown)
	}
	// A model that may sleep has its retention from the new leader's beginning.
	sleeps := v.model.Sleeps > 0 && w.now >= w.led+v.model.Sleeps && desired == v.policy.Min
	if w.led > 0 && w.now < w.led+v.policy.Down.Window && !sleeps {
		w.fail(CheckLeader, "%s goes from %d to %d, %s after the leader began, within its window of %s",
			v.key.Name, v.target, desired, w.now-w.led, v.policy.Down.Window)
	}
}

// fighting says whether a plan found that somebody else keeps changing the replicas.
func fighting(p *decision.VariantPlan) bool {
	return slices.ContainsFunc(p.Facts, func(f decision.Fact) bool { return f.Reason == decision.ReasonReplicasOverwritten })
}

// checkBounds asserts minReplicas, as far as they fit where no more may be asked for than
// fits, and maxReplicas. Where the user lowered these below what serves, or somebody else
// set more, only a full round takes replicas away, and their replacement by others may
// come first: three of the slowest start-ups and ten minutes later none may be left.
func (w *world) checkBounds(v *variantState, desired int) {
	if least := v.policy.Min; desired < least && !w.scenario.Limited && w.scenario.Quota == 0 {
		w.fail(CheckBounds, "%s is to have %d, of at least %d", v.key.Name, desired, least)
	}
	if most := v.policy.Max; most >= 0 && desired > most && (desired > v.target || w.now > v.bounded+w.scenario.patience()) {
		w.fail(CheckBounds, "%s is to have %d, of at most %d since %s", v.key.Name, desired, most, clock(v.bounded))
	}
}

// hopeful is how many replicas serve, or can be expected to, those that wait for their
// turn among them unless a quota keeps their pods away.
func (v *variantState) hopeful(w *world) int {
	if !w.allows(v) {
		return v.hoped(w)
	}
	return v.hoped(w) + v.waitTheirTurn(w)
}

// hoped is how many pods serve, or can be expected to: those that start, but not those
// that the scheduler refused, whose containers fail, or that are late by more than the
// least deadline, a minute or three start-ups.
func (v *variantState) hoped(w *world) (n int) {
	deadline := max(time.Minute, 3*v.startup)
	if v.startup == 0 {
		deadline = w.policy.StartupDeadline
	}
	for _, p := range v.pods {
		if p.extra || !p.serving && (p.refused || p.crashes || p.down() || w.now-p.created > deadline) {
			continue
		}
		n++
	}
	return n
}

// unknownLoad says why the load of a model is not known well enough to take replicas
// away, or nothing. Coverage is that of the condition MetricsAvailable: 80 % of the
// replicas that serve. Freshness is the policy's default; a sample from the future is
// not fresh, but for clocks that differ a little. How many run says how full a server is only
// where it is stated how many it holds.
func unknownLoad(s *decision.Snapshot, m *decision.Model) string {
	const coverage, skew = 0.8, 30 * time.Second
	fresh := func(samples ...decision.Sample) bool {
		for _, sample := range samples {
			age := s.Time.Sub(sample.Time)
			if !sample.Present || math.IsNaN(sample.Value) || age >= decision.DefaultPolicy().Freshness.Fresh || age < -skew {
				return false
			}
		}
		return true
	}
	serving, known := 0, 0
	for i := range m.Variants {
		for j := range m.Variants[i].Replicas {
			serving++
			r := &m.Variants[i].Replicas[j]
			if stated := m.Variants[i].BatchLimit > 0; fresh(r.KVUse, r.Waiting) && (!stated || fresh(r.Running)) {
				known++
			}
		}
	}
	if float64(known) < coverage*float64(serving) {
		return fmt.Sprintf("of %d replicas of the model that serve, %d have fresh metrics", serving, known)
	}
	return ""
}

// checkGrowth asserts the growth limit. With the user's policies: at the end of any period
// there are no more than they allow beyond what there was at its start, as the
// HorizontalPodAutoscaler counts it. Without policies: the policy's Growth
// beyond what serves, however often it asks. minReplicas passes both. The one replica that
// a model keeps may be of a variant that may not grow where no other may.
func (w *world) checkGrowth(v *variantState, desired int) {
	if desired <= v.policy.Min {
		return
	}
	if v.policy.Up.Select == decision.SelectDisabled {
		if desired > 1 || w.othersCanGrow(v) {
			w.fail(CheckGrowth, "%s goes from %d to %d, and scaleUp.selectPolicy is Disabled", v.key.Name, v.target, desired)
		}
		return
	}
	if !v.OwnUp {
		ready := v.ready()
		growth := w.policy.Growth
		if allowed := ready + max(growth.Pods, share(ready, growth.Percent)); desired > allowed {
			w.fail(CheckGrowth, "%s goes from %d to %d, of which %d serve: at most %d", v.key.Name, v.target, desired, ready, allowed)
		}
		return
	}
	allowed := -1
	for _, policy := range v.policy.Up.Policies {
		_, start := v.start(w, policy.Period)
		most := start + policy.Pods
		if policy.Percent > 0 {
			most = start + share(max(start, 1), policy.Percent)
		}
		if allowed < 0 || (v.policy.Up.Select == decision.SelectMin) == (most < allowed) {
			allowed = most
		}
	}
	if raise, _ := v.asked(); desired > max(raise, allowed) {
		w.fail(CheckGrowth, "%s goes from %d to %d, at most %d", v.key.Name, raise, desired, max(raise, allowed))
	}
}

// share is so much per cent of a number, rounded up.
func share(n, percent int) int { return (n*percent + 99) / 100 }

// othersCanGrow says whether another variant of the same model could get a replica.
func (w *world) othersCanGrow(v *variantState) bool {
	return slices.ContainsFunc(v.model.variants, func(other *variantState) bool { return other != v && w.canAdd(other, 1) })
}

// start is the least and the most that there were when a period began that ends now: a
// change at that very instant may count as before or after it. What somebody else set is
// a new starting point, and a new leader knows of no earlier change.
func (v *variantState) start(w *world, period time.Duration) (least, most int) {
	writes := v.writes
	if v.Metric {
		writes = v.asks
	}
	_, least = v.asked()
	if n, since := len(writes), max(w.led, v.returned); v.Metric && since > 0 && (n == 0 || writes[n-1].at < since) {
		// Nor does it know of what was shown and not applied.
		least = v.target
	}
	most = least
	for i := len(writes) - 1; i >= 0; i-- {
		write := writes[i]
		if write.at < w.now-period || write.at < max(w.led, v.returned) || write.external {
			break
		}
		if write.at == w.now-period {
			return min(least, write.from), max(most, write.from)
		}
		least, most = write.from, write.from
	}
	return least, most
}

// checkShrink asserts the user's own policies on the way down.
func (w *world) checkShrink(v *variantState, desired int) {
	if v.policy.Max >= 0 && desired >= v.policy.Max {
		return
	}
	// Who falls asleep waited for its retention.
	if desired == v.policy.Min && v.model.Sleeps > 0 && v.policy.Down.Select != decision.SelectDisabled {
		return
	}
	if v.policy.Down.Select == decision.SelectDisabled {
		w.fail(CheckShrink, "%s goes from %d to %d, and scaleDown.selectPolicy is Disabled", v.key.Name, v.target, desired)
		return
	}
	if !v.OwnDown {
		return
	}
	allowed := -1
	for _, policy := range v.policy.Down.Policies {
		start, _ := v.start(w, policy.Period)
		least := start - policy.Pods
		if policy.Percent > 0 {
			// What is left is rounded down, as the HorizontalPodAutoscaler does.
			least = start * (100 - policy.Percent) / 100
		}
		if allowed < 0 || (v.policy.Down.Select == decision.SelectMin) == (least > allowed) {
			allowed = max(0, least)
		}
	}
	if _, lower := v.asked(); desired < min(lower, allowed) {
		w.fail(CheckShrink, "%s goes from %d to %d, at least %d", v.key.Name, lower, desired, min(lower, allowed))
	}
}

// backoff is how long a variant may be left alone whose replicas found no node or did not
// start.
const backoff = 16 * time.Minute

// checkLimited asserts that in limited mode everything that is asked for more finds a
// place, beside what was asked for before, and that no minimum is missed that would, too, unless
// its replicas do not start, or found no node just now.
// What waits for its turn was asked for before and holds nothing yet.
func (w *world) checkLimited(more, waiting map[*variantState]int) {
	if !w.scenario.Limited {
		return
	}
	wanted := maps.Clone(waiting)
	for v, n := range more {
		wanted[v] += n
	}
	for _, m := range w.models {
		for _, v := range m.variants {
			asked, _ := v.asked()
			if asked += more[v]; asked >= v.policy.Min || w.now == v.fought || w.failsToStart(v) || w.refuses(v) || w.unread() || w.active(FaultUnmanaged, v) || w.failing() || w.now < w.opened+backoff {
				continue
			}
			wanted[v]++
			if w.fits(wanted) {
				w.fail(CheckBounds, "%s is to have %d, of at least %d, and another fits", v.key.Name, asked, v.policy.Min)
			}
			wanted[v]--
		}
	}
	// Where others took the room of those that wait, nothing more is to be said.
	if len(more) > 0 && w.fits(waiting) && !w.fits(wanted) {
		w.fail(CheckLimited, "asked for together:%s; room: %s", w.list(wanted), w.room())
	}
}

// list names numbers of variants, in the order of the scenario.
func (w *world) list(wanted map[*variantState]int) (text string) {
	for _, m := range w.models {
		for _, v := range m.variants {
			if wanted[v] > 0 {
				text += fmt.Sprintf(" %+d %s (%dx%s)", wanted[v], v.key.Name, v.Devices, v.Accelerator)
			}
		}
	}
	return text
}
