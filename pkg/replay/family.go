package replay

import (
	"strings"
	"time"
)

// The families of policies. Those with triggers are followed by one.
const (
	policyCapacityOnly = "capacity-only"
	policyHybrid       = "hybrid"
	policyStatic       = "static"
	policyPeak         = "peak"
	policyHPA          = "hpa"
	policyKEDA         = "keda"
	policySaturationV1 = "saturation-v1"
	policySaturationV2 = "saturation-v2"
	policyBound        = "bound"
)

// staticPrefix begins the name of a static fleet, and a number ends it.
const staticPrefix = policyStatic + ":"

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
}

// setting is one key of a family.
type setting struct {
	key  string
	form form
}

// families are all that there are, in the order in which people read them.
var families = []*family{
	{name: policyCapacityOnly, kind: KindOurs},
	{name: policyHybrid, kind: KindOurs},
	{name: policyStatic, kind: KindReference},
	{name: policyPeak, kind: KindReference},
	{name: policyHPA, kind: KindBaseline, triggers: triggers, settings: horizontalSettings},
	{name: policyKEDA, kind: KindBaseline, triggers: triggers, trigger: triggerQueue, settings: horizontalSettings},
	{name: policySaturationV1, kind: KindBaseline},
	{name: policySaturationV2, kind: KindBaseline},
	{name: policyBound, kind: KindReference},
}

// The bounds that Kubernetes has for the windows of an HPA.
const longestStabilization = time.Hour

// horizontalSettings are those of an HPA.
var horizontalSettings = []setting{
	{"down", spanOf(0, longestStabilization, "the stabilisation window of scaling down in whole seconds, up to 3600s, such as 60s")},
	{"up", spanOf(0, longestStabilization, "the stabilisation window of scaling up in whole seconds, up to 3600s, such as 0s")},
	{"min", countOf(1, MostReplicas, "the least replicas, from 1, or one number for each model with + between them").ofEach()},
	{"max", countOf(1, MostReplicas, "the most replicas, from 1, or one number for each model with + between them").ofEach()},
	{"tolerance", shareOf("the share by which the metric may differ from its target, from 0 to 1, such as 0.1")},
	{"window", spanOf(2*time.Second, time.Hour, "the time over which rates are taken in whole seconds, from 2s to 3600s, such as 60s")},
	{"variant", nameOf("the name of the variant that it drives, or several of different models with + between them").ofEach()},
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

// form is that of a key that the family has.
func (f *family) form(key string) form {
	if t := f.triggerNamed(key); t != nil {
		return t.form()
	}
	return f.setting(key).form
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
	names := make([]string, 0, len(f.triggers)+len(f.settings))
	for _, t := range f.triggers {
		names = append(names, t.name)
	}
	for _, s := range f.settings {
		names = append(names, s.key)
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

// ordered are the parameters that are given, the trigger first, then in the order of the
// settings.
func (f *family) ordered(given map[string]string) []Parameter {
	var out []Parameter
	for _, t := range f.triggers {
		if value, ok := given[t.name]; ok {
			out = append(out, Parameter{t.name, value})
		}
	}
	for _, s := range f.settings {
		if value, ok := given[s.key]; ok {
			out = append(out, Parameter{s.key, value})
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

// patterns are how people see the family in a list, each trigger for itself.
func (f *family) patterns() []string {
	if f.name == policyStatic {
		return []string{anyStatic}
	}
	if len(f.triggers) == 0 || f.trigger != "" {
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
