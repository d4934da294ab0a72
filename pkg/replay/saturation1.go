package replay

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// What the two published saturation policies have in common.
const (
	// saturationPeriod is the time between two cycles.
	saturationPeriod = 30 * time.Second
	// saturationWindow is the window of the maxima of KV use and queue length.
	saturationWindow = time.Minute
)

// saturationV1 is the published analyser of spare percentages: it adds one replica to the
// cheapest variant, or takes one from the most expensive one, and waits until that is
// done. Only variants with replicas that report take part.
//
// As published, it shows its wish as a metric, and an HPA acts on that. How long this
// takes depends on the HPA: the one of the chart waits until a wish has lasted for 240 s
// in either direction, a sample beside it waits for nothing, and the tolerance drops single
// steps from eleven replicas on. Here the wish is written to the target in the same
// cycle. That is the quickest that any of these paths can be, and so the most that can be
// said for the policy.
type saturationV1 struct {
	scenario   *Scenario
	thresholds decision.Saturation
	// desired is what was wanted last, by model and variant; 0 before the first wish.
	desired [][]int
}

func newSaturationV1(s *Scenario) *saturationV1 {
	p := &saturationV1{scenario: s, thresholds: decision.DefaultSaturation(), desired: make([][]int, len(s.Models))}
	for m := range s.Models {
		p.desired[m] = make([]int, len(s.Models[m].Variants))
	}
	return p
}

// Next implements Policy.
func (p *saturationV1) Next(now time.Duration) time.Duration { return nextCycle(now) }

func nextCycle(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + saturationPeriod
}

// Decide implements Policy.
func (p *saturationV1) Decide(view *View) Answer {
	wanted := asked(view)
	for m := range view.Models {
		variants := p.scenario.Models[m].Variants
		states, samples := p.observe(view, m)
		targets := stepSaturation(states, analyzeSaturation(p.thresholds, samples))
		for i, s := range states {
			if s.reporting > 0 {
				wanted[m][i] = bounded(&variants[i], targets[i])
			}
		}
		keepOne(variants, wanted[m])
		copy(p.desired[m], wanted[m])
	}
	return Answer{Replicas: wanted}
}

// observe is what one cycle knows of a model: its variants, and the replicas that report.
func (p *saturationV1) observe(view *View, m int) ([]saturationState, []saturationSample) {
	var states []saturationState
	var samples []saturationSample
	for i := range view.Models[m].Variants {
		seen, in := &view.Models[m].Variants[i], &p.scenario.Models[m].Variants[i]
		state := saturationState{name: in.Name, cost: float64(in.Cost), desired: p.desired[m][i]}
		state.current, state.pending = currentOf(seen)
		for _, pod := range seen.Pods {
			if sample, ok := maxima(pod, view.Now); ok {
				samples = append(samples, sample)
				state.reporting++
			}
		}
		states = append(states, state)
	}
	return states, samples
}

// currentOf is how many replicas a target has, or asks for where it has none yet, and how
// many of them are not ready.
func currentOf(v *VariantView) (current, pending int) {
	current = len(v.Pods)
	if current == 0 {
		current = v.Replicas
	}
	return current, max(0, current-v.Ready())
}

// saturationSample is the largest KV use, 0 to 1, and the longest queue of one replica
// within the window.
type saturationSample struct{ kv, queue float64 }

// maxima are those of a replica; false when it was not scraped within the window.
func maxima(pod Pod, now time.Duration) (saturationSample, bool) {
	var out saturationSample
	w := windowOf(pod.Scrapes, now, saturationWindow)
	for _, s := range w {
		out.kv = max(out.kv, s.KVUse())
		out.queue = max(out.queue, float64(s.Waiting))
	}
	return out, len(w) > 0 && pod.Stage == simulation.Serving
}

// saturationState is what one cycle knows of a variant.
type saturationState struct {
	name string
	cost float64
	// current replicas exist, pending ones of them are not ready, reporting ones have
	// metrics, and desired is the last wish, 0 without one.
	current, pending, reporting, desired int
}

// saturationVerdict is what the spare capacity of a model allows or asks for.
type saturationVerdict struct{ up, down bool }

// analyzeSaturation is the published rule. Of the replicas that are not saturated,
//
//	spare = mean(threshold - value),  load = threshold - spare
//
// for KV use and queue each. More is asked for when either spare is below its trigger;
// less is safe when of N such replicas N-1 would have both spares still at their triggers:
// threshold - load*N/(N-1) >= trigger.
func analyzeSaturation(t decision.Saturation, samples []saturationSample) saturationVerdict {
	if len(samples) == 0 {
		return saturationVerdict{}
	}
	var kv, queue float64
	n := 0
	for _, s := range samples {
		if s.kv >= t.KVCacheThreshold || s.queue >= t.QueueLengthThreshold {
			continue
		}
		kv += t.KVCacheThreshold - s.kv
		queue += t.QueueLengthThreshold - s.queue
		n++
	}
	if n > 0 {
		kv, queue = kv/float64(n), queue/float64(n)
	}
	verdict := saturationVerdict{up: kv < t.KVSpareTrigger || queue < t.QueueSpareTrigger}
	if n >= 2 {
		grow := float64(n) / float64(n-1)
		verdict.down = t.KVCacheThreshold-(t.KVCacheThreshold-kv)*grow >= t.KVSpareTrigger &&
			t.QueueLengthThreshold-(t.QueueLengthThreshold-queue)*grow >= t.QueueSpareTrigger
	}
	return verdict
}

// stepSaturation turns a verdict into targets. While a wish is not fulfilled, or a replica
// does not report, nothing moves in the whole model. The targets of variants that do not
// report mean nothing.
func stepSaturation(states []saturationState, verdict saturationVerdict) []int {
	targets := make([]int, len(states))
	transition := false
	for i, s := range states {
		targets[i] = cmp.Or(s.desired, s.current)
		transition = transition || s.reporting > 0 && (targets[i] != s.current || s.reporting != s.current)
	}
	if transition {
		return targets
	}
	add, remove := -1, -1
	for i, s := range states {
		if s.reporting == 0 {
			continue
		}
		targets[i] = s.reporting
		if s.pending == 0 && (add < 0 || s.dearer(states[add]) < 0) {
			add = i
		}
		if s.reporting > 1 && (remove < 0 || s.dearer(states[remove]) > 0) {
			remove = i
		}
	}
	switch {
	case verdict.up && add >= 0:
		targets[add]++
	case !verdict.up && verdict.down && remove >= 0:
		targets[remove]--
	}
	return targets
}

// dearer compares the costs of two variants, and where these are equal, their names.
func (s saturationState) dearer(than saturationState) int {
	return cmp.Or(cmp.Compare(s.cost, than.cost), strings.Compare(s.name, than.name))
}

// Parameters implements Policy.
func (p *saturationV1) Parameters() []Parameter {
	return append(saturationParameters(p.thresholds),
		Parameter{"kvSpareTrigger", fmt.Sprint(p.thresholds.KVSpareTrigger)},
		Parameter{"queueSpareTrigger", fmt.Sprint(p.thresholds.QueueSpareTrigger)},
	)
}

// saturationParameters are those of both policies.
func saturationParameters(t decision.Saturation) []Parameter {
	return []Parameter{
		{"interval", saturationPeriod.String()},
		{"window", saturationWindow.String()},
		{"actuation", "replicas, in the same cycle"},
		{"kvCacheThreshold", fmt.Sprint(t.KVCacheThreshold)},
		{"queueLengthThreshold", fmt.Sprint(t.QueueLengthThreshold)},
	}
}
