package prometheus

import (
	"cmp"
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
// first the ends of all buckets (ends, EndsOf), then the rates of those beside the targets
// alone (rates, shares).
type Latency struct {
	// histograms count how long it took in seconds, the preferred one first. Each of the first requests
	// counts requests, each other one tokens: these are no parts of one whole.
	histograms []string
	requests   int
	// only are those that are asked for; nil for all.
	only   func(histogram int) bool
	target func(capacity.SLO) capacity.Milliseconds
	bucket func(*decision.Kept) *decision.Bucket
}

// ToFirstToken is the time from a request's arrival to its first token.
func ToFirstToken() Latency {
	names := modelserver.Of(modelserver.FirstToken).Names
	return Latency{
		names, len(names), nil,
		func(slo capacity.SLO) capacity.Milliseconds { return slo.TTFT },
		func(k *decision.Kept) *decision.Bucket { return &k.TTFT },
	}
}

// PerFurtherToken is a request's mean time per further token. Where the servers do not count
// that, the times of all further tokens stand for it.
func PerFurtherToken() Latency {
	means := modelserver.Of(modelserver.MeanInterToken).Names
	return Latency{
		slices.Concat(means, modelserver.Of(modelserver.InterToken).Names), len(means), nil,
		func(slo capacity.SLO) capacity.Milliseconds { return slo.ITL },
		func(k *decision.Kept) *decision.Bucket { return &k.ITL },
	}
}

// targets are those of the models that have one, in seconds. Servers whose series carry no
// namespace are those of no model.
func (l Latency) targets(promises map[decision.ModelKey]capacity.SLO) map[decision.ModelKey]float64 {
	targets := map[decision.ModelKey]float64{}
	for key, slo := range promises {
		if target := asWritten(float64(l.target(slo)) / 1000); target > 0 {
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
	var all []string
	for i, name := range l.histograms {
		// The last one stands for none at all.
		if l.only == nil || l.only(i) || i == len(l.histograms)-1 && len(all) == 0 {
			all = append(all, fmt.Sprintf("label_replace(%s, %q, \"%d\", \"\", \"\")", expression(i, name+"_bucket"), labelHistogram, i))
		}
	}
	return all
}

// ends asks for the ends of all buckets.
func (l Latency) ends() []string {
	return l.ofEach(func(_ int, buckets string) string {
		return fmt.Sprintf("group by (%s, le) (%s{le!=\"\"})", byModel, buckets)
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
	return asWritten(end), err == nil && !math.IsNaN(end)
}

// asWritten is a number as people write it: servers that reckon the ends of their buckets call 0.3
// also 0.30000000000000004.
func asWritten(x float64) float64 {
	const digits = 12
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64); err == nil {
		return rounded
	}
	return x
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

// rates asks for the rates over the window of the buckets beside the targets, and of the last
// ones.
func (l Latency) rates(ends BucketEnds, promises map[decision.ModelKey]capacity.SLO, window time.Duration) []string {
	q := newBuilder(window, 0)
	return l.ofBeside(ends, promises, false, func(series string) string {
		rate := q.whole("sum", fmt.Sprintf("rate(%s[%s])", series, q.window), series, modelserver.LabelModel, "le")
		return sum(byModel+", le", q.ofEngines("sum", rate, modelserver.LabelModel, "le"))
	})
}

// counts asks how many servers have each of these buckets. Those of other versions may have other ends,
// or other histograms. One that has had a bucket for a part of the window only counts for that part: it started
// anew with other ends, and what it counted before is in none of these.
func (l Latency) counts(ends BucketEnds, promises map[decision.ModelKey]capacity.SLO, window time.Duration) []string {
	seen := func(by, series string) string {
		return fmt.Sprintf("max by (%s, %s) (count_over_time(%s[%s]))", byModel, by, series, promDuration(window))
	}
	return l.ofBeside(ends, promises, true, func(series string) string {
		all := narrowed(series, fmt.Sprintf("le=%q", endless))
		return fmt.Sprintf("sum by (%[1]s, le) (%[2]s / on (%[1]s, pod) group_left () %[3]s)", byModel, seen("le, pod", series), seen("pod", all))
	})
}

// ofBeside asks for something of the buckets beside the targets, and of the last ones. Of histograms
// without a bucket beside a target only the last one is known: they are asked for where all are. Most
// names are of versions that a cluster has not, and a server takes a query of so many characters.
func (l Latency) ofBeside(ends BucketEnds, promises map[decision.ModelKey]capacity.SLO, all bool, expression func(series string) string) []string {
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
	kept := l
	kept.only = func(i int) bool { return all || len(wanted[i]) > 1 }
	return kept.ofEach(func(i int, buckets string) string {
		pattern := strings.Join(slices.Sorted(maps.Keys(wanted[i])), "|")
		return expression(fmt.Sprintf("%s{le=~%q}", buckets, pattern))
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

	of []counting
	// total is the rate of what they count, and servers how many tell. Known is set where one of the
	// histograms tells anything of the target.
	total, servers float64
	known          bool
}

// add puts the share of what another histogram counts beside it. What tells nothing of the target may be
// within it or not.
func (s *share) add(of counting, one Share, known bool, total, servers float64) {
	if !known {
		one = Share{Most: 1}
	}
	all := s.total + total
	s.Sure, s.Most = (s.Sure*s.total+one.Sure*total)/all, (s.Most*s.total+one.Most*total)/all
	switch zero := (decision.Bucket{}); {
	case s.In == zero:
		s.In = one.In
	case one.In != zero:
		up := max(s.In.UpTo, one.In.UpTo)
		if s.In.UpTo == 0 || one.In.UpTo == 0 {
			up = 0 // which is the infinite end
		}
		s.In = decision.Bucket{Above: min(s.In.Above, one.In.Above), UpTo: up}
	}
	s.of, s.total, s.servers, s.known = append(s.of, of), all, s.servers+servers, s.known || known
}

// shares are those of the models within their targets. The servers of one model may be of several
// versions or makers, with a histogram each: those that count requests make one whole, and so do those
// that count tokens. Of the two that of which more servers tell counts, at each instant, and of
// equals the requests. One that has other buckets than the ends say tells nothing. Servers are how
// many have each bucket; nil where nobody asked.
func (l Latency) shares(ends BucketEnds, rates, servers counted, promises map[decision.ModelKey]capacity.SLO) map[decision.ModelKey]map[model.Time]share {
	wholes := [2]map[decision.ModelKey]map[model.Time]share{{}, {}}
	targets := l.targets(promises)
	for _, of := range sortedKeys(rates) {
		target, promised := targets[of.model]
		if !promised {
			continue
		}
		whole := wholes[0]
		if of.histogram >= l.requests {
			whole = wholes[1]
		}
		if whole[of.model] == nil {
			whole[of.model] = map[model.Time]share{}
		}
		for at, buckets := range rates[of] {
			total := buckets[math.Inf(1)]
			if !(total > 0) {
				continue
			}
			within, known := shareWithin(buckets, target)
			known = known && !ends.miss(of, target, buckets)
			have := servers[of][at]
			if servers != nil {
				within = within.amid(have, target)
			}
			all := whole[of.model][at]
			all.add(of, within, known, total, have[math.Inf(1)])
			whole[of.model][at] = all
		}
	}
	return chosen(wholes)
}

// sortedKeys are the histograms of all models in an order that is the same each time: sums of
// numbers depend on it.
func sortedKeys(rates counted) []counting {
	return slices.SortedFunc(maps.Keys(rates), func(a, b counting) int {
		return cmp.Or(cmp.Compare(a.model.Namespace, b.model.Namespace), cmp.Compare(a.model.ID, b.model.ID), cmp.Compare(a.histogram, b.histogram))
	})
}

// chosen are of the two wholes those of which more servers tell, of equals the first.
func chosen(wholes [2]map[decision.ModelKey]map[model.Time]share) map[decision.ModelKey]map[model.Time]share {
	all := map[decision.ModelKey]map[model.Time]share{}
	for _, whole := range wholes {
		for key, instants := range whole {
			for at, one := range instants {
				if !one.known {
					continue
				}
				if all[key] == nil {
					all[key] = map[model.Time]share{}
				}
				if before, found := all[key][at]; !found || one.servers > before.servers {
					all[key][at] = one
				}
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

// outdated reports whether servers have histograms, or count requests in buckets, of which the ends do not
// know.
func (l Latency) outdated(ends BucketEnds, rates, servers counted, promises map[decision.ModelKey]capacity.SLO) bool {
	targets := l.targets(promises)
	for of := range servers {
		if _, known := ends[of]; !known && targets[of.model] > 0 {
			return true
		}
	}
	for of, instants := range rates {
		target, promised := targets[of.model]
		if !promised {
			continue
		}
		for _, buckets := range instants {
			if buckets[math.Inf(1)] > 0 && ends.miss(of, target, buckets) {
				return true
			}
		}
	}
	return false
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

// amid is what is left of it where not all of the servers have had the end of a bucket up to which
// the most is counted for the whole window: what the others served is below every end that they have not, and may
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
