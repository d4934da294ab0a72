// Package crd is the definition of VariantAutoscaling as clusters get it, for programs that go
// by it without a cluster.
//
// It decides nothing: controller-gen makes the file from package v1alpha1. It must never hold a
// definition of another form than the one that is installed.
package crd

import _ "embed" // for the definition

// VariantAutoscaling is the CustomResourceDefinition as YAML.
//
//go:embed llmd.ai_variantautoscalings.yaml
var VariantAutoscaling []byte
