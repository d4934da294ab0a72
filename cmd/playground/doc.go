// Playground runs a whole cluster in one command: etcd, the Kubernetes control plane,
// nodes, Prometheus, the autoscaler and its scheduler, with emulated model servers
// under load.
//
// It only dispatches: "playground demo" conducts (package demo), "playground empty" is a
// cluster without the autoscaler (package empty), and every component is a child process
// of the same program (package component, the only one here that links Kubernetes).
package main
