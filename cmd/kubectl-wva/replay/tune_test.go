package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tuned are the arguments of a small sweep.
func tuned(args ...string) []string {
	return append([]string{"--trace", "synthetic:ramp", "--duration", "6m", "--rate", "0.5", "--seeds", "2", "--tune", "hpa:rps,static,capacity-only"}, args...)
}

func TestTuneListsOursAndTheFronts(t *testing.T) {
	page := filepath.Join(t.TempDir(), "fronts.html")
	out, _, err := run(t.Context(), tuned("-o", "json", "--html", page)...)
	require.NoError(t, err)
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	var ours []any
	families := map[any]int{}
	for _, one := range list {
		assert.InDelta(t, 60, one["startupSeconds"], 0)
		assert.Contains(t, one, "requests", "each is a result")
		if one["front"] != true {
			ours = append(ours, one["policy"])
			for _, key := range []string{"ratio", "ratioNoise", "ratioIs", "frontCostAtSameAttainment", "frontCostNoise", "frontAttainmentAtSameCost", "frontAttainmentNoise", "attainmentNoise", "costNoise"} {
				assert.Contains(t, one, key)
			}
			assert.InDelta(t, 2, one["seeds"], 0)
			continue
		}
		families[one["family"]]++
		assert.NotContains(t, one, "ratio")
		assert.Contains(t, one["policy"], one["family"].(string)[:3], "the policy is written with its settings")
	}
	assert.Equal(t, []any{"capacity-only", "hybrid"}, ours)
	assert.Len(t, families, 3)
	shown, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(shown), `"family":"hpa:rps"`)

	again, _, err := run(t.Context(), tuned("-o", "json")...)
	require.NoError(t, err)
	assert.Equal(t, out, again, "the same bytes")
}

func TestTuneAsATable(t *testing.T) {
	out, _, err := run(t.Context(), tuned("--policy", "hybrid,static:2", "--startup", "30s,60s")...)
	require.NoError(t, err)
	assert.Contains(t, out, "synthetic:ramp x 0.5, 6m, Llama-3.1-70B fp8 on H100 and H200, prices aws, start-up 30s, seeds: 2\nindex of dispersion of the arrivals: ")
	assert.Contains(t, out, ", start-up 1m, seeds: 2\n")
	assert.Regexp(t, `(?m)^hybrid +\d+\.\d\d% +\d\.\d\d +\$[\d.]+ +[\d.]+ +[\d.]+ +\d\.\d{3} +\d\.\d{3}`, out)
	assert.Regexp(t, `(?m)^static:2 `, out)
	assert.Regexp(t, `(?m)^hpa:rps=`, out)
	assert.Contains(t, out, "RATIO: cost over that of the rivals' front at the same attainment.")
}

func TestTuneMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such family":       {with("--tune", "hpa:magic"), `--tune: "hpa:magic" cannot be tuned; expected one of hpa:rps, hpa:intok`},
		"a family twice":       {with("--tune", "hpa:rps,hpa:rps"), "--tune has hpa:rps twice"},
		"none":                 {with("--tune", ""), "--tune is empty: expected at least one family"},
		"seeds for nothing":    {with("--seeds", "4"), "--seeds goes with --tune only"},
		"no seeds":             {with("--tune", "hpa:rps", "--seeds", "0"), "--seeds is 0: expected from 1 to 100"},
		"far too many of them": {with("--tune", "hpa:rps", "--seeds", "101"), "--seeds is 101: expected from 1 to 100"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t.Context(), tc.args...)
			require.ErrorContains(t, err, tc.want)
		})
	}
}
