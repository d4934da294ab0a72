package replay

import (
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

func TestAPageIsWrittenWholeOrNotAtAll(t *testing.T) {
	fill := func(text string, end error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, end)
		}
	}
	path := filepath.Join(t.TempDir(), "page.html")
	p, err := checkPage(path)
	require.NoError(t, err)
	assert.NoFileExists(t, path, "only tried")
	require.ErrorContains(t, p.write(fill("half", errors.New("no more"))), path+": no more")
	assert.NoFileExists(t, path)
	require.NoError(t, p.write(fill("old", nil)))
	require.NoError(t, os.Chmod(path, 0o600))
	p, err = checkPage(path)
	require.NoError(t, err)
	require.Error(t, p.write(fill("half", errors.New("no more"))))
	assertPage(t, path, "old")
	require.NoError(t, p.write(fill("new", nil)))
	assertPage(t, path, "new")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode(), "as it was")

	link := filepath.Join(filepath.Dir(path), "link.html")
	require.NoError(t, os.Symlink(path, link))
	p, err = checkPage(link)
	require.NoError(t, err)
	require.NoError(t, p.write(fill("linked", nil)))
	assertPage(t, path, "linked")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 2, "nothing temporary")
}

func assertPage(t *testing.T, path, text string) {
	t.Helper()
	read, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, text, string(read))
}

func TestProgressSaysPercentAndTimeLeft(t *testing.T) {
	at := replay.Progress{Policy: "hybrid", Startup: time.Minute, Done: 1, Total: 4, Part: 0.25}
	assert.Equal(t, " 25 %  1 of 4 runs done, 30s left", describe(at, 10*time.Second))
	at.Part = 0
	assert.Equal(t, "  0 %  1 of 4 runs done", describe(at, time.Second), "too early to tell")
}

func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{"90": 90 * time.Second, "1h30m": 90 * time.Minute, "0": 0, "250ms": 250 * time.Millisecond} {
		var d time.Duration
		require.NoError(t, (*span)(&d).Set(text))
		assert.Equal(t, want, d)
	}
	var all []time.Duration
	require.NoError(t, (*spans)(&all).Set("30s, 120"))
	assert.Equal(t, "[30s 2m0s]", fmt.Sprint(all))
	require.Error(t, (*spans)(&all).Set("30s,"))
}

// The page says who wins, and how to make it again; what may be secret is not in it.
func TestThePageSaysHowItWasMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	out, _, err := run(t.Context(), with("--policy", "static:2,hpa:rps=3,down=60s", "--seed", "7", "--token", "very-secret", "--namespace", "my chat", "--html", path)...)
	require.NoError(t, err)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	text := html.UnescapeString(string(page))
	_, text, _ = strings.Cut(text, "<body>")
	made := regexp.MustCompile("<code>(.*)</code>").FindAllStringSubmatch(text, -1)
	require.Len(t, made, 2)
	assert.Equal(t, "kubectl wva replay --trace=synthetic:step --duration=2m --policy=static:2,hpa:rps=3,down=60s --seed=7 --namespace='my chat' --html="+path, made[0][1])
	assert.Equal(t, "seed 7, kubectl wva of no release", made[1][1])
	assert.NotContains(t, string(page), "very-secret")
	assert.Regexp(t, `<p class="headline">hpa:rps=3,down=60s `, text)
	assert.Contains(t, out, "\nhpa:rps=3,down=60s ", "the table says it too")
}

func TestWordsForAShell(t *testing.T) {
	for word, want := range map[string]string{"a.csv": "a.csv", "": "''", "it's": `'it'\''s'`, "a b": "'a b'", "hpa:rps=3,down=60s": "hpa:rps=3,down=60s"} {
		assert.Equal(t, want, quoted(word))
	}
}
