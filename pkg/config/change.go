package config

import (
	"fmt"
	"maps"
)

// Change is a new value of a setting that needs a restart.
type Change struct {
	Key, Old, New string
}

// String says what would have changed.
func (c Change) String() string {
	return fmt.Sprintf("%s from %q to %q", c.Key, c.Old, c.New)
}

// Update is the configuration after its file changed from one version to another.
// Dynamic settings take effect; changes of static settings are returned and do not,
// and neither does a static setting that the new file no longer has. What comes from
// other ConfigMaps stays. On an error the old configuration is to be kept.
func (c Config) Update(from Sources, file []byte) (Config, []Change, error) {
	old, err := parseFile(from)
	if err != nil {
		return Config{}, nil, err
	}
	from.File = file
	edited, err := parseFile(from)
	if err != nil {
		return Config{}, nil, err
	}
	effective := maps.Clone(edited)
	var changes []Change
	for _, key := range Keys() {
		if !key.Static {
			continue
		}
		effective[key.Name] = old[key.Name]
		before, _ := from.find(key, old)
		after, _ := from.find(key, edited)
		if edited[key.Name] != "" && after != before {
			changes = append(changes, Change{Key: key.Name, Old: key.shown(before), New: key.shown(after)})
		}
	}
	next, err := resolve(from, effective)
	if err != nil {
		return Config{}, nil, err
	}
	next.Saturation, next.ServiceClasses = c.Saturation, c.ServiceClasses
	next.UnitCosts, next.ScaleToZero = c.UnitCosts, c.ScaleToZero
	return next, changes, nil
}
