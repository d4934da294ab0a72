package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/page"
)

// ours are the arguments of a command line of a page that runs this program.
func ours(command string) ([]string, bool) {
	words := page.Words(command)
	for _, start := range [][]string{{"kubectl", "wva"}, {"kubectl-wva"}, {"bin/kubectl-wva"}, {"go", "run", "./cmd/kubectl-wva"}} {
		if len(words) >= len(start) && strings.Join(words[:len(start)], " ") == strings.Join(start, " ") {
			return words[len(start):], true
		}
	}
	return nil, false
}

// What the pages show is what the program takes: its commands, with flags that they have
// and values that these take.
func TestThePagesShowGoodCommandLines(t *testing.T) {
	t.Parallel()
	pages, err := page.Pages("../..")
	require.NoError(t, err)
	tried := 0
	for _, p := range pages {
		for _, block := range p.Blocks {
			for _, line := range block.Commands() {
				arguments, ok := ours(line)
				if !ok {
					continue
				}
				tried++
				command, rest, err := newCommand().Find(arguments)
				if !assert.NoError(t, err, "%s: %s", block.Place, line) {
					continue
				}
				if err := command.ParseFlags(rest); !errors.Is(err, pflag.ErrHelp) {
					assert.NoError(t, err, "%s: %s", block.Place, line)
				}
			}
		}
	}
	require.Positive(t, tried)
}

// expand replaces the patterns of file names, as a shell does.
func expand(t *testing.T, words []string) (expanded []string) {
	t.Helper()
	for _, word := range words {
		found, err := filepath.Glob(word)
		require.NoError(t, err, word)
		if len(found) == 0 {
			found = []string{word}
		}
		expanded = append(expanded, found...)
	}
	return expanded
}

// A block after the comment <!-- run --> works as it stands, in a folder of its own beside
// the repository's manifests and pages.
func TestTheMarkedBlocksRun(t *testing.T) {
	pages, err := page.Pages("../..")
	require.NoError(t, err)
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	ran := 0
	for _, p := range pages {
		for _, block := range p.Blocks {
			if !block.Run {
				continue
			}
			ran++
			t.Run(block.Place, func(t *testing.T) {
				t.Chdir(t.TempDir())
				for _, folder := range []string{"manifests", "docs"} {
					require.NoError(t, os.Symlink(filepath.Join(top, folder), folder))
				}
				for _, line := range block.Commands() {
					arguments, ok := ours(line)
					require.True(t, ok, "%s is no command of this program", line)
					out, err := run(expand(t, arguments)...)
					require.NoError(t, err, line)
					if _, file, written := strings.Cut(line, " > "); written {
						require.NoError(t, os.WriteFile(strings.TrimSpace(file), []byte(out), 0o600))
					}
				}
			})
		}
	}
	require.Positive(t, ran)
}
