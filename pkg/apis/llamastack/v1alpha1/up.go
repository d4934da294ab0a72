package v1alpha1

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// hubSpecOf is the spec of the hub, and what it has no field for. A parent of the hub is
// made where something is in it, and only there.
func hubSpecOf(spec *LlamaStackDistributionSpec) (v1alpha2.LlamaStackDistributionSpec, v1alpha2.V1alpha1Extras) {
	u := upward{}
	server := &spec.Server
	hub := v1alpha2.LlamaStackDistributionSpec{
		Distribution:   u.distribution(server.Distribution),
		OverrideConfig: u.overrideConfig(server.UserConfig),
		Workload: &v1alpha2.Workload{
			Replicas:                  u.replicas(spec.Replicas),
			Workers:                   server.Workers,
			Storage:                   (*v1alpha2.VolumeStorage)(server.Storage),
			Autoscaling:               u.autoscaling(server.Autoscaling),
			PodDisruptionBudget:       u.podDisruptionBudget(server.PodDisruptionBudget),
			TopologySpreadConstraints: server.TopologySpreadConstraints,
			Overrides:                 u.overrides(server.ContainerSpec, server.PodOverrides),
		},
		Networking: &v1alpha2.Networking{
			Port:        u.port(server.ContainerSpec),
			TLS:         u.tls(server.TLSConfig),
			Expose:      u.expose(spec.Network),
			AllowedFrom: u.allowedFrom(spec.Network),
		},
	}
	if server.ContainerSpec != nil {
		hub.Workload.Resources = server.ContainerSpec.Resources
	}
	if isEmptyWorkload(hub.Workload) {
		hub.Workload = nil
	}
	if *hub.Networking == (v1alpha2.Networking{}) {
		hub.Networking = nil
	}
	return hub, u.extras
}

// upward collects on the way to the hub what has no field there.
type upward struct{ extras v1alpha2.V1alpha1Extras }

func (u *upward) wasThere(name string) { u.extras.Presence.Add(name) }

func (u *upward) rejected() *v1alpha2.Rejected {
	if u.extras.Rejected == nil {
		u.extras.Rejected = &v1alpha2.Rejected{}
	}
	return u.extras.Rejected
}

// distribution keeps the image of a distribution with both, because it is what runs.
func (u *upward) distribution(d Distribution) v1alpha2.Distribution {
	if d.Name != "" && d.Image != "" {
		u.rejected().DistributionName = d.Name
		d.Name = ""
	}
	return v1alpha2.Distribution(d)
}

func (u *upward) replicas(n int32) *int32 {
	if n < 0 {
		u.rejected().Replicas = &n
		return nil
	}
	return &n
}

// port also notes the rest of the container that the hub has no field for.
func (u *upward) port(c *ContainerSpec) int32 {
	if c == nil {
		u.extras.PortUnset = true
		return 0
	}
	switch c.Name {
	case v1alpha2.DefaultContainerName:
	case "":
		u.extras.ContainerNameUnset = true
	default:
		u.extras.ContainerName = c.Name
	}
	if c.Port == 0 {
		u.extras.PortUnset = true
		if c.Resources == nil && len(c.Env) == 0 && len(c.Command) == 0 && len(c.Args) == 0 && u.extras.ContainerName == "" {
			u.wasThere(v1alpha2.PresenceContainerSpec)
		}
		return 0
	}
	if c.Port < 0 || c.Port > 65535 {
		port := c.Port
		u.rejected().Port = &port
		return 0
	}
	return c.Port
}

func (u *upward) overrides(c *ContainerSpec, p *PodOverrides) *v1alpha2.Overrides {
	o := &v1alpha2.Overrides{}
	if c != nil {
		o.Env, o.Command, o.Args = c.Env, c.Command, c.Args
	}
	if p != nil {
		o.ServiceAccountName, o.Volumes, o.VolumeMounts = p.ServiceAccountName, p.Volumes, p.VolumeMounts
		u.extras.TerminationGracePeriod = p.TerminationGracePeriodSeconds
		if p.ServiceAccountName == "" && len(p.Volumes) == 0 && len(p.VolumeMounts) == 0 && p.TerminationGracePeriodSeconds == nil {
			u.wasThere(v1alpha2.PresencePodOverrides)
		}
	}
	if isEmptyOverrides(o) {
		return nil
	}
	return o
}

func (u *upward) autoscaling(a *Autoscaling) *v1alpha2.Autoscaling {
	hub := (*v1alpha2.Autoscaling)(a)
	if hub == nil || autoscales(hub) {
		return hub
	}
	u.rejected().Autoscaling = hub
	return nil
}

// autoscales says whether the schema of the hub takes it.
func autoscales(a *v1alpha2.Autoscaling) bool {
	percentage := func(p *int32) bool { return p == nil || *p >= 1 && *p <= 100 }
	return a.MaxReplicas >= 1 && (a.MinReplicas == nil || *a.MinReplicas >= 1 && *a.MinReplicas <= a.MaxReplicas) &&
		percentage(a.TargetCPUUtilizationPercentage) && percentage(a.TargetMemoryUtilizationPercentage)
}

func (u *upward) podDisruptionBudget(b *PodDisruptionBudget) *v1alpha2.PodDisruptionBudget {
	hub := (*v1alpha2.PodDisruptionBudget)(b)
	if hub == nil || (hub.MinAvailable == nil) != (hub.MaxUnavailable == nil) {
		return hub
	}
	u.rejected().PodDisruptionBudget = hub
	return nil
}

// overrideConfig is nothing without the name of a ConfigMap, which the hub demands.
func (u *upward) overrideConfig(c *UserConfig) *v1alpha2.OverrideConfig {
	if c == nil {
		return nil
	}
	if c.ConfigMapNamespace != "" {
		u.extras.UserConfig = &v1alpha2.CarriedConfigMap{Name: &c.ConfigMapName, Namespace: c.ConfigMapNamespace}
	}
	if c.ConfigMapName == "" {
		u.wasThere(v1alpha2.PresenceUserConfig)
		return nil
	}
	return &v1alpha2.OverrideConfig{ConfigMapName: c.ConfigMapName}
}

// tls is nothing without the name of a ConfigMap, as overrideConfig is.
func (u *upward) tls(t *TLSConfig) *v1alpha2.TLS {
	if t == nil {
		return nil
	}
	if t.CABundle == nil {
		return &v1alpha2.TLS{}
	}
	if b := t.CABundle; b.ConfigMapNamespace != "" || len(b.ConfigMapKeys) > 0 {
		u.extras.CABundle = &v1alpha2.CarriedConfigMap{Name: &b.ConfigMapName, Namespace: b.ConfigMapNamespace, Keys: b.ConfigMapKeys}
	}
	if t.CABundle.ConfigMapName == "" {
		u.wasThere(v1alpha2.PresenceCABundle)
		return &v1alpha2.TLS{}
	}
	return &v1alpha2.TLS{CABundle: &v1alpha2.CABundle{ConfigMapName: t.CABundle.ConfigMapName}}
}

func (u *upward) expose(n *Network) *apiextensionsv1.JSON {
	if n == nil {
		return nil
	}
	if n.ExposeRoute {
		return &apiextensionsv1.JSON{Raw: []byte("true")}
	}
	if n.AllowedFrom == nil {
		u.wasThere(v1alpha2.PresenceNetwork)
	}
	return nil
}

func (u *upward) allowedFrom(n *Network) *v1alpha2.AllowedFrom {
	if n == nil || n.AllowedFrom == nil {
		return nil
	}
	hub := (*v1alpha2.AllowedFrom)(n.AllowedFrom)
	if slices.Contains(hub.Namespaces, "") || slices.Contains(hub.Labels, "") {
		u.rejected().AllowedFrom = hub
		return nil
	}
	return hub
}

func isEmptyWorkload(w *v1alpha2.Workload) bool {
	return w.Replicas == nil && w.Workers == nil && w.Resources == nil && w.Autoscaling == nil && w.Storage == nil &&
		w.PodDisruptionBudget == nil && len(w.TopologySpreadConstraints) == 0 && w.Overrides == nil
}

func isEmptyOverrides(o *v1alpha2.Overrides) bool {
	return o.ServiceAccountName == "" && len(o.Env) == 0 && len(o.Command) == 0 && len(o.Args) == 0 && len(o.Volumes) == 0 && len(o.VolumeMounts) == 0
}
