package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run runs the command line as main does.
func run(arguments ...string) (out string, err error) {
	var written bytes.Buffer
	root := newCommand()
	root.SetOut(&written)
	root.SetErr(&written)
	root.SetArgs(arguments)
	root.SilenceErrors = true
	err = hinted(root, root.Execute())
	return written.String(), err
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"foo":                  `unknown command "foo" for "kubectl wva": "kubectl wva --help" lists those that there are`,
		"capcity":              "Did you mean this?\n\tcapacity",
		"replay --seed -1":     `--seed is "-1": expected a whole number from 0 to 18446744073709551615`,
		"replay --rate x":      `--rate is "x": expected a number`,
		"capacity --all=maybe": `--all is "maybe": expected true or false`,
		"capacity -o pdf":      `--output is "pdf": expected one of table, wide, json, yaml`,
		"capacity --bogus":     `unknown flag: --bogus; "kubectl wva capacity --help" lists the flags`,
		"adopt":                `nothing is named: expected "kubectl wva adopt DEPLOYMENT... [flags]"`,
		"status llama":         `"llama" does not belong here: expected "kubectl wva status [flags]"`,
		"explain a b":          `"a b" does not belong here: expected "kubectl wva explain VARIANTAUTOSCALING | --reason REASON [flags]"`,
		"completion":           `nothing is named: expected "kubectl wva completion bash|fish|powershell|zsh [flags]"`,
		"completion tcsh":      `invalid argument "tcsh"`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			_, err := run(strings.Fields(line)...)
			require.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "strconv")
		})
	}
}

// Every flag of every command has a type whose mistakes are told of in plain words.
func TestNoFlagNamesAGoFunction(t *testing.T) {
	t.Parallel()
	every(newCommand(), func(c *cobra.Command) {
		for _, name := range flagsOf(c) {
			flag := c.Flag(name)
			if err := flag.Value.Set("no such value"); err != nil {
				err = flagError(c, c.ParseFlags([]string{"--" + name + "=no such value"}))
				assert.NotRegexp(t, `strconv|time\.|parse`, err.Error(), c.CommandPath())
			}
		}
	})
}

func TestACommandsOwnFlagsAreNotBuried(t *testing.T) {
	t.Parallel()
	out, err := run("capacity", "--help")
	require.NoError(t, err)
	assert.Contains(t, out, "--accelerator-names")
	assert.NotContains(t, out, "--as-group")
	assert.Contains(t, out, `"kubectl wva options"`)
	out, err = run("options")
	require.NoError(t, err)
	assert.Contains(t, out, "--as-group")
}

func TestEveryCommandHasAnExampleOfItself(t *testing.T) {
	t.Parallel()
	every(newCommand(), func(c *cobra.Command) {
		assert.Contains(t, c.Example, "  "+c.CommandPath(), c.Name())
	})
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"__complete", "cap", ""}, asCompleter("/a/kubectl_complete-wva", []string{"cap", ""}))
	assert.Equal(t, []string{"capacity"}, asCompleter("kubectl-wva", []string{"capacity"}))
	out, err := run("__complete", "cap")
	require.NoError(t, err)
	assert.Contains(t, out, "capacity\t")
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		out, err := run("completion", shell)
		require.NoError(t, err)
		assert.Contains(t, out, "kubectl-wva")
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, err := run("version")
	require.NoError(t, err)
	assert.NotContains(t, out, "$Format")
}

// every calls do for a command and those below it.
func every(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, child := range c.Commands() {
		every(child, do)
	}
}

// flagsOf are the names of a command's own flags.
func flagsOf(c *cobra.Command) (names []string) {
	c.LocalFlags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}
