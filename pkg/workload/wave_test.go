package workload_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func TestWave(t *testing.T) {
	for name, w := range map[string]workload.Wave{
		"a day":             {Mean: 10, PeakToTrough: 4, Period: 24 * time.Hour, Peak: 15 * time.Hour},
		"a short one":       {Mean: 3, PeakToTrough: 6, Period: 3 * time.Hour, Peak: 0},
		"a peak from ahead": {Mean: 3, PeakToTrough: 2, Period: time.Hour, Peak: 5*time.Hour + 20*time.Minute},
		"a long night":      {Mean: 5, PeakToTrough: 10, Width: 2, Period: 6 * time.Hour, Peak: time.Hour},
		"level":             {Mean: 5, PeakToTrough: 1, Period: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, w.Check())
			points := w.Points(2 * w.Period)
			assert.Equal(t, time.Duration(0), points[0].At)
			assert.Equal(t, 2*w.Period, points[len(points)-1].At)
			sum, low, high, at := 0.0, math.Inf(1), 0.0, time.Duration(0)
			for i, p := range points {
				if i > 0 {
					assert.Greater(t, p.At, points[i-1].At)
					sum += (p.Rate + points[i-1].Rate) / 2 * (p.At - points[i-1].At).Seconds()
				}
				low = min(low, p.Rate)
				if p.Rate > high+1e-9 {
					high, at = p.Rate, p.At
				}
			}
			assert.InEpsilon(t, w.Mean, sum/(2*w.Period).Seconds(), 1e-3)
			assert.InEpsilon(t, w.PeakToTrough, high/low, 1e-3)
			if w.PeakToTrough > 1 {
				away := (at - w.Peak%w.Period).Abs()
				assert.LessOrEqual(t, min(away, w.Period-away), w.Period/288, "the peak is at %s", at)
			}
		})
	}
	assert.Equal(t, []workload.Point{{At: 0, Rate: 5}, {At: 7 * time.Second, Rate: 5}},
		workload.Wave{Mean: 5, PeakToTrough: 1, Period: time.Hour}.Points(7*time.Second), "less than a step")
	good := workload.Wave{Mean: 1, PeakToTrough: 1, Period: time.Hour}
	for says, change := range map[string]func(*workload.Wave){
		"the mean is 0 requests":              func(w *workload.Wave) { w.Mean = 0 },
		"the mean is NaN requests":            func(w *workload.Wave) { w.Mean = math.NaN() },
		"the peak is 0.5 times the trough":    func(w *workload.Wave) { w.PeakToTrough = 0.5 },
		"the width is -1":                     func(w *workload.Wave) { w.Width = -1 },
		"the period is 0s; expected at least": func(w *workload.Wave) { w.Period = 0 },
	} {
		w := good
		change(&w)
		assert.ErrorContains(t, w.Check(), says)
	}
}
