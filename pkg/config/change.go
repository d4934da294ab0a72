package config

import (
	"fmt"
	"slices"
)

// Change is a new value of a setting.
type Change struct {
	Key, Old, New string
}

// Edit is what a change of the main ConfigMap asks for.
type Edit struct {
	// Applied are in force.
	Applied []Change
	// Rejected need a restart.
	Rejected []Change
}

// String says what would have changed.
func (c Change) String() string {
	return fmt.Sprintf("%s (old: %q, new: %q)", c.Key, c.Old, c.New)
}

// Update is the configuration, which came from the sources, after the data of the main
// ConfigMap have changed. Settings that may change take effect; changes of the others
// are rejected, and one of those that the new data no longer have is no change. What
// comes from other ConfigMaps stays. On an error the old configuration is to be kept.
func (c Config) Update(from Sources, data map[string]string) (Config, Edit, error) {
	from.Map = data
	after, warnings, errs := from.levels()
	if len(errs) > 0 {
		return Config{}, Edit{}, problems(errs)
	}
	held := map[string]found{}
	var edit Edit
	for _, key := range Keys() {
		was, is := c.inForce[key.Name], find(key, after)
		if key.Static {
			held[key.Name] = was
		}
		change := Change{Key: key.Name, Old: key.shown(was.value), New: key.shown(is.value)}
		switch {
		case key.same(is.value, was.value) || key.Static && is.level < 0:
		case key.Static:
			edit.Rejected = append(edit.Rejected, change)
		default:
			edit.Applied = append(edit.Applied, change)
		}
	}
	next, errs := resolve(after, held)
	if len(errs) > 0 {
		return Config{}, Edit{}, problems(errs)
	}
	next.Warnings = slices.Concat(warnings, remarks(after))
	next.Saturation, next.ServiceClasses = c.Saturation, c.ServiceClasses
	next.UnitCosts, next.ScaleToZero = c.UnitCosts, c.ScaleToZero
	return next, edit, nil
}
