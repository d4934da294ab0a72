package forecast

import (
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// tokenHalfLife is how slowly the slow mean of the token shape forgets.
const tokenHalfLife = 2 * time.Minute

// TokenMean is a mean token shape that forgets slowly. The zero value has seen nothing.
type TokenMean struct {
	// Time is that of the newest mean in it.
	Time time.Time
	// Shape is the mean, and Weight how many requests it speaks of; older ones count less.
	Shape  capacity.TokenShape
	Weight float64
}

// Blend takes in the newest mean, of requests that complete at a rate per second; what was
// seen before is forgotten by halves.
func (t TokenMean) Blend(now time.Time, shape capacity.TokenShape, rate float64) TokenMean {
	elapsed := now.Sub(t.Time).Seconds()
	kept := t.Weight * math.Exp2(-max(0, elapsed)/tokenHalfLife.Seconds())
	if t.Weight == 0 {
		elapsed = 1
	}
	added := rate * max(1, elapsed)
	mix := func(a, b capacity.Tokens) capacity.Tokens {
		return capacity.Tokens((float64(a)*kept + float64(b)*added) / (kept + added))
	}
	return TokenMean{Time: now, Weight: kept + added, Shape: capacity.TokenShape{
		Input: mix(t.Shape.Input, shape.Input), Output: mix(t.Shape.Output, shape.Output),
	}}
}
