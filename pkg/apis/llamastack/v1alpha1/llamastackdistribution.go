package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// LlamaStackDistribution is one Llama Stack server: which distribution of it runs, and
// how.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=llamastackdistributions,singular=llamastackdistribution,shortName=llsd,scope=Namespaced
// +kubebuilder:selectablefield:JSONPath=`.spec.server.userConfig.configMapName`
// +kubebuilder:selectablefield:JSONPath=`.spec.server.userConfig.configMapNamespace`
// +kubebuilder:selectablefield:JSONPath=`.spec.server.tlsConfig.caBundle.configMapName`
// +kubebuilder:selectablefield:JSONPath=`.spec.server.tlsConfig.caBundle.configMapNamespace`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Where the server is in its life"
// +kubebuilder:printcolumn:name="Operator Version",type=string,JSONPath=`.status.version.operatorVersion`,description="The version of the operator"
// +kubebuilder:printcolumn:name="Server Version",type=string,JSONPath=`.status.version.llamaStackServerVersion`,description="The version of the server"
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

// LlamaStackDistributionSpec describes one server.
type LlamaStackDistributionSpec struct {
	// Replicas is the number of pods. It is always written, because the API server
	// would read a zero that is left out as the default.
	// +optional
	// +kubebuilder:default=1
	Replicas int32 `json:"replicas"`
	// Server is the server.
	// +required
	Server Server `json:"server"`
	// Network says how the server is reached.
	// +optional
	Network *Network `json:"network,omitempty"`
}

// Server is what runs in the pods, and how.
type Server struct {
	// Distribution says which distribution of Llama Stack runs.
	// +required
	Distribution Distribution `json:"distribution"`
	// ContainerSpec is the container of the server.
	// +optional
	ContainerSpec *ContainerSpec `json:"containerSpec,omitempty"`
	// Workers is the number of processes in each pod.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Workers *int32 `json:"workers,omitempty"`
	// PodOverrides change the pods.
	// +optional
	PodOverrides *PodOverrides `json:"podOverrides,omitempty"`
	// PodDisruptionBudget bounds how many pods may go at a time.
	// +optional
	PodDisruptionBudget *PodDisruptionBudget `json:"podDisruptionBudget,omitempty"`
	// TopologySpreadConstraints spread the pods.
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// Autoscaling makes a HorizontalPodAutoscaler.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`
	// Storage makes a volume that outlives the pods.
	// +optional
	Storage *VolumeStorage `json:"storage,omitempty"`
	// UserConfig names a ConfigMap with the configuration of the server.
	// +optional
	UserConfig *UserConfig `json:"userConfig,omitempty"`
	// TLSConfig says which certificate authorities the server trusts.
	// +optional
	TLSConfig *TLSConfig `json:"tlsConfig,omitempty"`
}

// Distribution names a distribution that the operator knows, or gives an image.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.image))",message="distribution.name and distribution.image are mutually exclusive: remove one of them"
type Distribution struct {
	// Name is a distribution that the operator knows, such as starter.
	// +optional
	Name string `json:"name,omitempty"`
	// Image is the container image of a distribution.
	// +optional
	Image string `json:"image,omitempty"`
}

// ContainerSpec is the container of the server.
type ContainerSpec struct {
	// Name is the name of the container.
	// +optional
	// +kubebuilder:default=llama-stack
	Name string `json:"name,omitempty"`
	// Port is where the server listens; 8321 where it is 0 or left out.
	// +optional
	Port int32 `json:"port,omitempty"`
	// Resources are what a pod requests, and its limits.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Env are variables of the server's environment.
	// +optional
	// +listType=atomic
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Command replaces the entrypoint of the image.
	// +optional
	// +listType=atomic
	Command []string `json:"command,omitempty"`
	// Args replace the arguments of the image.
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`
}

// PodOverrides change the pods.
type PodOverrides struct {
	// ServiceAccountName is the service account of the pods.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// TerminationGracePeriodSeconds is how long a pod may take to end.
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// Volumes are more volumes of the pods.
	// +optional
	// +listType=atomic
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts are more mounts of the server.
	// +optional
	// +listType=atomic
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}

// PodDisruptionBudget bounds how many pods may go at a time.
type PodDisruptionBudget struct {
	// MinAvailable is how many pods must stay, as a number or a share.
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// MaxUnavailable is how many pods may go, as a number or a share.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// Autoscaling makes a HorizontalPodAutoscaler.
type Autoscaling struct {
	// MinReplicas is the least number of pods.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// MaxReplicas is the greatest number of pods.
	// +required
	MaxReplicas int32 `json:"maxReplicas"`
	// TargetCPUUtilizationPercentage is the mean use of the requested CPU to aim at.
	// +optional
	TargetCPUUtilizationPercentage *int32 `json:"targetCPUUtilizationPercentage,omitempty"`
	// TargetMemoryUtilizationPercentage is the mean use of the requested memory to aim
	// at.
	// +optional
	TargetMemoryUtilizationPercentage *int32 `json:"targetMemoryUtilizationPercentage,omitempty"`
}

// VolumeStorage is a volume that outlives the pods.
type VolumeStorage struct {
	// Size is the size of the volume, 10Gi unless it is given.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// MountPath is where the volume is, /.llama unless it is given.
	// +optional
	MountPath string `json:"mountPath,omitempty"`
}

// UserConfig names a ConfigMap whose entry config.yaml is the configuration of the
// server.
type UserConfig struct {
	// ConfigMapName is the name of the ConfigMap.
	// +required
	ConfigMapName string `json:"configMapName"`
	// ConfigMapNamespace is its namespace, that of the object unless it is given.
	// +optional
	ConfigMapNamespace string `json:"configMapNamespace,omitempty"`
}

// TLSConfig says which certificate authorities the server trusts.
type TLSConfig struct {
	// CABundle are certificate authorities beside those of the image.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
}

// CABundle are entries of a ConfigMap.
type CABundle struct {
	// ConfigMapName is the name of the ConfigMap.
	// +required
	ConfigMapName string `json:"configMapName"`
	// ConfigMapNamespace is its namespace, that of the object unless it is given.
	// +optional
	ConfigMapNamespace string `json:"configMapNamespace,omitempty"`
	// ConfigMapKeys are the entries, ca-bundle.crt unless they are given.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9\-_.]*[a-zA-Z0-9])?$`
	ConfigMapKeys []string `json:"configMapKeys,omitempty"`
}

// Network says how the server is reached.
type Network struct {
	// ExposeRoute makes an Ingress.
	// +optional
	// +kubebuilder:default=false
	ExposeRoute bool `json:"exposeRoute,omitempty"`
	// AllowedFrom says who may reach the server where network policies are on.
	// +optional
	AllowedFrom *AllowedFrom `json:"allowedFrom,omitempty"`
}

// AllowedFrom says who may reach the server, beside its own namespace.
type AllowedFrom struct {
	// Namespaces are names of namespaces; "*" is every namespace.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// Labels are keys of labels of namespaces.
	// +optional
	// +listType=atomic
	Labels []string `json:"labels,omitempty"`
}
