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
)

// staticKey names the replicas of a static fleet, which are written without a key.
const staticKey = "replicas"

// Family is a kind of policy and what can be set of it.
type Family struct {
	// Name is what people write before the settings.
	Name string
	// Triggers are what it can scale by, and Trigger is the one without another; none where
	// it has a rule of its own.
	Triggers []*Trigger
	Trigger  string
	Settings []Setting
	// New makes a policy for one run. The choice is the variant of each model that costs
	// least for what it serves, for who drives one alone.
	New func(s *Scenario, spec Spec, choice []int) (Policy, error)

	kind Kind
	// bare is the key of a first item that has none.
	bare string
	// others is the form of all other keys, which the scenario knows; nil where there are
	// none.
	others *Form
}

// Setting is one key of a family.
type Setting struct {
	Key  string
	Form Form
}

// Register adds a rule of others that lives outside of this package. It is for the start of a
// program, before anybody reads a policy.
func Register(f *Family) {
	f.kind = KindBaseline
	families = append(families, f)
}

// families are all that there are, in the order in which people read them.
var families = []*Family{
	{Name: policyCapacityOnly, kind: KindOurs, Settings: ownSettings, others: managerSetting},
	{Name: policyHybrid, kind: KindOurs, Settings: ownSettings, others: managerSetting},
	{Name: policyStatic, kind: KindReference, bare: staticKey, Settings: staticSettings},
	{Name: policyPeak, kind: KindReference},
	{Name: policyHPA, kind: KindBaseline, Triggers: triggers, Settings: slices.Concat(windowSettings, boundSettings, metricSettings, placeSettings)},
	{Name: policyKEDA, kind: KindBaseline, Triggers: triggers, Trigger: triggerQueue,
		Settings: slices.Concat(windowSettings, mayBeZero(boundSettings), metricSettings, kedaSettings, placeSettings)},
}

func familyOf(name string) *Family {
	for _, f := range families {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func (f *Family) triggerNamed(name string) *Trigger {
	for _, t := range f.Triggers {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func (f *Family) setting(key string) *Setting {
	for i := range f.Settings {
		if f.Settings[i].Key == key {
			return &f.Settings[i]
		}
	}
	return nil
}

// has reports whether there is such a key.
func (f *Family) has(key string) bool {
	return f.triggerNamed(key) != nil || f.setting(key) != nil || f.others != nil && key != ""
}

// spelling is the one spelling of a key: those of the manager's settings are written in
// many ways.
func (f *Family) spelling(key string) string {
	if f.others == nil || f.setting(key) != nil {
		return key
	}
	return strings.ToLower(strings.ReplaceAll(key, "-", "_"))
}

// form is that of a key that the family has.
func (f *Family) form(key string) Form {
	if t := f.triggerNamed(key); t != nil {
		return t.form()
	}
	if s := f.setting(key); s != nil {
		return s.Form
	}
	return *f.others
}

// triggerNames are "rps, intok or kv".
func (f *Family) triggerNames() string {
	names := make([]string, len(f.Triggers))
	for i, t := range f.Triggers {
		names[i] = t.Name
	}
	return alternatives(names)
}

// expected says which keys there are.
func (f *Family) expected() string {
	names := make([]string, 0, len(f.Triggers)+len(f.Settings)+1)
	for _, t := range f.Triggers {
		names = append(names, t.Name)
	}
	for _, s := range f.Settings {
		names = append(names, s.Key)
	}
	if f.others != nil {
		names = append(names, f.others.expected)
	}
	if len(names) == 0 {
		return "no settings, for " + f.Name + " has none"
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
func (f *Family) ordered(given map[string]string) []Parameter {
	var keys []string
	for _, t := range f.Triggers {
		keys = append(keys, t.Name)
	}
	for _, s := range f.Settings {
		keys = append(keys, s.Key)
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
func (f *Family) names() []string {
	if len(f.Triggers) == 0 {
		return []string{f.Name}
	}
	var out []string
	for _, t := range f.Triggers {
		out = append(out, f.Name+":"+t.Name)
	}
	return out
}

// patterns are how people see the family in a list, each trigger for itself unless one is
// the usual one.
func (f *Family) patterns() []string {
	switch {
	case f.Name == policyStatic:
		return []string{anyStatic}
	case len(f.Triggers) == 0 || f.Trigger != "":
		return []string{f.Name}
	}
	var out []string
	for _, t := range f.Triggers {
		name := f.Name + ":" + t.Name
		if t.Published == 0 {
			name += "=N"
		}
		out = append(out, name)
	}
	return out
}
