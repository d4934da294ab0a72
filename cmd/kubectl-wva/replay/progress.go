package replay

import (
	"fmt"
	"io"
	"time"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// progress is a line on a terminal that says how far the work is.
type progress struct {
	out   io.Writer
	width int
	// start is when the first run began, and last when the line was drawn.
	start, last time.Time
	drawn       bool
}

// The line changes this often, and says a time only when it has seen enough of one.
const (
	drawEvery   = 200 * time.Millisecond
	enoughToSay = 0.005
)

// preparing is the line until the first run has begun.
const preparing = "reading the trace and working out the bound"

func newProgress(out io.Writer) *progress {
	style, ok := output.StyleOf(out)
	if !ok {
		return nil
	}
	return &progress{out: output.Plain(out), width: style.Width}
}

// show draws the line, if it is time to.
func (p *progress) show(at replay.Progress) {
	if p == nil {
		return
	}
	if p.start.IsZero() {
		p.start = time.Now()
	}
	if time.Since(p.last) >= drawEvery {
		p.draw(describe(at, time.Since(p.start)))
	}
}

// wait draws the line while nothing has begun.
func (p *progress) wait() {
	if p != nil && p.start.IsZero() && !p.drawn {
		p.draw(preparing)
	}
}

func (p *progress) draw(text string) {
	p.last, p.drawn = time.Now(), true
	line := []rune(text)
	if p.width > 1 && len(line) >= p.width {
		line = line[:p.width-1]
	}
	_, _ = fmt.Fprintf(p.out, "\r%s\x1b[K", string(line))
}

// describe is the line. Several runs go on side by side, so it names none.
func describe(at replay.Progress, elapsed time.Duration) string {
	left := ""
	if at.Part > enoughToSay {
		d := time.Duration(float64(elapsed) * (1 - at.Part) / at.Part)
		left = ", " + report.Duration(d.Round(time.Second)) + " left"
	}
	return fmt.Sprintf("%3.0f %%  %d of %d runs done%s", 100*at.Part, at.Done, at.Total, left)
}

// end clears the line.
func (p *progress) end() {
	if p != nil && p.drawn {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}
