package dashboard

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// half is one of the two targets of a promise.
type half struct {
	// histograms count how long it took in seconds, the preferred one first.
	histograms []string
	target     func(capacity.SLO) capacity.Milliseconds
	field      func(*report.LoadPoint) **float64
}

// halves are both targets. A promise speaks of a request's mean time per further token. Where
// the servers do not count that, the times of all further tokens stand for it.
func halves() []half {
	return []half{
		{
			modelserver.Of(modelserver.FirstToken).Names,
			func(slo capacity.SLO) capacity.Milliseconds { return slo.TTFT },
			func(p *report.LoadPoint) **float64 { return &p.WithinTTFT },
		},
		{
			slices.Concat(modelserver.Of(modelserver.MeanInterToken).Names, modelserver.Of(modelserver.InterToken).Names),
			func(slo capacity.SLO) capacity.Milliseconds { return slo.ITL },
			func(p *report.LoadPoint) **float64 { return &p.WithinITL },
		},
	}
}

// targets are those of the models that have one, in seconds.
func (h half) targets(promises map[modelKey]capacity.SLO) map[modelKey]float64 {
	targets := map[modelKey]float64{}
	for key, slo := range promises {
		if target := h.target(slo); target > 0 {
			targets[key] = float64(target) / 1000
		}
	}
	return targets
}

// labelHistogram tells which of the histograms a series is of. Their buckets end at other
// places, and must not be mixed.
const labelHistogram = "histogram"

// ofEach asks for something of each histogram, of which ends are some of the buckets; an empty
// pattern leaves one out.
func (h half) ofEach(expression func(series string) string, ends []string) string {
	var all []string
	for i, name := range h.histograms {
		if ends[i] != "" {
			all = append(all, fmt.Sprintf("label_replace(%s, %q, %q, \"\", \"\")", expression(name+"_bucket{"+ends[i]+"}"), labelHistogram, strconv.Itoa(i)))
		}
	}
	return strings.Join(all, " or ")
}

// within finds the share of requests within the targets, at every step from first to last. It
// asks for the ends of the buckets first, and then for those beside the targets alone.
func (q questions) within(ctx context.Context, from asker, h half, first, last time.Time, step time.Duration) (*shares, error) {
	s := &shares{targets: h.targets(q.promises), rates: map[shareKey]map[float64]float64{}}
	if len(s.targets) == 0 {
		return s, nil
	}
	matcher := ""
	if q.namespace != "" {
		matcher = fmt.Sprintf("namespace=%q,", q.namespace)
	}
	every := slices.Repeat([]string{matcher + `le!=""`}, len(h.histograms))
	found, err := from.Now(ctx, h.ofEach(func(series string) string { return "group by (le) (" + series + ")" }, every))
	if err != nil {
		return nil, err
	}
	ends := make([]string, len(h.histograms))
	for i, beside := range s.beside(found, len(h.histograms)) {
		if len(beside) > 0 {
			ends[i] = matcher + fmt.Sprintf("le=~%q", strings.Join(beside, "|"))
		}
	}
	query := h.ofEach(func(series string) string {
		return fmt.Sprintf("sum by (%s, le) (rate(%s[%s]))", byModel, series, q.promDuration())
	}, ends)
	if query == "" {
		return s, nil
	}
	rates, err := from.Range(ctx, query, first, last, step)
	s.take(rates)
	return s, err
}

// shares are the rates of the buckets beside the targets.
type shares struct {
	targets map[modelKey]float64
	// rates are those of the buckets by their ends.
	rates map[shareKey]map[float64]float64
}

// shareKey is one instant of one histogram of a model.
type shareKey struct {
	model     modelKey
	histogram string
	at        model.Time
}

// beside are, of each histogram, the ends of the buckets next to the targets and that of the
// last one, as patterns.
func (s *shares) beside(found model.Vector, histograms int) [][]string {
	names := make([]map[float64][]string, histograms)
	for _, sample := range found {
		i, err := strconv.Atoi(string(sample.Metric[labelHistogram]))
		end, isEnd := endOf(sample.Metric)
		if err != nil || i < 0 || i >= histograms || !isEnd {
			continue
		}
		if names[i] == nil {
			names[i] = map[float64][]string{}
		}
		names[i][end] = append(names[i][end], regexp.QuoteMeta(string(sample.Metric[model.BucketLabel])))
	}
	all := make([][]string, histograms)
	for i, ends := range names {
		sorted := slices.Sorted(maps.Keys(ends))
		wanted := map[float64]bool{math.Inf(1): true}
		for _, target := range s.targets {
			at, exact := slices.BinarySearch(sorted, target)
			if at < len(sorted) {
				wanted[sorted[at]] = true
			}
			if !exact && at > 0 {
				wanted[sorted[at-1]] = true
			}
		}
		for _, end := range sorted {
			if wanted[end] {
				all[i] = append(all[i], ends[end]...)
			}
		}
	}
	return all
}

// endOf is the end of a bucket. Versions write the same number as 1 and as 1.0.
func endOf(metric model.Metric) (float64, bool) {
	end, err := strconv.ParseFloat(string(metric[model.BucketLabel]), 64)
	return end, err == nil
}

func (s *shares) take(rates model.Matrix) {
	for _, series := range rates {
		end, ok := endOf(series.Metric)
		if !ok {
			continue
		}
		key := shareKey{model: modelKey{string(series.Metric["namespace"]), string(series.Metric[modelserver.LabelModel])}, histogram: string(series.Metric[labelHistogram])}
		for _, pair := range series.Values {
			key.at = pair.Timestamp
			if s.rates[key] == nil {
				s.rates[key] = map[float64]float64{}
			}
			s.rates[key][end] += float64(pair.Value)
		}
	}
}

// matrix has the shares as a range of one series for each model. Of several histograms the
// preferred one counts, at each instant.
func (s *shares) matrix() model.Matrix {
	series := map[modelKey]*model.SampleStream{}
	keys := slices.SortedFunc(maps.Keys(s.rates), func(a, b shareKey) int { return strings.Compare(a.histogram, b.histogram) })
	seen := map[shareKey]bool{}
	var all model.Matrix
	for _, key := range keys {
		once := shareKey{model: key.model, at: key.at}
		target, promised := s.targets[key.model]
		share, ok := shareWithin(s.rates[key], target)
		if !promised || !ok || seen[once] {
			continue
		}
		seen[once] = true
		one := series[key.model]
		if one == nil {
			one = &model.SampleStream{Metric: model.Metric{
				"namespace": model.LabelValue(key.model.namespace), modelserver.LabelModel: model.LabelValue(key.model.model),
			}}
			series[key.model] = one
			all = append(all, one)
		}
		one.Values = append(one.Values, model.SamplePair{Timestamp: key.at, Value: model.SampleValue(share)})
	}
	return all
}

// shareWithin is the share of what took a target at most. The rates of buckets count all that
// is below their ends. What is in the bucket of the target is taken to lie evenly in it, as
// histogram_quantile of Prometheus does. What is above the last end but the infinite one is
// not within any target. Without requests the share is unknown.
func shareWithin(rates map[float64]float64, target float64) (float64, bool) {
	total := rates[math.Inf(1)]
	if !(total > 0) {
		return 0, false
	}
	below, above := math.Inf(-1), math.Inf(1)
	for end := range rates {
		if end <= target {
			below = max(below, end)
		} else {
			above = min(above, end)
		}
	}
	switch {
	case math.IsInf(below, -1) && math.IsInf(above, 1):
		return 0, false
	case math.IsInf(above, 1):
		return min(1, rates[below]/total), true
	case math.IsInf(below, -1):
		below = 0
	}
	inside := (rates[above] - rates[below]) * (target - below) / (above - below)
	return min(1, (rates[below]+max(0, inside))/total), true
}
