package v1alpha1

import (
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// hubStatusOf is the status of the hub, without what only the hub has.
func hubStatusOf(s *LlamaStackDistributionStatus) v1alpha2.LlamaStackDistributionStatus {
	return v1alpha2.LlamaStackDistributionStatus{
		Phase:              v1alpha2.Phase(s.Phase),
		Conditions:         s.Conditions,
		Version:            (*v1alpha2.VersionInfo)(s.Version),
		DistributionConfig: hubDistributionConfigOf(s.DistributionConfig),
		AvailableReplicas:  s.AvailableReplicas,
		Replicas:           s.Replicas,
		Selector:           s.Selector,
		ServiceURL:         s.ServiceURL,
		RouteURL:           s.RouteURL,
	}
}

// statusOf is the reverse of hubStatusOf.
func statusOf(s *v1alpha2.LlamaStackDistributionStatus) LlamaStackDistributionStatus {
	return LlamaStackDistributionStatus{
		Phase:              Phase(s.Phase),
		Conditions:         s.Conditions,
		Version:            (*VersionInfo)(s.Version),
		DistributionConfig: distributionConfigOf(s.DistributionConfig),
		AvailableReplicas:  s.AvailableReplicas,
		Replicas:           s.Replicas,
		Selector:           s.Selector,
		ServiceURL:         s.ServiceURL,
		RouteURL:           s.RouteURL,
	}
}

func hubDistributionConfigOf(c *DistributionConfig) *v1alpha2.DistributionConfig {
	if c == nil {
		return nil
	}
	hub := &v1alpha2.DistributionConfig{ActiveDistribution: c.ActiveDistribution, AvailableDistributions: c.AvailableDistributions}
	for _, p := range c.Providers {
		hub.Providers = append(hub.Providers, v1alpha2.ProviderInfo{
			API: p.API, ProviderID: p.ProviderID, ProviderType: p.ProviderType, Config: p.Config, Health: v1alpha2.ProviderHealth(p.Health),
		})
	}
	return hub
}

func distributionConfigOf(c *v1alpha2.DistributionConfig) *DistributionConfig {
	if c == nil {
		return nil
	}
	view := &DistributionConfig{ActiveDistribution: c.ActiveDistribution, AvailableDistributions: c.AvailableDistributions}
	for _, p := range c.Providers {
		view.Providers = append(view.Providers, ProviderInfo{
			API: p.API, ProviderID: p.ProviderID, ProviderType: p.ProviderType, Config: p.Config, Health: ProviderHealth(p.Health),
		})
	}
	return view
}
