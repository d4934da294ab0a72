// Scheduler is kube-scheduler with the AcceleratorPlacement plugin, to run beside
// the cluster's own scheduler with a profile and accelerator nodes of its own.
//
// It only puts things together: the scheduler of Kubernetes, the plugin, the
// plugin's arguments in the scheduler's configuration, and Coscheduling of
// sigs.k8s.io/scheduler-plugins for profiles of the user's own. Read newCommand.
//
// go.mod says which Kubernetes it is of. With kubernetes-1.37.mod as the modfile and the build
// tag kubernetes1.37 it is of that one, without Coscheduling: make build KUBERNETES=1.37.
package main
