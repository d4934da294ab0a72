package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// Options is what the user chose.
type Options struct {
	// Duration is how long there is traffic, Tail how long the cluster is watched
	// without any after it.
	Duration, Tail time.Duration
	// Models is how many of the models run, the first ones.
	Models int
	// Trace is a file of requests for the first model; empty means synthetic
	// traffic.
	Trace string
	// Rate is how often every request of the trace is sent.
	Rate float64
	// Startup is how long a model server takes until it serves.
	Startup time.Duration
	// Metrics is where the autoscaler sees its model servers: metricsPrometheus or
	// metricsPods.
	Metrics string
	// Mode is how the autoscaler sizes: modeHybrid or modeCapacityOnly.
	Mode string
	// LlamaStack puts a Llama Stack server in front of the first model.
	LlamaStack bool
	// Report is the file that the report is written to.
	Report string
	// ReportHTML is the file that the report is written to as a page with pictures.
	ReportHTML string
	// Keep leaves everything running after the traffic until Ctrl-C.
	Keep bool
	// Logs is the directory for the logs of every component; empty means one that
	// is removed at the end.
	Logs string
	// Seed decides every random number of the traffic.
	Seed uint64
}

// Where the autoscaler sees its model servers.
const (
	metricsPrometheus = "prometheus"
	metricsPods       = "pods"
)

// How the autoscaler sizes: for the promised latency too, or by saturation alone.
const (
	modeHybrid       = "hybrid"
	modeCapacityOnly = "capacity-only"
)

const usage = `Starts a whole Kubernetes cluster with emulated GPU nodes and model servers,
lets the autoscaler and its scheduler run two models under load, and writes a
report of what they did. While it runs, it serves the report's page on a loopback
address, which it prints at the start.

Usage:
  playground demo [flags]

Examples:
  # three minutes of synthetic traffic, and a minute without
  playground demo

  # five minutes of a recorded trace, every request twenty times
  playground demo --trace AzureLLMInferenceTrace_conv.csv --rate 20 --duration 5m

  # the 8B model alone, which has all of the nodes then
  playground demo --models 1

  # size by saturation alone, without the SLO
  playground demo --mode capacity-only

  # look around with kubectl afterwards, until Ctrl-C
  playground demo --duration 1m --tail 0 --keep

Flags:
`

// errHelp says that the help was asked for and printed.
var errHelp = errors.New("help")

// parse reads the command line after "demo". Every error is one line that names
// the flag and what it expects. Nothing is checked here that needs more than the
// command line; see check.
func parse(args []string, out io.Writer) (Options, error) {
	o := Options{Duration: 3 * time.Minute, Tail: time.Minute, Models: 2, Startup: 15 * time.Second}
	flags := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.SortFlags = false
	flags.Var((*seconds)(&o.Duration), "duration", "how long there is traffic: seconds, or a duration like 90s or 3m")
	flags.StringVar(&o.Trace, "trace", "", "file of requests (TIMESTAMP,ContextTokens,GeneratedTokens) for the 8B model; without one its traffic is synthetic, as the 70B model's always is")
	flags.Float64Var(&o.Rate, "rate", 1, "send every request of the trace this many times, the copies spread over a minute around it; time is not compressed")
	flags.IntVar(&o.Models, "models", o.Models, "how many models share the cluster: 2, or 1, the 8B model alone")
	flags.Var((*seconds)(&o.Tail), "tail", "how long to watch without traffic after it, in which replicas are removed")
	flags.Var((*seconds)(&o.Startup), "startup", "how long a model server takes until it serves")
	flags.StringVar(&o.Metrics, "metrics", metricsPrometheus, "where the autoscaler sees its model servers: prometheus, or pods, which it then scrapes itself")
	flags.StringVar(&o.Mode, "mode", modeHybrid, "how the autoscaler sizes: hybrid, for the SLO too, or capacity-only, by saturation alone")
	flags.BoolVar(&o.LlamaStack, "llamastack", false, "put a Llama Stack server, which the manager runs, in front of the 8B model: its requests go through the server's vLLM provider")
	flags.StringVar(&o.Report, "report", "demo-report.json", "file that the report is written to, as JSON")
	flags.StringVar(&o.ReportHTML, "report-html", "demo-report.html", "file that the report is written to as one HTML page with pictures, which opens without a network")
	flags.BoolVar(&o.Keep, "keep", false, "leave everything running after the traffic, until Ctrl-C")
	flags.StringVar(&o.Logs, "logs", "", "directory for the logs of every component; without one they are removed at the end")
	flags.Uint64Var(&o.Seed, "seed", 1, "decides every random number of the traffic: the same seed sends the same requests")
	flags.Usage = func() {}
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		say(out, usage+strings.TrimSuffix(flags.FlagUsagesWrapped(98), "\n"))
		return o, errHelp
	case err != nil:
		return o, errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; every setting is a flag, see --help", flags.Arg(0))
	case flags.Changed("rate") && o.Rate != 1 && o.Trace == "":
		return o, errors.New("--rate multiplies the requests of a trace; give --trace too, or leave --rate out")
	}
	return o, nil
}

// check looks at the ranges.
func (o Options) check() error {
	switch {
	case o.Duration < time.Second || o.Duration > 24*time.Hour:
		return fmt.Errorf("--duration is %s; expected between 1s and 24h", report.Duration(o.Duration))
	case o.Tail < 0 || o.Tail > 24*time.Hour:
		return fmt.Errorf("--tail is %s; expected between 0 and 24h", report.Duration(o.Tail))
	case o.Startup < 0 || o.Startup > time.Hour:
		return fmt.Errorf("--startup is %s; expected between 0 and 1h", report.Duration(o.Startup))
	case o.Models < 1 || o.Models > len(scenario()):
		return fmt.Errorf("--models is %d; expected between 1 and %d", o.Models, len(scenario()))
	case !(o.Rate > 0) || o.Rate > 1000:
		return fmt.Errorf("--rate is %v; expected above 0 and at most 1000", o.Rate)
	case o.Metrics != metricsPrometheus && o.Metrics != metricsPods:
		return fmt.Errorf("--metrics is %q; expected %s or %s", o.Metrics, metricsPrometheus, metricsPods)
	case o.Mode != modeHybrid && o.Mode != modeCapacityOnly:
		return fmt.Errorf("--mode is %q; expected %s or %s", o.Mode, modeHybrid, modeCapacityOnly)
	case o.Report == "":
		return errors.New("--report is empty; expected the name of a file")
	case o.ReportHTML == "":
		return errors.New("--report-html is empty; expected the name of a file")
	case filepath.Clean(o.ReportHTML) == filepath.Clean(o.Report):
		return fmt.Errorf("--report-html is %s, as --report is; expected two files", o.ReportHTML)
	}
	return nil
}

// checkOutput makes the directory of the logs and tries what will be written. When
// one of the two cannot be, it leaves nothing behind; undo takes it back later.
func (o Options) checkOutput() (undo func(), err error) {
	undo = func() {}
	if o.Logs != "" {
		if undo, err = makeDirectory(o.Logs); err == nil {
			err = tryWriting(filepath.Join(o.Logs, ownLog))
		}
		if err != nil {
			undo()
			return nil, fmt.Errorf("--logs: %w; expected a directory that can be made or written to", err)
		}
	}
	if err := tryWriting(o.Report); err != nil {
		undo()
		return nil, fmt.Errorf("--report: %w; expected a file in a directory that is there and can be written to", err)
	}
	if err := tryWriting(o.ReportHTML); err != nil {
		undo()
		return nil, fmt.Errorf("--report-html: %w; expected a file in a directory that is there and can be written to", err)
	}
	return undo, nil
}

// makeDirectory makes a directory with its parents; undo removes those that were not
// there.
func makeDirectory(path string) (undo func(), err error) {
	var made []string
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !os.IsNotExist(err) || dir == filepath.Dir(dir) {
			break
		}
		made = append(made, dir)
	}
	undo = func() {
		for _, dir := range made {
			_ = os.Remove(dir)
		}
	}
	return undo, os.MkdirAll(path, 0o755)
}

// tryWriting opens a file as it will be opened later, and leaves no empty one behind.
func tryWriting(path string) error {
	_, before := os.Lstat(path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if os.IsNotExist(before) {
		return os.Remove(path)
	}
	return nil
}

// seconds is a flag that takes a number of seconds or a duration.
type seconds time.Duration

func (s *seconds) String() string { return report.Duration(time.Duration(*s)) }

func (s *seconds) Type() string { return "duration" }

func (s *seconds) Set(text string) error {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		*s = seconds(time.Duration(n) * time.Second)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("expected a number of seconds, or a duration like 90s or 3m")
	}
	*s = seconds(d)
	return nil
}

// programs are the files that run as children beside this program.
type programs struct {
	self, manager, scheduler string
	// manifests is the directory of the manifests that a user would install.
	manifests string
}

// findPrograms looks for the other programs beside this one and for the manifests
// above them or in the working directory.
func findPrograms() (programs, error) {
	self, err := os.Executable()
	if err != nil {
		return programs{}, fmt.Errorf("finding this program's own file: %w", err)
	}
	dir := filepath.Dir(self)
	p := programs{self: self, manager: filepath.Join(dir, "manager"), scheduler: filepath.Join(dir, "scheduler")}
	for _, file := range []string{p.manager, p.scheduler} {
		if info, err := os.Stat(file); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return p, fmt.Errorf("%s is not there or cannot be run; expected it beside %s: run make build, or make demo, which does", file, filepath.Base(self))
		}
	}
	for _, candidate := range []string{filepath.Join(dir, "..", "manifests"), "manifests"} {
		if info, err := os.Stat(filepath.Join(candidate, "crd")); err == nil && info.IsDir() {
			p.manifests = candidate
			return p, nil
		}
	}
	return p, fmt.Errorf("no directory manifests beside %s or in the working directory; run make demo in the root of the repository", dir)
}
