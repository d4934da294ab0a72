package page_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/page"
)

// write makes a repository with one page.
func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"CONTRIBUTING.md", "docs/README.md", "charts/README.md"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte(text), 0o600))
	return dir
}

func TestPageIsReadAsAPersonReadsIt(t *testing.T) {
	t.Parallel()
	all, err := page.Pages(write(t, "# One title\n\nA [link](docs/README.md#here), `[none](code)`.\n\n## Same\n## Same\n\n"+
		"1. In a list:\n\n   ```yaml\n   a: 1\n   # [none](block)\n   ```\n\n<!-- run -->\n```console\n$ one \\\n    two\nprinted\n$ three\n```\n<!-- run on a cluster -->\n```sh\nfour\n```\n"))
	require.NoError(t, err)
	got := all[0]
	assert.Equal(t, []page.Link{{Place: "README.md:3", Target: "docs/README.md#here"}}, got.Links)
	assert.Equal(t, map[string]bool{"one-title": true, "same": true, "same-1": true}, got.Anchors)
	require.Len(t, got.Blocks, 3)
	assert.Equal(t, page.OnCluster, got.Blocks[2].Mark)
	assert.Equal(t, page.Block{Place: "README.md:10", Language: "yaml", Text: "a: 1\n# [none](block)\n"}, got.Blocks[0])
	assert.Empty(t, got.Blocks[0].Commands())
	assert.Equal(t, page.Alone, got.Blocks[1].Mark)
	assert.Equal(t, []string{"one two", "three"}, got.Blocks[1].Commands())

	_, err = page.Pages(write(t, "```sh\nmake\n"))
	require.EqualError(t, err, "README.md:1: the block has no end")
}

func TestWordsOfACommandLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"make test":                  {"make", "test"},
		`a -p '{"b": "c d"}' "e f"`:  {"a", "-p", `{"b": "c d"}`, "e f"},
		"a b | c":                    {"a", "b"},
		"a b > c.txt":                {"a", "b"},
		"a b   # said":               {"a", "b"},
		"a --set wva.x=y#z --empty=": {"a", "--set", "wva.x=y#z", "--empty="},
		`a ""`:                       {"a", ""},
	} {
		assert.Equal(t, want, page.Words(line), line)
	}
}
