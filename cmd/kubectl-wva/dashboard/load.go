package dashboard

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// modelKey names a model as its clients do.
type modelKey struct{ namespace, model string }

// loads is what Prometheus knows. The points of all models have the same steps; point i is
// that of start + (i+1)*step. What is not known is nil.
type loads struct {
	start    time.Time
	step     time.Duration
	points   map[modelKey][]report.LoadPoint
	waiting  map[modelKey]float64
	kvUse    map[types.NamespacedName]float64
	queued   map[types.NamespacedName]float64
	complete int
}

// asker asks Prometheus.
type asker interface {
	Now(ctx context.Context, query string) (model.Vector, error)
	Range(ctx context.Context, query string, from, to time.Time, step time.Duration) (model.Matrix, error)
}

var _ asker = (*prometheus.Server)(nil)

// questions are the queries for one namespace, or for all.
type questions struct {
	// namespace is empty for all, window that of the rates.
	namespace string
	window    time.Duration
	// promises are the targets of the models. Without one, nobody asks what was within it.
	promises map[modelKey]capacity.SLO
}

// byModel and byPod are the labels that the answers are grouped by.
const (
	byModel = "namespace, model_name"
	byPod   = "namespace, pod"
)

// each asks for every name of a quantity: "or" adds only what has not been found.
func (q questions) each(quantity modelserver.Quantity, suffix string, expression func(series string) string) string {
	m := modelserver.Of(quantity)
	var all []string
	for _, name := range m.Names {
		var matchers []string
		if label, value := m.Selection(name); label != "" {
			matchers = append(matchers, fmt.Sprintf("%s=%q", label, value))
		}
		// A gateway's metrics need not say the namespace of the models.
		if q.namespace != "" && quantity != modelserver.GatewayQueue {
			matchers = append(matchers, fmt.Sprintf("namespace=%q", q.namespace))
		}
		all = append(all, expression(fmt.Sprintf("%s%s{%s}", name, suffix, strings.Join(matchers, ","))))
	}
	return "(" + strings.Join(all, " or ") + ")"
}

// once makes one series of those of each target: it is taken as a whole, and of the jobs that scrape one
// address the largest counts.
func once(across, vector string) string {
	const address = "namespace, pod, instance, target_model_name, model_name"
	return fmt.Sprintf("max by (%[1]s) (%[4]s by (%[1]s, job) (max without (%[2]s) (%[3]s)))", address, strings.Join(modelserver.RankLabels(), ", "), vector, across)
}

func (q questions) over(function string) func(string) string {
	return func(series string) string {
		return fmt.Sprintf("sum by (%s) (%s)", byModel, once("sum", fmt.Sprintf("%s(%s[%s])", function, series, q.promDuration())))
	}
}

func (q questions) promDuration() string { return fmt.Sprintf("%ds", int(q.window.Seconds())) }

// rate is the requests per second that reach the replicas of each model: those that were
// completed, and the growth of those in service and waiting.
func (q questions) rate() string {
	done := q.each(modelserver.Completed, "", q.over("rate"))
	growth := func(quantity modelserver.Quantity) string {
		return fmt.Sprintf("(%s or %s * 0)", q.each(quantity, "", q.over("deriv")), done)
	}
	return fmt.Sprintf("clamp_min(%s + %s + %s, 0)", done, growth(modelserver.Running), growth(modelserver.Waiting))
}

// latency is the 95th percentile of a histogram of seconds, in milliseconds.
func (q questions) latency(quantity modelserver.Quantity) string {
	return "1000 * " + q.each(quantity, "_bucket", func(series string) string {
		return fmt.Sprintf("histogram_quantile(0.95, sum by (%s, le) (rate(%s[%s])))", byModel, series, q.promDuration())
	})
}

// ofPods is a gauge by pod.
func (q questions) ofPods(quantity modelserver.Quantity, across string) string {
	return q.each(quantity, "", func(series string) string {
		return fmt.Sprintf("%s by (%s) (%s)", across, byPod, once(across, series))
	})
}

// gateway is the gateway's queue by model.
func (q questions) gateway() string {
	return q.each(modelserver.GatewayQueue, "", func(series string) string {
		return fmt.Sprintf("sum by (namespace, target_model_name, model_name) (%s)", once("sum", series))
	})
}

// newLoads are without points, from a start on.
func newLoads(start time.Time, step time.Duration) *loads {
	return &loads{start: start, step: step, points: map[modelKey][]report.LoadPoint{}}
}

// pointsAt is how many points there are by an instant.
func (l *loads) pointsAt(now time.Time) int { return max(0, int(now.Sub(l.start)/l.step)) }

// read asks for the points since the last time and for what is now. It gives new loads: what
// was read before is not changed. After an error nothing of it counts.
func (l *loads) read(ctx context.Context, from asker, q questions, now time.Time) (*loads, error) {
	next := &loads{start: l.start, step: l.step, complete: l.pointsAt(now), points: map[modelKey][]report.LoadPoint{}}
	for key, points := range l.points {
		next.points[key] = slices.Clone(points)
	}
	series := make([]model.Matrix, 5)
	vectors := make([]model.Vector, 3)
	group, ctx := errgroup.WithContext(ctx)
	if next.complete > l.complete {
		first, last := l.start.Add(time.Duration(l.complete+1)*l.step), l.start.Add(time.Duration(next.complete)*l.step)
		for i, h := range halves() {
			group.Go(func() (err error) {
				series[3+i], err = q.within(ctx, from, h, first, last, l.step)
				return err
			})
		}
		for i, query := range []string{q.rate(), q.latency(modelserver.FirstToken), q.latency(modelserver.InterToken)} {
			group.Go(func() (err error) {
				series[i], err = from.Range(ctx, query, first, last, l.step)
				return err
			})
		}
	}
	for i, query := range []string{q.ofPods(modelserver.KVUse, "max"), q.ofPods(modelserver.Waiting, "sum"), q.gateway()} {
		group.Go(func() (err error) {
			vectors[i], err = from.Now(ctx, query)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, field := range []func(*report.LoadPoint) **float64{
		func(p *report.LoadPoint) **float64 { return &p.Rate },
		func(p *report.LoadPoint) **float64 { return &p.TTFT },
		func(p *report.LoadPoint) **float64 { return &p.ITL },
		halves()[0].field, halves()[1].field,
	} {
		next.take(series[i], field)
	}
	next.kvUse, next.queued = podValues(vectors[0]), podValues(vectors[1])
	next.waiting = map[modelKey]float64{}
	for _, sample := range vectors[2] {
		name := string(sample.Metric[modelserver.LabelTargetModel])
		if name == "" {
			name = string(sample.Metric[modelserver.LabelModel])
		}
		if v := float64(sample.Value); known(v) {
			next.waiting[modelKey{string(sample.Metric["namespace"]), name}] += v
		}
	}
	return next, nil
}

// take puts the values of a range into the points.
func (l *loads) take(matrix model.Matrix, field func(*report.LoadPoint) **float64) {
	for _, series := range matrix {
		key := modelKey{string(series.Metric["namespace"]), string(series.Metric[modelserver.LabelModel])}
		points := l.points[key]
		if points == nil {
			points = make([]report.LoadPoint, 0, l.complete)
		}
		for len(points) < l.complete {
			points = append(points, report.LoadPoint{})
		}
		for _, pair := range series.Values {
			i := int(math.Round(float64(pair.Timestamp.Time().Sub(l.start))/float64(l.step))) - 1
			if v := float64(pair.Value); i >= 0 && i < len(points) && known(v) {
				*field(&points[i]) = &v
			}
		}
		l.points[key] = points
	}
}

// of are the points of a model, as many as there are.
func (l *loads) of(key modelKey) []report.LoadPoint {
	points := slices.Clone(l.points[key])
	for len(points) < l.complete {
		points = append(points, report.LoadPoint{})
	}
	return points
}

// from drops the points of before an instant.
func (l *loads) from(start time.Time) *loads {
	drop := min(l.pointsAt(start), l.complete)
	next := &loads{start: l.start.Add(time.Duration(drop) * l.step), step: l.step, complete: l.complete - drop, points: map[modelKey][]report.LoadPoint{}, waiting: l.waiting, kvUse: l.kvUse, queued: l.queued}
	for key, points := range l.points {
		if len(points) > drop {
			next.points[key] = points[drop:]
		}
	}
	return next
}

func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func podValues(vector model.Vector) map[types.NamespacedName]float64 {
	values := map[types.NamespacedName]float64{}
	for _, sample := range vector {
		if v := float64(sample.Value); known(v) {
			values[types.NamespacedName{Namespace: string(sample.Metric["namespace"]), Name: string(sample.Metric["pod"])}] = v
		}
	}
	return values
}
