package migrate

import (
	"fmt"
	"io"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/manifest"
	"llmd.ai/workload-variant-autoscaler/pkg/migration"
)

// readFiles are the objects of files, of "-" the standard input. Lists are taken apart.
func readFiles(files []string, in io.Reader) (all []migration.Document, err error) {
	for _, file := range files {
		documents, err := manifest.Read(file, in)
		if err != nil {
			return nil, err
		}
		for _, d := range documents {
			found, err := migration.Read(d.Place, d.Text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Place, err)
			}
			all = append(all, found...)
		}
	}
	return all, nil
}
