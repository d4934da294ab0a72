package config

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// The published names of the ConfigMaps beside the main one, those that count first in
// front. Older versions and guides differ, and all of them are found.
var (
	saturationMaps   = []string{"wva-saturation-scaling-config", "saturation-scaling-config", "wva-capacity-scaling-config", "capacity-scaling-config"}
	serviceClassMaps = []string{"wva-service-classes-config", publishedServiceClasses, "wva-serviceclass", "serviceclass"}
	unitCostMaps     = []string{"wva-accelerator-unit-costs", publishedUnitCosts}
	scaleToZeroMaps  = []string{"wva-model-scale-to-zero-config", "model-scale-to-zero-config"}
)

// SaturationConfigMaps are the names under which the saturation thresholds are looked for.
// The first of them that exists counts.
func (s Static) SaturationConfigMaps() []string { return either(s.SaturationConfigMap, saturationMaps) }

// ServiceClassConfigMaps are those of the service classes.
func (s Static) ServiceClassConfigMaps() []string {
	return either(s.ServiceClassConfigMap, serviceClassMaps)
}

// UnitCostConfigMaps are those of the prices of accelerators.
func (s Static) UnitCostConfigMaps() []string { return either(s.UnitCostConfigMap, unitCostMaps) }

// ScaleToZeroConfigMaps are those of leave to scale to zero.
func (s Static) ScaleToZeroConfigMaps() []string {
	return either(s.ScaleToZeroConfigMap, scaleToZeroMaps)
}

// either are the published names, behind another one that was given.
func either(given string, published []string) []string {
	if slices.Contains(published, given) {
		return published
	}
	return append([]string{given}, published...)
}

// Lease is the name of the lease by which a leader is elected: each controller instance
// has one of its own, so that several of them can share a namespace.
func (s Static) Lease() string {
	instance := s.ControllerInstance
	if instance == "" {
		return s.LeaderElection.ID
	}
	// A label may hold what the name of an object may not. Two labels must not become one
	// name.
	name := strings.Trim(strings.ReplaceAll(strings.ToLower(instance), "_", "-"), "-.")
	if name != instance {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(instance))
		name = fmt.Sprintf("%s-%08x", name, sum.Sum32())
	}
	return s.LeaderElection.ID + "-" + name
}
