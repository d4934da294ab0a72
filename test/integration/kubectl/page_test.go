package kubectl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/page"
)

// documented runs the blocks after the comment <!-- run on a cluster --> as they stand, in the
// order of the pages, on the objects that the examples name. Prometheus has an address of
// its own.
func documented(t *testing.T, w *world) {
	pages, err := page.Pages("../../..")
	require.NoError(t, err)
	ran := 0
	for _, p := range pages {
		for _, block := range p.Blocks {
			if block.Mark != page.OnCluster {
				continue
			}
			w.sample(t)
			ran++
			text := strings.ReplaceAll(block.Text, "http://localhost:9090", w.prometheus)
			out, complaints, err := w.shell(t.Context(), "set -e\n"+text)
			require.NoError(t, err, "%s\n%s", block.Place, complaints)
			require.NotEmpty(t, out, block.Place)
		}
	}
	require.Positive(t, ran)
}
