package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/podmetrics"
	"llmd.ai/workload-variant-autoscaler/pkg/adapters/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/controller"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// see makes the sources of samples that the configuration names, as the options of the
// controller that they are.
func see(mgr manager.Manager, c config.Config) (controller.Options, error) {
	if c.MetricsSource == config.SourcePods {
		pods, err := scraper(mgr, c)
		if err != nil {
			return controller.Options{}, err
		}
		return controller.Options{Metrics: follower{pods}, Queues: pods.Queues, Adapters: pods.Adapters}, nil
	}
	samples, err := prometheus.New(querying(c.Prometheus))
	if err != nil {
		return controller.Options{}, err
	}
	if len(c.Gateway.MetricsURLs) == 0 {
		return controller.Options{Metrics: samples, Queues: samples.Queues, Earlier: samples.Earlier, Met: samples.Met, Adapters: samples.Adapters}, nil
	}
	// What Prometheus knows of the gateway is as old as its last scrape, if it scrapes
	// the gateway at all. No pod is followed.
	gateways, err := scraper(mgr, c)
	if err != nil {
		return controller.Options{}, err
	}
	return controller.Options{Metrics: layered{samples, gateways}, Queues: gateways.Queues, Earlier: samples.Earlier, Met: samples.Met, Adapters: samples.Adapters}, nil
}

// scraper scrapes while the manager leads: nobody else decides.
func scraper(mgr manager.Manager, c config.Config) (*podmetrics.Client, error) {
	client, err := podmetrics.New(scraping(c))
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(manager.RunnableFunc(client.Run)); err != nil {
		return nil, fmt.Errorf("adding the scraping of metrics to the manager: %w", err)
	}
	return client, nil
}

func querying(p config.Prometheus) prometheus.Options {
	return prometheus.Options{
		Address:            p.BaseURL,
		AllowHTTP:          p.AllowHTTP,
		Token:              p.Token,
		TokenFile:          p.TokenPath,
		CAFile:             p.CACertPath,
		CertFile:           p.ClientCertPath,
		KeyFile:            p.ClientKeyPath,
		ServerName:         p.ServerName,
		InsecureSkipVerify: p.InsecureSkipVerify,
		ConfigFile:         p.HTTPConfigPath,
		Matchers:           p.Matchers,
		Timeout:            queryTimeout,
	}
}

func scraping(c config.Config) podmetrics.Options {
	return podmetrics.Options{
		Pods:     podmetrics.HTTP{TokenFile: c.PodMetrics.TokenPath, CAFile: c.PodMetrics.CACertPath, ServerName: c.PodMetrics.ServerName, InsecureSkipVerify: c.PodMetrics.InsecureSkipVerify},
		Scheme:   c.PodMetrics.Scheme,
		Port:     c.PodMetrics.Port,
		Interval: c.PodMetrics.ScrapeInterval,
		Gateways: c.Gateway.MetricsURLs, GatewaysFor: c.Gateway.Namespaces,
		Gateway: podmetrics.HTTP{Token: c.Gateway.Token, TokenFile: c.Gateway.TokenPath, CAFile: c.Gateway.CACertPath, InsecureSkipVerify: c.Gateway.InsecureSkipVerify},
	}
}

// follower tells the scraper which pods there are.
type follower struct{ *podmetrics.Client }

// Follow implements controller.Follower.
func (f follower) Follow(pods []*corev1.Pod) {
	targets := make([]modelserver.Target, 0, len(pods))
	for _, pod := range pods {
		if target, ok := modelserver.TargetOf(pod); ok {
			targets = append(targets, target)
		}
	}
	f.Client.Follow(targets)
}
