package migrate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/migration"
)

// readFiles are the objects of files, of "-" the standard input. Lists are taken apart.
func readFiles(files []string, in io.Reader) (all []migration.Document, err error) {
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

func readDocuments(file string, text []byte) (all []migration.Document, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		place := fmt.Sprintf("%s, document %d", file, number)
		one, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		found, err := migration.Read(place, one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		all = append(all, found...)
	}
}
