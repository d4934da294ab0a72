package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AcceleratorPlacementArgs are the arguments of the AcceleratorPlacement plugin.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type AcceleratorPlacementArgs struct {
	metav1.TypeMeta `json:",inline"`

	// KeepOthersOffAcceleratorNodes makes pods without devices prefer nodes without
	// devices. It only scores: where there is no such node, they go on any. Default
	// is true.
	// +optional
	KeepOthersOffAcceleratorNodes *bool `json:"keepOthersOffAcceleratorNodes,omitempty"`

	// SpreadFirstReplicas puts the second and the third replica of a variant of no more
	// than three on nodes of their own, where that costs the replicas still expected
	// little: the loss of one node should not take all of them. Default is
	// true.
	// +optional
	SpreadFirstReplicas *bool `json:"spreadFirstReplicas,omitempty"`

	// AcceleratorNames is the ConfigMap that names accelerators by the values of their
	// product labels, over the names that are built in: each key of its data is the
	// value of a label, its value the name. The autoscaler should read the same one.
	// Default is none.
	// +optional
	AcceleratorNames *ConfigMapReference `json:"acceleratorNames,omitempty"`
}

// ConfigMapReference names a ConfigMap. It need not exist: then it says nothing.
type ConfigMapReference struct {
	// Namespace of the ConfigMap.
	Namespace string `json:"namespace"`
	// Name of the ConfigMap.
	Name string `json:"name"`
}
