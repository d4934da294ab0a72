package cluster

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// A person waits: a few hundred targets are read in seconds.
const clientQPS, clientBurst = 100, 200

// Flags are kubectl's flags about the cluster. Add must come before the rest.
type Flags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
}

// Add adds them to a set.
func (f *Flags) Add(set *pflag.FlagSet) {
	f.rules = clientcmd.NewDefaultClientConfigLoadingRules()
	set.StringVar(&f.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "Path of the kubeconfig file; without it $KUBECONFIG, then ~/.kube/config.")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.Description = "Only the variants of this namespace; without it those of all."
	clientcmd.BindOverrideFlags(&f.overrides, set, names)
}

// Namespace is the one that the user named; empty means all. The one of the
// kubeconfig's context is not meant: devices are the whole cluster's.
func (f *Flags) Namespace() string { return f.overrides.Context.Namespace }

// Client is a client of the cluster that the flags name.
func (f *Flags) Client() (client.Client, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules, &f.overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (set --kubeconfig, KUBECONFIG or --context): %w", err)
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	made, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return made, nil
}
