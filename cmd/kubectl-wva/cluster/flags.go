package cluster

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// A person waits: a few hundred targets are read in seconds.
const clientQPS, clientBurst = 100, 200

// Flags are kubectl's flags about the cluster.
type Flags struct {
	config *genericclioptions.ConfigFlags
	// all says that -A was given.
	all bool
}

// NewFlags are the flags of a command line that says nothing.
func NewFlags() *Flags {
	return &Flags{config: genericclioptions.NewConfigFlags(true)}
}

// Add adds them to a set.
func (f *Flags) Add(set *pflag.FlagSet) { f.config.AddFlags(set) }

// AddAll adds -A to a command that looks at the objects of a namespace.
func (f *Flags) AddAll(command *cobra.Command) {
	command.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "The objects of all namespaces; without it those of the namespace that --namespace or the kubeconfig names.")
}

// Namespace is the one whose objects are meant, as for kubectl: that of --namespace,
// else that of the kubeconfig's context, else "default". Empty means all.
func (f *Flags) Namespace() (string, error) {
	if f.all {
		return "", nil
	}
	namespace, _, err := f.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("finding the namespace: %w; `kubectl config get-contexts` shows which contexts there are", err)
	}
	return namespace, nil
}

// Named reports whether --namespace names the namespace.
func (f *Flags) Named() bool {
	return !f.all && f.config.Namespace != nil && *f.config.Namespace != ""
}

// Config is how the cluster of the flags is reached.
func (f *Flags) Config() (*rest.Config, error) {
	config, err := f.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (set --kubeconfig, KUBECONFIG or --context; `kubectl config get-contexts` shows which there are): %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	return config, nil
}

// Client is a client of the cluster that the flags name.
func (f *Flags) Client() (client.WithWatch, error) {
	config, err := f.Config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	made, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return each{made}, nil
}
