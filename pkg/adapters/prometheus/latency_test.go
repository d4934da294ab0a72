package prometheus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

func TestTheShareWithinATarget(t *testing.T) {
	t.Parallel()
	all := math.Inf(1)
	for name, c := range map[string]struct {
		rates  map[float64]float64
		target float64
		want   Share
		known  bool
	}{
		"within a bucket":          {map[float64]float64{0.1: 2, 0.2: 6, all: 8}, 0.15, Share{0.25, 0.75, decision.Bucket{Above: 100, UpTo: 200}}, true},
		"at the end of a bucket":   {map[float64]float64{0.1: 2, all: 8}, 0.1, Share{Sure: 0.25, Most: 0.25}, true},
		"in the first bucket":      {map[float64]float64{0.1: 2, all: 8}, 0.05, Share{0, 0.25, decision.Bucket{UpTo: 100}}, true},
		"it holds all of them":     {map[float64]float64{0.01: 3724, 0.025: 3724, all: 3724}, 0.008, Share{0, 1, decision.Bucket{UpTo: 10}}, true},
		"above all ends":           {map[float64]float64{0.1: 2, all: 8}, 5, Share{0.25, 1, decision.Bucket{Above: 100}}, true},
		"an end that is no binary": {map[float64]float64{0.035: 2, 0.04: 4, all: 4}, 0.039, Share{0.5, 1, decision.Bucket{Above: 35, UpTo: 40}}, true},
		"no ends at all":           {map[float64]float64{all: 8}, 5, Share{}, false},
		"no requests":              {map[float64]float64{0.1: 0, all: 0}, 0.1, Share{}, false},
		"no last bucket":           {map[float64]float64{0.1: 3}, 0.1, Share{}, false},
		"buckets scraped apart":    {map[float64]float64{0.1: 9, all: 8}, 0.1, Share{Sure: 1, Most: 1}, true},
		"buckets that descend":     {map[float64]float64{0.1: 5, 0.2: 4, all: 8}, 0.15, Share{0.625, 0.625, decision.Bucket{Above: 100, UpTo: 200}}, true},
	} {
		got, known := shareWithin(c.rates, c.target)
		assert.Equal(t, c.known, known, name)
		assert.Equal(t, c.want, got, name)
	}
}

// Whatever the latencies and the buckets, the true share lies between what surely kept the
// promise and what may have, and is told where the targets are ends of buckets.
func TestTheTrueShareLiesBetweenTheBounds(t *testing.T) {
	const models, perSecond = 24, 50
	random, p := rand.New(rand.NewPCG(11, 45)), prometheustest.New(t)
	promises, truth, onEnds := map[decision.ModelKey]capacity.SLO{}, map[decision.ModelKey][3]float64{}, map[decision.ModelKey]bool{}
	values := map[string]map[string]float64{}
	for i := range models {
		key := modelKey(fmt.Sprint("m", i))
		ttft, itl := randomEnds(random), randomEnds(random)
		slo := capacity.SLO{TTFT: capacity.Milliseconds(1 + random.IntN(1000)), ITL: capacity.Milliseconds(1 + random.IntN(1000))}
		if onEnds[key] = i%3 == 0; onEnds[key] {
			slo = capacity.SLO{TTFT: capacity.Milliseconds(ttft[random.IntN(len(ttft))]), ITL: capacity.Milliseconds(itl[random.IntN(len(itl))])}
		}
		promises[key] = slo
		of, share := map[string]float64{}, [3]float64{}
		for range perSecond {
			first, each := random.Float64()*1200, random.ExpFloat64()*300
			for latency, ends := range map[string][]int{ttftSeries: ttft, meanSeries: itl} {
				took := first
				if latency == meanSeries {
					took = each
				}
				for _, end := range ends {
					series := fmt.Sprintf(`%s_bucket{namespace="models",pod="p",le="%v",model_name=%q}`, latency, float64(end)/1000, key.ID)
					of[series] += 0
					if took <= float64(end) {
						of[series]++
					}
				}
				of[fmt.Sprintf(`%s_bucket{namespace="models",pod="p",le="+Inf",model_name=%q}`, latency, key.ID)]++
			}
			for k, within := range []bool{first <= float64(slo.TTFT), each <= float64(slo.ITL), first <= float64(slo.TTFT) && each <= float64(slo.ITL)} {
				if within {
					share[k] += 1. / perSecond
				}
			}
		}
		truth[key], values[key.ID] = share, of
	}
	times := scrapes(9)
	for _, at := range times {
		all := map[string]float64{}
		for _, of := range values {
			for series, count := range of {
				all[series] = count * at.Sub(start).Seconds()
			}
		}
		p.Append(at, all)
	}
	const exact = 1e-9
	now, c := times[len(times)-1].Add(time.Second), serve(t, p.Handler)
	met, err := c.Met(t.Context(), now, window, promises)
	require.NoError(t, err)
	require.Len(t, met, models)
	for key, kept := range met {
		assert.LessOrEqual(t, kept.Sure, truth[key][2]+exact, key.ID)
		assert.GreaterOrEqual(t, kept.Value, truth[key][2]-exact, key.ID)
		assert.LessOrEqual(t, kept.Sure, kept.Value+exact, key.ID)
		if onEnds[key] {
			assert.Zero(t, kept.TTFT, key.ID)
			assert.Zero(t, kept.ITL, key.ID)
		}
	}
	for k, l := range []Latency{ToFirstToken(), PerFurtherToken()} {
		found, err := c.instant(t.Context(), asking(bucketEnds, l.ends()...), now)
		require.NoError(t, err)
		ends := EndsOf(found)
		answer, err := c.instant(t.Context(), asking("rates", l.rates(ends, promises, window)...), now)
		require.NoError(t, err)
		var rates model.Matrix
		for _, s := range answer {
			rates = append(rates, &model.SampleStream{Metric: s.Metric, Values: []model.SamplePair{{Timestamp: s.Timestamp, Value: s.Value}}})
		}
		shown := l.shares(ends, countedOf(rates), nil, promises)
		require.Len(t, shown, models)
		for key, instants := range shown {
			for _, share := range instants {
				assert.LessOrEqual(t, share.Sure, truth[key][k]+exact, "what is shown surely met the target")
				if onEnds[key] {
					assert.InDelta(t, truth[key][k], share.Sure, exact)
				}
			}
		}
	}
}

// randomEnds are ends of buckets in milliseconds.
func randomEnds(random *rand.Rand) []int {
	ends := make([]int, 1+random.IntN(12))
	for i := range ends {
		ends[i] = 1 + random.IntN(1000)
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

func TestABucketThatEndsNowhereIsNone(t *testing.T) {
	t.Parallel()
	var written model.Vector
	for _, end := range []model.LabelValue{"0.5", "0.50", "NaN", "", "half", "+Inf"} {
		written = append(written, &model.Sample{Metric: model.Metric{"model_name": "llama", labelHistogram: "0", model.BucketLabel: end}})
	}
	ends := EndsOf(written)
	of := counting{model: decision.ModelKey{ID: "llama"}}
	assert.Equal(t, map[float64][]string{0.5: {"0.5", "0.50"}, math.Inf(1): {"+Inf"}}, ends.of(of))
	assert.Equal(t, []float64{0.5}, ends.beside(of, 0.2))
}
