package workload

import (
	"fmt"
	"math"
	"time"
)

// Wave is a rate that rises and falls smoothly, again and again.
type Wave struct {
	// Mean is the mean rate of a period in requests per second, and PeakToTrough how many
	// times the lowest rate the highest one is.
	Mean, PeakToTrough float64
	// Width makes the low part of the period longer where it is above 1; 0 means 1, a sine.
	Width float64
	// Period is the time from one peak to the next, and Peak when one of them is.
	Period, Peak time.Duration
}

// waveSteps are the straight pieces of a period.
const waveSteps = 288

// Check says what is wrong with a wave.
func (w Wave) Check() error {
	switch {
	case !(w.Mean > 0) || math.IsInf(w.Mean, 1):
		return fmt.Errorf("the mean is %v requests per second; expected a number above 0", w.Mean)
	case !(w.PeakToTrough >= 1) || math.IsInf(w.PeakToTrough, 1):
		return fmt.Errorf("the peak is %v times the trough; expected a number of at least 1", w.PeakToTrough)
	case !(w.Width >= 0) || math.IsInf(w.Width, 1):
		return fmt.Errorf("the width is %v; expected 0 for 1, or more than 0", w.Width)
	case w.Period < waveSteps*time.Millisecond:
		return fmt.Errorf("the period is %s; expected at least %s", w.Period, waveSteps*time.Millisecond)
	}
	return nil
}

// Points are the corners of the wave from 0 to a length. The wave is as Check wants it.
func (w Wave) Points(length time.Duration) []Point {
	step := w.Period / waveSteps
	width := w.Width
	if width == 0 {
		width = 1
	}
	trough := w.Peak - w.Period/2
	height := func(at time.Duration) float64 {
		turn := 2 * math.Pi * float64(at-trough) / float64(w.Period)
		return 1 + (w.PeakToTrough-1)*math.Pow((1-math.Cos(turn))/2, width)
	}
	sum := 0.0
	for i := range waveSteps {
		sum += (height(time.Duration(i)*step) + height(time.Duration(i+1)*step)) / 2
	}
	scale := w.Mean * waveSteps / sum
	var points []Point
	for at := time.Duration(0); ; at += step {
		at = min(at, length)
		points = append(points, Point{at, scale * height(at)})
		if at == length && len(points) > 1 {
			return points
		}
	}
}
