package simulation

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// What is judged within the data folder when nothing else is named.
const (
	defaultSweep = "guidellm_sweeps/llama31_8b_h100_vllm_guidellm.csv"
	defaultRun   = "vllm_runs/RTX4090-Llama-3.1-8B"
)

// Run is the benchmark.
func Run(_ context.Context, call *harness.Call) error {
	flags := call.Flags("simulation")
	data := flags.String("data", "", "folder that holds "+defaultSweep+" and "+defaultRun)
	folder := flags.String("run", "", "another recorded run to judge (meta.json, requests.jsonl, and config.json for hardware that meta.json does not name), or a folder of such, absolute or within the data folder")
	sheet := flags.Bool("datasheet", false, "take the arithmetic of the devices from their data sheets, not as it was measured")
	link := flags.Float64("link", 0, "what nccl-tests' all_reduce_perf measures between the devices of the runs (busbw), in GB/s; 0 takes the published figures of their links")
	rows := flags.Bool("rows", false, "print the error at every row of the sweep")
	if err := flags.Parse(); err != nil {
		return err
	}
	if *data == "" {
		return harness.NoData(defaultSweep + " and " + defaultRun)
	}
	if !(*link >= 0) {
		return fmt.Errorf("--link %v: expected GB/s, or 0 for the published figures", *link)
	}
	sweep := filepath.Join(*data, defaultSweep)
	points, err := readSweep(sweep)
	if err != nil {
		return err
	}
	folders, err := runsIn(harness.Within(*data, cmp.Or(*folder, filepath.Join(*data, defaultRun))))
	if err != nil {
		return err
	}
	recorded := make([]record, len(folders))
	for i, folder := range folders {
		if recorded[i], err = readRecord(folder); err != nil {
			return err
		}
	}
	results, err := compare(judge{sheet: *sheet, link: *link}, report{call.Out}, sweep, points, recorded, *rows)
	if err != nil {
		return err
	}
	if err := flags.Save(results); err != nil {
		return err
	}
	if len(missed(results)) > 0 {
		return harness.ErrMissed
	}
	return nil
}

// runsIn are the folders of runs in a folder, sorted, or the folder itself if it is one.
func runsIn(folder string) ([]string, error) {
	isRun := func(folder string) bool {
		for _, within := range []string{"", "vllm"} {
			if _, err := os.Stat(filepath.Join(folder, within, "meta.json")); err == nil {
				return true
			}
		}
		return false
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the run: %w", err)
	}
	var runs []string
	for _, e := range entries {
		if within := filepath.Join(folder, e.Name()); !isRun(folder) && isRun(within) {
			runs = append(runs, within)
		}
	}
	if len(runs) == 0 {
		// What is missing in it, reading it says.
		runs = []string{folder}
	}
	return runs, nil
}

// compare fits on each half of the sweep, and judges on the other and on the runs.
func compare(j judge, to report, path string, rows []row, recorded []record, every bool) ([]result, error) {
	to.sweep(path, rows)
	// A run of a model or a device without figures should fail before the work.
	for _, r := range recorded {
		profile, err := j.profile(r, firstGuess)
		if err == nil {
			_, err = j.record(r, firstGuess)
		}
		if err != nil {
			return nil, fmt.Errorf("the run %s: %w", r.name, err)
		}
		to.record(r, profile)
	}
	halves := checkerboard(rows)
	var ofRows []miss
	ofRuns := make([][]miss, len(recorded))
	for i, half := range halves {
		other := halves[1-i]
		if len(half) == 0 || len(other) == 0 {
			return nil, fmt.Errorf("%s: all its shapes lie on one half of the checkerboard; expected lengths that vary", path)
		}
		constants, err := j.fit(half)
		if err != nil {
			return nil, err
		}
		to.constants(i, constants)
		misses, err := j.rows(other, constants)
		if err != nil {
			return nil, err
		}
		for k := range misses {
			if every {
				to.row(other[k], misses[k])
			}
		}
		ofRows = append(ofRows, misses...)
		for k, r := range recorded {
			predicted, err := j.record(r, constants)
			if err != nil {
				return nil, err
			}
			measured := summarize(r.measured, false)
			ofRun := predicted.against(measured)
			to.signed(r, measured, ofRun)
			ofRuns[k] = append(ofRuns[k], ofRun)
		}
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	results := []result{lineOf(name, meanSize(ofRows))}
	for k, r := range recorded {
		results = append(results, lineOf(r.name, meanSize(ofRuns[k])))
	}
	to.table(results)
	return results, nil
}
