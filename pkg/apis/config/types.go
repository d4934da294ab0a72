package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AcceleratorPlacementArgs are the arguments of the AcceleratorPlacement plugin.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type AcceleratorPlacementArgs struct {
	metav1.TypeMeta

	// KeepOthersOffAcceleratorNodes makes pods without devices prefer nodes without
	// devices. It only scores: where there is no such node, they go on any.
	KeepOthersOffAcceleratorNodes bool

	// SpreadFirstReplicas puts the second and the third replica of a variant of no more
	// than three on nodes of their own, where that costs the replicas still expected
	// little: the loss of one node should not take all of them.
	SpreadFirstReplicas bool

	// AcceleratorNames is the ConfigMap that names accelerators by the values of their
	// product labels, over the names that are built in. Nil is none.
	AcceleratorNames *ConfigMapReference
}

// ConfigMapReference names a ConfigMap. It need not exist: then it says nothing.
//
//nolint:revive // The kind of object that is named is called ConfigMap.
type ConfigMapReference struct {
	Namespace string
	Name      string
}
