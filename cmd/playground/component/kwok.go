package component

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// kwokIdentity holds the node leases. It is the same after a restart, so that a new process takes its nodes
// over at once and does not wait until the leases of the old one run out.
const kwokIdentity = "kwok"

//go:embed stages.yaml
var stageDocuments string

type kwokOptions struct {
	kubeconfig    string
	podBlock      string
	nodeAddress   string
	listenAddress string
}

// runKwok plays the kubelet of every node: nodes become Ready and keep their leases, scheduled pods start,
// become ready and end as stages.yaml says.
func runKwok(ctx context.Context, args []string) error {
	options, err := parseKwok(args)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", options.listenAddress)
	if err != nil {
		return fmt.Errorf("listen for health checks: %w", err)
	}
	defer func() { _ = listener.Close() }()
	controller, err := newKwok(ctx, options)
	if err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("start the node stand-ins: %w", err)
	}
	return serveHealth(ctx, listener)
}

func parseKwok(args []string) (kwokOptions, error) {
	var options kwokOptions
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", "Path of the kubeconfig.")
	flags.StringVar(&options.podBlock, "pod-block", "", "Addresses of pods, as a prefix of 16 bits; its last 256 addresses are left alone.")
	flags.StringVar(&options.nodeAddress, "node-address", "", "Address that every node reports.")
	flags.StringVar(&options.listenAddress, "listen-address", "", "Address of /healthz.")
	return options, flags.Parse(args)
}

func newKwok(ctx context.Context, options kwokOptions) (*controllers.Controller, error) {
	config, err := clientcmd.BuildConfigFromFlags("", options.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", options.kubeconfig, err)
	}
	config.QPS = -1 // one process acts for many kubelets, each of which has a limit of its own
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	stages, err := parseStages(stageDocuments)
	if err != nil {
		return nil, err
	}
	addresses, err := localcluster.NewPodAddresses(options.podBlock)
	if err != nil {
		return nil, err
	}
	pods, err := typed.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the pods that have addresses already: %w", err)
	}
	for _, pod := range pods.Items {
		addresses.Skip(pod.Status.PodIP)
	}
	return controllers.NewController(controllers.Config{
		TypedClient:               typed,
		DynamicClient:             dynamicClient,
		RESTClient:                typed.RESTClient(),
		RESTMapper:                restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typed.Discovery())),
		ManageAllNodes:            true,
		LocalStages:               stages,
		NodeIP:                    options.nodeAddress,
		CIDR:                      options.podBlock,
		ID:                        kwokIdentity,
		NodeLeaseDurationSeconds:  40,
		NodeLeaseParallelism:      4,
		NodePlayStageParallelism:  4,
		PodPlayStageParallelism:   8,
		PodsOnNodeSyncParallelism: 4,
		FuncMap:                   gotpl.FuncMap{"NextPodIP": addresses.Next},
	})
}

// parseStages reads the stages, grouped by the resource that they move.
func parseStages(documents string) (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, document := range strings.Split(documents, "\n---\n") {
		var stage v1alpha1.Stage
		if err := yaml.UnmarshalStrict([]byte(document), &stage); err != nil {
			return nil, fmt.Errorf("read the stages: %w", err)
		}
		internal, err := internalversion.ConvertToInternalStage(&stage)
		if err != nil {
			return nil, fmt.Errorf("read the stage %s: %w", stage.Name, err)
		}
		stages[internal.Spec.ResourceRef] = append(stages[internal.Spec.ResourceRef], internal)
	}
	return stages, nil
}

func serveHealth(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health checks: %w", err)
	}
	return nil
}
