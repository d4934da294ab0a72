package rival

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// The documented defaults of Knative's pod autoscaler (config-autoscaler), and the times
// at which it looks: every second at each pod, and every two seconds at the scale.
const (
	knativeTick           = 2 * time.Second
	knativeScrape         = time.Second
	knativeConcurrency    = 100
	knativeRPS            = 200
	knativeUtilization    = 0.7
	knativeStableWindow   = 60 * time.Second
	knativePanicShare     = 0.1
	knativePanicThreshold = 2
	knativeUpRate         = 1000
	knativeDownRate       = 2
	knativeGrace          = 30 * time.Second
	knativeLeastTarget    = 0.01
)

// knativeTriggers are what Knative scales by: concurrency, or requests per second.
var knativeTriggers = []*replay.Trigger{
	{Name: triggerInflight, Unit: "running and waiting requests of one replica at full use", Example: "30", Published: knativeConcurrency,
		Metric: "concurrency", Gauge: replay.Scrape.InFlight},
	{Name: triggerRPS, Unit: "requests per second of one replica at full use", Example: "4.5", Published: knativeRPS,
		Metric: "rps", Flow: (*replay.ModelView).Arrivals},
}

// knativeSettings have the meaning of Knative's settings of similar names.
var knativeSettings = []replay.Setting{
	{Key: "utilization", Form: replay.NumberOf(0, 1, "the share of the target that is aimed at, above 0 and up to 1, such as 0.7")},
	{Key: "window", Form: replay.SpanOf(6*time.Second, longestWindow, "the stable window in whole seconds, from 6s to 3600s, such as 60s")},
	{Key: "panic", Form: replay.NumberOf(0, 1, "the panic window as a share of the stable one, above 0 and up to 1, such as 0.1")},
	{Key: "threshold", Form: replay.NumberOf(1, 10, "how many times the ready replicas are wanted when panic begins, above 1 and up to 10, such as 2")},
	{Key: "down", Form: replay.SpanOf(0, longestWindow, "the delay of scaling down in whole seconds, up to 3600s, such as 0s")},
	{Key: "uprate", Form: replay.NumberOf(1, mostTarget, "the most replicas at once as a multiple of the ready ones, above 1, such as 1000")},
	{Key: "downrate", Form: replay.NumberOf(1, mostTarget, "the least replicas at once, as what the ready ones are divided by, above 1, such as 2")},
	{Key: "grace", Form: replay.SpanOf(0, longestWindow, "how long the last replica stays without requests in whole seconds, up to 3600s, such as 30s")},
}

// kpa lets Knative's pod autoscaler drive the chosen variant of each model, as
// knative.dev/docs/serving/autoscaling and the decider of knative/serving
// (pkg/autoscaler/scaling) have it.
//
// The least scale is 1 and not its default of 0: the last replica of a large model takes
// minutes to come back. The most is the variant's bound, else what empty nodes hold; its
// default is none. Pods are asked once a second for what they have then, where Knative asks
// a sample of them for the mean of the second. What waits at the gateway counts, as with
// Knative's activator.
type kpa struct {
	replay.Driven
	trigger *replay.Trigger
	rule    knativeRule
	grace   time.Duration
	targets []float64
	// states are those of each model.
	states []knativeState
}

// knativeRule is the setting of the decision.
type knativeRule struct {
	stable, panics, delay       time.Duration
	threshold, upRate, downRate float64
}

// knativeState is what the autoscaler of one model remembers.
type knativeState struct {
	// seconds are the concurrency in each second of the stable window, the oldest first.
	seconds []float64
	// seen is the last second that was counted; negative before the first.
	seen time.Duration
	// panicking is set in panic mode, since the last time that the threshold was passed,
	// and most is the most replicas that were wanted in it.
	panicking bool
	since     time.Duration
	most      int
	started   bool
	// delayed are the wanted replicas of the time of the delay, the oldest first.
	delayed []counted
	// idle is since when nothing is wanted; negative while something is.
	idle time.Duration
}

func newKPA(s *replay.Scenario, spec replay.Spec, choice []int) (*kpa, error) {
	k := &kpa{grace: spec.Span("grace", knativeGrace)}
	stable := spec.Span("window", knativeStableWindow)
	k.rule = knativeRule{
		stable: stable, delay: spec.Span("down", 0), threshold: spec.Float("threshold", knativePanicThreshold),
		upRate: spec.Float("uprate", knativeUpRate), downRate: spec.Float("downrate", knativeDownRate),
		panics: max(time.Second, time.Duration(float64(stable)*spec.Float("panic", knativePanicShare)).Truncate(time.Second)),
	}
	var err error
	if k.Driven, err = replay.NewDriven(s, spec, choice, 0); err != nil {
		return nil, err
	}
	if k.trigger, k.targets, err = k.ScalesBy(); err != nil {
		return nil, err
	}
	for m := range k.targets {
		k.targets[m] = max(knativeLeastTarget, k.targets[m]*spec.Float("utilization", knativeUtilization))
		k.states = append(k.states, knativeState{seen: -knativeScrape, idle: -1})
	}
	return k, nil
}

// Next implements replay.Policy.
func (k *kpa) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + knativeTick
}

// Looks implements replay.Looker.
func (k *kpa) Looks() (every, back time.Duration) { return knativeScrape, k.rule.stable }

// Decide implements replay.Policy.
func (k *kpa) Decide(view *replay.View) replay.Answer {
	return k.Answer(view, func(m int, model *replay.ModelView, variant *replay.VariantView) int {
		state := &k.states[m]
		stable, panics, known := k.observe(view.Now, m, model)
		if !known {
			return variant.Replicas
		}
		wanted := state.decide(k.rule, view.Now, variant.Ready(), stable/k.targets[m], panics/k.targets[m])
		return k.toZero(state, view.Now, max(k.Least[m], min(wanted, k.Most[m])), variant.Replicas)
	})
}

// toZero lets the last replica go only after the time of grace.
func (k *kpa) toZero(state *knativeState, now time.Duration, wanted, current int) int {
	switch {
	case wanted > 0:
		state.idle = -1
		return wanted
	case state.idle < 0:
		state.idle = now
	}
	if current == 0 || now-state.idle >= k.grace {
		return 0
	}
	return 1
}

// observe is the mean value over the stable and the panic window; false without any.
func (k *kpa) observe(now time.Duration, m int, model *replay.ModelView) (stable, panics float64, known bool) {
	share := k.Share(m, model, now, k.rule.stable)
	if k.trigger.Flow != nil {
		stable, known = k.trigger.Flow(model, now, k.rule.stable)
		// A rate takes two seconds at least.
		panics, _ = k.trigger.Flow(model, now, max(k.rule.panics, 2*knativeScrape))
		return stable * share, panics * share, known
	}
	state := &k.states[m]
	for at := state.seen + knativeScrape; at <= now; at += knativeScrape {
		if value, some := concurrencyAt(model, at); some || len(state.seconds) > 0 {
			state.seconds = append(state.seconds, value)
		}
	}
	state.seen = now
	state.seconds = state.seconds[max(0, len(state.seconds)-int(k.rule.stable/time.Second)):]
	recent := state.seconds[max(0, len(state.seconds)-int(k.rule.panics/time.Second)):]
	return mean(state.seconds) * share, mean(recent) * share, len(state.seconds) > 0
}

// concurrencyAt is what all replicas of a model had at a second, and what waited at the
// gateway; false where nobody was asked then.
func concurrencyAt(model *replay.ModelView, at time.Duration) (float64, bool) {
	sum, some := 0.0, false
	for v := range model.Variants {
		for _, pod := range model.Variants[v].Pods {
			for i := len(pod.Scrapes) - 1; i >= 0 && pod.Scrapes[i].At >= at; i-- {
				if pod.Scrapes[i].At == at {
					sum, some = sum+pod.Scrapes[i].InFlight(), true
				}
			}
		}
	}
	for i := len(model.Gateway) - 1; i >= 0 && model.Gateway[i].At >= at; i-- {
		if model.Gateway[i].At == at {
			sum, some = sum+float64(model.Gateway[i].Queue), true
		}
	}
	return sum, some
}

// decide is the published rule. With r ready replicas, at least 1, and the value over the
// target in the stable and in the panic window,
//
//	wanted = ceil(value/target), from floor(r/downRate) to ceil(upRate*r)
//
// for each window. Panic begins when the wanted of the panic window, before the rates, is
// at least the threshold times r, and ends when it was below for a stable window. In panic
// the larger of the two counts, and nothing is taken away. It begins in panic with more
// than one replica.
func (k *knativeState) decide(rule knativeRule, now time.Duration, ready int, stable, panics float64) int {
	r := math.Max(1, float64(ready))
	if !k.started {
		k.started, k.panicking, k.since, k.most = true, ready > 1, now, ready
	}
	limited := func(wanted float64) int {
		return int(math.Min(math.Max(wanted, math.Floor(r/rule.downRate)), math.Ceil(rule.upRate*r)))
	}
	over := math.Ceil(panics)/r >= rule.threshold
	switch {
	case over:
		k.panicking, k.since = true, now
	case k.panicking && now > k.since+rule.stable:
		k.panicking, k.most = false, 0
	}
	wanted := limited(math.Ceil(stable))
	if k.panicking {
		k.most = max(k.most, wanted, limited(math.Ceil(panics)))
		wanted = k.most
	}
	return k.delay(rule.delay, now, wanted)
}

// delay is the most that was wanted within the delay of scaling down.
func (k *knativeState) delay(delay, now time.Duration, wanted int) int {
	if delay == 0 {
		return wanted
	}
	k.delayed = slices.DeleteFunc(k.delayed, func(c counted) bool { return c.at <= now-delay })
	k.delayed = append(k.delayed, counted{now, wanted})
	for _, c := range k.delayed {
		wanted = max(wanted, c.replicas)
	}
	return wanted
}

// Parameters implements replay.Policy.
func (k *kpa) Parameters() []replay.Parameter {
	bounds := k.Bounds("minScale", "maxScale")
	if !k.MostGiven {
		bounds[1].Value += " (none by default: the variant's bound, else what empty nodes hold)"
	}
	return slices.Concat([]replay.Parameter{
		{Name: "metric", Value: k.trigger.Metric},
		{Name: "target", Value: k.PerModel(k.targets)},
		{Name: "stableWindow", Value: k.rule.stable.String()},
		{Name: "panicWindow", Value: k.rule.panics.String()},
		{Name: "panicThreshold", Value: number(k.rule.threshold)},
		{Name: "scaleDownDelay", Value: k.rule.delay.String()},
		{Name: "maxScaleUpRate", Value: number(k.rule.upRate)},
		{Name: "maxScaleDownRate", Value: number(k.rule.downRate)},
		{Name: "scaleToZeroGracePeriod", Value: k.grace.String()},
		{Name: "tick", Value: knativeTick.String()},
	}, bounds, k.Driven.Parameters())
}

// counted is a number of replicas at an instant.
type counted struct {
	at       time.Duration
	replicas int
}
