package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// The bounds of what a person means.
const (
	longestStartup = 24 * time.Hour
	longestTrace   = 366 * 24 * time.Hour
	// largestScenario keeps a file that is no scenario out of memory.
	largestScenario = 16 << 20
)

// prepare finds every mistake that can be found before anything runs.
func (o *options) prepare(ctx context.Context, command *cobra.Command) (*job, error) {
	if err := o.check(command); err != nil {
		return nil, err
	}
	j := &job{options: o, made: made(command, o.seed), out: command.OutOrStdout(), err: command.ErrOrStderr()}
	var err error
	if o.looksBack() {
		if err := o.lookBack(ctx); err != nil {
			return nil, err
		}
	}
	if o.html != "" {
		if j.page, err = checkPage(o.html); err != nil {
			return nil, fmt.Errorf("--html: %w", err)
		}
		if err := o.spares("--scenario", o.scenario); err != nil {
			return nil, err
		}
	}
	if j.scenario, err = o.readScenario(ctx, j.err); err != nil {
		return nil, err
	}
	if o.past != nil {
		if err := o.fillProfiles(j.scenario, j.err); err != nil {
			return nil, err
		}
		if err := o.writeTrace(j.err); err != nil {
			return nil, err
		}
	}
	o.prompts = j.scenario.Prompts()
	if o.spread == 0 {
		o.spread = j.scenario.RateSpread
	}
	if !command.Flags().Changed("policy") && len(j.scenario.Policies) > 0 {
		o.policies = j.scenario.Policies
	}
	if _, err := j.scenario.PolicyNames(o.policies); err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	if j.source, err = o.asked(ctx, j.scenario, &j.asItIs); err != nil {
		return nil, err
	}
	return j, nil
}

// spares refuses a page in the place of a file that is read. What is not there yet
// cannot be replaced.
func (o *options) spares(flag, path string) error {
	page, none := os.Stat(o.html)
	if read, err := os.Stat(path); none == nil && err == nil && os.SameFile(page, read) {
		return fmt.Errorf("--html: %s is read for %s, and would be replaced: expected another name", o.html, flag)
	}
	return nil
}

// check looks at the flags alone.
func (o *options) check(command *cobra.Command) error {
	if err := o.readPolicies(); err != nil {
		return err
	}
	policies, err := distinct("--policy", o.policies)
	if err != nil {
		return err
	}
	startups, err := distinct("--startup", o.startups)
	if err != nil {
		return err
	}
	o.policies, o.startups = policies, startups
	switch {
	case !slices.Contains(outputs, o.output):
		return fmt.Errorf("--output is %q: expected one of %s", o.output, strings.Join(outputs, ", "))
	case command.Flags().Changed("html") && o.html == "":
		return errors.New("--html is empty: expected the name of a file")
	}
	for _, startup := range o.startups {
		if startup > longestStartup {
			return fmt.Errorf("--startup has %s: expected at most %s", report.Duration(startup), report.Duration(longestStartup))
		}
	}
	if err := o.checkRequests(command); err != nil {
		return err
	}
	if err := o.checkLookback(command); err != nil {
		return err
	}
	return o.checkLive(command)
}

// checkRequests looks at the flags that say which requests are replayed.
func (o *options) checkRequests(command *cobra.Command) error {
	switch {
	case !(o.rate > 0) || o.rate > workload.MaxFactor:
		return fmt.Errorf("--rate is %v: expected above 0 and at most %d", o.rate, workload.MaxFactor)
	case command.Flags().Changed("rate-spread") && workload.CheckSpread(o.spread) != nil:
		return fmt.Errorf("--rate-spread: %w", workload.CheckSpread(o.spread))
	case o.from > longestTrace:
		return fmt.Errorf("--from is %s: expected at most %s", report.Duration(o.from), report.Duration(longestTrace))
	case command.Flags().Changed("duration") && (o.duration < time.Second || o.duration > longestTrace):
		return fmt.Errorf("--duration is %s: expected from 1s to %s", report.Duration(o.duration), report.Duration(longestTrace))
	}
	return nil
}

// checkLive looks at the flags that only go with --from-cluster, or only without.
func (o *options) checkLive(command *cobra.Command) error {
	if o.fromCluster && o.cluster != "" {
		return errors.New("--cluster and --from-cluster are both given: expected one of them; a live cluster is chosen with --context")
	}
	for _, name := range []string{"manager-namespace", "accelerator-names", "slo-ttft", "slo-itl"} {
		if !o.fromCluster && command.Flags().Changed(name) {
			return fmt.Errorf("--%s goes with --from-cluster only: expected both or none", name)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"slo-ttft", o.sloTTFT}, {"slo-itl", o.sloITL}} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			return fmt.Errorf("--%s is %v: expected milliseconds, at least 0", f.name, f.value)
		}
	}
	return nil
}

// readPolicies brings the policies into the one spelling that each has.
func (o *options) readPolicies() error {
	o.policies = replay.JoinPolicies(o.policies)
	for i, name := range o.policies {
		spec, err := replay.ParseSpec(name)
		if err != nil {
			return fmt.Errorf("--policy: %w", err)
		}
		o.policies[i] = spec.String()
	}
	return nil
}

// distinct refuses an empty list and what is in it twice.
func distinct[T comparable](flag string, values []T) ([]T, error) {
	if len(values) == 0 {
		return nil, fmt.Errorf("%s is empty: expected at least one", flag)
	}
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return nil, fmt.Errorf("%s has %v twice: expected each once", flag, v)
		}
	}
	return values, nil
}

// readScenario is the scenario that is meant.
func (o *options) readScenario(ctx context.Context, notes io.Writer) (*replay.Scenario, error) {
	var data []byte
	place := "the built-in scenario"
	switch {
	case o.scenario != "":
		var err error
		if data, place, err = o.scenarioData(); err != nil {
			return nil, err
		}
	case !o.fromCluster:
		data = scenario.BuiltIn()
	default:
		place = "the live cluster"
	}
	chosen := scenario.Options{Prices: o.prices, Cluster: o.cluster, Unprofiled: o.past != nil}
	var made *replay.Scenario
	var err error
	if o.fromCluster {
		var live scenario.Live
		if live, err = o.readCluster(ctx, notes); err != nil {
			return nil, err
		}
		made, err = live.Scenario(data, chosen)
	} else {
		made, err = scenario.Parse(data, chosen)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	for _, note := range scenario.Notes(made) {
		output.Note(notes, place+": "+note)
	}
	return made, nil
}

// readFile reads a whole file, if it may be a scenario.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, largestScenario+1))
	if err == nil && len(data) > largestScenario {
		err = fmt.Errorf("%s is larger than %d MiB: expected a scenario file (YAML)", path, largestScenario>>20)
	}
	return data, err
}

// printScenario prints a scenario that is built in: with a name one of the others.
func printScenario(out io.Writer, name string) error {
	data := scenario.BuiltIn()
	if name != "" {
		e, ok := scenario.Named(name)
		if !ok {
			return fmt.Errorf("--scenario is %q, which is not built in: expected one of %s, or none", name, strings.Join(exampleNames(), ", "))
		}
		data = e.Data
	}
	if _, err := output.Plain(out).Write(data); err != nil {
		return fmt.Errorf("printing the scenario: %w", err)
	}
	return nil
}
