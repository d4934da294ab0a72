package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Span is a time that is looked back at.
type Span struct {
	// Model is the name by which the servers call the model, and Namespace theirs; empty
	// means all.
	Model, Namespace string
	// From and To are whole steps apart.
	From, To time.Time
	Step     time.Duration
}

// instants are From, To and those between them.
func (s Span) instants() int { return int(s.To.Sub(s.From)/s.Step) + 1 }

// History is what the servers of one model showed, step by step.
type History struct {
	// Pods are sorted by namespace and name.
	Pods []Past
	// Input and Output are how long requests were.
	Input, Output Tail
}

// Tail is the 99th percentile of a length, and one that none exceeded; NaN where nobody
// knows it.
type Tail struct{ P99, Most float64 }

// Past is what one pod showed.
type Past struct {
	Pod types.NamespacedName
	// Steps are those of the span, of which the first begins at From.
	Steps []PastStep
	// KVTokens is the size of its KV cache; 0 means unknown.
	KVTokens float64
}

// PastStep is what a pod showed in one step.
type PastStep struct {
	// Seen says that the pod was there during the step.
	Seen bool
	// Completed is the number of requests that ended, and InFlight what those in service or
	// waiting grew by.
	Completed, InFlight float64
	// The others are those of the requests that ended, or of their tokens.
	Input, Output, FirstToken, InterToken Mean
	// Running and Waiting are means over the step; NaN where nobody knows them.
	Running, Waiting float64
}

// Mean is a sum of observations and their number.
type Mean struct{ Sum, Count float64 }

// Value is the mean; NaN without observations.
func (m Mean) Value() float64 { return m.Sum / m.Count }

// History looks back with a number of range queries that does not depend on how long the
// span is, nor on how many pods there were. A span without any pod is no error.
func (c *Client) History(ctx context.Context, s Span) (*History, error) {
	asked := pastQueries(s)
	answers := make([]model.Matrix, len(asked))
	// One failure says it: all are of one server.
	group, ctx := errgroup.WithContext(ctx)
	// A long look back is work for the server.
	group.SetLimit(4)
	for i, q := range asked {
		group.Go(func() (err error) {
			r := v1.Range{Start: s.From, End: s.To, Step: s.Step}
			if q.end {
				r.Start = s.To
			}
			if err = ctx.Err(); err == nil {
				answers[i], err = c.over(ctx, q.query, r, s.To)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	p := past{Span: s, pods: map[types.NamespacedName]*Past{}}
	for i, q := range asked {
		q.add(&p, answers[i])
	}
	return p.history(), nil
}

// pastQuery is one range query and what becomes of its answer.
type pastQuery struct {
	query
	// end says that only the last instant is asked for.
	end bool
	add func(*past, model.Matrix)
}

func pastQueries(s Span) []pastQuery {
	matchers := fmt.Sprintf("%s=%q", modelserver.LabelModel, s.Model)
	if s.Namespace != "" {
		matchers += fmt.Sprintf(",%s=%q", modelserver.LabelNamespace, s.Namespace)
	}
	// A value that was not scraped within the step is not known; it may have grown.
	b := newBuilder(s.Step, 0)
	over := func(function string, q modelserver.Quantity, suffix string) string {
		return b.ofEngines("sum", each(q, func(series string) string {
			series = narrowed(series+suffix, matchers)
			return b.whole("sum", fmt.Sprintf("%s(%s[%s])", function, series, b.window), series)
		}))
	}
	plain := func(q modelserver.Quantity, suffix string) string { return over("last_over_time", q, suffix) }
	mean := func(q modelserver.Quantity) string { return over("avg_over_time", q, "") }
	tail := func(quantile string) func(string) string {
		return func(series string) string {
			return fmt.Sprintf("histogram_quantile(%s, sum by (le) (increase(%s[%s])))", quantile, narrowed(series+"_bucket", matchers), promDuration(s.To.Sub(s.From)))
		}
	}
	growth := func(counter bool, to func(*PastStep) *float64) func(*past, model.Matrix) {
		return func(p *past, m model.Matrix) { p.grow(m, counter, to) }
	}
	all := []pastQuery{
		{asking(served, plain(modelserver.Completed, "")), false, growth(true, func(s *PastStep) *float64 { return &s.Completed })},
		{asking(running, plain(modelserver.Running, "")), false, growth(false, func(s *PastStep) *float64 { return &s.InFlight })},
		{asking(waiting, plain(modelserver.Waiting, "")), false, growth(false, func(s *PastStep) *float64 { return &s.InFlight })},
		{asking(running, mean(modelserver.Running)), false, func(p *past, m model.Matrix) { p.mean(m, func(s *PastStep) *float64 { return &s.Running }) }},
		{asking(waiting, mean(modelserver.Waiting)), false, func(p *past, m model.Matrix) { p.mean(m, func(s *PastStep) *float64 { return &s.Waiting }) }},
		{asking(cacheBlocks, ofPods("max", perPod+","+sizes, b.unlessAgain(b.equalBlocks()))), false, (*past).blocks},
		{asking(cacheTokens, plain(modelserver.CacheTokens, "")), false, (*past).tokens},
	}
	for _, h := range []struct {
		about    string
		quantity modelserver.Quantity
		to       func(*PastStep) *Mean
	}{
		{inputTokens, modelserver.Prompt, func(s *PastStep) *Mean { return &s.Input }},
		{outputTokens, modelserver.Generation, func(s *PastStep) *Mean { return &s.Output }},
		{firstToken, modelserver.FirstToken, func(s *PastStep) *Mean { return &s.FirstToken }},
		{interToken, modelserver.InterToken, func(s *PastStep) *Mean { return &s.InterToken }},
	} {
		all = append(all,
			pastQuery{asking(h.about, plain(h.quantity, "_sum")), false, growth(true, func(s *PastStep) *float64 { return &h.to(s).Sum })},
			pastQuery{asking(h.about, plain(h.quantity, "_count")), false, growth(true, func(s *PastStep) *float64 { return &h.to(s).Count })})
	}
	for _, t := range []struct {
		about    string
		quantity modelserver.Quantity
		quantile string
		to       func(*past) *float64
	}{
		{inputTokens, modelserver.Prompt, "0.99", func(p *past) *float64 { return &p.input.P99 }},
		{inputTokens, modelserver.Prompt, "1", func(p *past) *float64 { return &p.input.Most }},
		{outputTokens, modelserver.Generation, "0.99", func(p *past) *float64 { return &p.output.P99 }},
		{outputTokens, modelserver.Generation, "1", func(p *past) *float64 { return &p.output.Most }},
	} {
		all = append(all, pastQuery{asking(t.about, each(t.quantity, tail(t.quantile))), true, func(p *past, m model.Matrix) { *t.to(p) = lastOf(m) }})
	}
	return all
}

// over asks a range query. The time is when that is.
func (c *Client) over(ctx context.Context, q query, r v1.Range, now time.Time) (model.Matrix, error) {
	ctx, cancel := context.WithTimeout(c.limits.bounded(ctx), c.timeout)
	defer cancel()
	value, warnings, err := c.api.QueryRange(ctx, q.promQL(), r)
	if err = cmp.Or(err, partial(warnings)); err != nil {
		c.crowds.crowded(ctx, err, now, c.limits)
		return nil, fmt.Errorf("prometheus %s: looking back for the %s: %w", c.address, q.about, cause(err))
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("prometheus %s: looking back for the %s: the answer is a %s and not a matrix", c.address, q.about, value.Type())
	}
	return slices.DeleteFunc(matrix, func(s *model.SampleStream) bool { return s == nil }), nil
}

// past is a history in the making.
type past struct {
	Span
	pods          map[types.NamespacedName]*Past
	input, output Tail
}

// pod is that of a series; where nothing names a pod, its address does.
func (p *past) pod(labels model.Metric) *Past {
	name, ok := podOf(labels)
	if !ok {
		name.Name = string(labels["instance"])
	}
	if p.pods[name] == nil {
		steps := make([]PastStep, p.instants()-1)
		for i := range steps {
			steps[i].Running, steps[i].Waiting = math.NaN(), math.NaN()
		}
		p.pods[name] = &Past{Pod: name, Steps: steps}
	}
	return p.pods[name]
}

// values are those of a series at the instants of the span; NaN where it has none.
func (p *past) values(s *model.SampleStream) []float64 {
	values := make([]float64, p.instants())
	for i := range values {
		values[i] = math.NaN()
	}
	for _, pair := range s.Values {
		at := pair.Timestamp.Time().Sub(p.From)
		if i := int(math.Round(float64(at) / float64(p.Step))); i >= 0 && i < len(values) && !math.IsInf(float64(pair.Value), 0) {
			values[i] = float64(pair.Value)
		}
	}
	return values
}

// grow adds what series grew by to the steps of their pods.
func (p *past) grow(m model.Matrix, counter bool, to func(*PastStep) *float64) {
	known := p.instants()
	series := make([][]float64, len(m))
	for k, s := range m {
		series[k] = p.values(s)
		if first := slices.IndexFunc(series[k], isNumber); first >= 0 {
			known = min(known, first)
		}
	}
	for k, s := range m {
		pod := p.pod(s.Metric)
		growth := workload.Changed
		if counter {
			growth = workload.Grown
		}
		for i, grown := range growth(series[k], known) {
			*to(&pod.Steps[i]) += grown
		}
		pod.see(series[k], int(longestSilence/p.Step))
	}
}

// longestSilence is how long a pod that is not scraped counts as there; it is how long
// Prometheus itself shows a value.
const longestSilence = 5 * time.Minute

// see notes the steps between two values of a series that are at most so many steps apart.
func (p *Past) see(values []float64, most int) {
	last := -1
	for i, value := range values {
		if !isNumber(value) {
			continue
		}
		if last >= 0 && i-last <= max(1, most) {
			for k := last; k < i; k++ {
				p.Steps[k].Seen = true
			}
		}
		last = i
	}
}

// mean adds means over the step before each instant.
func (p *past) mean(m model.Matrix, to func(*PastStep) *float64) {
	for _, s := range m {
		pod := p.pod(s.Metric)
		for i, value := range p.values(s)[1:] {
			if field := to(&pod.Steps[i]); isNumber(value) {
				if !isNumber(*field) {
					*field = 0
				}
				*field += value
			}
		}
	}
}

// blocks are how many equal caches there were of each size that labels say; no version has the model
// there. Those of the newest instant of an engine count; those of other models have no pod here.
func (p *past) blocks(m model.Matrix) {
	type engine struct {
		pod          *Past
		instance, id model.LabelValue
	}
	newest, tokens := map[engine]model.Time{}, map[engine]float64{}
	for _, s := range m {
		name, ok := podOf(s.Metric)
		if !ok {
			name.Name = string(s.Metric["instance"])
		}
		size, known := modelserver.Tokens(string(s.Metric[modelserver.LabelBlocks]), string(s.Metric[modelserver.LabelBlockSize]))
		e := engine{p.pods[name], s.Metric["instance"], s.Metric[modelserver.LabelEngine]}
		if e.pod == nil || !known || len(s.Values) == 0 {
			continue
		}
		switch last := s.Values[len(s.Values)-1]; {
		case last.Timestamp > newest[e]:
			newest[e], tokens[e] = last.Timestamp, float64(last.Value)*size
		case last.Timestamp == newest[e]:
			tokens[e] += float64(last.Value) * size
		}
	}
	for e, size := range tokens {
		e.pod.KVTokens += size
	}
}

// tokens are sizes that values say.
func (p *past) tokens(m model.Matrix) {
	for _, s := range m {
		if n := len(s.Values); n > 0 && s.Values[n-1].Value > 0 {
			p.pod(s.Metric).KVTokens += float64(s.Values[n-1].Value)
		}
	}
}

func (p *past) history() *History {
	h := &History{Input: p.input, Output: p.output}
	for _, pod := range p.pods {
		h.Pods = append(h.Pods, *pod)
	}
	slices.SortFunc(h.Pods, func(a, b Past) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	return h
}

// lastOf is the last value of the only series; NaN without one.
func lastOf(m model.Matrix) float64 {
	for _, s := range m {
		if n := len(s.Values); n > 0 {
			return float64(s.Values[n-1].Value)
		}
	}
	return math.NaN()
}

func isNumber(x float64) bool { return !math.IsNaN(x) }
