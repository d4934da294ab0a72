package rival

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// samplesOf pairs KV uses with queue lengths.
func samplesOf(queue float64, kvs ...float64) []saturationSample {
	var out []saturationSample
	for _, kv := range kvs {
		out = append(out, saturationSample{kv, queue})
	}
	return out
}

func TestPublishedSaturationVerdicts(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []saturationSample
		want    saturationVerdict
	}{
		{"published: spare KV of 0.045", samplesOf(2, 0.75, 0.76), saturationVerdict{up: true}},
		{"published: spare queue of 2", samplesOf(3, 0.5, 0.5), saturationVerdict{up: true}},
		{"published: half used, but one alone would be full", samplesOf(1, 0.5, 0.5), saturationVerdict{}},
		{"published: three with a quarter used", samplesOf(1, 0.2, 0.3, 0.25), saturationVerdict{down: true}},
		{"published: spare KV of 0.075", samplesOf(0, 0.70, 0.75), saturationVerdict{up: true}},
		{"published: one idle replica", samplesOf(0, 0), saturationVerdict{}},
		{"published: nothing is known", nil, saturationVerdict{}},
		{"all are saturated", samplesOf(0, 0.8, 0.9), saturationVerdict{up: true}},
		{"saturated by the queue", samplesOf(5, 0.1, 0.1), saturationVerdict{up: true}},
		{"a saturated one does not count", slices.Concat(samplesOf(0, 0.1, 0.1), samplesOf(9, 0.9)), saturationVerdict{down: true}},
		{"of two, one that is not saturated is not enough", slices.Concat(samplesOf(0, 0.1), samplesOf(9, 0.9)), saturationVerdict{}},
		{"two, a little below the band", samplesOf(0, 0.34, 0.34), saturationVerdict{down: true}},
		{"two, a little above its lower end", samplesOf(0, 0.36, 0.36), saturationVerdict{}},
		{"two, a little below its upper end", samplesOf(0, 0.69, 0.69), saturationVerdict{}},
		{"two, a little above the band", samplesOf(0, 0.71, 0.71), saturationVerdict{up: true}},
		{"three, a little below the band", samplesOf(0, 0.46, 0.46, 0.46), saturationVerdict{down: true}},
		{"three, a little above its lower end", samplesOf(0, 0.47, 0.47, 0.47), saturationVerdict{}},
		{"four, a little below the band", samplesOf(0, 0.52, 0.52, 0.52, 0.52), saturationVerdict{down: true}},
		{"four, a little above its lower end", samplesOf(0, 0.53, 0.53, 0.53, 0.53), saturationVerdict{}},
		{"two, whose queue one would just hold", samplesOf(1, 0, 0), saturationVerdict{down: true}},
		{"a queue that two hold and one does not", samplesOf(1.1, 0, 0), saturationVerdict{}},
		{"a queue that one holds", samplesOf(0.9, 0, 0), saturationVerdict{down: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, analyzeSaturation(decision.DefaultSaturation(), c.samples))
		})
	}
}

// steady is a variant whose replicas all report.
func steady(name string, cost float64, replicas int) saturationState {
	return saturationState{name: name, cost: cost, current: replicas, reporting: replicas, desired: replicas}
}

func TestPublishedSaturationSteps(t *testing.T) {
	three := []saturationState{steady("a", 20, 2), steady("b", 5, 2), steady("c", 15, 2)}
	up, down := saturationVerdict{up: true}, saturationVerdict{down: true}
	for _, c := range []struct {
		name    string
		states  []saturationState
		verdict saturationVerdict
		want    []int
	}{
		{"published: the cheapest one grows", three, up, []int{2, 3, 2}},
		{"published: the dearest one shrinks", three, down, []int{1, 2, 2}},
		{"published: a wish that is not fulfilled stays", []saturationState{
			{name: "v1", cost: 1, current: 2, reporting: 2, desired: 4}, steady("v2", 2, 2)}, up, []int{4, 2}},
		{"published: a replica that does not report holds everything", []saturationState{
			{name: "v1", cost: 1, current: 3, reporting: 2, desired: 3}}, up, []int{3}},
		{"neither", three, saturationVerdict{}, []int{2, 2, 2}},
		{"up wins", three, saturationVerdict{up: true, down: true}, []int{2, 3, 2}},
		{"of equal costs the first name grows", []saturationState{steady("b", 5, 1), steady("a", 5, 1)}, up, []int{1, 2}},
		{"of equal costs the last name shrinks", []saturationState{steady("b", 5, 2), steady("a", 5, 2)}, down, []int{1, 2}},
		{"the last replica of a variant stays", []saturationState{steady("a", 20, 1), steady("b", 5, 2)}, down, []int{1, 1}},
		{"no variant has two", []saturationState{steady("a", 20, 1), steady("b", 5, 1)}, down, []int{1, 1}},
		{"before the first wish", []saturationState{{name: "a", cost: 1, current: 2, reporting: 2}}, up, []int{3}},
		{"a variant with pending replicas is passed over", []saturationState{
			{name: "a", cost: 1, current: 2, reporting: 2, pending: 1, desired: 2}, steady("b", 2, 2)}, up, []int{2, 3}},
		{"a variant that does not report at all holds nobody and gets nothing", []saturationState{
			{name: "a", cost: 1, current: 2, pending: 2, desired: 3}, steady("b", 2, 2)}, up, []int{3, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, stepSaturation(c.states, c.verdict))
		})
	}
}
