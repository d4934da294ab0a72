package main

import (
	"errors"
	"fmt"
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

// trace is a short one, in the form that the pages name for one's own.
func trace() string {
	var text strings.Builder
	text.WriteString("time,input_tokens,output_tokens\n")
	for i := range 240 {
		fmt.Fprintf(&text, "%d,500,100\n", i)
	}
	return text.String()
}

// A block after the comment <!-- run --> works as it stands, in a folder of its own beside
// the repository's manifests and pages, and a trace. What it prints is what the page shows,
// where the next block is marked so.
func TestTheMarkedBlocksRun(t *testing.T) {
	pages, err := page.Pages("../..")
	require.NoError(t, err)
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	ran, compared := 0, 0
	// Two pages may show the same.
	said := map[string]string{}
	for _, p := range pages {
		for i, block := range p.Blocks {
			if block.Mark == page.Printed {
				compared++
				assert.True(t, i > 0 && p.Blocks[i-1].Mark == page.Alone, "%s: no block that runs comes before it", block.Place)
			}
			if block.Mark != page.Alone {
				continue
			}
			ran++
			t.Run(block.Place, func(t *testing.T) {
				if _, again := said[block.Text]; !again {
					said[block.Text] = printed(t, top, block)
				}
				if i+1 < len(p.Blocks) && p.Blocks[i+1].Mark == page.Printed {
					assert.Equal(t, p.Blocks[i+1].Text, said[block.Text], "%s is not what the block before it prints: hack/update-cli.sh writes it", p.Blocks[i+1].Place)
				}
			})
		}
	}
	require.Positive(t, ran)
	require.Positive(t, compared)
}

// printed is what the commands of a block print.
func printed(t *testing.T, top string, block page.Block) (all string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, folder := range []string{"manifests", "docs"} {
		require.NoError(t, os.Symlink(filepath.Join(top, folder), folder))
	}
	require.NoError(t, os.WriteFile("my-trace.csv", []byte(trace()), 0o600))
	for _, line := range block.Commands() {
		arguments, ok := ours(line)
		require.True(t, ok, "%s is no command of this program", line)
		out, err := run(expand(t, arguments)...)
		require.NoError(t, err, line)
		all += out
		if _, file, written := strings.Cut(line, " > "); written {
			require.NoError(t, os.WriteFile(strings.TrimSpace(file), []byte(out), 0o600))
		}
	}
	return all
}
