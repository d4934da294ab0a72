package localcluster

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// externalMetricsName is the name of the Service in front of the aggregated API.
const externalMetricsName = "localcluster-external-metrics"

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// startExternalMetrics starts the API, has the API server lead requests to it, and waits until it does.
func (c *Cluster) startExternalMetrics(ctx context.Context) error {
	kubeconfig, err := c.writeUser("external-metrics", "system:masters")
	if err != nil {
		return err
	}
	var port int
	err = c.startAt(ctx, clusterLayer, func(at int) Process {
		port = at
		flags := append(c.serving(at), "--kubeconfig="+kubeconfig,
			"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
			"--prometheus-url="+c.prom, "--config="+c.options.Components.ExternalMetrics)
		return c.component("external-metrics", c.healthyAt(at), flags...)
	})
	if err != nil {
		return err
	}
	if err := c.registerExternalMetrics(ctx, port); err != nil {
		return fmt.Errorf("register the API of external metrics: %w", err)
	}
	return nil
}

// registerExternalMetrics makes the API part of the cluster's own.
func (c *Cluster) registerExternalMetrics(ctx context.Context, port int) error {
	typed, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: externalMetricsName},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: c.block.host()},
	}
	if _, err := typed.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	const version = "v1beta1"
	_, err = objects.Resource(apiServices).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": version + ".external.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "external.metrics.k8s.io", "version": version,
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"service": map[string]any{"namespace": metav1.NamespaceDefault, "name": externalMetricsName, "port": int64(port)},
			// The certificate names this machine, and not the Service.
			"insecureSkipTLSVerify": true,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return c.awaitExternalMetrics(ctx, typed, net.JoinHostPort(c.block.host(), strconv.Itoa(port)), version)
}

func (c *Cluster) awaitExternalMetrics(ctx context.Context, typed kubernetes.Interface, address, version string) error {
	ctx, cancel := context.WithTimeout(ctx, readyDeadline)
	defer cancel()
	ticker := time.NewTicker(4 * readyInterval)
	defer ticker.Stop()
	for {
		_, err := typed.Discovery().RESTClient().Get().AbsPath("/apis/external.metrics.k8s.io/" + version).DoRaw(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server does not lead requests to %s (%w): %w", address, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
