package past

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/prometheus"
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
	Pods []PodPast
	// Input and Output are how long requests were.
	Input, Output Tail
}

// Tail is the 99th percentile of a length, and one that none exceeded; NaN where nobody
// knows it.
type Tail struct{ P99, Most float64 }

// PodPast is what one pod showed.
type PodPast struct {
	Pod types.NamespacedName
	// Steps are those of the span, of which the first begins at From.
	Steps []PodStep
	// KVTokens is the size of its KV cache; 0 means unknown.
	KVTokens float64
}

// PodStep is what a pod showed in one step.
type PodStep struct {
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

// LookBack looks back with a number of range queries that does not depend on how long the
// span is, nor on how many pods there were. A span without any pod is no error.
func LookBack(ctx context.Context, c *prometheus.Client, s Span) (*History, error) {
	asked := queriesOf(s)
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
				answers[i], err = c.Range(ctx, q.about, q.promQL, r)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	p := looking{Span: s, pods: map[types.NamespacedName]*PodPast{}}
	for i, q := range asked {
		q.add(&p, answers[i])
	}
	return p.history(), nil
}

// What a query is about.
const (
	served       = "completed requests"
	running      = "running requests"
	waiting      = "waiting requests"
	cacheBlocks  = "blocks of the KV cache"
	cacheTokens  = "tokens of the KV cache"
	inputTokens  = "input tokens"
	outputTokens = "output tokens"
	firstToken   = "time to first token"
	interToken   = "time between tokens"
)

// query is one range query and what becomes of its answer. What it is about appears in errors.
type query struct {
	about, promQL string
	// end says that only the last instant is asked for.
	end bool
	add func(*looking, model.Matrix)
}

func queriesOf(s Span) []query {
	steps := prometheus.StepsOf(s.Step, s.Model, s.Namespace)
	last := func(q modelserver.Quantity, suffix string) string { return steps.Over("last_over_time", q, suffix) }
	mean := func(q modelserver.Quantity) string { return steps.Over("avg_over_time", q, "") }
	growth := func(counter bool, to func(*PodStep) *float64) func(*looking, model.Matrix) {
		return func(p *looking, m model.Matrix) { p.grow(m, counter, to) }
	}
	all := []query{
		{served, last(modelserver.Completed, ""), false, growth(true, func(s *PodStep) *float64 { return &s.Completed })},
		{running, last(modelserver.Running, ""), false, growth(false, func(s *PodStep) *float64 { return &s.InFlight })},
		{waiting, last(modelserver.Waiting, ""), false, growth(false, func(s *PodStep) *float64 { return &s.InFlight })},
		{running, mean(modelserver.Running), false, func(p *looking, m model.Matrix) { p.mean(m, func(s *PodStep) *float64 { return &s.Running }) }},
		{waiting, mean(modelserver.Waiting), false, func(p *looking, m model.Matrix) { p.mean(m, func(s *PodStep) *float64 { return &s.Waiting }) }},
		{cacheBlocks, steps.EqualCaches(), false, (*looking).blocks},
		{cacheTokens, last(modelserver.CacheTokens, ""), false, (*looking).tokens},
	}
	for _, h := range []struct {
		about    string
		quantity modelserver.Quantity
		to       func(*PodStep) *Mean
	}{
		{inputTokens, modelserver.Prompt, func(s *PodStep) *Mean { return &s.Input }},
		{outputTokens, modelserver.Generation, func(s *PodStep) *Mean { return &s.Output }},
		{firstToken, modelserver.FirstToken, func(s *PodStep) *Mean { return &s.FirstToken }},
		{interToken, modelserver.InterToken, func(s *PodStep) *Mean { return &s.InterToken }},
	} {
		all = append(all,
			query{h.about, last(h.quantity, "_sum"), false, growth(true, func(s *PodStep) *float64 { return &h.to(s).Sum })},
			query{h.about, last(h.quantity, "_count"), false, growth(true, func(s *PodStep) *float64 { return &h.to(s).Count })})
	}
	for _, t := range []struct {
		about    string
		quantity modelserver.Quantity
		quantile string
		to       func(*looking) *float64
	}{
		{inputTokens, modelserver.Prompt, "0.99", func(p *looking) *float64 { return &p.input.P99 }},
		{inputTokens, modelserver.Prompt, "1", func(p *looking) *float64 { return &p.input.Most }},
		{outputTokens, modelserver.Generation, "0.99", func(p *looking) *float64 { return &p.output.P99 }},
		{outputTokens, modelserver.Generation, "1", func(p *looking) *float64 { return &p.output.Most }},
	} {
		all = append(all, query{t.about, steps.Quantile(t.quantile, t.quantity, s.To.Sub(s.From)), true, func(p *looking, m model.Matrix) { *t.to(p) = lastOf(m) }})
	}
	return all
}

// looking is a history in the making.
type looking struct {
	Span
	pods          map[types.NamespacedName]*PodPast
	input, output Tail
}

// pod is that of a series; where nothing names a pod, its address does.
func (p *looking) pod(labels model.Metric) *PodPast {
	name, ok := prometheus.PodOf(labels)
	if !ok {
		name.Name = string(labels["instance"])
	}
	if p.pods[name] == nil {
		steps := make([]PodStep, p.instants()-1)
		for i := range steps {
			steps[i].Running, steps[i].Waiting = math.NaN(), math.NaN()
		}
		p.pods[name] = &PodPast{Pod: name, Steps: steps}
	}
	return p.pods[name]
}

// values are those of a series at the instants of the span; NaN where it has none.
func (p *looking) values(s *model.SampleStream) []float64 {
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
func (p *looking) grow(m model.Matrix, counter bool, to func(*PodStep) *float64) {
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
func (p *PodPast) see(values []float64, most int) {
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
func (p *looking) mean(m model.Matrix, to func(*PodStep) *float64) {
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
func (p *looking) blocks(m model.Matrix) {
	type engine struct {
		pod          *PodPast
		instance, id model.LabelValue
	}
	newest, tokens := map[engine]model.Time{}, map[engine]float64{}
	for _, s := range m {
		name, ok := prometheus.PodOf(s.Metric)
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
func (p *looking) tokens(m model.Matrix) {
	for _, s := range m {
		if n := len(s.Values); n > 0 && s.Values[n-1].Value > 0 {
			p.pod(s.Metric).KVTokens += float64(s.Values[n-1].Value)
		}
	}
}

func (p *looking) history() *History {
	h := &History{Input: p.input, Output: p.output}
	for _, pod := range p.pods {
		h.Pods = append(h.Pods, *pod)
	}
	slices.SortFunc(h.Pods, func(a, b PodPast) int {
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
