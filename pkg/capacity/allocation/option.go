package allocation

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Option is one variant of a model.
type Option struct {
	// Cost of one replica per hour. One that is no number, or endless, is not bought;
	// a negative one counts as 0.
	Cost capacity.Cost
	// Serves is the rate that one replica serves. An option that serves nothing, or
	// no finite rate, is never bought.
	Serves capacity.Rate
	// Now is how many replicas exist.
	Now int
	// Least is the lower bound of the total.
	Least int
	// Most is the upper bound of the total; negative is none. A bound below Least
	// counts as Least.
	Most int
	// Start is what each replica beyond Now costs for its start-up, spread over the
	// horizon within which a switch must pay, per hour.
	Start capacity.Cost
	// Uses is what each replica beyond Now takes of the shared limits of Share.
	Uses []Use
}

// Use is what one replica takes of one of the limits that all models share.
type Use struct {
	// Row is the index of the limit.
	Row int
	// Amount is what one replica takes of it.
	Amount float64
}

// Vector is the answer for one model.
type Vector struct {
	// Replicas is the total of each option.
	Replicas []int
	// Cost is what these replicas cost per hour, without starting up.
	Cost capacity.Cost
	// Start is what their start-ups add per hour within the horizon.
	Start capacity.Cost
	// Unserved is the part of the need that they do not serve.
	Unserved capacity.Rate
}

const (
	// mostReplicas of one option keeps every count and sum within an int32, which is
	// what a scale subresource holds.
	mostReplicas = 1 << 30
	// fine is the relative difference below which two costs, or two rates, are equal.
	fine = 1e-9
)

// variant is an Option in which every number can be reckoned with.
type variant struct {
	cost, start, serves float64
	now, least, most    int
}

// clean bounds what nonsense may do. An option that cannot be bought keeps its minimum.
func (o Option) clean() variant {
	v := variant{
		cost: positive(float64(o.Cost)), start: positive(float64(o.Start)), serves: positive(float64(o.Serves)),
		now: min(max(o.Now, 0), mostReplicas), least: min(max(o.Least, 0), mostReplicas), most: min(o.Most, mostReplicas),
	}
	if v.most < 0 {
		v.most = mostReplicas
	}
	v.most = max(v.most, v.least)
	// What serves nothing stays only where staying is free.
	if unknown(float64(o.Cost)) || unknown(float64(o.Start)) || unknown(float64(o.Serves)) {
		v = variant{now: v.now, least: v.least, most: v.least}
	} else if v.serves == 0 {
		v.most = min(v.most, max(v.least, v.now))
	}
	return v
}

// Numbers beyond largest are nonsense like those without end; numbers below smallest
// are zero, so that products and quotients stay numbers.
const (
	largest  = 1e60
	smallest = 1e-60
)

func unknown(x float64) bool { return math.IsNaN(x) || math.Abs(x) > largest }

func negligible(x float64) bool { return x < smallest }

func positive(x float64) float64 {
	if unknown(x) || negligible(x) {
		return 0
	}
	return x
}

// slackOf is what may be missing of a need, or of what is left of it: sums of rates are
// rounded.
func slackOf(need float64) float64 { return fine * need }

// due is what is left of a need, nothing where that is within the slack.
func due(rest, slack float64) float64 {
	if rest <= slack {
		return 0
	}
	return rest
}

// vector adds up what the replicas cost and serve.
func vector(options []Option, need float64, replicas []int) Vector {
	v := Vector{Replicas: replicas}
	served := 0.0
	for i, n := range replicas {
		o := options[i]
		// What is unknown is not added; it would hide what is known.
		v.Cost += capacity.Cost(positive(float64(o.Cost)) * float64(n))
		v.Start += capacity.Cost(positive(float64(o.Start)) * float64(max(0, n-max(o.Now, 0))))
		served += positive(float64(o.Serves)) * float64(n)
	}
	v.Unserved = capacity.Rate(due(need-served, slackOf(need)))
	return v
}
