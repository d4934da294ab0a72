package kwok

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// identity holds the node leases. It is the same after a restart, so that a new process takes its nodes
// over at once and does not wait until the leases of the old one run out.
const identity = "kwok"

// stagesOf are the stages by the kind of object that they move.
type stagesOf map[internalversion.StageResourceRef][]*internalversion.Stage

//go:embed stages.yaml
var stageDocuments string

type options struct {
	kubeconfig    string
	podBlock      string
	nodeAddress   string
	listenAddress string
}

// Run plays the kubelet of every node until the context ends: nodes become Ready and keep their leases,
// scheduled pods start, become ready and end as stages.yaml says.
func Run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listenAddress)
	if err != nil {
		return fmt.Errorf("listen for health checks: %w", err)
	}
	defer func() { _ = listener.Close() }()
	controller, err := newController(ctx, o)
	if err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("start the node stand-ins: %w", err)
	}
	return serveHealth(ctx, listener)
}

func parse(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Path of the kubeconfig.")
	flags.StringVar(&o.podBlock, "pod-block", "", "Addresses of pods, as a prefix of 16 bits; its last 256 addresses are left alone.")
	flags.StringVar(&o.nodeAddress, "node-address", "", "Address that every node reports.")
	flags.StringVar(&o.listenAddress, "listen-address", "", "Address of /healthz.")
	return o, flags.Parse(args)
}

func newController(ctx context.Context, o options) (*controllers.Controller, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", o.kubeconfig, err)
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
	if err := learnTypes(ctx, stages); err != nil {
		return nil, err
	}
	addresses, err := localcluster.NewPodAddresses(o.podBlock)
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
		NodeIP:                    o.nodeAddress,
		CIDR:                      o.podBlock,
		ID:                        identity,
		NodeLeaseDurationSeconds:  40,
		NodeLeaseParallelism:      4,
		NodePlayStageParallelism:  4,
		PodPlayStageParallelism:   8,
		PodsOnNodeSyncParallelism: 4,
		FuncMap:                   gotpl.FuncMap{"NextPodIP": addresses.Next},
	})
}

// parseStages reads the stages, grouped by the resource that they move.
func parseStages(documents string) (stagesOf, error) {
	stages := stagesOf{}
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

// learnTypes lets the stages meet an object of each kind, one after the other. KWOK compiles a stage when it
// meets the first object, with a library (easycel) that notes the types it sees in maps of the process without
// a lock. Where nodes and pods are there from the start, as after a restart, the controllers of both write at
// once and the process dies of it. After this they only read.
func learnTypes(ctx context.Context, stages stagesOf) error {
	for _, object := range []runtime.Object{&corev1.Node{}, &corev1.Pod{}} {
		if _, err := match(ctx, stages, object); err != nil {
			return err
		}
	}
	return nil
}

// match compiles the stages of the object's kind anew and finds the one that moves the object, or nil.
func match(ctx context.Context, stages stagesOf, object runtime.Object) (*lifecycle.Stage, error) {
	kind := reflect.TypeOf(object).Elem().Name()
	all, err := lifecycle.NewLifecycle(stages[internalversion.StageResourceRef{APIGroup: "v1", Kind: kind}])
	if err != nil {
		return nil, fmt.Errorf("read the stages of a %s: %w", kind, err)
	}
	stage, err := all.Match(ctx, &lifecycle.Event{Data: object})
	if err != nil {
		return nil, fmt.Errorf("compile the stages of a %s: %w", kind, err)
	}
	return stage, nil
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
