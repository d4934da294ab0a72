package closedloop

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// What must hold once the load has been constant, and the data good, for an hour.
const (
	// CheckCycle: the targets do not change any more.
	CheckCycle Check = "cycle"
	// CheckShort: what serves suffices, where more could be added.
	CheckShort Check = "short"
	// CheckDear: it costs no more than the cheapest mix and one replica.
	CheckDear Check = "dear"
	// CheckSpare: no two replicas of a variant could go.
	CheckSpare Check = "spare"
	// CheckSleep: a model that may sleep and has nothing to do sleeps; no other does.
	CheckSleep Check = "sleep"
	// CheckPriority: no model goes short while a less important one has more than its
	// minimum on devices that would serve it.
	CheckPriority Check = "priority"
)

// Rates of the world and of the formulas are numbers of tables: they are the same up to
// this.
const rounding = 0.02

// checkSettled asserts what must hold at the end.
func (w *world) checkSettled() {
	for _, m := range w.models {
		if m.chance != nil && m.Clients == 0 {
			w.checkChance(m)
			continue
		}
		w.checkCycle(m)
		w.checkSleep(m)
		if m.final() == 0 {
			if m.waiting == w.now && !m.halfBlind() {
				w.checkIdle(m)
			}
			continue
		}
		// What clients who wait for answers send, and so what suffices, depends on what serves.
		if m.Clients > 0 || m.unborn() || m.blind() {
			continue
		}
		// Where one replica gets more than others, what suffices is a matter of luck.
		if m.Skew == 0 && w.checkShort(m) {
			w.checkPriority(m)
			continue
		}
		// Requests that wait are served first, before replicas go: that is documented. And where
		// a try found a node just now, the others go when it serves.
		if m.waiting == w.now && !w.foundLately(m) && !m.halfBlind() {
			if m.Skew == 0 || len(m.variants) == 1 {
				w.checkSpare(m)
			}
			if m.Skew == 0 {
				w.checkDear(m, m.cost(), 1, 1)
			}
		}
	}
}

// What is asked of a load that is constant, and of data that are good. A replica more or less now and then
// harms nobody, and no rule is worth it; a limit cycle, and a shortage that stays, do.
const (
	// turnsADay is how often a variant may turn round in a day: grow after it shrank, or shrink after it
	// grew. One turn is free, however short the world is watched. What goes one way ends somewhere, and
	// whether it ends at the right number the other checks say.
	turnsADay = 6
	// mostShort is how long what serves may fall short.
	mostShort = 10 * time.Minute
)

// checkCycle asserts that no variant turns round more often than turnsADay allows. Two kinds may:
// replicas that find no node are tried again after a back-off, and where replicas flap, what serves
// suffices in turns.
func (w *world) checkCycle(m *modelState) {
	most := 1 + int(turnsADay*(watch+w.scenario.Longer).Hours()/24)
	for _, v := range m.variants {
		var changes []string
		turns, up := 0, false
		for _, write := range v.writes {
			if write.at <= w.scenario.settled() {
				continue
			}
			if grows := write.to > write.from; len(changes) > 0 && grows != up {
				turns++
			}
			up = write.to > write.from
			changes = append(changes, fmt.Sprintf("%s %d -> %d", clock(write.at), write.from, write.to))
		}
		if turns > most && !w.mayTurn(v, len(changes)) {
			w.fail(CheckCycle, "%s turned round %d times since %s, with a load that is constant since %s: %s", v.key.Name,
				turns, clock(w.scenario.settled()), clock(w.scenario.Calm), strings.Join(changes[:min(8, len(changes))], ", "))
		}
	}
}

// mayTurn reports whether so many changes may be tries to find a node, or what flaps.
func (w *world) mayTurn(v *variantState, changes int) bool {
	tries := 2 * int((watch+w.scenario.Longer)/(15*time.Minute))
	noNode := !w.scenario.Limited && v.placedAt <= w.scenario.settled() && w.slots(v) == 0 || w.foundLately(v.model)
	return noNode && changes <= tries || v.model.flapsBelow(v.model.final())
}

// foundLately says whether a try found a node where nobody knows what fits.
func (w *world) foundLately(m *modelState) bool {
	return slices.ContainsFunc(m.variants, func(v *variantState) bool {
		return (w.scenario.Hidden || v.Several) && v.placedAt > w.scenario.settled()
	})
}

// checkSleep asserts that nothing sleeps that may not or has load, and that a model
// sleeps which may and has had none for an hour and its gateway shows it. That it may
// sleep takes a gateway that would wake it. A model that may sleep, never had a replica and has no gateway may be left as it is, with a warning:
// nobody can see whether it is asked for anything.
func (w *world) checkSleep(m *modelState) {
	total, least, possible := 0, 0, false
	for _, v := range m.variants {
		total += v.target
		least += v.policy.Min
		possible = possible || w.canAdd(v, 1)
	}
	idle := m.final() == 0
	switch {
	case total == 0 && possible && !m.unborn() && (!idle || m.Sleeps == 0 || !m.Gateway):
		w.fail(CheckSleep, "%s sleeps with %.3g requests/s; sleeping is allowed: %v, gateway: %v", m.Name, m.final(), m.Sleeps > 0, m.Gateway)
	case idle && m.Sleeps > 0 && m.Gateway && total > least && w.mayLower(m) && !m.halfBlind():
		w.fail(CheckSleep, "%s has %d replicas, of which %d by minReplicas, and may sleep after %s without requests", m.Name, total, least, m.Sleeps)
	}
}

// unborn says whether the model may sleep, never had a replica and has no gateway.
func (m *modelState) unborn() bool {
	if m.Sleeps == 0 || m.Gateway {
		return false
	}
	for _, v := range m.variants {
		if v.Replicas > 0 || len(v.writes) > 0 {
			return false
		}
	}
	return true
}

// mayLower says that behavior allows every variant to lose a replica.
func (w *world) mayLower(m *modelState) bool {
	for _, v := range m.variants {
		if v.policy.Down.Select == decision.SelectDisabled {
			return false
		}
	}
	return true
}

// checkIdle asserts that a model without load has no more than its minimum, or the one
// replica that it keeps, and one more.
func (w *world) checkIdle(m *modelState) {
	total, least := 0, 0
	for _, v := range m.variants {
		least += v.policy.Min
		if v.policy.Down.Select != decision.SelectDisabled {
			total += v.placed()
		} else {
			total += min(v.placed(), v.policy.Min)
		}
		if n := v.placed(); float64(n)*(1-v.policy.Down.Tolerance) <= float64(max(1, v.policy.Min))+1e-9 {
			least = max(least, n)
		}
	}
	if total > max(1, least)+1+m.doubted(m.leastReading()) {
		w.fail(CheckSpare, "%s has %d replicas and has had no load since %s; minReplicas are %d", m.Name, total, clock(w.scenario.Calm), least)
	}
}

// ready is how many replicas serve, those that hang among them.
func (v *variantState) ready() (n int) {
	for _, p := range v.pods {
		if p.serving {
			n++
		}
	}
	return n
}

// serves is how many replicas serve and complete requests, those that flap among them.
func (v *variantState) serves() (n int) {
	for _, p := range v.pods {
		if (p.serving || p.absent) && !p.hung {
			n++
		}
	}
	return n
}

// placed is how many hold devices and stay: of a StatefulSet that keeps its order, those
// beyond the target wait for their turn to go.
func (v *variantState) placed() (n int) {
	for i, p := range v.pods {
		if p.node != nil && !p.extra && (!v.Ordered || i < v.target) {
			n++
		}
	}
	return n
}

// canAdd says whether the user and the cluster allow one more replica of a variant, of
// which so many are missing. A tolerance forbids a change that is relatively small.
func (w *world) canAdd(v *variantState, missing int) bool {
	switch {
	case v.policy.Max >= 0 && v.target >= v.policy.Max && v.placed() >= v.policy.Max:
		return false
	case v.policy.Up.Select == decision.SelectDisabled:
		return false
	case v.target > 0 && float64(missing)/float64(v.target) <= v.policy.Up.Tolerance:
		return false
	}
	return (w.scenario.Grows > 0 && !w.scenario.Limited && w.allows(v)) || w.slots(v) > 0
}

// missing is how many replicas a shortage takes.
func missing(short, each float64) int {
	return int(max(1, math.Ceil(short/each)))
}

// combinations calls f for each choice of one of the readings of each variant, until f
// returns false. It reports whether all were true.
func (m *modelState) combinations(of func(bound) float64, f func(rates []float64) bool) bool {
	rates := make([]float64, len(m.variants))
	var choose func(i int) bool
	choose = func(i int) bool {
		if i == len(rates) {
			return f(rates)
		}
		for _, rates[i] = range m.variants[i].truth.readings(of) {
			if !choose(i + 1) {
				return false
			}
		}
		return true
	}
	return choose(0)
}

func mostOf(b bound) float64  { return b.most }
func leastOf(b bound) float64 { return b.least }

// capacityOf is what so many replicas serve.
func capacityOf(count func(*variantState) int, m *modelState, rates []float64) (sum float64) {
	for i, v := range m.variants {
		sum += float64(count(v)) * rates[i]
	}
	return sum
}

// checkShort asserts that what serves suffices where another replica may be added and
// finds a place: within the promise, where one is kept at all, and within the saturation
// triggers in any case. It reports whether the model is short, allowed or not.
//
// It asks only for what can be added to what is there: that a mix would suffice for
// which others have to go first is not asserted, because no replica may go first.
func (w *world) checkShort(m *modelState) bool {
	load := m.final()
	saturation := m.saturations(mostOf)
	enough := capacityOf((*variantState).serves, m, saturation)
	var best string
	short := enough < load*(1-rounding)
	if short {
		for i, v := range m.variants {
			if w.canAdd(v, missing(load-enough, saturation[i])) {
				w.fail(CheckShort, "%s has %.4g requests/s, and what serves is saturated at %.4g; another %s may be added (%.4g each). %s",
					m.Name, load, enough, v.key.Name, saturation[i], w.rates(m))
				return true
			}
		}
		return true
	}
	kept := !m.combinations(mostOf, func(rates []float64) bool {
		enough := capacityOf((*variantState).serves, m, rates)
		if enough >= load*(1-rounding) {
			return false
		}
		for i, v := range m.variants {
			if rates[i] > 0 && w.canAdd(v, missing(load-enough, rates[i])) {
				best = fmt.Sprintf("%s has %.4g requests/s, and what serves keeps the promise up to %.4g; another %s may be added (%.4g each). %s",
					m.Name, load, enough, v.key.Name, rates[i], w.rates(m))
				return true
			}
		}
		return false
	})
	if !kept {
		w.fail(CheckShort, "%s", best)
		return true
	}
	return w.checkQueues(m)
}

// checkQueues asserts that no queue is left over from before, where replicas suffice. A
// router that knows no load goes on feeding a replica with a long queue, whatever is
// decided, so that queue says nothing; nor does one of a time without replicas that flap.
func (w *world) checkQueues(m *modelState) bool {
	if m.Even || m.flapsBelow(m.final()) {
		return false
	}
	waiting, serving, possible, room := m.held, 0, false, false
	for _, v := range m.variants {
		possible = possible || w.canAdd(v, 1)
		for _, p := range v.pods {
			if p.serving && !p.hung {
				serving++
				waiting += p.waiting
				room = room || p.waiting < 1
			}
		}
	}
	// Where nothing can be added, or others have room already, a queue goes as slowly as it
	// has to: what waits in a replica is served by it alone.
	if !possible || room && m.held < 1 {
		return false
	}
	if waiting > w.scenario.thresholds().QueueLengthThreshold*float64(max(1, serving)) {
		w.fail(CheckShort, "%s: %.0f requests wait before %d replicas. %s", m.Name, waiting, serving, w.rates(m))
		return true
	}
	return false
}

// reaches says whether the variants that count can be brought to carry the load: with
// what the bounds, behavior and the cluster allow. Where they cannot, all of them are
// needed, and the others have to take what is left, within the saturation triggers.
func (w *world) reaches(m *modelState, rates []float64) bool {
	reach := 0.0
	for i, v := range m.variants {
		n := v.placed()
		if w.canAdd(v, math.MaxInt32) {
			n += w.slots(v)
			if w.scenario.Grows > 0 {
				n = math.MaxInt16
			}
			if v.policy.Max >= 0 {
				n = min(n, v.policy.Max)
			}
		}
		reach += float64(n) * rates[i]
	}
	return reach >= m.hottest()
}

// checkSpare asserts that no variant has two replicas that nothing needs: without them
// the rest would serve the load by the strictest reading. Cost does not matter for that.
// With a tolerance so many more may stay as are relatively few.
func (w *world) checkSpare(m *modelState) {
	for i, v := range m.variants {
		placed := v.chosen()
		if v.policy.Down.Select == decision.SelectDisabled {
			continue
		}
		var text string
		spare := m.combinations(leastOf, func(rates []float64) bool {
			if !w.reaches(m, rates) {
				if rates[i] > 0 {
					return false
				}
				rates = m.helping(rates)
			}
			others := capacityOf((*variantState).chosen, m, rates) - float64(placed)*rates[i]
			needed := 0
			if rest := m.hottest() - others; rest > 0 && rates[i] > 0 {
				needed = int(math.Ceil(rest/rates[i] - 1e-9))
			}
			spare := placed - max(needed, v.policy.Min)
			text = fmt.Sprintf("%s has %d replicas, %d more than are needed for %.4g requests/s. %s", v.key.Name, placed, spare, m.hottest(), w.rates(m))
			spare -= m.doubted(rates[i])
			return spare >= 2 && float64(spare-1)/float64(placed) > v.policy.Down.Tolerance
		})
		if spare {
			w.fail(CheckSpare, "%s", text)
		}
	}
}

// helping are the rates where those that keep the promise need help: the others serve up
// to the saturation triggers.
func (m *modelState) helping(rates []float64) []float64 {
	helping := slices.Clone(rates)
	for i, v := range m.variants {
		if helping[i] == 0 {
			helping[i] = v.truth.saturation.least
		}
	}
	return helping
}

// saturations are the rates of the saturation triggers alone.
func (m *modelState) saturations(of func(bound) float64) []float64 {
	rates := make([]float64, len(m.variants))
	for i, v := range m.variants {
		rates[i] = of(v.truth.saturation)
	}
	return rates
}

// cost is that of the replicas that hold devices, as far as the decision answers for them.
func (m *modelState) cost() (cost float64) {
	for _, v := range m.variants {
		cost += float64(v.chosen()) * float64(v.cost)
	}
	return cost
}

// checkDear asserts that the cost is no more than so many times that of the cheapest mix that
// could be reached from what there is, the start-ups of its replicas, and so many replicas more. The start-ups
// count as documented: a switch pays within the horizon. Where none keeps the promise,
// the mixes are those of the saturation triggers.
func (w *world) checkDear(m *modelState, cost, times, more float64) {
	var text string
	dear := m.combinations(leastOf, func(rates []float64) bool {
		if !slices.ContainsFunc(rates, func(rate float64) bool { return rate > 0 }) {
			rates = m.saturations(leastOf)
		}
		mix, ok := w.cheapest(m, rates)
		if !ok {
			return false
		}
		one := 0.0
		for i, v := range m.variants {
			if v.placed() > 0 || mix.counts[i] > 0 {
				one = max(one, float64(v.Cost))
			}
		}
		text = fmt.Sprintf("%s costs %.4g/h; %v would serve %.4g requests/s for %.4g/h (with start-ups %.4g), one replica more is %.4g. %s",
			m.Name, cost, mix.counts, m.final(), mix.cost, mix.cost+mix.start, one, w.rates(m))
		return cost > times*mix.cost+mix.start+one*(more+float64(m.doubted(leastOfAll(rates))))+1e-9
	})
	if dear {
		w.fail(CheckDear, "%s", text)
	}
}

// checkPriority asserts, for a model that is short, that no less important one has
// replicas above its minimum, and above the one that it keeps, whose devices would serve
// it. It is for clusters that do not grow.
func (w *world) checkPriority(short *modelState) {
	if !w.scenario.Limited {
		return
	}
	for _, other := range w.models {
		if other.Priority <= short.Priority {
			continue
		}
		total := 0
		for _, v := range other.variants {
			total += v.placed()
		}
		for _, v := range other.variants {
			if total < 2 || v.placed() <= v.policy.Min || v.policy.Down.Select == decision.SelectDisabled || v.policy.Down.Tolerance > 0 {
				continue
			}
			for _, wanted := range short.variants {
				mayGrow := (wanted.policy.Max < 0 || wanted.placed() < wanted.policy.Max) && wanted.policy.Up.Select != decision.SelectDisabled &&
					wanted.policy.Up.Tolerance == 0
				useful := !wanted.truth.promised || wanted.truth.keeps()
				if wanted.Accelerator == v.Accelerator && wanted.Devices <= v.Devices && mayGrow && useful {
					w.fail(CheckPriority, "%s (priority %d) is short while %s (priority %d) has %d, at least %d, on devices that would serve it. %s %s",
						short.Name, short.Priority, v.key.Name, other.Priority, v.placed(), v.policy.Min, w.rates(short), w.rates(other))
					return
				}
			}
		}
	}
}
