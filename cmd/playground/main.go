package main

import (
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/prometheus/discovery/kubernetes"
	_ "github.com/prometheus/prometheus/promql"
	_ "github.com/prometheus/prometheus/scrape"
	_ "github.com/prometheus/prometheus/tsdb"
	_ "github.com/prometheus/prometheus/web/api/v1"
	_ "github.com/stretchr/testify/require"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/scale"
	_ "k8s.io/component-base/cli"
	_ "k8s.io/component-helpers/resource"
	_ "k8s.io/kube-scheduler/framework"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/kwok/pkg/kwok/controllers"
	_ "sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
)

func main() {}
