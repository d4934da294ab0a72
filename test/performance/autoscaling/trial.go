package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// trace is one load.
type trace struct {
	name string
	// open opens it. Of a trace that is multiplied, the requests are counted before.
	open func(data string, counted *workload.Dispersion) (workload.Stream, error)
}

// trial is one load in one setting.
type trial struct {
	trace           trace
	prices, cluster string
	startups        []time.Duration
	// learns is set where the autoscaler is told no profile and has to learn it. The
	// others know as much from the start, so that its rows are judged by nothing.
	learns bool
}

const seed = 1

// policies are those that are compared, and the bound.
var policies = []string{
	"hybrid", "capacity-only", "hpa:queue", "hpa:kv", "keda", "saturation-v1", "saturation-v2", "static:6", "peak", "bound",
}

// The prices and clusters of the scenario.
const (
	aws, lowest = "aws", "lowest"
	roomy, full = "roomy", "full"
)

// The traces that are named in more than one place.
const (
	conversation = "azure-conversation"
	large        = "servegen-m-large"
)

var (
	usual = []time.Duration{60 * time.Second, 300 * time.Second}
	every = []time.Duration{30 * time.Second, 60 * time.Second, 120 * time.Second, 300 * time.Second}
)

// trials are all of them.
func trials() []trial {
	const conv = "azure2023/AzureLLMInferenceTrace_conv.csv"
	talk := azure(conv, workload.DefaultSpread)
	known := trace{conversation, talk}
	return []trial{
		{trace: known, prices: aws, cluster: roomy, startups: every},
		{trace: known, prices: lowest, cluster: roomy, startups: usual},
		{trace: known, prices: aws, cluster: full, startups: usual},
		{trace: trace{"azure-code", azure("azure2023/AzureLLMInferenceTrace_code.csv", workload.DefaultSpread)}, prices: aws, cluster: roomy, startups: usual},
		{trace: trace{large, servegen(24*time.Hour, 0.1)}, prices: aws, cluster: roomy, startups: usual},
		{trace: trace{"synthetic-diurnal", synthetic("diurnal")}, prices: aws, cluster: roomy, startups: usual},
		{trace: trace{conversation + "-in-bursts", azure(conv, workload.MinSpread)}, prices: aws, cluster: roomy, startups: usual},
		{trace: trace{conversation + "-learning", talk}, prices: aws, cluster: roomy, startups: usual[:1], learns: true},
	}
}

// chosen are the policies of the trial among those that are asked for. Only hybrid mode
// makes much of a profile, so that it alone shows what learning costs.
func (t trial) chosen(names []string) []string {
	if !t.learns {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name != "hybrid" })
}

// speed is one hour of the large service at its full rate.
func speed() trial {
	return trial{trace: trace{large + "-hour", servegen(time.Hour, 1)}, prices: aws, cluster: roomy, startups: usual[:1]}
}

// factor multiplies the requests of the Azure traces.
const factor = 20

// azure has its copies spread over a time.
func azure(file string, spread time.Duration) func(string, *workload.Dispersion) (workload.Stream, error) {
	return func(data string, counted *workload.Dispersion) (workload.Stream, error) {
		stream, err := workload.Open(opener, filepath.Join(data, file), workload.OpenOptions{Seed: seed})
		if err != nil {
			return nil, err
		}
		return workload.Rate(counted.Of(stream), factor, spread, seed)
	}
}

func servegen(length time.Duration, share float64) func(string, *workload.Dispersion) (workload.Stream, error) {
	return func(data string, _ *workload.Dispersion) (workload.Stream, error) {
		return workload.Open(opener, filepath.Join(data, "servegen/language_m-large_rate.csv"),
			workload.OpenOptions{Seed: seed, Length: length, Thin: share})
	}
}

func synthetic(name string) func(string, *workload.Dispersion) (workload.Stream, error) {
	return func(string, *workload.Dispersion) (workload.Stream, error) {
		stream, _, err := workload.Named(name, seed)
		return stream, err
	}
}

func opener(name string) (io.ReadCloser, error) { return os.Open(name) }

// String names the trial.
func (t trial) String() string { return fmt.Sprintf("%s %s %s", t.trace.name, t.prices, t.cluster) }
