// Package v1 holds the arguments of the scheduler plugin as a user writes them in
// the scheduler's configuration. What is left out has a default.
//
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=llmd.ai/workload-variant-autoscaler/pkg/apis/config
// +k8s:defaulter-gen=TypeMeta
// +groupName=kubescheduler.config.k8s.io
package v1
