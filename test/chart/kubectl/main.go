// Command kubectl is the part of kubectl that the pages of the documentation use, from
// Kubernetes' own library, so that their blocks can be run where no kubectl is. A command
// that it does not know is a plugin, as for the real one.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/config"
	"k8s.io/kubectl/pkg/cmd/create"
	deletion "k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/drain"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"
	"k8s.io/kubectl/pkg/cmd/replace"
	"k8s.io/kubectl/pkg/cmd/rollout"
	"k8s.io/kubectl/pkg/cmd/scale"
	"k8s.io/kubectl/pkg/cmd/taint"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if len(os.Args) > 1 {
		if path, err := exec.LookPath("kubectl-" + os.Args[1]); err == nil {
			err = syscall.Exec(path, append([]string{path}, os.Args[2:]...), os.Environ()) //nolint:gosec // a plugin of whoever runs it
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if command().Execute() != nil {
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "kubectl", SilenceUsage: true}
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	flags.AddFlags(root.PersistentFlags())
	f := util.NewFactory(util.NewMatchVersionFlags(flags))
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root.AddCommand(
		annotate.NewCmdAnnotate("kubectl", f, streams), apply.NewCmdApply("kubectl", f, streams),
		config.NewCmdConfig(f, clientcmd.NewDefaultPathOptions(), streams),
		create.NewCmdCreate(f, streams), deletion.NewCmdDelete(f, streams), describe.NewCmdDescribe("kubectl", f, streams),
		drain.NewCmdCordon(f, streams), drain.NewCmdUncordon(f, streams), get.NewCmdGet("kubectl", f, streams),
		label.NewCmdLabel(f, streams), patch.NewCmdPatch(f, streams), replace.NewCmdReplace(f, streams), rollout.NewCmdRollout("kubectl", f, streams),
		scale.NewCmdScale(f, streams), taint.NewCmdTaint(f, streams),
	)
	return root
}
