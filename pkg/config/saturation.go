package config

import (
	"fmt"
	"maps"
	"slices"

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
	return parseSaturation(data, "")
}

// parseSaturation reads a ConfigMap in a namespace of models; local is empty for the one
// beside the manager.
func parseSaturation(data map[string]string, local string) (Saturation, []string, error) {
	result := DefaultSaturation()
	s := &said{}
	if text, ok := data[DefaultEntry]; ok {
		if base, ok := parseEntry(DefaultEntry, text, s); ok {
			if base.model != (decision.ModelKey{}) {
				base.wrong("names a model (model_id %q, namespace %q): move it to an entry of another name", base.model.ID, base.model.Namespace)
			}
			result.Default = base.checked(result.Default)
		}
	}
	seen := map[decision.ModelKey]string{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if name == DefaultEntry {
			continue
		}
		override, ok := parseEntry(name, data[name], s)
		if !ok {
			continue
		}
		if override.model.Namespace == "" {
			override.model.Namespace = local
		}
		if override.elsewhere(override.model, local) || !override.checkModel(name, seen) {
			continue
		}
		if result.ByModel == nil {
			result.ByModel = map[decision.ModelKey]decision.Saturation{}
		}
		result.ByModel[override.model] = override.checked(result.Default)
	}
	if err := s.err(); err != nil {
		return Saturation{}, s.warnings, fmt.Errorf("saturation thresholds: %w", err)
	}
	return result, s.warnings, nil
}

// entry is one entry as it was written: what is not given is nil.
type entry struct {
	fields
	model                             decision.ModelKey
	kvCache, queueLength              *float64
	kvSpareTrigger, queueSpareTrigger *float64
}

// parseEntry reports whether anything of the entry can be used.
func parseEntry(name, text string, s *said) (entry, bool) {
	errs := len(s.errs)
	f, ok := parseFields(name, text, s)
	if !ok {
		return entry{}, false
	}
	e := entry{
		fields:            f,
		model:             decision.ModelKey{ID: f.text("model_id"), Namespace: f.text("namespace")},
		kvCache:           f.number("kvCacheThreshold"),
		queueLength:       f.number("queueLengthThreshold"),
		kvSpareTrigger:    f.number("kvSpareTrigger"),
		queueSpareTrigger: f.number("queueSpareTrigger"),
	}
	if limiter := "enableLimiter"; f.raw[limiter] != nil {
		f.warn("%s has no effect: set WVA_LIMITED_MODE, which is for all models", limiter)
		delete(f.raw, limiter)
	}
	f.rest()
	return e, len(s.errs) == errs
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

// checkModel reports whether the entry is for a model that no other one is for.
func (e entry) checkModel(name string, seen map[decision.ModelKey]string) bool {
	first, twice := seen[e.model]
	switch {
	case e.model.ID == "" || e.model.Namespace == "":
		e.wrong("model_id is %q and namespace is %q: name both, because they say which model the entry is for", e.model.ID, e.model.Namespace)
	case twice:
		e.wrong("is for model %s in namespace %s, as entry %q is: remove one", e.model.ID, e.model.Namespace, first)
	default:
		seen[e.model] = name
		return true
	}
	return false
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

// checked are the thresholds with what the entry gives in their place; what is wrong
// with the whole is said.
func (e entry) checked(base decision.Saturation) decision.Saturation {
	s := e.over(base)
	share := func(field string, value float64) {
		if value < 0 || value > 1 {
			e.wrong("%s is %v: write a share from 0 to 1", field, value)
		}
	}
	length := func(field string, value float64) {
		if value < 0 {
			e.wrong("%s is %v: write a number of requests, at least 0", field, value)
		}
	}
	share("kvCacheThreshold", s.KVCacheThreshold)
	share("kvSpareTrigger", s.KVSpareTrigger)
	length("queueLengthThreshold", s.QueueLengthThreshold)
	length("queueSpareTrigger", s.QueueSpareTrigger)
	// A trigger above its threshold would fire on idle replicas, for ever.
	if s.KVSpareTrigger > s.KVCacheThreshold {
		e.wrong("kvSpareTrigger is %v: write at most kvCacheThreshold (%v)", s.KVSpareTrigger, s.KVCacheThreshold)
	}
	if s.QueueSpareTrigger > s.QueueLengthThreshold {
		e.wrong("queueSpareTrigger is %v: write at most queueLengthThreshold (%v)", s.QueueSpareTrigger, s.QueueLengthThreshold)
	}
	return s
}
