package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Spec is a policy with its settings. People write it as one word:
//
//	FAMILY                      with what is published, such as hybrid or keda
//	FAMILY:KEY=VALUE,KEY=VALUE  such as hpa:rps=4.5,down=60s
//	FAMILY:TRIGGER,KEY=VALUE    where the trigger has a published target: hpa:queue,down=60s
//
// Where a scenario has several models, a value may have one part for each, in the order of
// the scenario, with + between them: rps=4.5+0.8.
type Spec struct {
	// Family is the rule and, of rules that have one, the trigger that they scale by:
	// hybrid, peak, hpa:rps, keda:queue.
	Family string
	// Parameters are what differs from the family's defaults, in the order of ParseSpec. The
	// target of a trigger is the parameter of its name.
	Parameters []Parameter
}

// ParseSpec reads a policy with its settings. The parameters come in the order of the
// family's documentation and in one spelling, so that equal policies have equal names.
func ParseSpec(text string) (Spec, error) {
	name, rest, some := strings.Cut(text, ":")
	f := familyOf(name)
	if f == nil {
		return Spec{}, unknownPolicy(text)
	}
	var items []string
	if some {
		items = strings.Split(rest, ",")
	}
	if text == anyStatic || f.bare != "" && !some {
		return Spec{}, unknownPolicy(text)
	}
	spec := Spec{Family: f.Name}
	if err := spec.read(f, items); err != nil {
		return Spec{}, fmt.Errorf("policy %q: %w", text, err)
	}
	return spec, nil
}

func unknownPolicy(text string) error {
	return fmt.Errorf("unknown policy %q; expected one of %s", text, strings.Join(PolicyNames(), ", "))
}

// read takes the items after the family's name.
func (s *Spec) read(f *Family, items []string) error {
	given, name := map[string]string{}, ""
	for i, item := range items {
		key, value, valued := strings.Cut(item, "=")
		if i == 0 && !valued && f.bare != "" {
			key, value, valued = f.bare, item, true
		}
		key = f.spelling(key)
		isTrigger := f.triggerNamed(key) != nil
		_, twice := given[key]
		switch {
		case isTrigger && name != "" && name != key:
			return fmt.Errorf("%s and %s are both triggers; expected one of them", name, key)
		case twice || isTrigger && name != "":
			return fmt.Errorf("%s is there twice; expected once", key)
		case isTrigger && !valued && i == 0:
			name = key
			continue
		case !f.has(key):
			return fmt.Errorf("%q is not known; expected %s", key, f.expected())
		case !valued:
			return fmt.Errorf("%s has no value; expected %s", key, f.form(key).expected)
		}
		canonical, err := f.form(key).read(value)
		switch {
		case err != nil && key == f.bare:
			return fmt.Errorf("%q is no number of replicas; %w", value, err)
		case err != nil:
			return fmt.Errorf("%s is %q; %w", key, value, err)
		}
		given[key] = canonical
		if isTrigger {
			name = key
		}
	}
	s.Parameters = f.ordered(given)
	return s.chooseTrigger(f, name)
}

// chooseTrigger adds the trigger to the family, which has a target: its own or a published
// one.
func (s *Spec) chooseTrigger(f *Family, name string) error {
	if len(f.Triggers) == 0 {
		return nil
	}
	t := f.triggerNamed(cmp.Or(name, f.Trigger))
	if t == nil {
		return fmt.Errorf("it has no trigger; expected %s", f.triggerNames())
	}
	if _, valued := s.Value(t.Name); !valued && t.Published == 0 {
		return fmt.Errorf("%s has no value; expected %s, such as %s=%s", t.Name, t.form().expected, t.Name, t.Example)
	}
	s.Family = f.Name + ":" + t.Name
	return nil
}

// String is how people write it, and the name of the policy in results: parsed again it
// is the same.
func (s Spec) String() string {
	name, trigger, _ := strings.Cut(s.Family, ":")
	f := familyOf(name)
	var items []string
	for _, p := range s.Parameters {
		if f != nil && f.bare != "" && p.Name == f.bare {
			items = append(items, p.Value)
			continue
		}
		items = append(items, p.Name+"="+p.Value)
	}
	if _, valued := s.Value(trigger); trigger != "" && !valued && (f == nil || trigger != f.Trigger) {
		items = slices.Insert(items, 0, trigger)
	}
	if len(items) == 0 {
		return name
	}
	return name + ":" + strings.Join(items, ",")
}

// Value is that of a parameter; false where it has its default.
func (s Spec) Value(key string) (string, bool) {
	for _, p := range s.Parameters {
		if p.Name == key {
			return p.Value, true
		}
	}
	return "", false
}

// With is the policy with another value of one setting.
func (s Spec) With(key, value string) (Spec, error) {
	changed := Spec{Family: s.Family, Parameters: slices.DeleteFunc(slices.Clone(s.Parameters), func(p Parameter) bool { return p.Name == key })}
	changed.Parameters = append(changed.Parameters, Parameter{key, value})
	return ParseSpec(changed.String())
}

// Kind says whose the policy is.
func (s Spec) Kind() Kind {
	name, _, _ := strings.Cut(s.Family, ":")
	if f := familyOf(name); f != nil {
		return f.kind
	}
	return KindBaseline
}

// PolicyNames are policies in the one spelling that each has, if the scenario has all that
// they name.
func (s *Scenario) PolicyNames(policies []string) ([]string, error) {
	var out []string
	for _, text := range policies {
		spec, err := ParseSpec(text)
		if err != nil {
			return nil, err
		}
		out = append(out, spec.String())
		if err := s.allows(spec, nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// allows reports what is wrong with a policy for the scenario. Without a choice the variants
// are not known yet that it drives where it names none.
func (s *Scenario) allows(spec Spec, choice []int) error {
	if spec.Family == policyPeak {
		return nil
	}
	if choice == nil {
		split, _ := spec.Value("split")
		choice = make([]int, len(s.Models))
		for m := range choice {
			choice[m] = max(0, slices.IndexFunc(s.Models[m].Variants, func(v Variant) bool {
				return !strings.Contains(between+split, between+v.Name+":")
			}))
		}
	}
	p := play{Trial: &Trial{scenario: s, choice: choice}, policy: spec.String()}
	_, err := p.newPolicy()
	return err
}

// allows reports what is wrong with policies, now that it is known which variants they
// drive.
func (t *Trial) allows(policies []string) error {
	for _, name := range policies {
		spec, err := ParseSpec(name)
		if err == nil {
			err = t.scenario.allows(spec, t.choice)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// JoinPolicies puts together what a list with commas has taken apart: what has the form
// KEY=VALUE is a setting of the policy before it.
func JoinPolicies(parts []string) []string {
	var out []string
	for _, part := range parts {
		part = strings.TrimSpace(part)
		key, _, setting := strings.Cut(part, "=")
		if n := len(out); n > 0 && setting && !strings.Contains(key, ":") {
			separator := ","
			if !strings.Contains(out[n-1], ":") {
				separator = ":"
			}
			out[n-1] += separator + part
			continue
		}
		out = append(out, part)
	}
	return out
}
