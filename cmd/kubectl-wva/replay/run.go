package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// job is a replay, checked.
type job struct {
	*options
	scenario *replay.Scenario
	source   replay.Source
	// asItIs has counted the requests of the trace once the source has been read, if they
	// are multiplied.
	asItIs workload.Dispersion
	// page is where the page goes; nil means nowhere. made are the lines in it that say how.
	page     *page
	made     []string
	out, err io.Writer
}

// performed is what a replay gave.
type performed struct {
	results    []replay.Result
	recordings []replay.Recording
	err        error
}

func (j *job) run(ctx context.Context) error {
	style, terminal := output.StyleOf(j.out)
	chart := terminal && j.output == outputs[0]
	done := j.perform(ctx, j.page != nil || chart)
	if done.err != nil {
		return done.err
	}
	if j.page != nil {
		err := j.page.write(func(w io.Writer) error {
			return report.HTMLOfReplay(w, report.About{Title: j.title(), Share: j.scenario.Policy.Share, Made: j.made}, done.results, done.recordings)
		})
		if err != nil {
			return err
		}
	}
	if j.output == "json" {
		return j.writeJSON(done.results)
	}
	// The table comes last, where it is seen without scrolling.
	var lines []string
	if chart {
		lines = append(report.ReplayChart(done.results, done.recordings, style, style.Width), "")
	}
	lines = append(lines, style.Title(j.title()))
	lines = append(lines, report.ReplayDispersion(done.results)...)
	lines = append(lines, report.ReplayTable(done.results, style)...)
	lines = append(lines, report.ReplayHeadline(done.results, j.scenario.Policy.Share, style)...)
	if _, err := fmt.Fprintln(j.out, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// perform replays in the background, so that Ctrl-C ends the command at once, whatever
// the replay is at.
func (j *job) perform(ctx context.Context, record bool) performed {
	shown := newProgress(j.err)
	defer shown.end()
	ended, told := make(chan performed, 1), make(chan replay.Progress, 1)
	go func() {
		var p performed
		p.results, p.recordings, p.err = replay.Run(replay.Options{
			Scenario: j.scenario, Source: j.source, Trace: &j.asItIs, Policies: j.policies, Startups: j.startups, Seed: j.seed,
			Workers: runtime.GOMAXPROCS(0), Record: record,
			Progress: func(at replay.Progress) {
				select {
				case told <- at:
				default:
				}
			},
			Stop: func() bool { return ctx.Err() != nil },
		})
		ended <- p
	}()
	slow := time.NewTimer(drawEvery)
	defer slow.Stop()
	for {
		select {
		case <-slow.C:
			shown.wait()
		case <-ctx.Done():
			return performed{err: ErrInterrupted}
		case at := <-told:
			shown.show(at)
		case p := <-ended:
			return p
		}
	}
}

// title says what was replayed.
func (j *job) title() string {
	parts := []string{filepath.Base(j.trace)}
	if j.trace == "" {
		parts[0] = "its own requests"
	}
	if j.rate != 1 {
		parts[0] += fmt.Sprintf(" x %v", j.rate)
	}
	if j.rate > 1 && j.spread != workload.DefaultSpread {
		parts[0] += " spread over " + report.Duration(j.spread)
	}
	if j.from > 0 {
		parts = append(parts, "from "+report.Duration(j.from))
	}
	if j.duration > 0 {
		parts = append(parts, report.Duration(j.duration))
	}
	if j.scenario.Learning > 0 {
		parts = append(parts, "the first "+report.Duration(j.scenario.Learning)+" not counted")
	}
	if j.scenario.Name != "" {
		parts = append(parts, j.scenario.Name)
	}
	if j.options.cluster != "" {
		parts = append(parts, "cluster "+j.options.cluster)
	}
	if j.scenario.Prices != "" {
		parts = append(parts, "prices "+j.scenario.Prices)
	}
	return strings.Join(parts, ", ")
}

// writeJSON writes a list.
func (j *job) writeJSON(results any) error {
	encoder := json.NewEncoder(output.Plain(j.out))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(results); err != nil {
		return fmt.Errorf("writing the results as JSON: %w", err)
	}
	return nil
}
