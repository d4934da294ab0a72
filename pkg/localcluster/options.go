package localcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ProgramsVariable names the environment variable with the directory of the built programs.
const ProgramsVariable = "WVA_PROGRAMS"

// Options says what a cluster consists of. The zero value is etcd and an API server.
type Options struct {
	// Programs is the directory of the built programs playground and scheduler. Empty: $WVA_PROGRAMS, else
	// bin/ beside the go.mod that is found upward from the working directory.
	Programs string
	// Dir holds the cluster's store, certificates and kubeconfigs. Empty: a new temporary directory, which
	// Stop removes. The paths of Unix sockets are short, so this one has to be, too.
	Dir string
	// Logs is the directory of one log file per child. Empty: logs/ in Dir.
	Logs string
	// Components are the parts beyond etcd and the API server.
	Components Components
	// Nodes are created, and with KWOK waited for until pods can be scheduled to them.
	Nodes []*corev1.Node
	// Manifests are files or directories for Apply, before the variant scheduler starts.
	Manifests []string
	// Audit has the API server note every write to a scale subresource, for ScaleWrites.
	Audit bool
	// Admission names plugins that the API server runs beside its own, such as ExtendedResourceToleration.
	Admission []string
	// AuditGroup is a group of users of which it notes every request too, such as
	// system:serviceaccounts:NAMESPACE. Empty: none.
	AuditGroup string
	// Started, if set, is told of every child that became ready and how long that took, by one goroutine at a
	// time.
	Started func(name string, took time.Duration)
}

// Components are the optional parts of a cluster.
type Components struct {
	// ControllerManager runs the controllers of workloads, nodes, namespaces, service accounts, endpoint
	// slices, autoscalers and garbage collection. Without it no service account is given to pods, and nodes
	// are not tainted while they are not ready.
	ControllerManager bool
	// Scheduler runs the stock scheduler ("default-scheduler") with its default configuration.
	Scheduler bool
	// VariantScheduler runs our scheduler beside it.
	VariantScheduler *VariantScheduler
	// Kwok plays the kubelet of every node.
	Kwok bool
	// Prometheus scrapes pods and other targets.
	Prometheus *Prometheus
	// ExternalMetrics serves external.metrics.k8s.io from Prometheus, by the rules of this file: a ConfigMap
	// whose entry config.yaml is a configuration of the Prometheus adapter. Empty: not at all.
	ExternalMetrics string
}

// VariantScheduler says how our scheduler runs: with the token of its service account and nothing else.
type VariantScheduler struct {
	// Config is the path of a ConfigMap whose entry config.yaml is a KubeSchedulerConfiguration, as a cluster
	// mounts it; the kubeconfig in it is replaced.
	Config string
	// Namespace and ServiceAccount name the service account, which Options.Manifests must have made.
	Namespace, ServiceAccount string
	// Args are further arguments.
	Args []string
}

// Prometheus says how the cluster is observed. It scrapes the pods that have the annotation
// prometheus.io/scrape "true", at the port and path of prometheus.io/port and prometheus.io/path (/metrics),
// with the labels namespace, pod and node; and what AddScrapeTarget adds.
type Prometheus struct {
	// ScrapeInterval is the time between two scrapes of a target. Default one second.
	ScrapeInterval time.Duration
}

// withDefaults fills what was left out and checks that the programs exist.
func (o Options) withDefaults() (Options, error) {
	if o.Programs == "" {
		programs, err := Programs()
		if err != nil {
			return o, err
		}
		o.Programs = programs
	}
	needed := []string{"playground"}
	if o.Components.VariantScheduler != nil {
		needed = append(needed, "scheduler")
	}
	for _, program := range needed {
		if _, err := os.Stat(filepath.Join(o.Programs, program)); errors.Is(err, fs.ErrNotExist) {
			return o, fmt.Errorf("the program %s is missing in %s: run `make build`, or set %s to the directory of the built programs", program, o.Programs, ProgramsVariable)
		} else if err != nil {
			return o, fmt.Errorf("look for the program %s: %w", program, err)
		}
	}
	if o.Components.ExternalMetrics != "" && o.Components.Prometheus == nil {
		return o, errors.New("external metrics come from Prometheus, which is not among the components")
	}
	if p := o.Components.Prometheus; p != nil && p.ScrapeInterval == 0 {
		o.Components.Prometheus = &Prometheus{ScrapeInterval: time.Second}
	}
	return o, nil
}

// Programs is the directory of the built programs when the options name none:
// $WVA_PROGRAMS, else bin/ beside the go.mod upward from the working directory.
func Programs() (string, error) {
	if programs := os.Getenv(ProgramsVariable); programs != "" { //nolint:forbidigo // every test that needs a cluster would have to read it
		return filepath.Abs(programs)
	}
	directory, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("look for the built programs: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(directory, "go.mod")); err == nil {
			return filepath.Join(directory, "bin"), nil
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", fmt.Errorf("no go.mod upward from the working directory, so no bin/ with built programs: set %s to their directory", ProgramsVariable)
		}
		directory = parent
	}
}
