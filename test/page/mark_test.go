package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/page"
)

// runners are the packages that run the blocks of a mark, and the name that each knows the
// mark by.
var runners = map[string]struct{ folder, constant string }{
	page.Alone:          {"cmd/kubectl-wva", "page.Alone"},
	page.OnCluster:      {"test/integration/kubectl", "page.OnCluster"},
	page.WithTools:      {"test/chart/install", "page.WithTools"},
	page.OnEarlierKind:  {"test/chart/install", "page.OnEarlierKind"},
	page.OnEmptyCluster: {"test/chart/install", "page.OnEmptyCluster"},
	page.Printed:        {"cmd/kubectl-wva", "page.Printed"},
}

// excuses are the only reasons for which no test runs a block, and the only commands that
// each is a reason for.
var excuses = map[string]*regexp.Regexp{
	"not run: the tests themselves":                      regexp.MustCompile(`^make( test| verify| update)?( +#.*)?$`),
	"not run: the demo has tests of its own":             regexp.MustCompile(`^make demo$`),
	"not run: it needs Docker":                           regexp.MustCompile(`^make image `),
	"not run: it needs a tagged commit":                  regexp.MustCompile(`^make release `),
	"not run: a pod of a local cluster has no ports":     regexp.MustCompile(`^kubectl port-forward `),
	"not run: three minutes of requests must come first": regexp.MustCompile(`^kubectl wva replay --from-prometheus "\$PROMETHEUS_BASE_URL" `),
}

// languages are those that a block may have. Commands are in sh alone.
var languages = []string{"sh", "yaml", "text", "promql"}

// marked says what is wrong with a block's mark.
func marked(b page.Block) error {
	if !slices.Contains(languages, b.Language) {
		return fmt.Errorf("the language of the block is %q: expected one of %v", b.Language, languages)
	}
	commands := b.Commands()
	if b.Language == "sh" && len(commands) == 0 {
		return fmt.Errorf("the block has no command")
	}
	mark, _, _ := strings.Cut(b.Mark, " until ")
	_, known := runners[mark]
	excuse, excused := excuses[b.Mark]
	switch {
	case b.Language != "sh" && b.Mark != "" && (b.Language != "text" || b.Mark != page.Printed):
		return fmt.Errorf("the mark %q stands before a block of %s, which nobody runs", b.Mark, b.Language)
	case b.Language == "text":
		return hidden(b.Text)
	case b.Language != "sh":
		return nil
	case mark != b.Mark && mark != page.OnEmptyCluster, b.Mark == page.Printed:
		return fmt.Errorf("the mark %q is none of a block of sh", b.Mark)
	case known:
		return nil
	case !excused:
		return fmt.Errorf("the mark is %q: no test runs the block, and that is none of the known reasons", b.Mark)
	}
	for _, command := range commands {
		if !excuse.MatchString(command) {
			return fmt.Errorf("%q is no reason for %q", b.Mark, command)
		}
	}
	return nil
}

// hidden finds a command in text that is not run.
func hidden(text string) error {
	for line := range strings.Lines(text) {
		words := strings.Fields(strings.TrimPrefix(line, "$ "))
		if len(words) < 2 || strings.HasPrefix(line, " ") {
			continue
		}
		if _, ok := programs[words[0]]; ok {
			return fmt.Errorf("%q is a command: put it into a block of sh", strings.TrimSpace(line))
		}
	}
	return nil
}

// Each block of commands is run by a test, or says why none can.
func TestEveryBlockIsRunOrExcused(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range pages(t) {
		for _, block := range p.Blocks {
			assert.NoError(t, marked(block), block.Place)
			mark, _, _ := strings.Cut(block.Mark, " until ")
			used[mark] = true
		}
		for _, remark := range p.Remarks {
			word, _, _ := strings.Cut(remark.Target, " ")
			assert.NotContains(t, []string{"run", "not", "printed"}, word, "%s: the mark stands before no block: put it on the line before one", remark.Place)
		}
		for _, line := range p.Indented {
			assert.NoError(t, hidden(line.Target), line.Place)
		}
	}
	for excuse := range excuses {
		assert.True(t, used[excuse], "no block has %q: remove it from test/page", excuse)
	}
}

// A mark that no test looks for would run nothing.
func TestEveryMarkHasATestThatRunsIt(t *testing.T) {
	t.Parallel()
	for mark, runner := range runners {
		files, err := filepath.Glob(filepath.Join(root, runner.folder, "*_test.go"))
		require.NoError(t, err)
		assert.True(t, slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file) //nolint:gosec // a file of this repository
			return err == nil && strings.Contains(string(text), runner.constant)
		}), "no test of %s looks for %q", runner.folder, mark)
	}
}

func TestABlockThatNobodyRunsIsFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"```sh\nmake build\n```\n":                                            "no test runs the block",
		"<!-- run -->\n\n```sh\nmake build\n```\n":                            "no test runs the block",
		"<!-- run it -->\n```sh\nmake build\n```\n":                           "none of the known reasons",
		"<!-- not run: it needs Docker -->\n```sh\nmake image A=b\nls\n```\n": `is no reason for "ls"`,
		"<!-- not run: I am in a hurry -->\n```sh\nmake image\n```\n":         "none of the known reasons",
		"<!-- run on a cluster until x -->\n```sh\nmake image\n```\n":         "is none of a block of sh",
		"<!-- run on the empty cluster until -->\n```sh\nmake image\n```\n":   "none of the known reasons",
		"<!-- printed -->\n```sh\nmake image\n```\n":                          "is none of a block of sh",
		"<!-- run -->\n```text\nall good\n```\n":                              "which nobody runs",
		"```text\nkubectl delete va --all\n```\n":                             "is a command",
		"```text\n$ kubectl delete va --all\n```\n":                           "is a command",
		"```\nmake image\n```\n":                                              "the language of the block",
		"```bash\nmake image\n```\n":                                          "the language of the block",
		"<!-- run -->\n```sh\n# nothing\n```\n":                               "no command",
	} {
		found, err := page.Pages(write(t, text))
		require.NoError(t, err)
		require.ErrorContains(t, marked(found[0].Blocks[0]), want, text)
	}
	for _, text := range []string{
		"<!-- run -->\n```sh\nls\n```\n", "<!-- run on the empty cluster until Ctrl-C -->\n```sh\nls\n```\n", "<!-- printed -->\n```text\na b\n```\n",
		"<!-- not run: it needs Docker -->\n```sh\nmake image A=b\n```\n", "```text\n  kubectl wva status\n```\n",
	} {
		found, err := page.Pages(write(t, text))
		require.NoError(t, err)
		require.NoError(t, marked(found[0].Blocks[0]), text)
	}
	found, err := page.Pages(write(t, "<!-- run -->\n\n    kubectl get va\n\nIn a list:\n- a\n\n    more text\n"))
	require.NoError(t, err)
	assert.Equal(t, []page.Link{{Place: "README.md:1", Target: "run"}}, found[0].Remarks)
	require.ErrorContains(t, hidden(found[0].Indented[0].Target), "is a command")
	for _, text := range []string{"> ```sh\n> ls\n> ```\n", "- ```sh\n  ls\n  ```\n", "~~~sh\nls\n~~~\n"} {
		_, err := page.Pages(write(t, text))
		require.ErrorContains(t, err, "a block begins with ``` on a line of its own", text)
	}
}
