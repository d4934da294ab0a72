//go:build kubernetes1.37

package main

import "k8s.io/kubernetes/cmd/kube-scheduler/app"

const aboutGangs = `Pod groups are those of Kubernetes itself, scheduling.k8s.io, with the feature gate
GenericWorkload; the plugin Coscheduling is not in this build.`

// gangPlugins are none: Coscheduling does not compile with Kubernetes 1.37, which has its own
// plugin for groups of pods.
func gangPlugins() []app.Option { return nil }
