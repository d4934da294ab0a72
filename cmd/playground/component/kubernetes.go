package component

import (
	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics on /metrics, as the original programs have
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info on /metrics
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Each command is made only when its role is asked for: making one registers feature gates and flags in
// process-wide registries, and two of them in one process would disagree.

func runAPIServer(args []string) int {
	return runCommand(apiserver.NewAPIServerCommand(), args)
}

func runControllerManager(args []string) int {
	return runCommand(controllermanager.NewControllerManagerCommand(), args)
}

func runScheduler(args []string) int {
	return runCommand(scheduler.NewSchedulerCommand(), args)
}

func runCommand(command *cobra.Command, args []string) int {
	command.SetArgs(args)
	return cli.Run(command)
}
