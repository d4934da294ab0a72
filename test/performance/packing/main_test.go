package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder writes a small study in the format of the trace, with or without the column of
// models in the list.
func folder(t *testing.T, withModels bool) string {
	t.Helper()
	dir := t.TempDir()
	s := synthetic(t, 15, 80)
	nodes := &strings.Builder{}
	fmt.Fprintln(nodes, "sn,cpu_milli,memory_mib,gpu,model")
	for _, n := range s.Nodes {
		fmt.Fprintf(nodes, "%s,%d,%d,%d,%s\n", n.Name, n.MilliCPU, n.MemoryMiB, n.Devices, n.Model)
	}
	pods := &strings.Builder{}
	fmt.Fprint(pods, "name,cpu_milli,memory_mib,num_gpu,gpu_milli")
	if withModels {
		fmt.Fprint(pods, ",gpu_spec")
	}
	fmt.Fprintln(pods, ",qos")
	for _, p := range s.Pods {
		fmt.Fprintf(pods, "%s,%d,%d,%d,%d", p.Name, p.MilliCPU, p.MemoryMiB, p.Devices, p.Share)
		if withModels {
			fmt.Fprintf(pods, ",%s", p.Models)
		}
		fmt.Fprintln(pods, ",LS")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "openb_node_list_gpu_node.csv"), []byte(nodes.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "openb_pod_list_default.csv"), []byte(pods.String()), 0o600))
	return dir
}

func TestRun(t *testing.T) {
	for name, withModels := range map[string]bool{"with models": true, "without the column of models": false} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, withModels)
			out := filepath.Join(t.TempDir(), "results.json")
			var table bytes.Buffer
			require.NoError(t, run([]string{"--data", dir, "--seeds", "3", "--out", out}, &table, io.Discard))
			assert.Contains(t, table.String(), "ours minus gradient at 100 %, paired: ")
			assert.Contains(t, table.String(), "openb_pod_list_default, 3 seeds")
			assert.Regexp(t, `the devices alone allow at 100 %: \d+\.\d\d without refusing what fits, \d+\.\d\d with the future known`, table.String())
			bytesOnce, err := os.ReadFile(out)
			require.NoError(t, err)

			var results []map[string]any
			require.NoError(t, json.Unmarshal(bytesOnce, &results))
			require.Len(t, results, 4*3*len(reported))
			seen := map[string]int{}
			for _, r := range results {
				require.Len(t, r, 5)
				seen[fmt.Sprint(r["policy"], " ", r["list"], " ", r["arrivedPct"])]++
				assert.IsType(t, float64(0), r["allocatedPct"])
				assert.Contains(t, []any{1.0, 2.0, 3.0}, r["seed"])
			}
			for _, policy := range []string{"random", "bestfit", "gradient", "ours"} {
				assert.Equal(t, 3, seen[policy+" openb_pod_list_default 100"])
				assert.Equal(t, 3, seen[policy+" openb_pod_list_default 130"])
			}

			require.NoError(t, run([]string{"--data", dir, "--list", filepath.Join(dir, "openb_pod_list_default.csv"), "--seeds", "3", "--out", out}, io.Discard, io.Discard))
			bytesTwice, err := os.ReadFile(out)
			require.NoError(t, err)
			assert.Equal(t, string(bytesOnce), string(bytesTwice), "same bytes twice")
		})
	}
}

func TestFolderOfTheFolder(t *testing.T) {
	dir := folder(t, true)
	parent := t.TempDir()
	require.NoError(t, os.Rename(dir, filepath.Join(parent, "openb")))
	out := filepath.Join(t.TempDir(), "results.json")
	require.NoError(t, run([]string{"--data", parent, "--seeds", "1", "--derive", "spec33", "--out", out}, io.Discard, io.Discard))
	results, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Contains(t, string(results), `"list":"openb_pod_list_default+spec33"`)
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	dir := folder(t, true)
	for _, test := range []struct {
		name, want string
		args       []string
	}{
		{"no data", "name the folder of the openb trace", nil},
		{"no seeds", "--seeds must be at least 1", []string{"--data", dir, "--seeds", "0"}},
		{"an argument too many", `unexpected argument "ten"`, []string{"--data", dir, "ten"}},
		{"no such folder", "openb_node_list_gpu_node.csv", []string{"--data", filepath.Join(dir, "none")}},
		{"no such list", "none.csv", []string{"--data", dir, "--list", "none.csv"}},
		{"no such derived list", `no derived list "none"; there are cpu0`, []string{"--data", dir, "--derive", "none"}},
		{"nowhere to write", "writing the results", []string{"--data", dir, "--seeds", "1", "--out", filepath.Join(dir, "none", "out.json")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.ErrorContains(t, run(test.args, io.Discard, io.Discard), test.want)
		})
	}
}

func TestDerivedLists(t *testing.T) {
	s := synthetic(t, 15, 400)
	for name := range derivations {
		t.Run(name, func(t *testing.T) {
			pods, err := derive(name, s.Nodes, s.Pods)
			require.NoError(t, err)
			again, err := derive(name, s.Nodes, s.Pods)
			require.NoError(t, err)
			assert.Equal(t, pods, again)
			_, err = newStudy(s.Nodes, pods)
			require.NoError(t, err)
		})
	}
	part := func(name string, of func(*Pod) bool) float64 {
		pods, err := derive(name, s.Nodes, s.Pods)
		require.NoError(t, err)
		all, some := 0.0, 0.0
		for i := range pods {
			all += float64(pods[i].Demand())
			if of(&pods[i]) {
				some += float64(pods[i].Demand())
			}
		}
		return some / all
	}
	assert.InDelta(t, 0.5, part("multi50", func(p *Pod) bool { return p.Devices > 1 }), 0.1)
	assert.InDelta(t, 0.6, part("share60", func(p *Pod) bool { return p.Share < whole }), 0.1)
	assert.InDelta(t, 1, part("share100", func(p *Pod) bool { return p.Share < whole }), 1e-9)
	resized, err := derive("sizes1", s.Nodes, s.Pods)
	require.NoError(t, err)
	sizes := map[int]int{}
	for i := range s.Pods {
		before, after := s.Pods[i].Share, resized[i].Share
		if before == whole || s.Pods[i].Devices == 0 {
			assert.Equal(t, before, after, "no share")
			continue
		}
		if size, seen := sizes[before]; seen {
			assert.Equal(t, size, after, "one size becomes one size")
		}
		sizes[before] = after
		assert.True(t, after > 0 && after < whole, "a share")
	}
	require.NotEmpty(t, sizes)
	for before, after := range sizes {
		assert.NotEqual(t, before, after, "another size")
	}
	other, err := derive("sizes2", s.Nodes, s.Pods)
	require.NoError(t, err)
	assert.NotEqual(t, resized, other)
	assert.Greater(t, part("spec100", func(p *Pod) bool { return p.Models != "" }), 0.9)
}

func TestMoments(t *testing.T) {
	mean, deviation := moments([]float64{1, 2, 3, 4})
	assert.InDelta(t, 2.5, mean, 1e-12)
	assert.InDelta(t, 1.2909944487, deviation, 1e-9)
	_, deviation = moments([]float64{7})
	assert.Zero(t, deviation)
	curves := make([][]Curve, len(policies))
	for p := range curves {
		curves[p] = make([]Curve, 2)
	}
	curves[indexOf("ours")][0][100], curves[indexOf("ours")][1][100] = 96, 97
	curves[indexOf("gradient")][0][100], curves[indexOf("gradient")][1][100] = 95, 97.5
	lead, standardError, wins := paired(curves, "ours", "gradient", 100)
	assert.InDelta(t, 0.25, lead, 1e-12)
	assert.InDelta(t, 0.75, standardError, 1e-12)
	assert.Equal(t, 1, wins)
}
