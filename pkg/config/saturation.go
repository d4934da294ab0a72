package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// DefaultEntry is the key of the ConfigMap entry that all models start from.
const DefaultEntry = "default"

// Saturation are the saturation thresholds by model.
type Saturation struct {
	// Default are the thresholds of models without an entry of their own.
	Default decision.Saturation
	// ByModel are the thresholds of models with an entry of their own.
	ByModel map[decision.ModelKey]decision.Saturation
}

// DefaultSaturation are the published thresholds.
func DefaultSaturation() Saturation {
	return Saturation{Default: decision.DefaultSaturation()}
}

// ParseSaturation reads the data of the saturation ConfigMap: one YAML value per
// entry, the entry "default" for all models and any number of overrides, which name
// their model in the fields model_id and namespace; their keys mean nothing. Raw
// values are merged first (published thresholds, default, override) and validated
// afterwards. The warnings name fields without effect. On an error nothing of the
// data is usable, and the last good thresholds are to be kept.
func ParseSaturation(data map[string]string) (Saturation, []string, error) {
	result := DefaultSaturation()
	var warnings []string
	var errs []error
	base := entry{}
	if text, ok := data[DefaultEntry]; ok {
		parsed, warned, err := parseEntry(DefaultEntry, text)
		if err == nil {
			err = parsed.checkDefault()
		}
		warnings, errs = append(warnings, warned...), append(errs, err)
		base = parsed
	}
	result.Default = base.over(result.Default)
	errs = append(errs, checkThresholds(DefaultEntry, result.Default))

	seen := map[decision.ModelKey]string{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if name == DefaultEntry {
			continue
		}
		override, warned, err := parseEntry(name, data[name])
		if err == nil {
			err = override.checkOverride(seen)
		}
		warnings = append(warnings, warned...)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		thresholds := override.over(result.Default)
		errs = append(errs, checkThresholds(name, thresholds))
		if result.ByModel == nil {
			result.ByModel = map[decision.ModelKey]decision.Saturation{}
		}
		result.ByModel[override.model] = thresholds
	}
	if err := errors.Join(errs...); err != nil {
		return Saturation{}, warnings, fmt.Errorf("saturation thresholds: %w", err)
	}
	return result, warnings, nil
}

// entry is one entry as it was written: what is not given is nil.
type entry struct {
	name                              string
	model                             decision.ModelKey
	kvCache, queueLength              *float64
	kvSpareTrigger, queueSpareTrigger *float64
}

func parseEntry(name, text string) (entry, []string, error) {
	e := entry{name: name}
	var raw map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &raw); err != nil {
		return e, nil, fmt.Errorf("entry %q: %w; write it as YAML, one field: value per line", name, err)
	}
	texts := map[string]*string{"model_id": &e.model.ID, "namespace": &e.model.Namespace}
	numbers := map[string]**float64{
		"kvCacheThreshold":     &e.kvCache,
		"queueLengthThreshold": &e.queueLength,
		"kvSpareTrigger":       &e.kvSpareTrigger,
		"queueSpareTrigger":    &e.queueSpareTrigger,
	}
	var warnings []string
	for _, field := range slices.Sorted(maps.Keys(raw)) {
		value := raw[field]
		if text, ok := texts[field]; ok {
			if *text, ok = value.(string); !ok {
				return e, nil, fmt.Errorf("entry %q: %s is %v: write a text, in quotes", name, field, value)
			}
		} else if number, ok := numbers[field]; ok {
			parsed, ok := toNumber(value)
			if !ok {
				return e, nil, fmt.Errorf("entry %q: %s is %v: write a number", name, field, value)
			}
			*number = &parsed
		} else {
			warnings = append(warnings, fmt.Sprintf("%s in entry %q is not a threshold and has no effect: correct its name or remove it", field, name))
		}
	}
	return e, warnings, nil
}

func toNumber(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

func (e entry) checkDefault() error {
	if e.model != (decision.ModelKey{}) {
		return fmt.Errorf("entry %q names a model (model_id %q, namespace %q): move it to an entry of another name", e.name, e.model.ID, e.model.Namespace)
	}
	return nil
}

func (e entry) checkOverride(seen map[decision.ModelKey]string) error {
	if e.model.ID == "" || e.model.Namespace == "" {
		return fmt.Errorf("entry %q: model_id is %q and namespace is %q: name both, because they say which model the entry is for", e.name, e.model.ID, e.model.Namespace)
	}
	if first, ok := seen[e.model]; ok {
		return fmt.Errorf("entries %q and %q are both for model %s in namespace %s: remove one", first, e.name, e.model.ID, e.model.Namespace)
	}
	seen[e.model] = e.name
	return nil
}

// over are the thresholds with what the entry gives in their place.
func (e entry) over(base decision.Saturation) decision.Saturation {
	pick := func(given *float64, inherited float64) float64 {
		if given != nil {
			return *given
		}
		return inherited
	}
	return decision.Saturation{
		KVCacheThreshold:     pick(e.kvCache, base.KVCacheThreshold),
		QueueLengthThreshold: pick(e.queueLength, base.QueueLengthThreshold),
		KVSpareTrigger:       pick(e.kvSpareTrigger, base.KVSpareTrigger),
		QueueSpareTrigger:    pick(e.queueSpareTrigger, base.QueueSpareTrigger),
	}
}

func checkThresholds(name string, s decision.Saturation) error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("entry %q: %s", name, fmt.Sprintf(format, args...)))
	}
	share := func(field string, value float64) {
		if value < 0 || value > 1 {
			wrong("%s is %v: write a share from 0 to 1", field, value)
		}
	}
	length := func(field string, value float64) {
		if value < 0 {
			wrong("%s is %v: write a number of requests, at least 0", field, value)
		}
	}
	share("kvCacheThreshold", s.KVCacheThreshold)
	share("kvSpareTrigger", s.KVSpareTrigger)
	length("queueLengthThreshold", s.QueueLengthThreshold)
	length("queueSpareTrigger", s.QueueSpareTrigger)
	// A trigger above its threshold would fire on idle replicas, for ever.
	if s.KVSpareTrigger > s.KVCacheThreshold {
		wrong("kvSpareTrigger is %v: write at most kvCacheThreshold (%v)", s.KVSpareTrigger, s.KVCacheThreshold)
	}
	if s.QueueSpareTrigger > s.QueueLengthThreshold {
		wrong("queueSpareTrigger is %v: write at most queueLengthThreshold (%v)", s.QueueSpareTrigger, s.QueueLengthThreshold)
	}
	return errors.Join(errs...)
}
