package v1alpha2

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is where a server is in its life.
//
// +kubebuilder:validation:Enum=Pending;Initializing;Ready;Failed;Terminating
type Phase string

// The phases of a server. Terminating is part of the published API and never set:
// what is deleted is collected without it.
const (
	PhasePending      Phase = "Pending"
	PhaseInitializing Phase = "Initializing"
	PhaseReady        Phase = "Ready"
	PhaseFailed       Phase = "Failed"
	PhaseTerminating  Phase = "Terminating"
)

// LlamaStackDistributionStatus is what the operator saw and did.
type LlamaStackDistributionStatus struct {
	// Phase is where the server is in its life.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Conditions say what is right and what is wrong.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Version are the versions of the operator and of the server.
	// +optional
	Version *VersionInfo `json:"version,omitempty"`
	// DistributionConfig is what the server says of itself.
	// +optional
	DistributionConfig *DistributionConfig `json:"distributionConfig,omitempty"`
	// ResolvedDistribution is the image that runs, and where its configuration is from.
	// +optional
	ResolvedDistribution *ResolvedDistribution `json:"resolvedDistribution,omitempty"`
	// ConfigGeneration is the configuration that the operator generated; absent where
	// it did not.
	// +optional
	ConfigGeneration *ConfigGeneration `json:"configGeneration,omitempty"`
	// AvailableReplicas is the number of pods that are ready.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// Replicas is the number of pods, ready or not.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Selector is the label selector of the pods.
	// +optional
	Selector string `json:"selector,omitempty"`
	// ServiceURL is where the server is reached from within the cluster.
	// +optional
	ServiceURL string `json:"serviceURL,omitempty"`
	// RouteURL is where the server is reached from outside; empty while the Ingress
	// has no address, and absent where there is none.
	// +optional
	RouteURL *string `json:"routeURL,omitempty"`
}

// VersionInfo are the versions of the operator and of the server.
type VersionInfo struct {
	// OperatorVersion is the version of the operator.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// LlamaStackServerVersion is what the server says its version is.
	// +optional
	LlamaStackServerVersion string `json:"llamaStackServerVersion,omitempty"`
	// LastUpdated is when one of them changed.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`
}

// DistributionConfig is what the server says of itself.
type DistributionConfig struct {
	// ActiveDistribution is the name of the distribution, or custom where an image was
	// given.
	// +optional
	ActiveDistribution string `json:"activeDistribution,omitempty"`
	// Providers are the providers that the server lists.
	// +optional
	// +listType=atomic
	Providers []ProviderInfo `json:"providers,omitempty"`
	// AvailableDistributions are the images of the distributions by name.
	// +optional
	AvailableDistributions map[string]string `json:"availableDistributions,omitempty"`
}

// ProviderInfo is a provider as the server lists it.
type ProviderInfo struct {
	// API is the API of the provider.
	// +required
	API string `json:"api"`
	// ProviderID is the name of the provider.
	// +required
	ProviderID string `json:"provider_id"`
	// ProviderType is its type, such as remote::vllm.
	// +required
	ProviderType string `json:"provider_type"`
	// Config is its configuration, as the server shows it.
	// +required
	Config apiextensionsv1.JSON `json:"config"`
	// Health is how it is.
	// +required
	Health ProviderHealth `json:"health"`
}

// ProviderHealth is how a provider is.
type ProviderHealth struct {
	// Status is OK, Error or Not Implemented.
	// +required
	Status string `json:"status"`
	// Message says more.
	// +required
	Message string `json:"message"`
}

// Where the configuration of a server is from.
const (
	// ConfigSourceEmbedded is a configuration that was generated from the base that
	// the operator has for the distribution.
	ConfigSourceEmbedded = "embedded"
	// ConfigSourceOverride is the ConfigMap of spec.overrideConfig.
	ConfigSourceOverride = "override"
	// ConfigSourceDefault is the configuration in the image.
	ConfigSourceDefault = "distribution-default"
)

// ResolvedDistribution is the image that runs, and where its configuration is from.
type ResolvedDistribution struct {
	// Image is the image that runs.
	// +optional
	Image string `json:"image,omitempty"`
	// ConfigSource is embedded, override or distribution-default.
	// +optional
	ConfigSource string `json:"configSource,omitempty"`
	// ConfigHash is the SHA-256 of the configuration that was the base, or that
	// overrides it.
	// +optional
	ConfigHash string `json:"configHash,omitempty"`
}

// ConfigGeneration is the configuration that the operator generated.
type ConfigGeneration struct {
	// ConfigMapName is the ConfigMap that has it.
	// +optional
	ConfigMapName string `json:"configMapName,omitempty"`
	// GeneratedAt is when it became what it is.
	// +optional
	GeneratedAt *metav1.Time `json:"generatedAt,omitempty"`
	// ProviderCount is the number of providers that the object declares, or where it
	// declares none, those of the distribution.
	// +optional
	ProviderCount int32 `json:"providerCount,omitempty"`
	// ResourceCount is the number of models, tools and shields that the object
	// declares.
	// +optional
	ResourceCount int32 `json:"resourceCount,omitempty"`
	// ConfigVersion is the version of the format.
	// +optional
	ConfigVersion int32 `json:"configVersion,omitempty"`
}
