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
	folder := flags.String("run", "", "another recorded run to judge (meta.json and requests.jsonl), absolute or within the data folder")
	target := flags.String("out", "bench-simulation.json", "where the numbers go; empty for nowhere")
	sheet := flags.Bool("datasheet", false, "take the arithmetic of the devices from their data sheets, not as it was measured")
	rows := flags.Bool("rows", false, "print the error at every row of the sweep")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *data == "" {
		return fmt.Errorf("say where the data is: --data FOLDER (holds %s and %s)", defaultSweep, defaultRun)
	}
	sweep := filepath.Join(*data, defaultSweep)
	points, err := readSweep(sweep)
	if err != nil {
		return err
	}
	recorded, err := readRecord(choose(*data, *folder))
	if err != nil {
		return err
	}
	results, err := compare(judge{sheet: *sheet}, report{out}, sweep, points, recorded, *rows)
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

// compare fits on each half of the sweep, and judges on the other and on the run.
func compare(j judge, to report, path string, rows []row, recorded record, every bool) ([]result, error) {
	to.sweep(path, rows)
	to.record(recorded)
	// A run of a model or a device without figures should fail before the work.
	if _, err := j.record(recorded, firstGuess); err != nil {
		return nil, fmt.Errorf("the run %s: %w", recorded.name, err)
	}
	measured := summarize(recorded.measured, false)
	halves := checkerboard(rows)
	var ofRows, ofRuns []miss
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
		predicted, err := j.record(recorded, constants)
		if err != nil {
			return nil, err
		}
		ofRun := predicted.against(measured)
		to.signed(recorded, measured, ofRun)
		ofRuns = append(ofRuns, ofRun)
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	results := []result{lineOf(name, meanSize(ofRows)), lineOf(recorded.name, meanSize(ofRuns))}
	to.table(results)
	return results, nil
}
