package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Networking says how the server is reached.
type Networking struct {
	// Port is where the server listens, and the port of its Service.
	// +optional
	// +kubebuilder:default=8321
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// TLS says which certificate authorities the server trusts.
	// +optional
	TLS *TLS `json:"tls,omitempty"`
	// Expose makes an Ingress: true, or an object with the fields enabled (true unless
	// it is given) and hostname.
	// +optional
	Expose *apiextensionsv1.JSON `json:"expose,omitempty"`
	// AllowedFrom says who may reach the server where network policies are on.
	// +optional
	AllowedFrom *AllowedFrom `json:"allowedFrom,omitempty"`
}

// TLS says which certificate authorities the server trusts.
type TLS struct {
	// CABundle are certificate authorities beside those of the image.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
}

// CABundle is the entry ca-bundle.crt of a ConfigMap in the object's namespace.
type CABundle struct {
	// ConfigMapName is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	ConfigMapName string `json:"configMapName"`
}

// AllowedFrom says who may reach the server, beside its own namespace.
type AllowedFrom struct {
	// Namespaces are names of namespaces; "*" is every namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MinLength=1
	Namespaces []string `json:"namespaces,omitempty"`
	// Labels are keys of labels of namespaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MinLength=1
	Labels []string `json:"labels,omitempty"`
}

// Workload says how the server runs.
type Workload struct {
	// Replicas is the number of pods. With autoscaling it is the least number.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// Workers is the number of processes in each pod.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Workers *int32 `json:"workers,omitempty"`
	// Resources are what a pod requests, and its limits.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Autoscaling makes a HorizontalPodAutoscaler.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`
	// Storage makes a volume that outlives the pods.
	// +optional
	Storage *VolumeStorage `json:"storage,omitempty"`
	// PodDisruptionBudget bounds how many pods may go at a time.
	// +optional
	PodDisruptionBudget *PodDisruptionBudget `json:"podDisruptionBudget,omitempty"`
	// TopologySpreadConstraints spread the pods.
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// Overrides change the pods.
	// +optional
	Overrides *Overrides `json:"overrides,omitempty"`
}

// Autoscaling makes a HorizontalPodAutoscaler.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="autoscaling.minReplicas is above autoscaling.maxReplicas: lower minReplicas or raise maxReplicas"
type Autoscaling struct {
	// MinReplicas is the least number of pods.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// MaxReplicas is the greatest number of pods.
	// +required
	// +kubebuilder:validation:Minimum=1
	MaxReplicas int32 `json:"maxReplicas"`
	// TargetCPUUtilizationPercentage is the mean use of the requested CPU to aim at;
	// 80 where no target is given.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	TargetCPUUtilizationPercentage *int32 `json:"targetCPUUtilizationPercentage,omitempty"`
	// TargetMemoryUtilizationPercentage is the mean use of the requested memory to aim
	// at.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	TargetMemoryUtilizationPercentage *int32 `json:"targetMemoryUtilizationPercentage,omitempty"`
}

// VolumeStorage is a volume that outlives the pods.
type VolumeStorage struct {
	// Size is the size of the volume, 10Gi unless it is given.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// MountPath is where the volume is, /.llama unless it is given.
	// +optional
	// +kubebuilder:validation:MinLength=1
	MountPath string `json:"mountPath,omitempty"`
}

// PodDisruptionBudget bounds how many pods may go at a time.
//
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) || has(self.maxUnavailable)",message="podDisruptionBudget needs minAvailable or maxUnavailable: set one of them"
// +kubebuilder:validation:XValidation:rule="!(has(self.minAvailable) && has(self.maxUnavailable))",message="podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable are mutually exclusive: remove one of them"
type PodDisruptionBudget struct {
	// MinAvailable is how many pods must stay, as a number or a share.
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// MaxUnavailable is how many pods may go, as a number or a share.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// Overrides change the pods.
type Overrides struct {
	// ServiceAccountName is the service account of the pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Env are variables of the server's environment; they win over the operator's.
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
	// Volumes are more volumes of the pods.
	// +optional
	// +listType=atomic
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts are more mounts of the server.
	// +optional
	// +listType=atomic
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}
