package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// cluster is shared by the tests of this package; each works in a namespace of its own.
var cluster *Cluster

// nodes of the shared cluster: one of each shape.
var nodes = map[string]Shape{"h100": EightH100, "a100": EightA100, "l40s": FourL40S, "cpu": CPUOnly}

func TestMain(m *testing.M) {
	if os.Getenv(orphanVariable) != "" {
		os.Exit(beOrphaned())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	programs, manifests, config, err := variantScheduler()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(programs) }()
	options := Options{Programs: programs, Manifests: []string{manifests}, Components: Components{
		ControllerManager: true,
		Scheduler:         true,
		VariantScheduler:  &VariantScheduler{Config: config, Namespace: "kube-system", ServiceAccount: "test-scheduler"},
		Kwok:              true,
		Prometheus:        &Prometheus{},
	}}
	for name, shape := range nodes {
		options.Nodes = append(options.Nodes, shape.Node(name, "zone-1"))
	}
	begin := time.Now()
	if cluster, err = Start(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "a cluster with %d ready nodes took %.1f s\n", len(nodes), time.Since(begin).Seconds())
	code := m.Run()
	begin = time.Now()
	cluster.Stop()
	fmt.Fprintf(os.Stderr, "stopping it took %.1f s\n", time.Since(begin).Seconds())
	return code
}

// variantScheduler makes a directory of programs in which the stock scheduler stands for ours, what its
// service account may do, and its configuration. Ours is tested where it is made; here it is about how a
// scheduler of that kind is run.
func variantScheduler() (programs, manifests, config string, err error) {
	built, err := Programs()
	if err != nil {
		return "", "", "", err
	}
	if programs, err = os.MkdirTemp("", "wva-test-"); err != nil {
		return "", "", "", err
	}
	manifests, config = filepath.Join(programs, "account.yaml"), filepath.Join(programs, "config.yaml")
	playground := filepath.Join(programs, "playground")
	return programs, manifests, config, errors.Join(
		os.Symlink(filepath.Join(built, "playground"), playground),
		os.WriteFile(filepath.Join(programs, "scheduler"), []byte("#!/bin/sh\nexec "+playground+` component kube-scheduler "$@"`+"\n"), 0o700),
		os.WriteFile(manifests, []byte(schedulerAccount), 0o600),
		os.WriteFile(config, []byte(schedulerConfig), 0o600),
	)
}

const (
	schedulerAccount = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: test-scheduler, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-scheduler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kube-scheduler"}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: test-scheduler}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-scheduler-volumes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:volume-scheduler"}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: test-scheduler}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: test-scheduler, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: test-scheduler}]
`
	schedulerConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: test-scheduler}
data:
  config.yaml: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    leaderElection: {leaderElect: false}
    clientConnection: {qps: 100}
    profiles:
    - schedulerName: variant-scheduler
`
)
