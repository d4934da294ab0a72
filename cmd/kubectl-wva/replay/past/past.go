package past

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

const (
	// step is the time between two values of a series, and mostSteps how many Prometheus
	// gives of one with room to spare: its limit is 11,000.
	step      = time.Minute
	mostSteps = 10_000
	// shortest is the least time from which anything follows.
	shortest = 5 * step
	// patience bounds a query.
	patience = 2 * time.Minute
)

// Options say what is looked back at, and where.
type Options struct {
	// Address is that of Prometheus. TokenFile and CAFile are empty where it needs none.
	Address, TokenFile, CAFile string
	// Model is the name by which the servers call the model, and Namespace theirs; empty
	// means all.
	Model, Namespace string
	// Last is how far back to look from Now.
	Last time.Duration
	Now  time.Time
}

// Check says what is wrong with the address and the time, in the words of the command line.
func (o Options) Check() error {
	u, err := url.Parse(o.Address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("--from-prometheus is no address: expected one such as http://localhost:9090")
	case u.User != nil:
		return errors.New("--from-prometheus has credentials in it: expected an address without, and a token in a file (--prometheus-token-file)")
	case o.Model == "":
		return errors.New("--model is missing: expected the name by which clients ask for the model, as the label model_name of vLLM's metrics has it")
	case o.Last < shortest || o.Last > workload.LongestTrace:
		return fmt.Errorf("--last is %s: expected from %s to %s", report.Duration(o.Last), report.Duration(shortest), report.Duration(workload.LongestTrace))
	}
	return nil
}

// Past is what the servers of a model counted.
type Past struct {
	Options
	// From is the beginning of the first interval, and Step how long each is.
	From time.Time
	Step time.Duration
	// Notes say what is not as one would expect.
	Notes []string

	intervals []workload.Interval
	history   *History
}

// Read reads them.
func Read(ctx context.Context, o Options) (*Past, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	client, err := prometheus.New(prometheus.Options{Address: o.Address, AllowHTTP: true, TokenFile: o.TokenFile, CAFile: o.CAFile, Timeout: patience})
	if err != nil {
		return nil, fmt.Errorf("--from-prometheus: %w", err)
	}
	p := &Past{Options: o, Step: step}
	for o.Last/p.Step > mostSteps {
		p.Step += step
	}
	to := o.Now.Truncate(p.Step)
	p.From = to.Add(-o.Last.Truncate(p.Step))
	p.history, err = LookBack(ctx, client, Span{Model: o.Model, Namespace: o.Namespace, From: p.From, To: to, Step: p.Step})
	if err != nil {
		return nil, fmt.Errorf("--from-prometheus: %w", err)
	}
	return p, p.count()
}

// where says what was looked for.
func (p *Past) where() string {
	if p.Namespace == "" {
		return fmt.Sprintf("model_name=%q", p.Model)
	}
	return fmt.Sprintf("model_name=%q and namespace=%q", p.Model, p.Namespace)
}

// count makes intervals of what the pods counted, from when they are first seen until they
// are last.
func (p *Past) count() error {
	first, last, silent := -1, -1, 0
	var all []workload.Interval
	for i := range p.steps() {
		var in, out Mean
		interval := workload.Interval{}
		seen := false
		for k := range p.history.Pods {
			s := &p.history.Pods[k].Steps[i]
			interval.Arrived += s.Completed + s.InFlight
			in.Sum, in.Count = in.Sum+s.Input.Sum, in.Count+s.Input.Count
			out.Sum, out.Count = out.Sum+s.Output.Sum, out.Count+s.Output.Count
			seen = seen || s.Seen || s.Completed > 0
		}
		interval.Input, interval.Output = in.Value(), out.Value()
		all = append(all, interval)
		if seen && first < 0 {
			first = i
		}
		if seen {
			last = i
		} else if first >= 0 {
			silent++
		}
	}
	if first < 0 {
		return fmt.Errorf("--from-prometheus: there are no series of vLLM or SGLang with %s in the last %s: see with the query vllm:request_success_total what the labels are, and that Prometheus scrapes the servers",
			p.where(), report.Duration(p.Last))
	}
	silent -= len(all) - 1 - last
	p.From = p.From.Add(time.Duration(first) * p.Step)
	p.intervals = all[first : last+1]
	known := time.Duration(len(p.intervals)) * p.Step
	if missing := p.Last.Truncate(p.Step) - known; missing > 0 {
		p.note("the metrics of the model cover %s of the last %s, from %s on; that is what is replayed", report.Duration(known), report.Duration(p.Last), p.From.UTC().Format(time.RFC3339))
	}
	if silent > 0 {
		p.note("for %s within that time no server of the model was there or was scraped; nothing is taken to have arrived then", report.Duration(time.Duration(silent)*p.Step))
	}
	return nil
}

func (p *Past) steps() int {
	if len(p.history.Pods) == 0 {
		return 0
	}
	return len(p.history.Pods[0].Steps)
}

func (p *Past) note(format string, arguments ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, arguments...))
}

// Stream are the requests: as many in each interval as were counted, with the lengths that
// were summed up there. The seed decides when in its interval each arrives, and how lengths
// vary.
func (p *Past) Stream(seed uint64) (workload.Stream, error) {
	h := workload.History{Step: p.Step, Intervals: p.intervals, Seed: seed}
	var varied [2]bool
	var input, output Mean
	for k := range p.history.Pods {
		for i := range p.history.Pods[k].Steps {
			s := &p.history.Pods[k].Steps[i]
			input.Sum, input.Count = input.Sum+s.Input.Sum, input.Count+s.Input.Count
			output.Sum, output.Count = output.Sum+s.Output.Sum, output.Count+s.Output.Count
		}
	}
	h.Input, varied[0] = lengths(input.Value(), p.history.Input)
	h.Output, varied[1] = lengths(output.Value(), p.history.Output)
	if !varied[0] || !varied[1] {
		p.note("the buckets of the lengths are not known, so all requests of an interval are as long as their mean: see that Prometheus keeps vllm:request_prompt_tokens_bucket and vllm:request_generation_tokens_bucket")
	}
	stream, err := workload.NewHistory(h)
	if err != nil {
		return nil, fmt.Errorf("--from-prometheus: %s: %w: see that Prometheus keeps vllm:request_prompt_tokens_sum and _count, and those of vllm:request_generation_tokens", p.where(), err)
	}
	return stream, nil
}

// lengths are how requests vary around their mean, by the 99th percentile; false where
// nobody knows it.
func lengths(mean float64, tail Tail) (workload.Lengths, bool) {
	if !(mean >= 1) || !(tail.P99 > 0) || !(tail.Most > 0) || math.IsInf(tail.Most, 1) {
		return workload.Lengths{}, false
	}
	return workload.LengthsOf(mean, tail.P99, int(math.Ceil(max(tail.Most, mean)))), true
}
