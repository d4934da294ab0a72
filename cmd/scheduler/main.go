package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // the JSON log format
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the client
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version as a metric
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedulerv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	configv1 "llmd.ai/workload-variant-autoscaler/pkg/apis/config/v1"
	"llmd.ai/workload-variant-autoscaler/plugins/acceleratorplacement"
)

func main() {
	os.Exit(cli.Run(newCommand()))
}

// newCommand is kube-scheduler's command with the plugins registered. Which of them
// run is for the configuration file to say.
func newCommand() *cobra.Command {
	addArguments()
	command := app.NewSchedulerCommand(append(gangPlugins(), app.WithPlugin(acceleratorplacement.Name, acceleratorplacement.New))...)
	command.Use = "scheduler"
	command.Long = `scheduler is kube-scheduler with the plugin AcceleratorPlacement, which puts the
pods of a model's variants on nodes with the variant's accelerator and packs pods
with devices so that room for large replicas stays. It runs beside the cluster's
own scheduler, under a name of its own, and takes the pods that ask for that name:

  scheduler --config=config.yaml

with the entry of the ConfigMap in manifests/scheduler/config.yaml as the file.

` + aboutGangs + ` All flags are those of kube-scheduler.`
	return command
}

// addArguments lets the scheduler's configuration file hold the plugin's arguments:
// the first scheme reads the file, the second defaults and converts arguments.
func addArguments() {
	for _, s := range []*runtime.Scheme{scheme.Scheme, schedulerv1.GetPluginArgConversionScheme()} {
		utilruntime.Must(config.AddToScheme(s))
		utilruntime.Must(configv1.AddToScheme(s))
	}
}
