package v1alpha2

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/carrying"
)

// Prefixes of the annotations that carry what one version has and the other has no field for, one
// annotation for each field. They belong to the conversion: what a user writes there may be
// replaced.
const (
	// PrefixV1alpha1 is on objects of this version: together they are V1alpha1Extras.
	PrefixV1alpha1 = "v1alpha1.llamastack.io/"
	// PrefixV1alpha2 is on objects of v1alpha1: together they are what only this version has.
	PrefixV1alpha2 = "v1alpha2.llamastack.io/"
)

// Annotations of an earlier form, one for all values. They are read and never written.
const (
	AnnotationV1alpha1Extras = "llamastack.io/v1alpha1-extras"
	AnnotationV1alpha2Extras = "llamastack.io/v1alpha2-extras"
)

// Annotations of a still earlier form, one per value. They are read and never written.
const (
	legacyContainerName          = "llamastack.io/v1alpha1-container-name"
	legacyTerminationGracePeriod = "llamastack.io/v1alpha1-termination-grace-period"
	legacyUserConfigNamespace    = "llamastack.io/v1alpha1-user-config-namespace"
	legacyCABundleNamespace      = "llamastack.io/v1alpha1-ca-bundle-namespace"
	legacyCABundleKeys           = "llamastack.io/v1alpha1-ca-bundle-keys"
)

// Parents of v1alpha1 that V1alpha1Extras.Presence may name.
const (
	PresenceContainerSpec = "containerSpec"
	PresencePodOverrides  = "podOverrides"
	PresenceUserConfig    = "userConfig"
	PresenceCABundle      = "caBundle"
	PresenceNetwork       = "network"
)

// Presence names parents that were there and empty.
type Presence map[string]bool

// UnmarshalJSON also reads the list of an earlier form, in which a parent has its path.
func (p *Presence) UnmarshalJSON(text []byte) error {
	var paths []string
	if json.Unmarshal(text, &paths) != nil {
		return json.Unmarshal(text, (*map[string]bool)(p))
	}
	*p = Presence{}
	for _, path := range paths {
		(*p)[path[strings.LastIndex(path, ".")+1:]] = true
	}
	return nil
}

// Add notes that a parent was there.
func (p *Presence) Add(parent string) {
	if *p == nil {
		*p = Presence{}
	}
	(*p)[parent] = true
}

// V1alpha1Extras is what an object of v1alpha1 has and this version has no field for.
type V1alpha1Extras struct {
	// ContainerName is the name of the container where it is not the default.
	ContainerName string `json:"containerName,omitempty"`
	// ContainerNameUnset says that there was a container without a name.
	ContainerNameUnset bool `json:"containerNameUnset,omitempty"`
	// TerminationGracePeriod is how long a pod may take to end, in seconds.
	TerminationGracePeriod *int64 `json:"terminationGracePeriod,omitempty"`
	// UserConfig is where the ConfigMap is that overrides the configuration.
	UserConfig *CarriedConfigMap `json:"userConfig,omitempty"`
	// CABundle is where the certificate authorities are.
	CABundle *CarriedConfigMap `json:"caBundle,omitempty"`
	// PortUnset says that no port was given.
	PortUnset bool `json:"portUnset,omitempty"`
	// Presence names parents that were there and empty.
	Presence Presence `json:"presence,omitempty"`
	// Rejected are values that the schema of this version refuses.
	Rejected *Rejected `json:"rejected,omitempty"`
}

// CarriedConfigMap is what v1alpha1 says of a ConfigMap and this version does not.
type CarriedConfigMap struct {
	// Name is the ConfigMap that it is about: it says nothing of another one. An earlier form has no
	// name, and is about whichever the object names.
	Name *string `json:"name,omitempty"`
	// Namespace is the namespace of the ConfigMap where it is not the object's.
	Namespace string `json:"namespace,omitempty"`
	// Keys are its entries where they are not the default.
	Keys []string `json:"keys,omitempty"`
}

// IsEmpty says whether there is nothing to carry.
func (e *V1alpha1Extras) IsEmpty() bool {
	return e.ContainerName == "" && !e.ContainerNameUnset && e.TerminationGracePeriod == nil && e.UserConfig == nil &&
		e.CABundle == nil && !e.PortUnset && len(e.Presence) == 0 && e.Rejected == nil
}

// Rejected are values of an object of v1alpha1 that the schema of this version refuses.
// They are not part of the object of this version, so that its status can be written.
type Rejected struct {
	DistributionName    string               `json:"distributionName,omitempty"`
	Replicas            *int32               `json:"replicas,omitempty"`
	Port                *int32               `json:"port,omitempty"`
	Autoscaling         *Autoscaling         `json:"autoscaling,omitempty"`
	PodDisruptionBudget *PodDisruptionBudget `json:"podDisruptionBudget,omitempty"`
	AllowedFrom         *AllowedFrom         `json:"allowedFrom,omitempty"`
}

// ReadV1alpha1Extras reads the annotations of an object of this version, as far as they are about
// what the object is now: somebody may have edited it in this version since. What cannot be read
// counts as none. The keys are those of the annotations that were read.
func ReadV1alpha1Extras(object *LlamaStackDistribution) (extras V1alpha1Extras, keys []string) {
	extras, keys = carrying.Read[V1alpha1Extras](object.Annotations, PrefixV1alpha1, AnnotationV1alpha1Extras)
	extras.readEarlier(object.Annotations)
	keys = append(keys, legacyContainerName, legacyTerminationGracePeriod, legacyUserConfigNamespace, legacyCABundleNamespace, legacyCABundleKeys)
	extras.judge(&object.Spec)
	return extras, keys
}

// readEarlier takes what annotations of earlier forms say and the present ones do not.
func (e *V1alpha1Extras) readEarlier(annotations map[string]string) {
	var whole struct {
		UserConfigNamespace string   `json:"userConfigNamespace"`
		CABundleNamespace   string   `json:"caBundleNamespace"`
		CABundleKeys        []string `json:"caBundleKeys"`
	}
	// What cannot be read counts as none.
	if json.Unmarshal([]byte(annotations[AnnotationV1alpha1Extras]), &whole) != nil {
		whole.UserConfigNamespace, whole.CABundleNamespace, whole.CABundleKeys = "", "", nil
	}
	e.ContainerName = cmp.Or(e.ContainerName, annotations[legacyContainerName])
	if seconds, err := strconv.ParseInt(annotations[legacyTerminationGracePeriod], 10, 64); err == nil && e.TerminationGracePeriod == nil {
		e.TerminationGracePeriod = &seconds
	}
	if namespace := cmp.Or(whole.UserConfigNamespace, annotations[legacyUserConfigNamespace]); namespace != "" && e.UserConfig == nil {
		e.UserConfig = &CarriedConfigMap{Namespace: namespace}
	}
	if len(whole.CABundleKeys) == 0 && json.Unmarshal([]byte(annotations[legacyCABundleKeys]), &whole.CABundleKeys) != nil {
		whole.CABundleKeys = nil
	}
	if namespace := cmp.Or(whole.CABundleNamespace, annotations[legacyCABundleNamespace]); (namespace != "" || len(whole.CABundleKeys) > 0) && e.CABundle == nil {
		e.CABundle = &CarriedConfigMap{Namespace: namespace, Keys: whole.CABundleKeys}
	}
}

// judge drops what is about a ConfigMap that the object no longer names, and what it refused and
// has a value for now.
func (e *V1alpha1Extras) judge(spec *LlamaStackDistributionSpec) {
	config, bundle := "", ""
	if spec.OverrideConfig != nil {
		config = spec.OverrideConfig.ConfigMapName
	}
	if n := spec.Networking; n != nil && n.TLS != nil && n.TLS.CABundle != nil {
		bundle = n.TLS.CABundle.ConfigMapName
	}
	if e.UserConfig != nil && e.UserConfig.Name != nil && *e.UserConfig.Name != config {
		e.UserConfig = nil
	}
	if e.CABundle != nil && e.CABundle.Name != nil && *e.CABundle.Name != bundle {
		e.CABundle = nil
	}
	if e.Rejected != nil {
		if e.Rejected.judge(spec); *e.Rejected == (Rejected{}) {
			e.Rejected = nil
		}
	}
}

// judge drops what the object has a value for.
func (r *Rejected) judge(spec *LlamaStackDistributionSpec) {
	if spec.Distribution.Name != "" || spec.Distribution.Image == "" {
		r.DistributionName = ""
	}
	if n := spec.Networking; n != nil && n.Port != 0 {
		r.Port = nil
	}
	if n := spec.Networking; n != nil && n.AllowedFrom != nil {
		r.AllowedFrom = nil
	}
	if w := spec.Workload; w != nil {
		if w.Replicas != nil {
			r.Replicas = nil
		}
		if w.Autoscaling != nil {
			r.Autoscaling = nil
		}
		if w.PodDisruptionBudget != nil {
			r.PodDisruptionBudget = nil
		}
	}
}
