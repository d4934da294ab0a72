package rival

import (
	"cmp"
	"fmt"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// saturationV1 is the published analyser of spare percentages: it adds one replica to the
// cheapest variant, or takes one from the most expensive one, and waits until that is
// done. Only variants with replicas that report take part.
type saturationV1 struct {
	scenario   *replay.Scenario
	thresholds decision.Saturation
}

func newSaturationV1(s *replay.Scenario, spec replay.Spec) *saturationV1 {
	return &saturationV1{scenario: s, thresholds: thresholdsOf(spec)}
}

// wish implements saturationRule.
func (p *saturationV1) wish(view *replay.View, wanted [][]int) {
	for m := range view.Models {
		states, samples := p.observe(view, m, wanted[m])
		targets := stepSaturation(states, analyzeSaturation(p.thresholds, samples))
		for i, s := range states {
			if s.reporting > 0 {
				wanted[m][i] = targets[i]
			}
		}
		keepOne(p.scenario.Models[m].Variants, wanted[m])
	}
}

// observe is what one cycle knows of a model: its variants, and the replicas that report.
func (p *saturationV1) observe(view *replay.View, m int, desired []int) ([]saturationState, []saturationSample) {
	var states []saturationState
	var samples []saturationSample
	for i := range view.Models[m].Variants {
		seen, in := &view.Models[m].Variants[i], &p.scenario.Models[m].Variants[i]
		state := saturationState{name: in.Name, cost: float64(in.Cost), desired: desired[i]}
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

// parameters implements saturationRule.
func (p *saturationV1) parameters() []replay.Parameter {
	return []replay.Parameter{
		{Name: "kvSpareTrigger", Value: fmt.Sprint(p.thresholds.KVSpareTrigger)},
		{Name: "queueSpareTrigger", Value: fmt.Sprint(p.thresholds.QueueSpareTrigger)},
	}
}
