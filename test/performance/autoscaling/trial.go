package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// trace is one load.
type trace struct {
	name string
	open func(data string) (workload.Stream, error)
}

// trial is one load in one setting.
type trial struct {
	trace           trace
	prices, cluster string
	startups        []time.Duration
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

var (
	usual = []time.Duration{60 * time.Second, 300 * time.Second}
	every = []time.Duration{30 * time.Second, 60 * time.Second, 120 * time.Second, 300 * time.Second}
)

// trials are the judged ones.
func trials() []trial {
	conversation := trace{"azure-conversation", azure("azure2023/AzureLLMInferenceTrace_conv.csv")}
	return []trial{
		{conversation, aws, roomy, every},
		{conversation, lowest, roomy, usual},
		{conversation, aws, full, usual},
		{trace{"azure-code", azure("azure2023/AzureLLMInferenceTrace_code.csv")}, aws, roomy, usual},
		{trace{"servegen-m-large", servegen(24*time.Hour, 0.1)}, aws, roomy, usual},
		{trace{"synthetic-diurnal", synthetic("diurnal")}, aws, roomy, usual},
	}
}

// speed is one hour of the large service at its full rate.
func speed() trial {
	return trial{trace{"servegen-m-large-hour", servegen(time.Hour, 1)}, aws, roomy, []time.Duration{time.Minute}}
}

// factor multiplies the requests of the Azure traces.
const factor = 20

func azure(file string) func(string) (workload.Stream, error) {
	return func(data string) (workload.Stream, error) {
		stream, err := workload.Open(opener, filepath.Join(data, file), workload.OpenOptions{Seed: seed})
		if err != nil {
			return nil, err
		}
		return workload.Rate(stream, factor, seed)
	}
}

func servegen(length time.Duration, share float64) func(string) (workload.Stream, error) {
	return func(data string) (workload.Stream, error) {
		return workload.Open(opener, filepath.Join(data, "servegen/language_m-large_rate.csv"),
			workload.OpenOptions{Seed: seed, Length: length, Thin: share})
	}
}

func synthetic(name string) func(string) (workload.Stream, error) {
	return func(string) (workload.Stream, error) {
		stream, _, err := workload.Named(name, seed)
		return stream, err
	}
}

func opener(name string) (io.ReadCloser, error) { return os.Open(name) }

// String names the trial.
func (t trial) String() string { return fmt.Sprintf("%s %s %s", t.trace.name, t.prices, t.cluster) }
