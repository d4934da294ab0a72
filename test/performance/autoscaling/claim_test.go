package autoscaling

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/sweep"
)

// entry ran with three seeds, of which each differs a little: of ours the other way than of
// the rivals.
func entry(policy string, attainment, cost float64) sweep.Entry {
	e := sweep.Entry{Family: policy, Policy: policy}
	step := 0.001
	if replay.KindOf(policy) == replay.KindOurs {
		step = -step
	}
	for _, change := range []float64{-step, 0, step} {
		e.Results = append(e.Results, replay.Result{Policy: policy, Attainment: attainment, Cost: cost * (1 + change)})
	}
	return e
}

// made is a bench of cases of which hybrid mode costs so many times what the rival does.
func made(ratios map[part][]float64) *bench {
	b := &bench{seeds: 3}
	for _, p := range []part{single, several, beside} {
		for _, ratio := range ratios[p] {
			r := sweep.Report{
				Ours:   []sweep.Entry{entry("hybrid", 0.98, 100*ratio), entry("capacity-only", 0.7, 500)},
				Rivals: []sweep.Entry{entry("poor", 0.9, 80), entry("good", 0.98, 100), entry("best", 0.99, 120)},
			}
			r.Verdicts = []front.Verdict{r.Verdict(0, ""), r.Verdict(1, "")}
			b.reports = append(b.reports, r)
			b.cases = append(b.cases, oneCase{trial{part: p}, sweep.Case{Name: "trace", Startup: time.Minute}})
		}
	}
	return b
}

func answers(b *bench) []front.Answer {
	var all []front.Answer
	for _, c := range claims(b) {
		all = append(all, c.Answer)
	}
	return all
}

func TestTheClaims(t *testing.T) {
	const holds, fails, unshown = front.Holds, front.Fails, front.NotShown
	for name, tc := range map[string]struct {
		ratios  map[part][]float64
		singles []float64
		want    []front.Answer
	}{
		"nothing ran": {nil, nil, []front.Answer{unshown, unshown, unshown, unshown, unshown}},
		"all hold": {
			map[part][]float64{single: {0.9, 0.8}, several: {0.7, 0.6}, beside: {2}}, []float64{0.5, 0.8},
			[]front.Answer{holds, holds, holds, holds, unshown},
		},
		"dearer on one trace, cheaper in the mean": {
			map[part][]float64{single: {1.1, 0.7}}, nil, []front.Answer{fails, holds, unshown, unshown, unshown},
		},
		"dearer everywhere": {
			map[part][]float64{single: {1.1, 1.2}, several: {1.3}}, []float64{0.9}, []front.Answer{fails, fails, fails, fails, unshown},
		},
		"equal but for the noise": {
			map[part][]float64{single: {1, 0.9025}, several: {0.8}}, []float64{0.85}, []front.Answer{unshown, unshown, unshown, unshown, unshown},
		},
		"one trace alone has no mean": {
			map[part][]float64{single: {0.9}}, nil, []front.Answer{holds, unshown, unshown, unshown, unshown},
		},
		"one scenario of several": {
			map[part][]float64{several: {0.7, 0.9}}, nil, []front.Answer{unshown, unshown, unshown, fails, unshown},
		},
		"what is beside counts for nothing": {
			map[part][]float64{beside: {9}}, nil, []front.Answer{unshown, unshown, unshown, unshown, unshown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := made(tc.ratios)
			for _, ratio := range tc.singles {
				b.singles = append(b.singles, sweep.Single{Family: "f", Verdict: front.Verdict{Ratio: ratio, Noise: 0.003, Seeds: 3, Place: front.Within}})
			}
			assert.Equal(t, tc.want, answers(b))
		})
	}
}

func TestNobodyAttainsAsMuch(t *testing.T) {
	b := made(map[part][]float64{single: {1.3}})
	b.reports[0].Ours[0] = entry("hybrid", 0.995, 110)
	b.reports[0].Verdicts[0] = b.reports[0].Verdict(0, "")
	all := claims(b)
	assert.Equal(t, front.Holds, all[0].Answer, "more for less than the best of them")
	b.reports[0].Ours[0] = entry("hybrid", 0.995, 130)
	b.reports[0].Verdicts[0] = b.reports[0].Verdict(0, "")
	all = claims(b)
	assert.Equal(t, front.NotShown, all[0].Answer, "nobody knows what they would pay for that")
}

func TestWhatFitsNowhere(t *testing.T) {
	b := made(map[part][]float64{several: {0.7}})
	b.cases[0].trial.cluster = full
	all := claims(b)
	require.Len(t, all[4].Parts, 2, "both modes")
	assert.Equal(t, front.Holds, all[4].Answer)
	b.reports[0].Ours[1].Results[2].UnplaceableReplicas = 1
	all = claims(b)
	assert.Equal(t, front.Fails, all[4].Answer)
	assert.True(t, all[4].broken())
	assert.Equal(t, "trace, start-up 60 s, capacity-only", all[4].Parts[1].Of)
	assert.Equal(t, front.Fails, all[4].Parts[1].Answer)
}

func TestHowARatioIsWritten(t *testing.T) {
	assert.Equal(t, "0.912 ± 0.003", ratioText(0.9123, 0.0031, front.Within))
	assert.Equal(t, "at most 0.912 ± 0.003", ratioText(0.9123, 0.0031, front.Above))
	assert.Equal(t, "at least 0.912", ratioText(0.9123, front.Judge(front.Entry{}, nil).Noise, front.Below))
}
