package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Document is one document of a file.
type Document struct {
	// Place names the file, and the document in it by its number.
	Place string
	Text  []byte
}

// Read are the documents of a file, "-" for the standard input.
func Read(file string, in io.Reader) (all []Document, err error) {
	var text []byte
	if file == "-" {
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return Split(file, text)
}

// Split are the documents of the text of a file.
func Split(file string, text []byte) (all []Document, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		one, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", file, len(all)+1, err)
		}
		for _, value := range values(one) {
			all = append(all, Document{fmt.Sprintf("%s, document %d", file, len(all)+1), value})
		}
	}
}

// values are the JSON values of a document, of which a reader of YAML would only see the first. What is
// not JSON alone is one document as it stands.
func values(document []byte) (all [][]byte) {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(document, []byte("---\n"))))
	for {
		var value json.RawMessage
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF) && len(all) > 1:
			return all
		case err != nil:
			return [][]byte{document}
		}
		all = append(all, append(value, '\n'))
	}
}
