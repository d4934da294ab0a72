package front

import "math"

// jackknife is a statistic over n repetitions and its standard error:
//
//	se = sqrt((n-1)/n * sum over i of (s(i) - mean of s)^2)
//
// where s(i) is the statistic without repetition i (Tukey 1958). of is asked with a
// negative index for all of them. With fewer than two repetitions the error is not known,
// and NaN.
func jackknife(n int, of func(without int) float64) (value, se float64) {
	value = of(-1)
	if n < 2 {
		return value, math.NaN()
	}
	each, mean := make([]float64, n), 0.0
	for i := range each {
		each[i] = of(i)
		mean += each[i] / float64(n)
	}
	squares := 0.0
	for _, s := range each {
		squares += (s - mean) * (s - mean)
	}
	return value, math.Sqrt(squares * float64(n-1) / float64(n))
}

// students are the quantiles of Student's t distribution that 95 % lie below, by the degrees of freedom
// from 1 on; normal is that of infinitely many.
var students = []float64{6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833}

const normal = 1.645

// margin is how far a number may be off by its noise alone, with 95 % confidence to one
// side; infinite where the noise is not known.
func margin(se float64, repetitions int) float64 {
	switch {
	case math.IsNaN(se) || repetitions < 2:
		return math.Inf(1)
	case repetitions-2 < len(students):
		return se * students[repetitions-2]
	}
	return se * normal
}

// Answer is what a number says of a claim.
type Answer string

// The answers: beyond the noise the claim holds, or does not; else it is not shown.
const (
	Holds    Answer = "holds"
	Fails    Answer = "does not hold"
	NotShown Answer = "not shown"
)

// AtMost answers the claim that a number is at most a limit. The number's place says what
// is known of it: Within, the number itself; Above, that it is at most so large; Below,
// that it is at least so large.
func AtMost(number, se float64, repetitions int, place Place, limit float64) Answer {
	off := margin(se, repetitions)
	switch {
	case place == Nowhere || math.IsNaN(number):
		return NotShown
	case place != Below && number+off <= limit:
		return Holds
	case place != Above && number-off > limit:
		return Fails
	}
	return NotShown
}
