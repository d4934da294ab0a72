package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// run starts everything, sends the traffic, reports, and ends everything.
func run(ctx context.Context, p plan, out io.Writer) error {
	ctx, fail := context.WithCancelCause(ctx)
	s := &stack{plan: p, terminal: newTerminal(out), page: &broadcast{}, fail: fail}
	err := s.run(ctx)
	return errors.Join(err, s.terminal.step("stopping everything", s.stop), s.page.close())
}

func (s *stack) run(ctx context.Context) error {
	p, t := s.plan, s.terminal
	if err := s.page.serve(ctx, p); err != nil {
		return err
	}
	t.println(p.opening(), "Watch it live: "+s.page.url(), "")
	t.println(t.style.Title("Starting a cluster with " + summaryOfNodes()))
	if err := s.start(ctx); err != nil {
		return causeOf(ctx, err)
	}
	t.println("")
	t.println(modeLine(p.Mode), "")
	t.println(trafficLines(p)...)
	r := &traffic{stack: s}
	if err := r.play(ctx); err != nil {
		return r.partial(ctx, err)
	}
	observation := r.observation()
	s.page.showState(observation, "The traffic is over. The same traffic is run again in virtual time, for comparison.", false)
	if err := p.compare(&observation); err != nil {
		return err
	}
	demo := report.New(observation)
	if err := writeReport(p.Report, demo.WriteJSON); err != nil {
		return err
	}
	if err := writePage(p.ReportHTML, observation); err != nil {
		return err
	}
	s.page.showState(observation, "The run is over. This page is kept in "+p.ReportHTML+".", true)
	t.println("")
	t.println(demo.Summary(t.style, schedulerName)...)
	t.println(s.stackLine()...)
	t.println("")
	t.println(demo.Shown(t.style, schedulerName)...)
	t.println("")
	t.println(p.nextSteps(t.style)...)
	t.println("")
	if p.Keep {
		if err := s.linger(ctx); err != nil {
			return err
		}
	}
	return verdict(demo)
}

// opening says what one is about to see.
func (p plan) opening() string {
	text := "You will see two language models under a load that rises and falls: the autoscaler adds and\n" +
		"removes their replicas, and the scheduler puts each one on a node with the right GPUs."
	if len(p.models) == 1 {
		text = strings.NewReplacer("two language models", "a language model", "their", "its").Replace(text)
	}
	return text
}

// nextSteps say where to look after the run.
func (p plan) nextSteps(style report.Style) []string {
	return []string{
		style.Title("Where to look next"),
		"  the page    " + p.ReportHTML + ": step through the run; every decision with its reason",
		"  the data    " + p.Report,
		"  your load   bin/kubectl-wva replay --help, docs/tasks/try-before-you-buy.md: no cluster needed",
		"  your vLLM   docs/quickstart.md: adopt a Deployment that serves today",
	}
}

// compare adds what others do with the same traffic in virtual time, and the bound.
func (p plan) compare(o *report.Observation) error {
	compared, err := p.comparisons()
	if err != nil {
		return fmt.Errorf("comparing with a HorizontalPodAutoscaler: %w", err)
	}
	bounds, err := p.bounds()
	if err != nil {
		return fmt.Errorf("the bound for the page: %w", err)
	}
	for i := range o.Models {
		o.Models[i].Comparison, o.Models[i].Bound = &compared[i], bounds[i]
	}
	return nil
}

// causeOf prefers why the context ended to the errors that its end made.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func verdict(demo report.Demo) error {
	if wrong := demo.Misplaced(schedulerName); len(wrong) > 0 {
		return fmt.Errorf("%d pods are on the wrong accelerator or were not placed by %s", len(wrong), schedulerName)
	}
	return nil
}

func summaryOfNodes() string {
	text := ""
	for i, g := range nodeGroups {
		if i > 0 {
			text += ", "
		}
		if g.Shape.GPUs == 0 {
			text += fmt.Sprintf("%d nodes without GPUs", g.Count)
			continue
		}
		text += fmt.Sprintf("%d nodes of %d %s", g.Count, g.Shape.GPUs, g.Accelerator)
	}
	return text
}

// modeLine says how the autoscaler sizes.
func modeLine(mode string) string {
	if mode == modeCapacityOnly {
		return "The autoscaler sizes by saturation alone (mode capacity-only)."
	}
	return "The autoscaler sizes for the SLO too (mode hybrid)."
}

// trafficLines say what is sent, one line per model.
func trafficLines(p plan) []string {
	lines := []string{fmt.Sprintf("Traffic for %s, then %s without:", report.Duration(p.Duration), report.Duration(p.Tail))}
	for i, m := range p.models {
		what := fmt.Sprintf("synthetic, up to %.0f req/s", peak(m))
		if i == 0 && p.Trace != "" {
			what = fmt.Sprintf("%d requests in %s, every one of the trace %g times", p.trace.requests, report.Duration(p.trace.last.Round(time.Second)), p.Rate)
		}
		lines = append(lines, fmt.Sprintf("  %-38s %s", m.ID, what))
	}
	return append(lines, "")
}

func writeReport(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return fmt.Errorf("writing the report %s: %w", path, err)
	}
	return nil
}

// writePage writes the page of a run.
func writePage(path string, o report.Observation) error {
	return writeReport(path, func(w io.Writer) error { return report.DemoHTML(w, o) })
}

// linger leaves everything running until Ctrl-C.
func (s *stack) linger(ctx context.Context) error {
	kubectl := "  kubectl --kubeconfig " + s.cluster.Kubeconfig()
	requests := []string{"  requests:   " + s.routerURL + "/v1/completions"}
	if s.stackURL != "" {
		requests = append(requests, "  through Llama Stack: "+s.stackURL+"/v1/completions", kubectl+" get llsd -A")
	}
	s.terminal.println(
		s.terminal.style.Title("Everything is left running. Ctrl-C stops it."),
		"  KUBECONFIG="+s.cluster.Kubeconfig(),
		"  Prometheus: "+s.cluster.PrometheusURL(),
	)
	s.terminal.println(requests...)
	s.terminal.println(
		"", "Try:",
		kubectl+" get va -A",
		kubectl+" describe va -n "+namespace+" "+s.plan.models[0].Variants[0].Name,
		kubectl+" get events -n "+namespace,
		kubectl+" get deploy,pods -n "+namespace+" -o wide",
		"")
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, errInterrupted) {
		return cause
	}
	return nil
}

// partial shows what there is of a run that was interrupted or that failed, and writes its
// page.
func (r *traffic) partial(ctx context.Context, err error) error {
	err = causeOf(ctx, err)
	t := r.stack.terminal
	at := report.Clock(r.end.Sub(r.start))
	observation := r.observation()
	written := writePage(r.stack.plan.ReportHTML, observation)
	r.stack.page.showState(observation, "The run ended early. This page is kept in "+r.stack.plan.ReportHTML+".", true)
	t.println("", fmt.Sprintf("Ended early, %s after the start of the traffic. Requests in flight are left out; no report is written.", at))
	t.println(report.New(observation).Summary(t.style, schedulerName)...)
	if written == nil {
		t.println("the page, as far as it went: " + r.stack.plan.ReportHTML)
	}
	t.println("")
	return errors.Join(err, written)
}
