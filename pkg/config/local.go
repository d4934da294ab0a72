package config

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Local is what the ConfigMaps in one namespace say of the models in it. A ConfigMap there
// stands wholly in the place of the one beside the manager: nothing is inherited from that.
type Local struct {
	// Saturation are the thresholds; nil where the namespace has no ConfigMap of them.
	Saturation *Saturation
	// ScaleToZero says which models may scale to zero; nil where the namespace has no
	// ConfigMap of it.
	ScaleToZero *ScaleToZero
}

// LocalConfigMaps are the names of all ConfigMaps that a namespace may have of its own.
// They are the published ones, whatever those beside the manager are called, so that a
// Role can name them.
func LocalConfigMaps() []string {
	return slices.Concat(LocalSaturationConfigMaps(), LocalScaleToZeroConfigMaps())
}

// LocalSaturationConfigMaps are the names of those with thresholds; the first counts.
func LocalSaturationConfigMaps() []string { return slices.Clone(saturationMaps) }

// LocalScaleToZeroConfigMaps are the names of those about scaling to zero; the first
// counts.
func LocalScaleToZeroConfigMaps() []string { return slices.Clone(scaleToZeroMaps) }

// ParseLocalSaturation is ParseSaturation for a ConfigMap in a namespace of models: an entry
// needs no namespace, and one for another namespace has no effect.
func ParseLocalSaturation(namespace string, data map[string]string) (Saturation, []string, error) {
	return parseSaturation(data, namespace)
}

// ParseLocalScaleToZero is ParseScaleToZero for a ConfigMap in a namespace of models: an
// entry for another namespace has no effect.
func ParseLocalScaleToZero(namespace string, data map[string]string) (ScaleToZero, []string, error) {
	return parseScaleToZero(data, namespace)
}

// elsewhere reports whether the model is in another namespace than the one that the
// ConfigMap is for, which is empty beside the manager.
func (f fields) elsewhere(model decision.ModelKey, local string) bool {
	if local == "" || model.Namespace == "" || model.Namespace == local {
		return false
	}
	f.warn("has no effect, because it is for namespace %s and the ConfigMap is in %s: remove it, or move it there", model.Namespace, local)
	return true
}

// In are the settings as they hold for the models of a namespace with these ConfigMaps.
func (d Dynamic) In(local Local) Dynamic {
	if local.Saturation != nil {
		d.Saturation = *local.Saturation
	}
	if local.ScaleToZero != nil {
		d.ScaleToZero = *local.ScaleToZero
	}
	return d
}

// SaturationOf are the thresholds of one model.
func (d Dynamic) SaturationOf(key decision.ModelKey) decision.Saturation {
	if own, ok := d.Saturation.ByModel[key]; ok {
		return own
	}
	return d.Saturation.Default
}
