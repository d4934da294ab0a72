package migrate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// document is one object and where it is from.
type document struct {
	// file says where it is from, with the number of the document in it.
	file                  string
	kind, namespace, name string
	object                map[string]any
	// text is how it was written, for what stays as it is; nil for what was made.
	text []byte
	// notes stand before the object.
	notes []string
}

func key(namespace, name string) string { return namespace + "/" + name }

// yaml is the document as it is written.
func (d *document) yaml() ([]byte, error) {
	if d.text != nil {
		return d.text, nil
	}
	var all bytes.Buffer
	for _, note := range d.notes {
		fmt.Fprintf(&all, "# %s\n", note)
	}
	text, err := yaml.Marshal(d.object)
	all.Write(text)
	return all.Bytes(), err
}

// readFiles are the objects of files, of "-" the standard input. Lists are taken apart.
func readFiles(files []string, in io.Reader) (all []document, err error) {
	for _, file := range files {
		var text []byte
		if file == "-" {
			text, err = io.ReadAll(in)
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		found, err := readDocuments(file, text)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func readDocuments(file string, text []byte) (all []document, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		place := fmt.Sprintf("%s, document %d", file, number)
		one, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		found, err := readDocument(place, one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		all = append(all, found...)
	}
}

func readDocument(place string, text []byte) (all []document, err error) {
	object := map[string]any{}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	d := documentOf(object)
	d.file, d.text = place, bytes.TrimPrefix(text, []byte("---\n"))
	switch {
	case d.kind == "" && object["apiVersion"] == nil:
		return nil, nil // nothing but comments
	case !strings.HasSuffix(d.kind, "List"):
		return []document{d}, nil
	}
	items, _ := object["items"].([]any)
	for i, item := range items {
		one, err := yaml.Marshal(item)
		if err == nil {
			var found []document
			found, err = readDocument(fmt.Sprintf("%s, item %d", place, i), one)
			all = append(all, found...)
		}
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return all, nil
}

// documentOf is an object that was made or read.
func documentOf(object map[string]any) document {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return document{kind: kind, namespace: namespace, name: name, object: object}
}

func (d *document) group() string {
	version, _ := d.object["apiVersion"].(string)
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		return ""
	}
	return group
}

// wrong is an error about the document.
func (d *document) wrong(err error) error {
	return fmt.Errorf("%s: %s %q: %w", d.file, d.kind, d.name, err)
}
