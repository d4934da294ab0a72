package replay

import (
	"maps"
	"slices"
	"strings"
)

// The names of the families of policies. Those with triggers are followed by one.
const (
	policyCapacityOnly = "capacity-only"
	policyHybrid       = "hybrid"
	policyStatic       = "static"
	policyPeak         = "peak"
	policyHPA          = "hpa"
	policyKEDA         = "keda"
	policyKPA          = "kpa"
	policySaturationV1 = "saturation-v1"
	policySaturationV2 = "saturation-v2"
	policyPlanner      = "planner"
)

// staticKey names the replicas of a static fleet, which are written without a key.
const staticKey = "replicas"

// family is a kind of policy and what can be set of it.
type family struct {
	name string
	kind Kind
	// triggers are what it can scale by, and trigger is the one without another.
	triggers []*trigger
	trigger  string
	settings []setting
	// bare is the key of a first item that has none.
	bare string
	// others is the form of all other keys, which the scenario knows; nil where there are
	// none.
	others *form
}

// setting is one key of a family.
type setting struct {
	key  string
	form form
}

// families are all that there are, in the order in which people read them.
var families = []*family{
	{name: policyCapacityOnly, kind: KindOurs, settings: ownSettings, others: managerSetting},
	{name: policyHybrid, kind: KindOurs, settings: ownSettings, others: managerSetting},
	{name: policyStatic, kind: KindReference, bare: staticKey, settings: staticSettings},
	{name: policyPeak, kind: KindReference},
	{name: policyHPA, kind: KindBaseline, triggers: triggers, settings: slices.Concat(windowSettings, boundSettings, metricSettings, placeSettings)},
	{name: policyKEDA, kind: KindBaseline, triggers: triggers, trigger: triggerQueue,
		settings: slices.Concat(windowSettings, mayBeZero(boundSettings), metricSettings, kedaSettings, placeSettings)},
	{name: policyKPA, kind: KindBaseline, triggers: knativeTriggers, trigger: triggerInflight,
		settings: slices.Concat(knativeSettings, mayBeZero(boundSettings), placeSettings)},
	{name: policySaturationV1, kind: KindBaseline, settings: slices.Concat(saturationSettings, saturationV1Settings)},
	{name: policySaturationV2, kind: KindBaseline, settings: slices.Concat(saturationSettings, saturationV2Settings)},
	{name: policyPlanner, kind: KindBaseline, settings: slices.Concat(plannerSettings, boundSettings, placeSettings)},
}

func familyOf(name string) *family {
	for _, f := range families {
		if f.name == name {
			return f
		}
	}
	return nil
}

func (f *family) triggerNamed(name string) *trigger {
	for _, t := range f.triggers {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (f *family) setting(key string) *setting {
	for i := range f.settings {
		if f.settings[i].key == key {
			return &f.settings[i]
		}
	}
	return nil
}

// has reports whether there is such a key.
func (f *family) has(key string) bool {
	return f.triggerNamed(key) != nil || f.setting(key) != nil || f.others != nil && key != ""
}

// spelling is the one spelling of a key: those of the manager's settings are written in
// many ways.
func (f *family) spelling(key string) string {
	if f.others == nil || f.setting(key) != nil {
		return key
	}
	return strings.ToLower(strings.ReplaceAll(key, "-", "_"))
}

// form is that of a key that the family has.
func (f *family) form(key string) form {
	if t := f.triggerNamed(key); t != nil {
		return t.form()
	}
	if s := f.setting(key); s != nil {
		return s.form
	}
	return *f.others
}

// triggerNames are "rps, intok or kv".
func (f *family) triggerNames() string {
	names := make([]string, len(f.triggers))
	for i, t := range f.triggers {
		names[i] = t.name
	}
	return alternatives(names)
}

// expected says which keys there are.
func (f *family) expected() string {
	names := make([]string, 0, len(f.triggers)+len(f.settings)+1)
	for _, t := range f.triggers {
		names = append(names, t.name)
	}
	for _, s := range f.settings {
		names = append(names, s.key)
	}
	if f.others != nil {
		names = append(names, f.others.expected)
	}
	if len(names) == 0 {
		return "no settings, for " + f.name + " has none"
	}
	return alternatives(names)
}

// alternatives are "a, b or c".
func alternatives(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// ordered are the parameters that are given: the trigger first, then in the order of the
// settings, then the others by name.
func (f *family) ordered(given map[string]string) []Parameter {
	var keys []string
	for _, t := range f.triggers {
		keys = append(keys, t.name)
	}
	for _, s := range f.settings {
		keys = append(keys, s.key)
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	var out []Parameter
	for _, key := range keys {
		if value, ok := given[key]; ok {
			out = append(out, Parameter{key, value})
		}
	}
	return out
}

// names are the families of Spec, one for each trigger.
func (f *family) names() []string {
	if len(f.triggers) == 0 {
		return []string{f.name}
	}
	var out []string
	for _, t := range f.triggers {
		out = append(out, f.name+":"+t.name)
	}
	return out
}

// patterns are how people see the family in a list, each trigger for itself unless one is
// the usual one.
func (f *family) patterns() []string {
	switch {
	case f.name == policyStatic:
		return []string{anyStatic}
	case len(f.triggers) == 0 || f.trigger != "":
		return []string{f.name}
	}
	var out []string
	for _, t := range f.triggers {
		name := f.name + ":" + t.name
		if t.published == 0 {
			name += "=N"
		}
		out = append(out, name)
	}
	return out
}
