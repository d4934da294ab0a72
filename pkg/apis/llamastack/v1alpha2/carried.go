package v1alpha2

import (
	"encoding/json"
	"strconv"
)

// Annotations that carry what one version has and the other has no field for. They
// belong to the conversion: what a user writes there may be replaced.
const (
	// AnnotationV1alpha1Extras is on objects of this version, and holds V1alpha1Extras.
	AnnotationV1alpha1Extras = "llamastack.io/v1alpha1-extras"
	// AnnotationV1alpha2Extras is on objects of v1alpha1, and holds what only this
	// version has.
	AnnotationV1alpha2Extras = "llamastack.io/v1alpha2-extras"
)

// Annotations of an earlier form, one per value. They are read and never written.
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
	PresenceCABundle      = "tlsConfig.caBundle"
	PresenceNetwork       = "network"
)

// V1alpha1Extras is what an object of v1alpha1 has and this version has no field for.
type V1alpha1Extras struct {
	// ContainerName is the name of the container where it is not the default.
	ContainerName string `json:"containerName,omitempty"`
	// ContainerNameUnset says that there was a container without a name.
	ContainerNameUnset bool `json:"containerNameUnset,omitempty"`
	// TerminationGracePeriod is how long a pod may take to end, in seconds.
	TerminationGracePeriod *int64 `json:"terminationGracePeriod,omitempty"`
	// UserConfigNamespace is the namespace of the ConfigMap that overrides the
	// configuration.
	UserConfigNamespace string `json:"userConfigNamespace,omitempty"`
	// CABundleNamespace and CABundleKeys say where the certificate authorities are.
	CABundleNamespace string   `json:"caBundleNamespace,omitempty"`
	CABundleKeys      []string `json:"caBundleKeys,omitempty"`
	// PortUnset says that no port was given.
	PortUnset bool `json:"portUnset,omitempty"`
	// Presence names parents that were there and empty.
	Presence []string `json:"presence,omitempty"`
	// Rejected are values that the schema of this version refuses.
	Rejected *Rejected `json:"rejected,omitempty"`
}

// IsEmpty says whether there is nothing to carry.
func (e *V1alpha1Extras) IsEmpty() bool {
	return e.ContainerName == "" && !e.ContainerNameUnset && e.TerminationGracePeriod == nil && e.UserConfigNamespace == "" &&
		e.CABundleNamespace == "" && len(e.CABundleKeys) == 0 && !e.PortUnset && len(e.Presence) == 0 && e.Rejected == nil
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

// ReadV1alpha1Extras reads the annotations of an object of this version. A value that
// cannot be read counts as none, and is left where it is: ok is false then.
func ReadV1alpha1Extras(annotations map[string]string) (extras V1alpha1Extras, ok bool) {
	text, found := annotations[AnnotationV1alpha1Extras]
	ok = true
	if found && json.Unmarshal([]byte(text), &extras) != nil {
		extras, ok = V1alpha1Extras{}, false
	}
	extras.readLegacy(annotations)
	return extras, ok
}

// readLegacy takes what the earlier annotations say and the present one does not.
func (e *V1alpha1Extras) readLegacy(annotations map[string]string) {
	take := func(into *string, key string) {
		if *into == "" {
			*into = annotations[key]
		}
	}
	take(&e.ContainerName, legacyContainerName)
	take(&e.UserConfigNamespace, legacyUserConfigNamespace)
	take(&e.CABundleNamespace, legacyCABundleNamespace)
	if seconds, err := strconv.ParseInt(annotations[legacyTerminationGracePeriod], 10, 64); err == nil && e.TerminationGracePeriod == nil {
		e.TerminationGracePeriod = &seconds
	}
	var keys []string
	if json.Unmarshal([]byte(annotations[legacyCABundleKeys]), &keys) == nil && len(e.CABundleKeys) == 0 {
		e.CABundleKeys = keys
	}
}

// DropV1alpha1Extras takes the annotations away that ReadV1alpha1Extras read.
func DropV1alpha1Extras(annotations map[string]string) {
	for _, key := range []string{
		AnnotationV1alpha1Extras, legacyContainerName, legacyTerminationGracePeriod,
		legacyUserConfigNamespace, legacyCABundleNamespace, legacyCABundleKeys,
	} {
		delete(annotations, key)
	}
}
