package migration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// Document is one object, and where it is from.
type Document struct {
	// File says where it is from, with the number of the document in it.
	File                  string
	Kind, Namespace, Name string
	Object                map[string]any
	// Text is how it was written, for what stays as it is; nil for what was made.
	Text []byte
	// Notes stand before the object, as comments.
	Notes []string
}

// Key is the object's place among those of its kind: NAMESPACE/NAME.
func (d *Document) Key() string { return key(d.Namespace, d.Name) }

func key(namespace, name string) string { return namespace + "/" + name }

// YAML is the document as it is written.
func (d *Document) YAML() ([]byte, error) {
	if d.Text != nil {
		return d.Text, nil
	}
	var all bytes.Buffer
	for _, note := range d.Notes {
		fmt.Fprintf(&all, "# %s\n", oneLine(note))
	}
	text, err := Marshal(d.Object)
	all.Write(text)
	return all.Bytes(), err
}

// Marshal is an object as YAML. A next line (U+0085) within a text is a line break for the reader of
// YAML that the library goes through: the text would change, or could not be written.
func Marshal(object any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(bytes.ReplaceAll(text, []byte("\u0085"), []byte(`\u0085`)))
}

// oneLine is a text of others as it may stand in a comment: a line break in it would end that, and what
// follows would be applied.
func oneLine(text string) string {
	var line strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			line.WriteRune(r)
		} else {
			line.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return line.String()
}

// Read reads one document of YAML. A List is taken apart; comments alone are nothing.
func Read(place string, text []byte) (all []Document, err error) {
	object := map[string]any{}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	d := Of(object)
	d.File, d.Text = place, bytes.TrimPrefix(text, []byte("---\n"))
	switch {
	case d.Kind == "" && object["apiVersion"] == nil:
		return nil, nil
	case !strings.HasSuffix(d.Kind, "List"):
		return []Document{d}, nil
	}
	items, _ := object["items"].([]any)
	for i, item := range items {
		one, err := Marshal(item)
		if err == nil {
			var found []Document
			found, err = Read(fmt.Sprintf("%s, item %d", place, i), one)
			all = append(all, found...)
		}
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return all, nil
}

// Of is the document of an object.
func Of(object map[string]any) Document {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return Document{Kind: kind, Namespace: namespace, Name: name, Object: object}
}

// Group is the API group of the object; empty for the core's.
func (d *Document) Group() string {
	version, _ := d.Object["apiVersion"].(string)
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		return ""
	}
	return group
}

// Wrong is an error about the document.
func (d *Document) Wrong(err error) error {
	return fmt.Errorf("%s: %s %q: %w", d.File, d.Kind, d.Name, err)
}

// The marks by which Argo CD knows what is its own.
const (
	labelArgo      = "argocd.argoproj.io/instance"
	annotationArgo = "argocd.argoproj.io/tracking-id"
)

// keeper is what keeps the object as it is written elsewhere; empty where nothing is known to.
func (d *Document) keeper() string {
	metadata, _ := d.Object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if release, _ := annotations["meta.helm.sh/release-name"].(string); release != "" {
		return "Helm release " + release
	}
	if labels[labelArgo] != nil || annotations[annotationArgo] != nil {
		return "Argo CD"
	}
	if name, _ := labels["kustomize.toolkit.fluxcd.io/name"].(string); name != "" {
		return "Flux Kustomization " + name
	}
	return ""
}

// kept are labels or annotations for the object that is made of theirs. Where it has another name,
// the marks of Argo CD are not its own.
func kept(values map[string]any, renamed bool) map[string]any {
	own := maps.Clone(values)
	delete(own, lastApplied)
	if renamed {
		delete(own, labelArgo)
		delete(own, annotationArgo)
	}
	return own
}
