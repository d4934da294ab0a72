package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// legacyDefaultEntry is an older name of DefaultEntry for scale to zero.
const legacyDefaultEntry = "__defaults__"

// longRetention is the retention above which a mistake is likelier than a wish.
const longRetention = 24 * time.Hour

// ScaleToZero says by model whether and when it may scale to zero. The zero
// ScaleToZero says nothing of any model.
type ScaleToZero struct {
	// Default holds for models without an entry of their own.
	Default IdleEntry
	// ByModel are the entries of models. One without a namespace holds in every
	// namespace that has no entry of its own.
	ByModel map[decision.ModelKey]IdleEntry
}

// NoneSleeps holds while nobody knows which models may scale to zero: one that sleeps against
// the will of its users costs them more than a replica.
func NoneSleeps() ScaleToZero { return ScaleToZero{Default: IdleEntry{Enabled: new(bool)}} }

// IdleEntry is what one entry says; what it does not say is inherited.
type IdleEntry struct {
	// Enabled is nil where the entry does not say it.
	Enabled *bool
	// Retention is 0 where the entry does not say it.
	Retention time.Duration
}

// over is what is inherited, with what the entry says in its place.
func (e IdleEntry) over(inherited decision.Idle) decision.Idle {
	if e.Enabled != nil {
		inherited.Enabled = *e.Enabled
	}
	if e.Retention > 0 {
		inherited.Retention = e.Retention
	}
	return inherited
}

// of is what holds for one model: its entry over that of its name in all namespaces,
// over the default entry, over the settings.
func (z ScaleToZero) of(key decision.ModelKey, settings decision.Idle) decision.Idle {
	idle := z.Default.over(settings)
	idle = z.ByModel[decision.ModelKey{ID: key.ID}].over(idle)
	return z.ByModel[key].over(idle)
}

// ParseScaleToZero reads the data of the scale-to-zero ConfigMap: one YAML value per
// entry, the entry "default" (or, as in older versions, "__defaults__") for all models,
// and overrides, which name their model in model_id and may narrow it by namespace;
// their keys mean nothing. Of two entries for one model the one with the first key
// counts. The warnings name what has no effect or looks like a mistake. On an error
// nothing of the data is usable.
func ParseScaleToZero(data map[string]string) (ScaleToZero, []string, error) {
	return parseScaleToZero(data, "")
}

// parseScaleToZero reads a ConfigMap in a namespace of models; local is empty for the one
// beside the manager.
func parseScaleToZero(data map[string]string, local string) (ScaleToZero, []string, error) {
	var result ScaleToZero
	s := &said{}
	base := DefaultEntry
	if _, ok := data[base]; !ok {
		base = legacyDefaultEntry
	}
	first := map[decision.ModelKey]string{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		f, ok := parseFields(name, data[name], s)
		if !ok {
			continue
		}
		model, entry := f.idleEntry()
		switch {
		case name == base:
			if model != (decision.ModelKey{}) {
				f.wrong("names a model (model_id %q, namespace %q): move it to an entry of another name", model.ID, model.Namespace)
			}
			result.Default = entry
		case name == legacyDefaultEntry:
			f.warn("has no effect beside the entry %q: remove it", base)
		case model.ID == "":
			f.wrong("model_id is missing: name the model that the entry is for")
		case f.elsewhere(model, local):
		case first[model] != "":
			f.warn("has no effect, because entry %q is for the same model (%s): remove one", first[model], model.ID)
		default:
			first[model] = name
			if result.ByModel == nil {
				result.ByModel = map[decision.ModelKey]IdleEntry{}
			}
			result.ByModel[model] = entry
		}
	}
	if err := s.err(); err != nil {
		return ScaleToZero{}, s.warnings, fmt.Errorf("scale to zero: %w", err)
	}
	return result, s.warnings, nil
}

func (f fields) idleEntry() (decision.ModelKey, IdleEntry) {
	model := decision.ModelKey{ID: f.text("model_id"), Namespace: f.text("namespace")}
	entry := IdleEntry{Enabled: f.boolean("enable_scale_to_zero")}
	if value, given := f.take("retention_period"); given {
		written, _ := value.(string)
		retention, err := time.ParseDuration(written)
		switch {
		case err != nil:
			f.wrong("retention_period is %v: write a duration with its unit, such as 10m or 1h", value)
		case retention <= 0:
			f.wrong("retention_period is %s: write a duration above zero", written)
		case retention > longRetention:
			f.warn("retention_period is %s, more than a day: the model keeps a replica for that long after its last request", written)
		}
		entry.Retention = retention
	}
	f.rest()
	return model, entry
}

// defaultGatewayPatience is that of llm-d's router 0.10, pkg/epp/flowcontrol/controller/config.go.
const defaultGatewayPatience = 60 * time.Second
