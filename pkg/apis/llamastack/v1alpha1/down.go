package v1alpha1

import (
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// specOf is the spec of the view: the fields of the hub, what the hub carries of
// v1alpha1, and the defaults that this version always showed.
func specOf(hub *v1alpha2.LlamaStackDistributionSpec, carried *v1alpha2.V1alpha1Extras) LlamaStackDistributionSpec {
	workload, networking := hub.Workload, hub.Networking
	if workload == nil {
		workload = &v1alpha2.Workload{}
	}
	if networking == nil {
		networking = &v1alpha2.Networking{}
	}
	rejected := carried.Rejected
	if rejected == nil {
		rejected = &v1alpha2.Rejected{}
	}
	return LlamaStackDistributionSpec{
		Replicas: replicasOf(workload, rejected),
		Server: Server{
			Distribution:              distributionOf(hub.Distribution, rejected),
			ContainerSpec:             containerOf(workload, networking, carried, rejected),
			Workers:                   workload.Workers,
			PodOverrides:              podOverridesOf(workload.Overrides, carried),
			PodDisruptionBudget:       (*PodDisruptionBudget)(either(workload.PodDisruptionBudget, rejected.PodDisruptionBudget)),
			TopologySpreadConstraints: workload.TopologySpreadConstraints,
			Autoscaling:               (*Autoscaling)(either(workload.Autoscaling, rejected.Autoscaling)),
			Storage:                   (*VolumeStorage)(workload.Storage),
			UserConfig:                userConfigOf(hub.OverrideConfig, carried),
			TLSConfig:                 tlsConfigOf(networking.TLS, carried),
		},
		Network: networkOf(networking, carried, rejected),
	}
}

// either is the field of the hub, or where it has none what it refused.
func either[T any](field, refused *T) *T {
	if field != nil {
		return field
	}
	return refused
}

func replicasOf(w *v1alpha2.Workload, rejected *v1alpha2.Rejected) int32 {
	if n := either(w.Replicas, rejected.Replicas); n != nil {
		return *n
	}
	return v1alpha2.DefaultReplicas
}

func distributionOf(d v1alpha2.Distribution, rejected *v1alpha2.Rejected) Distribution {
	if d.Name == "" && d.Image != "" {
		d.Name = rejected.DistributionName
	}
	return Distribution(d)
}

// containerOf shows the port that a server without one has, unless none was given in
// this version.
func containerOf(w *v1alpha2.Workload, n *v1alpha2.Networking, carried *v1alpha2.V1alpha1Extras, rejected *v1alpha2.Rejected) *ContainerSpec {
	c := &ContainerSpec{Name: carried.ContainerName, Port: n.Port, Resources: w.Resources}
	if o := w.Overrides; o != nil {
		c.Env, c.Command, c.Args = o.Env, o.Command, o.Args
	}
	switch {
	case c.Port != 0:
	case rejected.Port != nil:
		c.Port = *rejected.Port
	case !carried.PortUnset:
		c.Port = v1alpha2.DefaultPort
	}
	if c.Name == "" && c.Port == 0 && c.Resources == nil && len(c.Env) == 0 && len(c.Command) == 0 && len(c.Args) == 0 &&
		!carried.Presence[v1alpha2.PresenceContainerSpec] {
		return nil
	}
	if c.Name == "" && !carried.ContainerNameUnset {
		c.Name = v1alpha2.DefaultContainerName
	}
	return c
}

func podOverridesOf(o *v1alpha2.Overrides, carried *v1alpha2.V1alpha1Extras) *PodOverrides {
	p := &PodOverrides{TerminationGracePeriodSeconds: carried.TerminationGracePeriod}
	if o != nil {
		p.ServiceAccountName, p.Volumes, p.VolumeMounts = o.ServiceAccountName, o.Volumes, o.VolumeMounts
	}
	if p.ServiceAccountName == "" && len(p.Volumes) == 0 && len(p.VolumeMounts) == 0 && p.TerminationGracePeriodSeconds == nil &&
		!carried.Presence[v1alpha2.PresencePodOverrides] {
		return nil
	}
	return p
}

func userConfigOf(o *v1alpha2.OverrideConfig, carried *v1alpha2.V1alpha1Extras) *UserConfig {
	config := &UserConfig{}
	if carried.UserConfig != nil {
		config.ConfigMapNamespace = carried.UserConfig.Namespace
	}
	switch {
	case o != nil:
		config.ConfigMapName = o.ConfigMapName
	case !carried.Presence[v1alpha2.PresenceUserConfig]:
		return nil
	}
	return config
}

func tlsConfigOf(t *v1alpha2.TLS, carried *v1alpha2.V1alpha1Extras) *TLSConfig {
	if t == nil {
		return nil
	}
	bundle := &CABundle{}
	if carried.CABundle != nil {
		bundle.ConfigMapNamespace, bundle.ConfigMapKeys = carried.CABundle.Namespace, carried.CABundle.Keys
	}
	switch {
	case t.CABundle != nil:
		bundle.ConfigMapName = t.CABundle.ConfigMapName
	case !carried.Presence[v1alpha2.PresenceCABundle]:
		return &TLSConfig{}
	}
	return &TLSConfig{CABundle: bundle}
}

func networkOf(n *v1alpha2.Networking, carried *v1alpha2.V1alpha1Extras, rejected *v1alpha2.Rejected) *Network {
	network := &Network{
		ExposeRoute: v1alpha2.ExposureOf(n.Expose).Enabled,
		AllowedFrom: (*AllowedFrom)(either(n.AllowedFrom, rejected.AllowedFrom)),
	}
	if *network == (Network{}) && !carried.Presence[v1alpha2.PresenceNetwork] {
		return nil
	}
	return network
}
