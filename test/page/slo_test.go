package page

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// written are the SLOs of service classes, as pages, manifests and the chart write them.
var written = regexp.MustCompile(`(slo-ttft|sloTtft|slo-tpot|sloTpot|slo-itl): ([0-9.]+)`)

// The SLOs that people copy can be read from the histograms of vLLM: they are ends of buckets.
func TestTheSLOsOfExamplesAreEndsOfBuckets(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, file := range []string{
		"manifests/manager/service-classes.yaml", "charts/workload-variant-autoscaler/values.yaml", "charts/workload-variant-autoscaler/values-llm-d.yaml",
		"charts/workload-variant-autoscaler/README.md", "pkg/config/scenario/builtin.yaml", "docs/tasks/slos-and-prices.md",
	} {
		text, err := os.ReadFile("../../" + file) //nolint:gosec // a file of this repository
		require.NoError(t, err)
		require.Regexp(t, written, string(text), file)
		texts[file] = string(text)
	}
	pages, err := Pages("../..")
	require.NoError(t, err)
	for _, p := range pages {
		for _, block := range p.Blocks {
			texts[block.Place] = block.Text
		}
	}
	for place, text := range texts {
		for _, found := range written.FindAllStringSubmatch(text, -1) {
			value, err := strconv.ParseFloat(found[2], 64)
			require.NoError(t, err)
			ends := modelserver.VLLM.InterTokenEnds()
			if slices.Contains([]string{"slo-ttft", "sloTtft"}, found[1]) {
				ends = modelserver.VLLM.FirstTokenEnds()
			}
			assert.Contains(t, ends, capacity.Milliseconds(value), "%s: %s", place, found[0])
		}
	}
}
