package autoscaling

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
	// The families of rivals that package replay does not have.
	_ "llmd.ai/workload-variant-autoscaler/test/performance/rival"
	"llmd.ai/workload-variant-autoscaler/test/performance/tuning"
)

// trace is one load.
type trace struct {
	name string
	// open opens it with a seed. Of a trace that is multiplied, the requests are counted
	// before.
	open func(data string, seed uint64, counted *workload.Dispersion) (workload.Stream, error)
}

// part says what a trial is to show.
type part int

const (
	// single trials have one model and one variant that is best: what an HPA is made for.
	single part = iota
	// several trials have models that share a cluster, or variants of which the best one
	// does not suffice or does not stay.
	several
	// beside are trials that no claim is about.
	beside
)

// trial is one load in one setting.
type trial struct {
	trace trace
	// example is the scenario that the trial is of, with requests of its own; without it
	// the usual one with the trace.
	example         string
	prices, cluster string
	startups        []time.Duration
	part            part
	// rivals are the families that are tuned with the first start-up time; all with nil.
	// static fleets and ours with other settings are tuned aside where aside is set.
	rivals []string
	aside  bool
	// knows is what ours know of the variants at the beginning.
	knows knowledge
	// quick is set for trials of a quick run, and day for those that take longest.
	quick, day bool
}

// knowledge is what ours know of the variants at the beginning.
type knowledge int

const (
	// learned is what they learn from an earlier time: of a trace, the same again up to
	// lessonLength with other copies and lengths; of a scenario, what it says itself.
	learned knowledge = iota
	// told is the profile itself.
	told
	// nothing is for trials that are judged from the first request on.
	nothing
)

// lessonLength is that of the first day of scenarios.
const lessonLength = 3 * time.Hour

// ours are the policies that are judged, at their defaults. The claims are about the first
// one, which knows the promise.
var ours = []string{"hybrid", "capacity-only"}

// The prices and clusters of the scenario.
const (
	aws, lowest = "aws", "lowest"
	roomy, full = "roomy", "full"
)

var (
	both   = []time.Duration{60 * time.Second, 300 * time.Second}
	minute = both[:1]
	// proven are the families that come to the front on single models, and ranked those that
	// are tried where several variants matter.
	proven = []string{"hpa:rps", "hpa:intok", "hpa:inflight", "kpa:rps", "planner"}
	ranked = []string{"hpa:rps", "hpa:intok", "hpa:inflight", "kpa:rps", "planner", "saturation-v2"}
	// common are those of further start-up times, and of traces of a day.
	common = []string{"hpa:rps", "hpa:intok", "hpa:inflight", "kpa:rps", "kpa:inflight", "saturation-v2", "planner"}
	// hasty are those of a quick run.
	hasty = []string{"hpa:rps", "hpa:intok", "hpa:inflight", "kpa:rps"}
)

// trials are all of them.
func trials() []trial {
	const conv = "azure2023/AzureLLMInferenceTrace_conv.csv"
	talk := azure(conv, workload.DefaultSpread)
	known := trace{"azure-conversation", talk}
	return []trial{
		{trace: known, prices: aws, cluster: roomy, startups: both, aside: true, quick: true},
		{trace: trace{"azure-code", azure("azure2023/AzureLLMInferenceTrace_code.csv", workload.DefaultSpread)}, prices: aws, cluster: roomy, startups: both, aside: true, quick: true},
		{trace: trace{"servegen-m-large", servegen(24*time.Hour, 0.1)}, prices: aws, cluster: roomy, startups: both, rivals: common, aside: true, day: true},
		{trace: trace{"synthetic-diurnal", synthetic("diurnal")}, prices: aws, cluster: roomy, startups: both, rivals: common, quick: true, day: true},
		{trace: known, prices: aws, cluster: full, startups: minute, part: several, rivals: ranked},
		{trace: known, prices: lowest, cluster: roomy, startups: minute, part: beside, rivals: proven},
		{trace: trace{"azure-conversation-in-bursts", azure(conv, workload.MinSpread)}, prices: aws, cluster: roomy, startups: minute, part: beside, rivals: proven},
		{trace: trace{"azure-conversation-told", talk}, prices: aws, cluster: roomy, startups: minute, part: beside, rivals: proven, knows: told},
		{trace: trace{"azure-conversation-learning", talk}, prices: aws, cluster: roomy, startups: minute, part: beside, rivals: proven, knows: nothing},
		example("two-models", "busy-60"), example("two-models", "busy-85"),
		example("five-models", "busy-60"), example("five-models", "busy-85"),
		example("failing-nodes", ""), example("four-cheap", ""), example("spot", ""),
	}
}

// example is a scenario with requests of its own, and its own prices.
func example(name, cluster string) trial {
	cheap := name == "four-cheap"
	return trial{trace: trace{name: name}, example: name, cluster: cluster, startups: minute, part: several, rivals: ranked, aside: cheap, quick: cheap}
}

// hurried is the trial as a quick run has it; false where it has none.
func (t trial) hurried() (trial, bool) {
	t.startups, t.rivals, t.aside = minute, hasty, false
	return t, t.quick
}

// families are those that are tuned as rivals, and aside, with a start-up time, of the names
// that are asked for; all with none. With another start-up time all are the common ones.
func (t trial) families(startup time.Duration, asked []string) (rivals, aside []tuning.Family) {
	wanted := func(name string) bool { return len(asked) == 0 || slices.Contains(asked, name) }
	names := t.rivals
	if names == nil && startup != t.startups[0] {
		names = common
	}
	for _, f := range tuning.Families() {
		if wanted(f.Name) && (names == nil || slices.Contains(names, f.Name)) {
			rivals = append(rivals, f)
		}
	}
	for _, f := range tuning.Aside() {
		if t.aside && wanted(f.Name) && startup == t.startups[0] {
			aside = append(aside, f)
		}
	}
	return rivals, aside
}

// speed is one hour of the large service at its full rate.
func speed() trial {
	return trial{trace: trace{"servegen-m-large-hour", servegen(time.Hour, 1)}, prices: aws, cluster: roomy, startups: minute, knows: told}
}

// factor multiplies the requests of the Azure traces.
const factor = 20

type opened = func(data string, seed uint64, counted *workload.Dispersion) (workload.Stream, error)

// azure has its copies spread over a time.
func azure(file string, spread time.Duration) opened {
	return func(data string, seed uint64, counted *workload.Dispersion) (workload.Stream, error) {
		stream, err := workload.Open(opener, filepath.Join(data, file), workload.OpenOptions{Seed: seed})
		if err != nil {
			return nil, err
		}
		return workload.Rate(counted.Of(stream), factor, spread, seed)
	}
}

func servegen(length time.Duration, share float64) opened {
	return func(data string, seed uint64, _ *workload.Dispersion) (workload.Stream, error) {
		return workload.Open(opener, filepath.Join(data, "servegen/language_m-large_rate.csv"),
			workload.OpenOptions{Seed: seed, Length: length, Thin: share})
	}
}

func synthetic(name string) opened {
	return func(_ string, seed uint64, _ *workload.Dispersion) (workload.Stream, error) {
		stream, _, err := workload.Named(name, seed)
		return stream, err
	}
}

func opener(name string) (io.ReadCloser, error) { return os.Open(name) }

// String names the trial.
func (t trial) String() string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", t.trace.name, t.prices, t.cluster)), " ")
}
