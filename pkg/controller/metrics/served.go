package metrics

import (
	"cmp"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// servedMeans are means over the serving replicas of a variant. What is unknown is absent.
type servedMeans struct {
	// load is in requests per second, ttft and itl are in seconds.
	load, ttft, itl decision.Sample
}

// meansOf are the means over replicas, weighted by what each completed. The load is
// known when that of every replica is. What is older than the limit is not known.
func meansOf(replicas []decision.Replica, now time.Time, limit time.Duration) (means servedMeans) {
	known := func(s decision.Sample) bool { return s.Present && now.Sub(s.Time) <= limit }
	load := decision.Sample{Present: len(replicas) > 0}
	var ttft, itl mean
	for i := range replicas {
		r := &replicas[i]
		if !known(r.Served) {
			load.Present = false
			continue
		}
		load.Value += r.Served.Value
		if known(r.InFlightGrowth) {
			load.Value += r.InFlightGrowth.Value
		}
		if known(r.TTFT) {
			ttft.add(r.TTFT.Value, r.Served.Value)
		}
		if known(r.ITL) {
			itl.add(r.ITL.Value, r.Served.Value)
		}
	}
	load.Value = max(load.Value, 0)
	means.load, means.ttft, means.itl = load, ttft.sample(), itl.sample()
	return means
}

// mean is a weighted mean.
type mean struct{ sum, weight float64 }

func (m *mean) add(value, weight float64) {
	m.sum += value * weight
	m.weight += weight
}

func (m *mean) sample() decision.Sample {
	if m.weight <= 0 {
		return decision.Sample{}
	}
	return decision.Sample{Value: m.sum / m.weight, Present: true}
}

// predict is what the latency model says of a replica that has the mean of the load. The
// model is the learned one, else the given one, within the limits of the server. False
// means that there is none, or that a replica's load is not known.
func predict(v *decision.Variant, learning decision.LatencyMemory, now time.Time, limit time.Duration) (serving.At, bool) {
	profile := v.Profile
	if learning.Estimate.Usable() {
		profile = learning.Estimate.Profile
	}
	if v.BatchSource == serving.BatchStated {
		profile.BatchLimit = cmp.Or(v.BatchLimit, profile.BatchLimit)
	}
	profile.KVTokens = cmp.Or(v.KVTokens, profile.KVTokens)
	known := func(s decision.Sample) bool { return s.Present && now.Sub(s.Time) <= limit }
	served := 0.0
	var input, output mean
	for i := range v.Replicas {
		r := &v.Replicas[i]
		if !known(r.Served) || r.Served.Value > 0 && (!known(r.Input) || !known(r.Output)) {
			return serving.At{}, false
		}
		served += r.Served.Value
		input.add(r.Input.Value, r.Served.Value)
		output.add(r.Output.Value, r.Served.Value)
	}
	if served <= 0 {
		return serving.At{}, false
	}
	shape := capacity.TokenShape{Input: capacity.Tokens(input.sample().Value), Output: capacity.Tokens(output.sample().Value)}
	_, at := profile.Under(capacity.Rate(served/float64(len(v.Replicas))), shape)
	return at, at.Rate > 0
}
