package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage is cobra's, but for the flags about the cluster: they are many, the same for every
// command, and stand in "kubectl wva options".
const usage = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}

Use "{{.Root.CommandPath}} options" for the flags about the cluster: --namespace, --context, --kubeconfig and others.{{if .HasAvailableSubCommands}}
Use "{{.CommandPath}} [command] --help" for one command.{{end}}
`

// newOptions lists the flags that every command has.
func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "List the flags that every command has",
		Example: `  kubectl wva options`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(command.OutOrStdout(), "Every command takes these flags:\n\n", command.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

// expected says what the values of flags are, by the type of the flag. Other types say it
// themselves.
var expected = map[string]string{
	"bool":     "true or false",
	"duration": "a duration such as 90s or 5m",
	"int":      "a whole number",
	"int32":    "a whole number from -2147483648 to 2147483647",
	"int64":    "a whole number",
	"uint":     "a whole number of at least 0",
	"uint16":   "a whole number from 0 to 65535",
	"uint64":   "a whole number from 0 to 18446744073709551615",
	"float64":  "a number",
}

// flagError says what is wrong with a flag in the words of the command line.
func flagError(command *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		if what, ok := expected[flag.Value.Type()]; ok {
			return fmt.Errorf("--%s is %q: expected %s", flag.Name, invalid.GetValue(), what)
		}
		return fmt.Errorf("--%s is %q: %w", flag.Name, invalid.GetValue(), invalid.Unwrap())
	}
	return fmt.Errorf("%w; %q lists the flags", err, command.CommandPath()+" --help")
}

// sayUsage has a command that is given too few or too many names say what it takes.
func sayUsage(command *cobra.Command) {
	check := command.Args
	if check == nil {
		return
	}
	command.Args = func(c *cobra.Command, given []string) error {
		err := check(c, given)
		if err == nil || strings.HasPrefix(err.Error(), "invalid argument ") {
			return err
		}
		what := "nothing is named"
		if len(given) > 0 {
			what = fmt.Sprintf("%q does not belong here", strings.Join(given, " "))
		}
		return fmt.Errorf("%s: expected %q", what, c.UseLine())
	}
}

// hinted adds to the error of an unknown command where those are that there are.
func hinted(root *cobra.Command, err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), "unknown command ") || strings.Contains(err.Error(), "Did you mean") {
		return err
	}
	return fmt.Errorf("%w: %q lists those that there are", err, root.CommandPath()+" --help")
}
