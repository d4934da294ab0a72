package carrying

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// longestName bounds what is behind the prefix of the key of an annotation, in bytes.
const longestName = 63

// fit is a key of an object that can be part of the name of an annotation.
var fit = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$`)

// Write sets one annotation for each field of a value, and of the objects in it. Its key is the
// prefix and the path of the field, and its text is JSON. The annotation of an object holds the
// entries whose keys are not fit for a path, mostly none. An error is that the value has no form in
// JSON, or that it is no object.
func Write(annotations map[string]string, prefix string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	for key, field := range fields {
		if err := write(annotations, prefix, key, field); err != nil {
			return err
		}
	}
	return nil
}

func write(annotations map[string]string, prefix, path string, value json.RawMessage) error {
	if !bytes.HasPrefix(value, []byte("{")) {
		annotations[prefix+path] = string(value)
		return nil
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(value, &entries); err != nil {
		return err
	}
	rest := map[string]json.RawMessage{}
	for key, entry := range entries {
		below := path + "." + key
		if !fit.MatchString(key) || len(below) > longestName {
			rest[key] = entry
			continue
		}
		if err := write(annotations, prefix, below, entry); err != nil {
			return err
		}
	}
	text, err := json.Marshal(rest)
	annotations[prefix+path] = string(text)
	return err
}

// Read is the value that Write wrote. The annotation with the key whole, if it is there, holds in
// one text what has no annotation of its own: it is of an earlier form. A field that cannot be read
// counts as none. The keys are those of the annotations that were read.
func Read[T any](annotations map[string]string, prefix, whole string) (value T, keys []string) {
	fields := map[string]json.RawMessage{}
	if text, found := annotations[whole]; found && json.Unmarshal([]byte(text), &fields) == nil && isA[T](text) {
		keys = append(keys, whole)
	} else {
		fields = map[string]json.RawMessage{}
	}
	for name, node := range nodes(annotations, prefix) {
		text := node.text()
		if !isA[T](`{"` + name + `":` + string(text) + `}`) {
			continue
		}
		fields[name] = text
		for _, path := range node.paths {
			keys = append(keys, prefix+path)
		}
	}
	// Each of them was tried.
	if text, err := json.Marshal(fields); err == nil {
		_ = json.Unmarshal(text, &value)
	}
	slices.Sort(keys)
	return value, keys
}

func isA[T any](text string) bool { return json.Unmarshal([]byte(text), new(T)) == nil }

// node is a value with the entries that have annotations of their own.
type node struct {
	value   json.RawMessage
	entries map[string]*node // nil for what is no object
	// paths are all that it was read from.
	paths []string
}

// nodes are the fields of the value by name.
func nodes(annotations map[string]string, prefix string) map[string]*node {
	var paths []string
	for key, text := range annotations {
		if path, ok := strings.CutPrefix(key, prefix); ok && path != "" && json.Valid([]byte(text)) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths) // an object before what is in it
	root := &node{entries: map[string]*node{}}
	for _, path := range paths {
		root.add(strings.Split(path, "."), path, json.RawMessage(annotations[prefix+path]))
	}
	return root.entries
}

// add puts a value where its path says; nowhere where something else than an object is on the
// way. An object that lacks an annotation is made.
func (n *node) add(keys []string, path string, value json.RawMessage) bool {
	if n.entries == nil {
		return false
	}
	next, found := n.entries[keys[0]]
	if !found {
		next = &node{value: json.RawMessage("{}"), entries: map[string]*node{}}
	}
	if len(keys) == 1 {
		next.value, next.entries = value, nil
		if bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
			next.entries = map[string]*node{}
		}
	} else if !next.add(keys[1:], path, value) {
		return false
	}
	n.entries[keys[0]] = next
	next.paths = append(next.paths, path)
	return true
}

// text is the whole value.
func (n *node) text() json.RawMessage {
	if len(n.entries) == 0 {
		return n.value
	}
	all := map[string]json.RawMessage{}
	if json.Unmarshal(n.value, &all) != nil {
		return n.value
	}
	for key, entry := range n.entries {
		all[key] = entry.text()
	}
	text, err := json.Marshal(all)
	if err != nil {
		return n.value
	}
	return text
}
