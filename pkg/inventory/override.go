package inventory

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

// Overrides are accelerator names for the values of product labels, which are
// believed over every rule and every other label but a node's own AcceleratorLabel.
// The nil Overrides has none.
type Overrides map[string]Name

// nameLimit is the length to which objects may name an accelerator.
const nameLimit = 64

// nameText is what a name is made of: the characters of a label's value.
var nameText = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// ParseOverrides reads the data of a ConfigMap: each key is the value that a product
// label has on nodes, each value the name of the accelerator.
//
//	data:
//	  NVIDIA-Foo: H100
//	  our-own-card: A100-80GB
//
// Upper and lower case, blanks, hyphens and underscores in a key are all one. A key
// also stands for the slices and shared devices whose label is the key with a suffix
// (-MIG-1g.10gb, -SHARED), which stay what they are. The error names every bad entry.
func ParseOverrides(data map[string]string) (Overrides, error) {
	overrides := Overrides{}
	first := map[string]string{}
	var bad []error
	for _, key := range slices.Sorted(maps.Keys(data)) {
		// The space around a value does not count: a block of YAML ends with a line break.
		value := strings.TrimSpace(data[key])
		text, name := canonical(key), Normalize(value)
		switch {
		case text == "":
			bad = append(bad, fmt.Errorf("%q: %q: the key is no label value", key, value))
		case len(value) > nameLimit || !nameText.MatchString(value):
			bad = append(bad, fmt.Errorf("%q: %q is no name of an accelerator: use up to %d letters, digits, '-', '_' and '.', such as H100 or A100-80GB", key, value, nameLimit))
		case !name.Known():
			bad = append(bad, fmt.Errorf("%q: %q names no type of accelerator: use a name such as H100 or A100-80GB", key, value))
		case first[text] != "" && overrides[text].String() != name.String():
			bad = append(bad, fmt.Errorf("%q: %q: the key is the same as %q, which is %q: keep one of them", key, value, first[text], data[first[text]]))
		default:
			overrides[text], first[text] = name, key
		}
	}
	if len(bad) > 0 {
		return nil, fmt.Errorf("reading the overrides of accelerator names: %w", errors.Join(bad...))
	}
	return overrides, nil
}

// of is the name that the overrides give to a text, if they give it one.
func (o Overrides) of(raw string) (Name, bool) {
	if len(o) == 0 {
		return Name{}, false
	}
	text := canonical(raw)
	var parts Name
	whole := parts.cutParts(text)
	// A key may leave out the maker, as the names do that no rule knows.
	n, ok := Name{}, false
	for _, key := range [...]string{text, whole, without(text, makers), without(whole, makers)} {
		if n, ok = o[key]; ok {
			break
		}
	}
	if !ok {
		return Name{}, false
	}
	// Whoever names a type does not say that a slice is a whole device.
	if n.MIG == "" {
		n.MIG = parts.MIG
	}
	n.Shared = n.Shared || parts.Shared
	// The operator knows the name, even if no rule does.
	n.Raw, n.Unlisted = raw, false
	return n, true
}

// Names reads the accelerators of nodes. It remembers what it has normalised,
// because clusters have many nodes and few products. It is safe for concurrent use
// and its readers take no lock. The zero Names is ready to use and has no overrides.
type Names struct {
	state atomic.Pointer[naming]
}

// naming is one set of overrides and what was read with it. It never changes.
type naming struct {
	overrides  Overrides
	generation uint64
	known      map[string]remembered
}

type remembered struct {
	name       Name
	overridden bool
}

// maxRemembered bounds what Names keeps: labels are data from outside.
const maxRemembered = 512

// SetOverrides replaces the overrides. What was read before stays as it is: ask
// again when Generation has changed.
func (m *Names) SetOverrides(overrides Overrides) {
	for {
		old := m.state.Load()
		next := &naming{overrides: maps.Clone(overrides), generation: 1}
		if old != nil {
			next.generation = old.generation + 1
		}
		if m.state.CompareAndSwap(old, next) {
			return
		}
	}
}

// Generation changes whenever the overrides are replaced.
func (m *Names) Generation() uint64 {
	if state := m.state.Load(); state != nil {
		return state.generation
	}
	return 0
}

// Of is the name that a text has: by the overrides, else by Normalize.
func (m *Names) Of(raw string) Name {
	n, _ := m.read(raw)
	return n
}

func (m *Names) read(raw string) (n Name, overridden bool) {
	state := m.state.Load()
	if state == nil {
		state = &naming{}
		m.state.CompareAndSwap(nil, state)
		state = m.state.Load()
	}
	if seen, ok := state.known[raw]; ok {
		return seen.name, seen.overridden
	}
	n, overridden = state.overrides.of(raw)
	if !overridden {
		n = Normalize(raw)
	}
	next := &naming{overrides: state.overrides, generation: state.generation, known: map[string]remembered{}}
	if len(state.known) < maxRemembered {
		next.known = maps.Clone(state.known)
		if next.known == nil {
			next.known = map[string]remembered{}
		}
	}
	next.known[raw] = remembered{n, overridden}
	// A lost race forgets one entry, which costs nothing but its computation.
	m.state.CompareAndSwap(state, next)
	return n, overridden
}
