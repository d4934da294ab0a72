package v1alpha2

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a server has where the object says nothing.
const (
	DefaultPort          int32 = 8321
	DefaultReplicas      int32 = 1
	DefaultContainerName       = "llama-stack"
	DefaultMountPath           = "/.llama"
	DefaultStorageSize         = "10Gi"
)

// LlamaStackDistribution is one Llama Stack server: which distribution of it runs, what
// it is configured with, and how it runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.workload.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=llamastackdistributions,singular=llamastackdistribution,shortName=llsd,scope=Namespaced
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Where the server is in its life"
// +kubebuilder:printcolumn:name="Distribution",type=string,JSONPath=`.status.resolvedDistribution.image`,description="The image that runs",priority=1
// +kubebuilder:printcolumn:name="Config",type=string,JSONPath=`.status.configGeneration.configMapName`,description="The ConfigMap with the generated configuration",priority=1
// +kubebuilder:printcolumn:name="Providers",type=integer,JSONPath=`.status.configGeneration.providerCount`,description="The providers of the generated configuration"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="The replicas that are ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LlamaStackDistribution struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	// +required
	Spec LlamaStackDistributionSpec `json:"spec"`
	// Status is what the operator saw and did.
	// +optional
	Status LlamaStackDistributionStatus `json:"status,omitempty"`
}

// LlamaStackDistributionList is a list of LlamaStackDistribution objects.
//
// +kubebuilder:object:root=true
type LlamaStackDistributionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LlamaStackDistribution `json:"items"`
}

// LlamaStackDistributionSpec describes one server. Either the operator generates the
// server's configuration from providers, resources, storage and disabled, or
// overrideConfig names a whole one; with neither, the distribution's own counts.
//
// +kubebuilder:validation:XValidation:rule="!has(self.overrideConfig) || !has(self.providers)",message="overrideConfig and providers are mutually exclusive: remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.overrideConfig) || !has(self.resources)",message="overrideConfig and resources are mutually exclusive: remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.overrideConfig) || !has(self.storage)",message="overrideConfig and storage are mutually exclusive: remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.overrideConfig) || !has(self.disabled)",message="overrideConfig and disabled are mutually exclusive: remove one of them"
type LlamaStackDistributionSpec struct {
	// Distribution says which distribution of Llama Stack runs.
	// +required
	Distribution Distribution `json:"distribution"`

	// Providers are what the server's APIs are backed by. They are added to those of
	// the distribution, or replace the one with the same ID.
	// +optional
	Providers *Providers `json:"providers,omitempty"`

	// Resources are the models, tools and shields that the server registers.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// Storage is where the server keeps its state. It is not the volume: that is
	// workload.storage.
	// +optional
	Storage *StateStorage `json:"storage,omitempty"`

	// Disabled are the APIs that the server does not offer.
	// +optional
	// +listType=atomic
	Disabled []API `json:"disabled,omitempty"`

	// Networking says how the server is reached.
	// +optional
	Networking *Networking `json:"networking,omitempty"`

	// Workload says how the server runs.
	// +optional
	// +kubebuilder:default={}
	Workload *Workload `json:"workload,omitempty"`

	// ExternalProviders are providers that come in images of their own. They are
	// stored and checked; the operator does not inject them yet and says so in the
	// condition ExternalProvidersApplied.
	// +optional
	ExternalProviders *ExternalProviders `json:"externalProviders,omitempty"`

	// OverrideConfig names a ConfigMap with the whole configuration of the server.
	// +optional
	OverrideConfig *OverrideConfig `json:"overrideConfig,omitempty"`
}

// Distribution names a distribution that the operator knows, or gives an image.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.image))",message="distribution.name and distribution.image are mutually exclusive: remove one of them"
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.image)",message="distribution needs name or image: set one of them"
type Distribution struct {
	// Name is a distribution that the operator knows, such as starter.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name,omitempty"`
	// Image is the container image of a distribution.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image,omitempty"`
}

// Providers are the providers by API. Each value is one provider, or a list of them in
// which each has an id:
//
//	{provider: vllm, endpoint: http://..., apiKey: {name: secret, key: token}, settings: {...}}
type Providers struct {
	// Inference are the providers of models: one object with the fields id, provider,
	// endpoint, apiKey, secretRefs and settings, or a list of such objects.
	// +optional
	Inference *apiextensionsv1.JSON `json:"inference,omitempty"`
	// Safety are the providers of shields: one object or a list, as for inference.
	// +optional
	Safety *apiextensionsv1.JSON `json:"safety,omitempty"`
	// VectorIo are the vector stores: one object or a list, as for inference.
	// +optional
	VectorIo *apiextensionsv1.JSON `json:"vectorIo,omitempty"`
	// ToolRuntime are the providers of tools: one object or a list, as for inference.
	// +optional
	ToolRuntime *apiextensionsv1.JSON `json:"toolRuntime,omitempty"`
	// Telemetry are the receivers of telemetry: one object or a list, as for
	// inference. Only distributions with a telemetry API take them.
	// +optional
	Telemetry *apiextensionsv1.JSON `json:"telemetry,omitempty"`
}

// Resources are what the server registers with its providers.
type Resources struct {
	// Models are names of models, or objects with the fields name, provider,
	// contextLength, modelType and quantization.
	// +optional
	// +listType=atomic
	Models []apiextensionsv1.JSON `json:"models,omitempty"`
	// Tools are tool groups, such as builtin::websearch.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MinLength=1
	Tools []string `json:"tools,omitempty"`
	// Shields are safety shields, such as llama-guard.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MinLength=1
	Shields []string `json:"shields,omitempty"`
}

// API is an API of the server. The names in camel case are those of spec.providers.
//
// +kubebuilder:validation:Enum=agents;batches;datasetio;eval;files;inference;post_training;postTraining;responses;safety;scoring;telemetry;tool_runtime;toolRuntime;vector_io;vectorIo
type API string

// ExternalProviders are the external providers by API.
type ExternalProviders struct {
	// Inference are external providers of models.
	// +optional
	// +listType=atomic
	Inference []ExternalProvider `json:"inference,omitempty"`
	// Safety are external providers of shields.
	// +optional
	// +listType=atomic
	Safety []ExternalProvider `json:"safety,omitempty"`
	// VectorIo are external vector stores.
	// +optional
	// +listType=atomic
	VectorIo []ExternalProvider `json:"vectorIo,omitempty"`
	// ToolRuntime are external providers of tools.
	// +optional
	// +listType=atomic
	ToolRuntime []ExternalProvider `json:"toolRuntime,omitempty"`
	// Telemetry are external receivers of telemetry.
	// +optional
	// +listType=atomic
	Telemetry []ExternalProvider `json:"telemetry,omitempty"`
}

// ExternalProvider is a provider that comes in an image.
type ExternalProvider struct {
	// ProviderID names the provider in the server's configuration.
	// +required
	// +kubebuilder:validation:MinLength=1
	ProviderID string `json:"providerId"`
	// Image is the container image with the provider.
	// +required
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
	// ImagePullPolicy says when the image is fetched.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	ImagePullPolicy string `json:"imagePullPolicy,omitempty"`
	// Config is the provider's own configuration.
	// +optional
	Config *apiextensionsv1.JSON `json:"config,omitempty"`
}

// OverrideConfig names a ConfigMap in the object's namespace whose entry config.yaml
// is the whole configuration of the server.
type OverrideConfig struct {
	// ConfigMapName is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	ConfigMapName string `json:"configMapName"`
}
