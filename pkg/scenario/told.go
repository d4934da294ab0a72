package scenario

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Maps are the entries of ConfigMaps: of thresholds, and of scaling to zero. Nil is none.
type Maps struct{ Saturation, ScaleToZero map[string]string }

// told is what a cluster tells in such ConfigMaps. It counts as far as the file says nothing
// of a kind.
type told struct {
	beside     Maps
	namespaces map[string]Maps
}

// read puts what was told into the settings. What the manager only warns of counts here as
// it does there.
func (t *told) read(d *document, s *settings) (err error) {
	if t == nil {
		return nil
	}
	if d.Saturation == nil {
		if s.Saturation, _, err = config.ParseSaturation(t.beside.Saturation); err != nil {
			return fmt.Errorf("the thresholds of the manager: %s", oneLine(err))
		}
	}
	if d.ScaleToZero == nil {
		if s.ScaleToZero, _, err = config.ParseScaleToZero(t.beside.ScaleToZero); err != nil {
			return fmt.Errorf("the scaling to zero of the manager: %s", oneLine(err))
		}
	}
	s.locals = map[string]config.Local{}
	for _, namespace := range slices.Sorted(maps.Keys(t.namespaces)) {
		of := t.namespaces[namespace]
		var local config.Local
		if d.Saturation == nil && len(of.Saturation) > 0 {
			parsed, _, err := config.ParseLocalSaturation(namespace, of.Saturation)
			if err != nil {
				return fmt.Errorf("the thresholds of namespace %s: %s", namespace, oneLine(err))
			}
			local.Saturation = &parsed
		}
		if d.ScaleToZero == nil && len(of.ScaleToZero) > 0 {
			parsed, _, err := config.ParseLocalScaleToZero(namespace, of.ScaleToZero)
			if err != nil {
				return fmt.Errorf("the scaling to zero of namespace %s: %s", namespace, oneLine(err))
			}
			local.ScaleToZero = &parsed
		}
		s.locals[namespace] = local
	}
	return nil
}

// change puts fields over the thresholds that hold by default: those of the file, or else all
// that were told.
func (d *document) change(fields map[string]any) error {
	if d.Saturation == nil && d.told != nil {
		changed := &told{beside: d.told.beside, namespaces: maps.Clone(d.told.namespaces)}
		var err error
		if changed.beside.Saturation, err = overDefault(changed.beside.Saturation, fields); err != nil {
			return err
		}
		for namespace, of := range changed.namespaces {
			if len(of.Saturation) == 0 {
				continue
			}
			if of.Saturation, err = overDefault(of.Saturation, fields); err != nil {
				return err
			}
			changed.namespaces[namespace] = of
		}
		d.told = changed
		return nil
	}
	entry := map[string]any{}
	if given, ok := d.Saturation[config.DefaultEntry].(map[string]any); ok {
		maps.Copy(entry, given)
	}
	maps.Copy(entry, fields)
	all := map[string]any{}
	maps.Copy(all, d.Saturation)
	all[config.DefaultEntry] = entry
	d.Saturation = all
	return nil
}

// overDefault puts fields over those of the entry default.
func overDefault(entries map[string]string, fields map[string]any) (map[string]string, error) {
	entry := map[string]any{}
	if err := yaml.Unmarshal([]byte(entries[config.DefaultEntry]), &entry); err != nil {
		return nil, fmt.Errorf("entry %s of the thresholds: %s", config.DefaultEntry, oneLine(err))
	}
	changed := map[string]any{}
	maps.Copy(changed, entry)
	maps.Copy(changed, fields)
	text, err := yaml.Marshal(changed)
	if err != nil {
		return nil, fmt.Errorf("entry %s of the thresholds: %w", config.DefaultEntry, err)
	}
	all := map[string]string{}
	maps.Copy(all, entries)
	all[config.DefaultEntry] = string(text)
	return all, nil
}

// ofModels puts into a policy what holds for each model: as its namespace says, or else the
// manager.
func (s *settings) ofModels(policy *decision.Policy, models iter.Seq[decision.ModelKey]) {
	policy.IdleByModel = map[decision.ModelKey]decision.Idle{}
	if len(s.locals) > 0 {
		policy.SaturationByModel = map[decision.ModelKey]decision.Saturation{}
	}
	for model := range models {
		own := s.In(s.locals[model.Namespace])
		policy.IdleByModel[model] = own.IdleOf(model)
		if len(s.locals) > 0 {
			policy.SaturationByModel[model] = own.SaturationOf(model)
		}
	}
}
