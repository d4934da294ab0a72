package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// What is judged within the data folder when nothing else is named.
const (
	defaultSweep = "guidellm_sweeps/llama31_8b_h100_vllm_guidellm.csv"
	defaultRun   = "vllm_runs/RTX4090-Llama-3.1-8B"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("simulation", flag.ContinueOnError)
	data := flags.String("data", "", "folder that holds "+defaultSweep+" and "+defaultRun)
	folder := flags.String("run", "", "another recorded run to judge (meta.json, requests.jsonl, and config.json for hardware that meta.json does not name), or a folder of such, absolute or within the data folder")
	target := flags.String("out", "bench-simulation.json", "where the numbers go; empty for nowhere")
	sheet := flags.Bool("datasheet", false, "take the arithmetic of the devices from their data sheets, not as it was measured")
	link := flags.Float64("link", 0, "what nccl-tests' all_reduce_perf measures between the devices of the runs (busbw), in GB/s; 0 takes the published figures of their links")
	rows := flags.Bool("rows", false, "print the error at every row of the sweep")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *data == "" {
		return fmt.Errorf("say where the data is: --data FOLDER (holds %s and %s)", defaultSweep, defaultRun)
	}
	if !(*link >= 0) {
		return fmt.Errorf("--link %v: expected GB/s, or 0 for the published figures", *link)
	}
	sweep := filepath.Join(*data, defaultSweep)
	points, err := readSweep(sweep)
	if err != nil {
		return err
	}
	folders, err := runsIn(choose(*data, *folder))
	if err != nil {
		return err
	}
	recorded := make([]record, len(folders))
	for i, folder := range folders {
		if recorded[i], err = readRecord(folder); err != nil {
			return err
		}
	}
	results, err := compare(judge{sheet: *sheet, link: *link}, report{out}, sweep, points, recorded, *rows)
	if err != nil {
		return err
	}
	if err := keep(*target, results); err != nil {
		return err
	}
	if len(missed(results)) > 0 {
		return errMissed
	}
	return nil
}

// errMissed ends a run with an error beyond its target; which one is told already.
var errMissed = errors.New("not every error is within its target")

// keep writes the file, if there is to be one.
func keep(target string, results []result) error {
	if target == "" {
		return nil
	}
	encoded, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	if err := os.WriteFile(target, append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// choose finds the recorded run that the flags mean.
func choose(data, folder string) string {
	if folder == "" {
		return filepath.Join(data, defaultRun)
	}
	if _, err := os.Stat(folder); err != nil && !filepath.IsAbs(folder) {
		return filepath.Join(data, folder)
	}
	return folder
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
