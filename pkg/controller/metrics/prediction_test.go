package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// A token takes 20 ms whatever else is in service.
var flat = serving.Profile{Base: 20, BatchLimit: 100, KVTokens: 1_000_000}

func TestPredictedLatencyStandsBesideTheObservedOne(t *testing.T) {
	busy := decision.Replica{Served: at(noon, 3), Input: at(noon, 100), Output: at(noon, 50), TTFT: at(noon, 0.25), ITL: at(noon, 0.03)}
	idle := decision.Replica{Served: at(noon, 0)}
	old := busy
	old.Served = at(noon.Add(-time.Hour), 3)
	learned := flat
	learned.Base = 40
	usable := decision.Learning{Estimate: serving.Estimate{Profile: learned, Confidence: serving.UsableConfidence}}
	doubtful := usable
	doubtful.Estimate.Confidence = serving.UsableConfidence / 2
	cases := []struct {
		name     string
		given    serving.Profile
		learning decision.Learning
		replicas []decision.Replica
		// predicted ITL in seconds; 0 means no series.
		predicted float64
	}{
		{"the given model", flat, decision.Learning{}, []decision.Replica{busy}, 0.02},
		{"an idle replica beside", flat, decision.Learning{}, []decision.Replica{busy, idle}, 0.02},
		{"the learned model", flat, usable, []decision.Replica{busy}, 0.04},
		{"too little was seen", flat, doubtful, []decision.Replica{busy}, 0.02},
		{"no model", serving.Profile{}, decision.Learning{}, []decision.Replica{busy}, 0},
		{"nothing is served", flat, decision.Learning{}, []decision.Replica{idle}, 0},
		{"the load of one is not known", flat, decision.Learning{}, []decision.Replica{busy, old}, 0},
		{"nobody serves", flat, decision.Learning{}, nil, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			q := newQuality(nil)
			seen := seenServing(c.replicas...)
			seen.Snapshot.Models[0].Variants[0].Profile = c.given
			seen.Believed.Variants = map[decision.Key]decision.VariantMemory{{Namespace: "n", Name: "v"}: {Latency: c.learning}}
			q.see(&decision.Plan{Time: noon}, seen)
			if c.predicted == 0 {
				assert.Zero(t, testutil.CollectAndCount(q.prediction.predicted))
				assert.Zero(t, testutil.CollectAndCount(q.prediction.observed))
				return
			}
			value := func(latency string) (predicted, observed float64) {
				return testutil.ToFloat64(q.prediction.predicted.WithLabelValues("v", "n", latency)), testutil.ToFloat64(q.prediction.observed.WithLabelValues("v", "n", latency))
			}
			predicted, observed := value("ITL")
			assert.InDelta(t, c.predicted, predicted, 1e-9)
			assert.InDelta(t, 0.03, observed, 1e-9)
			predicted, observed = value("TTFT")
			assert.Positive(t, predicted)
			assert.InDelta(t, 0.25, observed, 1e-9)
			q.see(&decision.Plan{Time: noon}, &Round{})
			assert.Zero(t, testutil.CollectAndCount(q.prediction.observed), "the series end with the objects")
		})
	}
}
