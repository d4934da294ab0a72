package replay

import (
	"fmt"
	"io"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// progress is a line on a terminal that says how far the work is.
type progress struct {
	out   io.Writer
	width int
	start time.Time
	last  time.Time
	drawn bool
}

// The line changes this often, and says a time only when it has seen enough of one.
const (
	drawEvery   = 200 * time.Millisecond
	enoughToSay = 0.02
)

func newProgress(out io.Writer) *progress {
	style, ok := terminalOf(out)
	if !ok {
		return nil
	}
	now := time.Now()
	return &progress{out: out, width: style.Width, start: now, last: now}
}

// show draws the line, if it is time to.
func (p *progress) show(at replay.Progress) {
	if p == nil || time.Since(p.last) < drawEvery {
		return
	}
	p.last = time.Now()
	line := []rune(describe(at, time.Since(p.start)))
	if p.width > 1 && len(line) >= p.width {
		line = line[:p.width-1]
	}
	_, _ = fmt.Fprintf(p.out, "\r%s\x1b[K", string(line))
	p.drawn = true
}

// describe is the line.
func describe(at replay.Progress, elapsed time.Duration) string {
	left := ""
	if at.Part > enoughToSay {
		d := time.Duration(float64(elapsed) * (1 - at.Part) / at.Part)
		left = ", " + brief(d.Round(time.Second)) + " left"
	}
	return fmt.Sprintf("%3.0f %%  %d of %d runs done, now %s with %s start-up%s",
		100*at.Part, at.Done, at.Total, at.Policy, brief(at.Startup), left)
}

// end clears the line.
func (p *progress) end() {
	if p != nil && p.drawn {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}
