package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
)

// release is what this program is.
type release struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// releaseOf is the version that the build was given, else that of the module and its
// commit, which the go command writes into every program.
func releaseOf(given string, info *debug.BuildInfo) release {
	r := release{Version: given, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info != nil {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				r.Commit = setting.Value
			}
		}
	}
	// component-base's placeholder, which only its own releases replace.
	if given == "" || strings.Contains(given, "$Format") {
		r.Version = "(devel)"
		if info != nil {
			r.Version = cmp.Or(info.Main.Version, r.Version)
		}
	}
	return r
}

func thisRelease() release {
	info, _ := debug.ReadBuildInfo()
	return releaseOf(version.Get().GitVersion, info)
}

// newVersion is the command that tells the version.
func newVersion() *cobra.Command {
	var form output.Form
	command := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Example: `  kubectl wva version

  kubectl wva version -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			r := thisRelease()
			if form.ForPrograms() {
				return form.Write(command.OutOrStdout(), r)
			}
			_, err := fmt.Fprintf(command.OutOrStdout(), "kubectl wva %s (%s, %s)\n", r.Version, r.Go, r.Platform)
			return err
		},
	}
	form.Add(command, "text", output.JSON, output.YAML)
	return command
}
