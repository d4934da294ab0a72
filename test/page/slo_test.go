package page

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// written are SLOs as pages, manifests, the chart and the help of commands write them: as entries of
// service classes, values and flags, in each spelling that is read.
var written = regexp.MustCompile(`\b(slo-ttft|sloTtft|slo-ttw|slo-tpot|sloTpot|slo-itl)["']?[:= ]\s*["']?([0-9]+(?:\.[0-9]+)?)`)

// copied are the folders and files of which people copy SLOs, and what of them they see. SLOs of
// replays are no metrics of a server, and need no bucket.
var copied = map[string][]string{
	"docs": {".md", ".yaml", ".sh"}, "manifests": {".yaml", ".md"}, "charts": {".yaml", ".md", ".tpl", ".txt"},
	"cmd/kubectl-wva": {".go", ".txt"}, "pkg/scenario/builtin.yaml": {".yaml"}, "README.md": {".md"},
}

// wrongSLOs are the SLOs of a text that are within a bucket of vLLM, so that nobody can tell whether they
// are met.
func wrongSLOs(text string) (found, wrong []string) {
	for _, said := range written.FindAllStringSubmatch(text, -1) {
		found = append(found, said[0])
		value, err := strconv.ParseFloat(said[2], 64)
		ends := modelserver.VLLM.InterTokenEnds()
		if slices.Contains([]string{"slo-ttft", "sloTtft", "slo-ttw"}, said[1]) {
			ends = modelserver.VLLM.FirstTokenEnds()
		}
		if err != nil || !slices.Contains(ends, capacity.Milliseconds(value)) {
			wrong = append(wrong, said[0])
		}
	}
	return found, wrong
}

// The SLOs that people copy can be read from the histograms of vLLM: they are ends of buckets.
func TestTheSLOsOfExamplesAreEndsOfBuckets(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for root, ends := range copied {
		err := filepath.WalkDir("../../"+root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains(ends, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
			if err != nil {
				return err
			}
			found, wrong := wrongSLOs(string(text))
			seen[root] += len(found)
			assert.Empty(t, wrong, "%s: choose ends of buckets (pkg/modelserver/bucket.go)", path)
			return nil
		})
		require.NoError(t, err)
	}
	for _, root := range []string{"docs", "manifests", "charts", "cmd/kubectl-wva"} {
		assert.Positive(t, seen[root], "%s has SLOs that people copy", root)
	}
}

func TestSLOsAreFoundHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]string{
		"--slo-ttft 2000 --slo-itl 50":          "slo-ttft 2000",
		"--slo-ttft=1500":                       "slo-ttft=1500",
		"slo-tpot: 24":                          "slo-tpot: 24",
		`{"slo-itl": "8"}`:                      `slo-itl": "8`,
		"--set va.sloTpot=10.5":                 "sloTpot=10.5",
		"slo-ttw: 600":                          "slo-ttw: 600",
		"slo-ttft: 500 # the time":              "",
		"--slo-ttft 2500 --slo-itl 50":          "",
		"slo-tpot for the mean time per token":  "",
		"      --slo-ttft number   With --from": "",
	} {
		_, found := wrongSLOs(text)
		assert.Equal(t, wrong, strings.Join(found, ", "), text)
	}
}
