package v1alpha1

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/carrying"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// Parents of the hub that hubExtras.Presence may name.
const (
	presenceWorkload   = "workload"
	presenceOverrides  = "overrides"
	presenceNetworking = "networking"
)

// hubExtras is what an object of v1alpha2 has and this version has no field for.
type hubExtras struct {
	Providers         *v1alpha2.Providers         `json:"providers,omitempty"`
	Resources         *v1alpha2.Resources         `json:"resources,omitempty"`
	Storage           *v1alpha2.StateStorage      `json:"storage,omitempty"`
	Disabled          []v1alpha2.API              `json:"disabled,omitempty"`
	ExternalProviders *v1alpha2.ExternalProviders `json:"externalProviders,omitempty"`
	// Expose is spec.networking.expose where exposeRoute does not say all of it.
	Expose *apiextensionsv1.JSON `json:"expose,omitempty"`
	// ExposeHostname is what an earlier form has in place of Expose. It is read and
	// never written.
	ExposeHostname string `json:"exposeHostname,omitempty"`
	// PortUnset and ReplicasUnset say that the hub does not have what the view shows.
	PortUnset     bool `json:"portUnset,omitempty"`
	ReplicasUnset bool `json:"replicasUnset,omitempty"`
	// Presence names parents that were there and empty.
	Presence v1alpha2.Presence `json:"presence,omitempty"`
	Status   *hubStatusExtras  `json:"status,omitempty"`
}

type hubStatusExtras struct {
	ResolvedDistribution *v1alpha2.ResolvedDistribution `json:"resolvedDistribution,omitempty"`
	ConfigGeneration     *v1alpha2.ConfigGeneration     `json:"configGeneration,omitempty"`
}

// readHubExtras reads the annotations of an object of this version, and has the keys of those
// that it read. A value that cannot be read counts as none, and is left where it is.
func readHubExtras(annotations map[string]string) (extras *hubExtras, keys []string) {
	read, keys := carrying.Read[hubExtras](annotations, v1alpha2.PrefixV1alpha2, v1alpha2.AnnotationV1alpha2Extras)
	extras = &read
	if extras.Expose == nil && extras.ExposeHostname != "" {
		if hostname, err := json.Marshal(map[string]string{"hostname": extras.ExposeHostname}); err == nil {
			extras.Expose = &apiextensionsv1.JSON{Raw: hostname}
		}
	}
	return extras, keys
}

// hubExtrasOf is what the view does not show of the hub.
func hubExtrasOf(hub *v1alpha2.LlamaStackDistribution, view *LlamaStackDistribution) *hubExtras {
	spec := &hub.Spec
	e := &hubExtras{
		Providers: spec.Providers, Resources: spec.Resources, Storage: spec.Storage,
		Disabled: spec.Disabled, ExternalProviders: spec.ExternalProviders,
	}
	if hub.Status.ResolvedDistribution != nil || hub.Status.ConfigGeneration != nil {
		e.Status = &hubStatusExtras{hub.Status.ResolvedDistribution, hub.Status.ConfigGeneration}
	}
	networking := spec.Networking
	if networking != nil && networking.Expose != nil && !isTrue(networking.Expose) {
		e.Expose = networking.Expose
	}
	// Whatever the view makes of the hub without these notes must be what the hub is.
	e.PortUnset = (networking == nil || networking.Port == 0) && portOf(view) == v1alpha2.DefaultPort
	e.ReplicasUnset = (spec.Workload == nil || spec.Workload.Replicas == nil) && view.Spec.Replicas >= 0
	if w := spec.Workload; w != nil {
		if w.Overrides != nil && isEmptyOverrides(w.Overrides) {
			e.Presence.Add(presenceOverrides)
		} else if isEmptyWorkload(w) {
			e.Presence.Add(presenceWorkload)
		}
	}
	if networking != nil && *networking == (v1alpha2.Networking{}) {
		e.Presence.Add(presenceNetworking)
	}
	return e
}

// applyTo brings back what the annotation carried into a hub that was made of the
// object. A field that the object shows, and that was edited there, wins.
func (e *hubExtras) applyTo(hub *v1alpha2.LlamaStackDistribution, source *LlamaStackDistribution) {
	spec := &hub.Spec
	spec.Providers, spec.Resources, spec.Storage = e.Providers, e.Resources, e.Storage
	spec.Disabled, spec.ExternalProviders = e.Disabled, e.ExternalProviders
	if e.Status != nil {
		hub.Status.ResolvedDistribution, hub.Status.ConfigGeneration = e.Status.ResolvedDistribution, e.Status.ConfigGeneration
	}
	if e.Expose != nil && v1alpha2.ExposureOf(e.Expose).Enabled == (source.Spec.Network != nil && source.Spec.Network.ExposeRoute) {
		networkingOf(spec).Expose = e.Expose
	}
	if e.PortUnset && portOf(source) == v1alpha2.DefaultPort {
		spec.Networking.Port = 0
	}
	if e.ReplicasUnset && source.Spec.Replicas == v1alpha2.DefaultReplicas {
		spec.Workload.Replicas = nil
	}
	if e.Presence[presenceOverrides] && workloadOf(spec).Overrides == nil {
		spec.Workload.Overrides = &v1alpha2.Overrides{}
	}
	if spec.Workload != nil && isEmptyWorkload(spec.Workload) && !e.Presence[presenceWorkload] {
		spec.Workload = nil
	}
	if spec.Networking != nil && *spec.Networking == (v1alpha2.Networking{}) && !e.Presence[presenceNetworking] {
		spec.Networking = nil
	}
}

func workloadOf(spec *v1alpha2.LlamaStackDistributionSpec) *v1alpha2.Workload {
	if spec.Workload == nil {
		spec.Workload = &v1alpha2.Workload{}
	}
	return spec.Workload
}

func networkingOf(spec *v1alpha2.LlamaStackDistributionSpec) *v1alpha2.Networking {
	if spec.Networking == nil {
		spec.Networking = &v1alpha2.Networking{}
	}
	return spec.Networking
}

func portOf(object *LlamaStackDistribution) int32 {
	if object.Spec.Server.ContainerSpec == nil {
		return 0
	}
	return object.Spec.Server.ContainerSpec.Port
}

func isTrue(value *apiextensionsv1.JSON) bool {
	return strings.TrimSpace(string(value.Raw)) == "true"
}
