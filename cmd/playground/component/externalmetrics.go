package component

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd/options"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"llmd.ai/workload-variant-autoscaler/cmd/playground/metricrule"
)

// runExternalMetrics serves external.metrics.k8s.io from Prometheus, by the rules of a configuration of the
// Prometheus adapter: what a cluster has that runs the adapter. The API is that of the Kubernetes project's
// library for adapters.
func runExternalMetrics(ctx context.Context, args []string) error {
	serving := options.NewCustomMetricsAdapterServerOptions()
	flags := pflag.NewFlagSet("external-metrics", pflag.ContinueOnError)
	serving.AddFlags(flags)
	kubeconfig := flags.String("kubeconfig", "", "Path of the kubeconfig.")
	url := flags.String("prometheus-url", "", "Address of Prometheus.")
	config := flags.String("config", "", "Path of a ConfigMap whose entry config.yaml is a configuration of the Prometheus adapter.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *kubeconfig == "" || *url == "" || *config == "" {
		return errors.New("external-metrics needs --kubeconfig, --prometheus-url and --config")
	}
	if err := utilerrors.NewAggregate(serving.Validate()); err != nil {
		return err
	}
	rules, err := metricrule.Read(*config)
	if err != nil {
		return err
	}
	client, err := api.NewClient(api.Config{Address: *url})
	if err != nil {
		return fmt.Errorf("make a client of Prometheus: %w", err)
	}
	server, err := newMetricsServer(serving, *kubeconfig, &externalMetrics{rules: rules, prometheus: prometheusv1.NewAPI(client)})
	if err != nil {
		return err
	}
	return server.PrepareRun().RunWithContext(ctx)
}

// newMetricsServer has no OpenAPI: whoever asks for external metrics knows them.
func newMetricsServer(serving *options.CustomMetricsAdapterServerOptions, kubeconfig string, metrics provider.ExternalMetricsProvider) (*genericapiserver.GenericAPIServer, error) {
	config := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	var err error
	if config.ClientConfig, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	config.SharedInformerFactory = informers.NewSharedInformerFactory(clients, 0)
	if err := serving.ApplyTo(config); err != nil {
		return nil, err
	}
	complete := &apiserver.Config{GenericConfig: &config.Config}
	server, err := complete.Complete(config.SharedInformerFactory).New("external-metrics", nil, metrics)
	if err != nil {
		return nil, err
	}
	return server.GenericAPIServer, nil
}

// externalMetrics answers from Prometheus.
type externalMetrics struct {
	rules      []metricrule.Rule
	prometheus prometheusv1.API
}

// ListAllExternalMetrics implements provider.ExternalMetricsProvider.
func (e *externalMetrics) ListAllExternalMetrics() []provider.ExternalMetricInfo {
	var all []provider.ExternalMetricInfo
	seen := map[string]bool{}
	for _, r := range e.rules {
		if !seen[r.Metric()] {
			all = append(all, provider.ExternalMetricInfo{Metric: r.Metric()})
			seen[r.Metric()] = true
		}
	}
	return all
}

// GetExternalMetric implements provider.ExternalMetricsProvider. The rules of a name are asked in their
// order until one has an answer.
func (e *externalMetrics) GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	known := false
	for _, r := range e.rules {
		if r.Metric() != info.Metric {
			continue
		}
		known = true
		query, err := r.Query(namespace, selector)
		if err != nil {
			return nil, err
		}
		values, err := e.ask(ctx, info.Metric, query)
		if err != nil || len(values.Items) > 0 {
			return values, err
		}
	}
	if !known {
		return nil, provider.NewMetricNotFoundError(external_metrics.Resource("externalmetricvalues"), info.Metric)
	}
	return &external_metrics.ExternalMetricValueList{}, nil
}

func (e *externalMetrics) ask(ctx context.Context, metric, query string) (*external_metrics.ExternalMetricValueList, error) {
	now := time.Now()
	value, _, err := e.prometheus.Query(ctx, query, now)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus for %s: %w", query, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("ask Prometheus for %s: a vector is needed, not a %s", query, value.Type())
	}
	values := &external_metrics.ExternalMetricValueList{}
	for _, sample := range vector {
		named := map[string]string{}
		for name, value := range sample.Metric {
			named[string(name)] = string(value)
		}
		values.Items = append(values.Items, external_metrics.ExternalMetricValue{
			MetricName: metric, MetricLabels: named, Timestamp: metav1.NewTime(now),
			Value: *resource.NewMilliQuantity(int64(float64(sample.Value)*1000), resource.DecimalSI),
		})
	}
	return values, nil
}
