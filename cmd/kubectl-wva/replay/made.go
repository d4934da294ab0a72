package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// places are the flags about the cluster that say which one is meant. The others may hold
// secrets.
var places = []string{"namespace", "context", "cluster"}

// made says how a page was made: the command line, the seed and the version.
func made(command *cobra.Command, seed uint64) []string {
	words := []string{"kubectl wva replay"}
	command.Flags().Visit(func(f *pflag.Flag) {
		if command.InheritedFlags().Lookup(f.Name) != nil && !slices.Contains(places, f.Name) {
			return
		}
		words = append(words, "--"+f.Name+"="+quoted(textOf(f)))
	})
	return []string{strings.Join(words, " "), fmt.Sprintf("seed %d, kubectl wva %s", seed, cmp.Or(command.Root().Version, "of no release"))}
}

// textOf is the value of a flag as the command line has it.
func textOf(f *pflag.Flag) string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ",")
	}
	return f.Value.String()
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
