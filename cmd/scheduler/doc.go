// Scheduler is kube-scheduler with the AcceleratorPlacement plugin, to run beside
// the cluster's own scheduler with a profile and accelerator nodes of its own.
//
// It only puts things together: the scheduler of Kubernetes, the plugin, the
// plugin's arguments in the scheduler's configuration, and Coscheduling of
// sigs.k8s.io/scheduler-plugins for profiles of the user's own. Read newCommand.
package main
