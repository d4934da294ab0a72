package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// blockInterval is how often the state is printed when there is no terminal to
// refresh it on.
const blockInterval = 10 * time.Second

// terminal shows progress and the state: in place on a terminal that is large
// enough, as plain lines elsewhere.
type terminal struct {
	out io.Writer
	// size is the columns and rows of the terminal; false without one.
	size    func() (columns, rows int, known bool)
	inPlace bool
	style   report.Style
	// drawn is the number of lines of the last picture.
	drawn int
	// printed is the number of decisions that were printed as lines.
	printed   int
	lastBlock time.Time
}

// newTerminal looks at what the output is. NO_COLOR and TERM=dumb are respected.
func newTerminal(out io.Writer) *terminal {
	t := &terminal{out: out, size: func() (int, int, bool) { return 0, 0, false }}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return t
	}
	t.style.Color = os.Getenv("NO_COLOR") == ""
	t.size = func() (int, int, bool) {
		columns, rows, err := term.GetSize(int(file.Fd()))
		return columns, rows, err == nil
	}
	t.fit()
	return t
}

// neededRows is the height of a picture with five decisions of two lines each.
const neededRows = 24

// fit looks at the size of the terminal, which may change at any time. A picture
// that does not fit cannot be refreshed in place.
func (t *terminal) fit() {
	columns, rows, known := t.size()
	t.inPlace = known && columns >= report.DefaultWidth && rows >= neededRows
	t.style.Width = columns
}

// write shows text. When nobody reads it any more, the demo goes on for its report.
func (t *terminal) write(text string) { _, _ = io.WriteString(t.out, text) }

func (t *terminal) println(lines ...string) {
	t.drawn = 0
	for _, line := range lines {
		t.write(line + "\n")
	}
}

// step does something and says how long it took, unless it failed.
func (t *terminal) step(what string, do func() error) error {
	start := time.Now()
	if t.inPlace {
		t.write(fmt.Sprintf("  %-46s ...", what))
	}
	err := do()
	if t.inPlace {
		t.write("\r\x1b[K")
	}
	if err == nil {
		t.took(what, time.Since(start))
	}
	return err
}

// took says how long something took.
func (t *terminal) took(what string, d time.Duration) {
	t.println(fmt.Sprintf("  %-46s %5.1f s", what, d.Seconds()))
}

// draw shows the state.
func (t *terminal) draw(l report.Live) {
	t.fit()
	if !t.inPlace {
		t.drawn = 0
		t.drawLines(l)
		return
	}
	lines := l.Table(t.style)
	var b strings.Builder
	if t.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", t.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r\x1b[K" + line + "\n")
	}
	b.WriteString("\x1b[J")
	t.drawn = len(lines)
	t.write(b.String())
}

// drawLines prints every decision once and the state now and then.
func (t *terminal) drawLines(l report.Live) {
	for ; t.printed < len(l.Decisions); t.printed++ {
		t.println("decision" + l.Decisions[t.printed].String())
	}
	if time.Since(t.lastBlock) < blockInterval {
		return
	}
	t.lastBlock = time.Now()
	t.println(l.Block()...)
}
