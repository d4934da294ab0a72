package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
)

// completer is the name under which kubectl looks for the completion of "kubectl wva".
const completer = "kubectl_complete-wva"

// asCompleter are the arguments of the program; under the name by which kubectl asks for
// completions they ask for them.
func asCompleter(program string, arguments []string) []string {
	if filepath.Base(program) == completer {
		return append([]string{cobra.ShellCompRequestCmd}, arguments...)
	}
	return arguments
}

// newCompletion is the command that writes a shell's completion.
func newCompletion() *cobra.Command {
	shells := []string{"bash", "fish", "powershell", "zsh"}
	return &cobra.Command{
		Use:   "completion bash|fish|powershell|zsh",
		Short: "Write a shell completion script",
		Long: `Write a shell completion script for kubectl-wva.

To complete "kubectl wva", kubectl runs the program kubectl_complete-wva on the PATH. Link
this program under that name:

  ln -s "$(command -v kubectl-wva)" ~/.local/bin/kubectl_complete-wva`,
		Example: `  # In bash, for this shell
  source <(kubectl wva completion bash)

  # Print the script for zsh
  kubectl wva completion zsh`,
		ValidArgs: shells,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(command *cobra.Command, arguments []string) error {
			out := command.OutOrStdout()
			// The script is for the program, whatever kubectl calls it.
			root := &cobra.Command{Use: "kubectl-wva"}
			switch arguments[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			case "zsh":
				return root.GenZshCompletion(out)
			}
			return fmt.Errorf("no completion for %s", arguments[0])
		},
	}
}
