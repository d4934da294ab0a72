//go:build !kubernetes1.37

package main

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // the arguments of Coscheduling
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
)

const aboutGangs = `The plugin Coscheduling of sigs.k8s.io/scheduler-plugins is there for configurations
that enable it.`

// gangPlugins start the pods of a group together or not at all.
func gangPlugins() []app.Option {
	return []app.Option{app.WithPlugin(coscheduling.Name, coscheduling.New)}
}
