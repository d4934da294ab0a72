package report_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"as it is":               {"meta-llama/Llama größe لاما", "meta-llama/Llama größe لاما"},
		"a screen that is wiped": {"a\x1b[2Jb", `a\x1b[2Jb`},
		"a title of the window":  {"\x1b]0;owned\a", `\x1b]0;owned\a`},
		"a C1 code":              {"a\u009b31mb", `a\u009b31mb`},
		"a forged row":           {"llama\nweb  Ready", `llama\nweb  Ready`},
		"a forged column":        {"llama\tReady", `llama\tReady`},
		"a line that is overwritten": {
			"llama\rREADY", `llama\rREADY`,
		},
		"writing turned round":   {"a\u202egpj.exe", `a\u202egpj.exe`},
		"nothing to be seen":     {"a\u200bb\ufeff\u2028", `a\u200bb\ufeff\u2028`},
		"no character at all":    {"a\xffb\x9b", `a\xffb\x9b`},
		"the replacement itself": {"a\ufffdb", "a\ufffdb"},
		"a zero byte":            {"a\x00b", `a\x00b`},
	} {
		assert.Equal(t, c.want, report.Printable(c.text), name)
	}
}

// Whatever bytes a text has: what is shown is one line without a character that acts, and a text
// without one is shown as it is.
func TestWhatIsShownNeverActsOnATerminal(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "m", "[", "0", "31", ";", "\x1b", "\x1b[31m", "\x1b[2J", "\n", "\r", "\t", "\x00", "\u009b", "\u202e", "\u2066", "\u200b", "\xff", "é", "\x07"}
	for range 20_000 {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		text := b.String()
		shown := report.Printable(text)
		for _, r := range shown {
			assert.False(t, unicode.IsControl(r) || unicode.Is(unicode.Cf, r), "%q is shown as %q", text, shown)
		}
		assert.True(t, utf8.ValidString(shown), "%q", text)
		assert.Equal(t, shown, report.Printable(shown), "what is shown stays as it is")
		// Lines lose their colours, breaks and tabs, and nothing else.
		left := report.PrintableLines(text)
		for _, ours := range []string{"\x1b[31m", "\x1b[0m", "\n", "\t"} {
			left = strings.ReplaceAll(left, ours, "")
		}
		assert.Equal(t, left, report.Printable(left), "%q", text)
	}
}

func TestLinesKeepOurColours(t *testing.T) {
	t.Parallel()
	style := report.Style{Color: true}
	text := style.Title("a") + "\n" + style.Bad("b") + "\tc"
	assert.Equal(t, text, report.PrintableLines(text))
	assert.Equal(t, `\x1b[5mblinks\x1b[8;31mhides`, report.PrintableLines("\x1b[5mblinks\x1b[8;31mhides"))
}
