package demo

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

func TestOutputThatIsNoTerminalGetsPlainLines(t *testing.T) {
	var out bytes.Buffer
	screen := newTerminal(&out)
	failure := errors.New("failure")
	assert.Equal(t, failure, screen.step("something", func() error { return failure }))
	assert.Empty(t, out.String(), "what failed did not take its time")
	assert.NoError(t, screen.step("something", func() error {
		assert.Empty(t, out.String(), "a line comes when it is done")
		return nil
	}))
	assert.Contains(t, out.String(), "something")
	first := report.Decision{T: 1, Variant: "v", From: 1, To: 2, Reason: "Saturated"}
	screen.draw(report.Live{Phase: "traffic"})
	screen.draw(report.Live{Phase: "traffic", Decisions: []report.Decision{first}})
	screen.draw(report.Live{Phase: "traffic", Decisions: []report.Decision{first}})
	assert.NotContains(t, out.String(), "\x1b")
	assert.Equal(t, 1, strings.Count(out.String(), "Saturated"), "every decision once")
	assert.Equal(t, 1, strings.Count(out.String(), "0:00 of 0:00"), "the state only now and then")
}

func TestATerminalIsRefreshedInPlace(t *testing.T) {
	const up = "\x1b\\[[0-9]+A"
	var out bytes.Buffer
	rows := neededRows
	screen := &terminal{out: &out, size: func() (int, int, bool) { return report.DefaultWidth, rows, true }}
	screen.draw(report.Live{Phase: "one"})
	lines := strings.Count(out.String(), "\n")
	assert.NotRegexp(t, up, out.String(), "nothing to go back over yet")
	out.Reset()
	screen.draw(report.Live{Phase: "two"})
	assert.Regexp(t, up, out.String(), "back over the last picture")
	assert.Equal(t, lines, screen.drawn)
	screen.println("below")
	out.Reset()
	screen.draw(report.Live{Phase: "three"})
	assert.NotRegexp(t, up, out.String(), "what was printed stays")
	assert.Contains(t, out.String(), "three")

	out.Reset()
	rows--
	screen.draw(report.Live{Phase: "four"})
	assert.NotContains(t, out.String(), "\x1b", "a terminal that became too small gets lines")
}
