package prometheus

import (
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
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// Latency is one of the two of a promise, as the histograms of servers count it. The share of
// the requests within its target is found in two steps, because a histogram has many buckets:
// first the ends of all buckets (Ends, EndsOf), then the rates of those beside the targets
// alone (Rates, Shares).
type Latency struct {
	// histograms count how long it took in seconds, the preferred one first.
	histograms []string
	target     func(capacity.SLO) capacity.Milliseconds
	bucket     func(*decision.Kept) *decision.Bucket
}

// ToFirstToken is the time from a request's arrival to its first token.
func ToFirstToken() Latency {
	return Latency{
		modelserver.Of(modelserver.FirstToken).Names,
		func(slo capacity.SLO) capacity.Milliseconds { return slo.TTFT },
		func(k *decision.Kept) *decision.Bucket { return &k.TTFT },
	}
}

// PerFurtherToken is a request's mean time per further token. Where the servers do not count
// that, the times of all further tokens stand for it.
func PerFurtherToken() Latency {
	return Latency{
		slices.Concat(modelserver.Of(modelserver.MeanInterToken).Names, modelserver.Of(modelserver.InterToken).Names),
		func(slo capacity.SLO) capacity.Milliseconds { return slo.ITL },
		func(k *decision.Kept) *decision.Bucket { return &k.ITL },
	}
}

// targets are those of the models that have one, in seconds. Servers whose series carry no
// namespace are those of no model.
func (l Latency) targets(promises map[decision.ModelKey]capacity.SLO) map[decision.ModelKey]float64 {
	targets := map[decision.ModelKey]float64{}
	for key, slo := range promises {
		if target := float64(l.target(slo)) / 1000; target > 0 {
			targets[key] = target
		}
	}
	return targets
}

// Promised reports whether any model has a target. Without one there is nothing to ask.
func (l Latency) Promised(promises map[decision.ModelKey]capacity.SLO) bool {
	return len(l.targets(promises)) > 0
}

const (
	// labelHistogram tells which of the histograms a series is of. Their buckets end at other
	// places, and must not be mixed.
	labelHistogram = "histogram"
	byModel        = modelserver.LabelNamespace + ", " + modelserver.LabelModel
	// endless is the end of the last bucket, which counts all requests.
	endless = "+Inf"
)

// ofEach asks for something of the buckets of each histogram, which is one part of a query.
func (l Latency) ofEach(expression func(histogram int, buckets string) string) []string {
	all := make([]string, len(l.histograms))
	for i, name := range l.histograms {
		all[i] = fmt.Sprintf("label_replace(%s, %q, \"%d\", \"\", \"\")", expression(i, name+"_bucket"), labelHistogram, i)
	}
	return all
}

// inNamespace is a matcher that others follow; empty for all namespaces.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return fmt.Sprintf("%s=%q,", modelserver.LabelNamespace, namespace)
}

// Ends asks for the ends of all buckets, in one namespace or, where it is empty, in all.
func (l Latency) Ends(namespace string) string { return strings.Join(l.ends(namespace), " or ") }

func (l Latency) ends(namespace string) []string {
	return l.ofEach(func(_ int, buckets string) string {
		return fmt.Sprintf("group by (%s, le) (%s{%sle!=\"\"})", byModel, buckets, inNamespace(namespace))
	})
}

// counting is one histogram of the servers of a model.
type counting struct {
	model     decision.ModelKey
	histogram int
}

func countingOf(labels model.Metric) (counting, bool) {
	i, err := strconv.Atoi(string(labels[labelHistogram]))
	return counting{
		model:     decision.ModelKey{Namespace: string(labels[modelserver.LabelNamespace]), ID: string(labels[modelserver.LabelModel])},
		histogram: i,
	}, err == nil
}

// BucketEnds are the ends of buckets of a Latency, as they are written. Versions write the
// same number as 1 and as 1.0. Those of all models together are under the empty model.
type BucketEnds map[counting]map[float64][]string

// EndsOf reads the answer to Ends.
func EndsOf(vector model.Vector) BucketEnds {
	all := BucketEnds{}
	for _, s := range vector {
		key, ok := countingOf(s.Metric)
		end, isEnd := endOf(s.Metric)
		if !ok || !isEnd {
			continue
		}
		written := string(s.Metric[model.BucketLabel])
		for _, of := range []counting{key, {histogram: key.histogram}} {
			if all[of] == nil {
				all[of] = map[float64][]string{}
			}
			if !slices.Contains(all[of][end], written) {
				all[of][end] = append(all[of][end], written)
			}
		}
	}
	return all
}

// of are the ends of one histogram of a model. Where nobody knows those, other servers'
// version may well be the same.
func (e BucketEnds) of(key counting) map[float64][]string {
	if own, known := e[key]; known {
		return own
	}
	return e[counting{histogram: key.histogram}]
}

func endOf(labels model.Metric) (float64, bool) {
	end, err := strconv.ParseFloat(string(labels[model.BucketLabel]), 64)
	return end, err == nil && !math.IsNaN(end)
}

// beside are the ends next to a target, without the infinite one: what the share within it
// needs.
func (e BucketEnds) beside(key counting, target float64) []float64 {
	var next []float64
	below, above := around(maps.Keys(e.of(key)), target)
	if !math.IsInf(below, -1) {
		next = append(next, below)
	}
	if !math.IsInf(above, 1) && below != target {
		next = append(next, above)
	}
	return next
}

// around are the last end up to a target and the first one above it; infinite without one.
func around(ends func(func(float64) bool), target float64) (below, above float64) {
	below, above = math.Inf(-1), math.Inf(1)
	for end := range ends {
		if end <= target {
			below = max(below, end)
		} else {
			above = min(above, end)
		}
	}
	return below, above
}

// Rates asks for the rates over the window of the buckets beside the targets, and of the last
// ones.
func (l Latency) Rates(ends BucketEnds, promises map[decision.ModelKey]capacity.SLO, namespace string, window time.Duration) string {
	return strings.Join(l.rates(ends, promises, namespace, window), " or ")
}

func (l Latency) rates(ends BucketEnds, promises map[decision.ModelKey]capacity.SLO, namespace string, window time.Duration) []string {
	q := newBuilder(window, 0)
	return l.ofBeside(ends, promises, namespace, func(series string) string {
		rate := q.whole("sum", fmt.Sprintf("rate(%s[%s])", series, q.window), series, modelserver.LabelModel, "le")
		return sum(byModel+", le", q.ofEngines("sum", rate, modelserver.LabelModel, "le"))
	})
}

// counts asks how many series there are of each of these buckets. Servers of other versions
// may have other ends.
func (l Latency) counts(ends BucketEnds, promises map[decision.ModelKey]capacity.SLO) []string {
	return l.ofBeside(ends, promises, "", func(series string) string { return fmt.Sprintf("count by (%s, le) (%s)", byModel, series) })
}

// ofBeside asks for something of the buckets beside the targets, and of the last ones.
func (l Latency) ofBeside(ends BucketEnds, promises map[decision.ModelKey]capacity.SLO, namespace string, expression func(series string) string) []string {
	wanted := make([]map[string]bool, len(l.histograms))
	for i := range wanted {
		wanted[i] = map[string]bool{regexp.QuoteMeta(endless): true}
	}
	for key, target := range l.targets(promises) {
		for i := range wanted {
			of := counting{key, i}
			for _, end := range ends.beside(of, target) {
				for _, written := range ends.of(of)[end] {
					wanted[i][regexp.QuoteMeta(written)] = true
				}
			}
		}
	}
	return l.ofEach(func(i int, buckets string) string {
		pattern := strings.Join(slices.Sorted(maps.Keys(wanted[i])), "|")
		return expression(fmt.Sprintf("%s{%sle=~%q}", buckets, inNamespace(namespace), pattern))
	})
}

// newest asks when the buckets of each model were scraped last.
func (l Latency) newest() []string {
	return l.ofEach(func(_ int, buckets string) string {
		return fmt.Sprintf("max by (%s) (timestamp(%s{le=%q}))", byModel, buckets, endless)
	})
}

// counted are the rates of buckets by their ends, at each instant.
type counted map[counting]map[model.Time]map[float64]float64

func countedOf(rates model.Matrix) counted {
	all := counted{}
	for _, series := range rates {
		of, ok := countingOf(series.Metric)
		end, isEnd := endOf(series.Metric)
		if !ok || !isEnd {
			continue
		}
		if all[of] == nil {
			all[of] = map[model.Time]map[float64]float64{}
		}
		for _, pair := range series.Values {
			if all[of][pair.Timestamp] == nil {
				all[of][pair.Timestamp] = map[float64]float64{}
			}
			all[of][pair.Timestamp][end] += float64(pair.Value)
		}
	}
	return all
}

// Share is what buckets tell of a share within a target, 0 to 1: what is in the bucket of the
// target may be within it or not, so that Sure of all surely are, and Most at most.
type Share struct {
	Sure, Most float64
	// In is the bucket of the target; the zero one where the target is the end of one.
	In decision.Bucket
}

// share is what the servers of a model told, and by which of its histograms.
type share struct {
	Share

	of counting
}

// shares are those of the models within their targets. Of several histograms the preferred
// one counts, at each instant. One that has other buckets than the ends say tells nothing.
func (l Latency) shares(ends BucketEnds, rates counted, promises map[decision.ModelKey]capacity.SLO) map[decision.ModelKey]map[model.Time]share {
	all, targets := map[decision.ModelKey]map[model.Time]share{}, l.targets(promises)
	for of, instants := range rates {
		target, promised := targets[of.model]
		if !promised {
			continue
		}
		for at, buckets := range instants {
			within, known := shareWithin(buckets, target)
			if !known || ends.miss(of, target, buckets) {
				continue
			}
			if all[of.model] == nil {
				all[of.model] = map[model.Time]share{}
			}
			if before, found := all[of.model][at]; !found || of.histogram < before.of.histogram {
				all[of.model][at] = share{within, of}
			}
		}
	}
	return all
}

// miss reports whether a histogram has not the buckets beside a target that the ends say.
func (e BucketEnds) miss(of counting, target float64, buckets map[float64]float64) bool {
	return slices.ContainsFunc(e.beside(of, target), func(end float64) bool {
		_, told := buckets[end]
		return !told
	})
}

// outdated reports whether servers count requests in buckets of which the ends do not know.
func (l Latency) outdated(ends BucketEnds, rates counted, promises map[decision.ModelKey]capacity.SLO) bool {
	targets := l.targets(promises)
	for of, instants := range rates {
		target, promised := targets[of.model]
		if !promised {
			continue
		}
		_, known := ends[of]
		for _, buckets := range instants {
			if buckets[math.Inf(1)] > 0 && (!known || ends.miss(of, target, buckets)) {
				return true
			}
		}
	}
	return false
}

// Shares reads the answer to Rates: the shares, 0 to 1, of the requests that surely were within
// the targets, as one series for each model that counts requests and promises something.
func (l Latency) Shares(ends BucketEnds, rates model.Matrix, promises map[decision.ModelKey]capacity.SLO) model.Matrix {
	var all model.Matrix
	for key, instants := range l.shares(ends, countedOf(rates), promises) {
		series := &model.SampleStream{Metric: model.Metric{
			modelserver.LabelNamespace: model.LabelValue(key.Namespace), modelserver.LabelModel: model.LabelValue(key.ID),
		}}
		for _, at := range slices.Sorted(maps.Keys(instants)) {
			series.Values = append(series.Values, model.SamplePair{Timestamp: at, Value: model.SampleValue(instants[at].Sure)})
		}
		all = append(all, series)
	}
	return all
}

// shareWithin is the share of what took a target at most. The rates of buckets count all that
// is below their ends. What is in the bucket of the target may be on either side of the target.
// Without requests the share is unknown.
func shareWithin(rates map[float64]float64, target float64) (Share, bool) {
	total := rates[math.Inf(1)]
	if !(total > 0) {
		return Share{}, false
	}
	below, above := around(maps.Keys(rates), target)
	if math.IsInf(below, -1) && math.IsInf(above, 1) {
		return Share{}, false
	}
	of := func(end float64) float64 { return min(1, rates[end]/total) }
	sure := 0.0
	if !math.IsInf(below, -1) {
		sure = of(below)
	}
	if below == target {
		return Share{Sure: sure, Most: sure}, true
	}
	// Series that are scraped apart may not ascend.
	return Share{sure, max(sure, of(above)), decision.Bucket{Above: milliseconds(max(0, below)), UpTo: milliseconds(above)}}, true
}

// amid is what is left of it where not all of the servers have the end of a bucket up to which
// the most is counted: what the others served is below every end that they have not, and may
// have been within the target.
func (s Share) amid(series map[float64]float64, target float64) Share {
	below, above := around(maps.Keys(series), target)
	end := above
	if below == target {
		end = below
	}
	if series[end] < series[math.Inf(1)] {
		s.Most = 1
	}
	return s
}

// milliseconds are those of an end in seconds, as one would write them; 0 for the infinite one.
func milliseconds(end float64) capacity.Milliseconds {
	if math.IsInf(end, 1) {
		return 0
	}
	return capacity.Milliseconds(math.Round(end*1e6) / 1e3)
}
