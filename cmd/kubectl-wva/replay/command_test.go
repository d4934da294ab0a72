package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// command is the command as the program has it, without a cluster.
func command() *cobra.Command {
	flags := cluster.NewFlags()
	root := &cobra.Command{Use: "wva", SilenceErrors: true}
	flags.Add(root.PersistentFlags())
	root.AddCommand(NewCommand(flags))
	return root
}

// run runs the command line and returns what it wrote to its outputs.
func run(ctx context.Context, args ...string) (out, errOut string, err error) {
	c := command()
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs(append([]string{"replay"}, args...))
	err = c.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// short is a load that replays in no time.
var short = []string{"--trace", "synthetic:step", "--duration", "2m"}

func with(more ...string) []string { return append(append([]string(nil), short...), more...) }

const tinyTrace = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,100,10\n2023-11-16 18:15:47.6805900,100,10\n"

func TestMistakesAreFoundBeforeAnythingRuns(t *testing.T) {
	dir := t.TempDir()
	broken := write(t, "broken.csv", strings.Replace(tinyTrace, "100,10", "100,ten", 1))
	tiny := write(t, "tiny.csv", tinyTrace)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no trace":                   {nil, "--trace is missing: expected a file of requests, or synthetic: and one of code, chat"},
		"no such file":               {[]string{"--trace", filepath.Join(dir, "none.csv")}, "none.csv: no such file or directory"},
		"a directory":                {[]string{"--trace", dir}, "--trace: " + dir + " is a directory: expected a file of requests"},
		"no trace at all":            {[]string{"--trace", write(t, "x", "hello\n")}, `x:1: the first line is "hello"; expected that of an Azure trace`},
		"a broken line":              {[]string{"--trace", broken}, "broken.csv:2: "},
		"an unknown synthetic one":   {[]string{"--trace", "synthetic:none"}, `there is no synthetic load "none"; expected one of code`},
		"nothing left of it":         {[]string{"--trace", tiny, "--from", "1h"}, "has no request from 1h on: expected a smaller --from"},
		"all left out":               {[]string{"--trace", tiny, "--rate", "0.0001"}, "tiny.csv has requests, but --rate 0.0001 left none of them: expected a larger one, or another --seed"},
		"none there to leave out":    {[]string{"--trace", write(t, "empty.csv", tinyTrace[:strings.Index(tinyTrace, "\n")+1]), "--rate", "0.5"}, "has no request in it: expected at least one"},
		"an argument":                {with("more"), `unknown command "more"`},
		"an unknown policy":          {with("--policy", "best"), `--policy: unknown policy "best"; expected one of capacity-only, hybrid, static:N, peak, hpa:rps=N, hpa:intok=N, hpa:inflight=N, hpa:queue, hpa:kv, keda`},
		"a fleet of no number":       {with("--policy", "static:many"), `policy "static:many": "many" is no number of replicas`},
		"a policy twice":             {with("--policy", "hybrid,keda,hybrid"), "--policy has hybrid twice: expected each once"},
		"a policy twice, otherwise":  {with("--policy", "hpa:rps=4.0,down=1m,hybrid,hpa:down=60s,rps=4"), "--policy has hpa:rps=4,down=60s twice: expected each once"},
		"a wrong setting":            {with("--policy", "hybrid,hpa:rps=4,down=fast"), `--policy: policy "hpa:rps=4,down=fast": down is "fast"; expected the stabilisation window of scaling down in whole seconds`},
		"a variant of nobody":        {with("--policy", "hpa:rps=4,variant=mine"), `policy "hpa:rps=4,variant=mine": variant: no variant is named mine; expected one of llama-70b-h100-4, llama-70b-h100-8, llama-70b-h200-2`},
		"no policy":                  {with("--policy", ""), "--policy is empty: expected at least one"},
		"no trace for an own file":   {[]string{"--scenario", write(t, "own.yaml", string(scenario.BuiltIn()))}, "--trace is missing: expected a file of requests"},
		"a part of its own requests": {[]string{"--scenario", "spot", "--from", "1h"}, "--from goes with --trace only: what happens in the scenario has times of its own"},
		"nothing but learning":       {[]string{"--scenario", "spot", "--duration", "3h"}, "--duration is 3h, and the first 3h of the scenario are for learning: expected more"},
		"no such scenario":           {with("--scenario", "sport"), "sport: no such file or directory: expected a file, or one of the built-in two-models, five-models, failing-nodes, four-cheap, spot"},
		"a cluster it does not have": {[]string{"--scenario", "two-models", "--cluster", "full"}, `the built-in scenario two-models: --cluster is "full": expected one of busy-60, busy-85`},
		"no rate":                    {with("--rate", "0"), "--rate is 0: expected above 0 and at most 10000"},
		"too high a rate":            {with("--rate", "10001"), "--rate is 10001: expected"},
		"a rate of letters":          {with("--rate", "x"), `invalid argument "x" for "--rate" flag: expected a number`},
		"a rate that is no number":   {with("--rate", "NaN"), "--rate is NaN: expected"},
		"copies in no time":          {with("--rate", "2", "--rate-spread", "0"), "--rate-spread: the copies of a request are spread over 0s; expected from 1s to 1h0m0s"},
		"copies over days":           {with("--rate", "2", "--rate-spread", "25h"), "--rate-spread: the copies of a request are spread over 25h0m0s; expected"},
		"no time at all":             {with("--duration", "0"), "--duration is 0s: expected from 1s"},
		"a time without its unit":    {with("--from", "1 hour"), "expected a number of seconds, or a duration such as 90s or 10m"},
		"a negative start-up":        {with("--startup", "-1s"), "expected a number of seconds, or a duration"},
		"a start-up twice":           {with("--startup", "60,1m"), "--startup has 1m0s twice"},
		"a start-up of days":         {with("--startup", "25h"), "--startup has 25h: expected at most 24h"},
		"a form":                     {with("-o", "yaml"), `--output is "yaml": expected one of table, json`},
		"a page without a name":      {with("--html", ""), "--html is empty: expected the name of a file"},
		"a page in no directory":     {with("--html", filepath.Join(dir, "none", "x.html")), "x.html cannot be written (no such file or directory): expected a file in a directory that is there and can be written to"},
		"a page that is a directory": {with("--html", dir), "is no regular file: expected the name of a file that is new or may be replaced"},
		"a page that is a device":    {with("--html", os.DevNull), "is no regular file"},
		"no scenario":                {with("--scenario", filepath.Join(dir, "none.yaml")), "--scenario: open"},
		"a wrong scenario":           {with("--scenario", write(t, "mine.yaml", "nodes: 3\n")), "mine.yaml: nodes is 3: expected a list"},
		"an unknown price list":      {with("--prices", "free"), `the built-in scenario: --prices is "free": expected one of aws, lowest`},
		"an unknown cluster":         {with("--cluster", "mine"), `the built-in scenario: --cluster is "mine": expected one of full, roomy`},
		"a promise without cluster":  {with("--slo-ttft", "100"), "--slo-ttft goes with --from-cluster only"},
		"two clusters":               {with("--from-cluster", "--cluster", "full"), "--cluster and --from-cluster are both given"},
		"a negative promise":         {with("--from-cluster", "--slo-itl", "-1"), "--slo-itl is -1: expected milliseconds"},
		"names without a namespace":  {with("--from-cluster", "--accelerator-names", "x"), `--accelerator-names is "x": expected NAMESPACE/NAME`},
	} {
		t.Run(name, func(t *testing.T) {
			page := filepath.Join(t.TempDir(), "page.html")
			args := append([]string{"--html", page}, c.args...)
			out, _, err := run(t.Context(), args...)
			require.ErrorContains(t, err, c.says)
			assert.NotContains(t, err.Error(), "\n", "one line")
			assert.Empty(t, out)
			left, err := os.ReadDir(filepath.Dir(page))
			require.NoError(t, err)
			assert.Empty(t, left, "no half of a page")
		})
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestTheSameInputsGiveTheSameBytes(t *testing.T) {
	args := with("--policy", "static:2,hybrid,hpa:queue", "--startup", "30s,60s", "-o", "json")
	first, _, err := run(t.Context(), args...)
	require.NoError(t, err)
	second, _, err := run(t.Context(), args...)
	require.NoError(t, err)
	assert.Equal(t, first, second)
	other, _, err := run(t.Context(), append(args, "--seed", "2")...)
	require.NoError(t, err)
	assert.NotEqual(t, first, other, "the seed decides")

	var results []replay.Result
	require.NoError(t, json.Unmarshal([]byte(first), &results))
	var order []string
	for _, r := range results {
		order = append(order, r.Policy+" "+report.Duration(time.Duration(r.StartupSeconds)*time.Second))
	}
	assert.Equal(t, []string{"static:2 30s", "hybrid 30s", "hpa:queue 30s", "static:2 1m", "hybrid 1m", "hpa:queue 1m"}, order)
	assert.True(t, strings.HasPrefix(first, "[\n  {\n    \"policy\": \"static:2\",\n    \"parameters\": ["), "indented")
	assert.True(t, strings.HasSuffix(first, "]\n"))
}

func TestRateAndPartOfATraceDecideHowManyRequestsThereAre(t *testing.T) {
	requests := func(args ...string) int {
		out, _, err := run(t.Context(), append(args, "--policy", "static:1", "-o", "json")...)
		require.NoError(t, err)
		var results []replay.Result
		require.NoError(t, json.Unmarshal([]byte(out), &results))
		require.Len(t, results, 1)
		return results[0].Requests
	}
	tiny := write(t, "tiny.csv", tinyTrace)
	assert.Equal(t, 2, requests("--trace", tiny))
	assert.Equal(t, 14, requests("--trace", tiny, "--rate", "7"))
	assert.Equal(t, 1, requests("--trace", tiny, "--from", "500ms"))
	assert.Equal(t, 1, requests("--trace", tiny, "--duration", "1s"))
	all := requests(short...)
	assert.InDelta(t, 1200, all, 150, "10 requests per second")
	assert.InEpsilon(t, float64(all)/4, float64(requests(with("--rate", "0.25")...)), 0.2)
}

// The flag goes over the scenario, which goes over the default.
func TestCopiesAreSpread(t *testing.T) {
	perSecond := func(args ...string) (result replay.Result, text string) {
		args = append([]string{"--trace", "synthetic:step", "--duration", "20m", "--rate", "8", "--policy", "static:8"}, args...)
		out, _, err := run(t.Context(), append(args, "-o", "json")...)
		require.NoError(t, err)
		var results []replay.Result
		require.NoError(t, json.Unmarshal([]byte(out), &results))
		require.Len(t, results, 1)
		text, _, err = run(t.Context(), args...)
		require.NoError(t, err)
		return results[0], text
	}
	file := write(t, "mine.yaml", strings.Replace(string(scenario.BuiltIn()), "\nrateSpread: 60s", "\nrateSpread: 1s", 1))
	for _, c := range []struct {
		args  []string
		index float64
		title string
	}{
		// What it is in ten seconds for seven copies beside each request; see the tests of the
		// spread in package workload.
		{nil, 1.13, "synthetic:step x 8, 20m, "},
		{[]string{"--rate-spread", "10"}, 4.5, "synthetic:step x 8 spread over 10s, 20m, "},
		{[]string{"--rate-spread", "1s"}, 8, "synthetic:step x 8 spread over 1s, 20m, "},
		{[]string{"--scenario", file}, 8, "synthetic:step x 8 spread over 1s, 20m, "},
		{[]string{"--scenario", file, "--rate-spread", "1m"}, 1.13, "synthetic:step x 8, 20m, "},
	} {
		r, text := perSecond(c.args...)
		require.Len(t, r.Dispersion, 3)
		require.Len(t, r.TraceDispersion, 3)
		assert.InDelta(t, 10, r.Dispersion[1].Seconds, 0)
		assert.InEpsilon(t, c.index, r.Dispersion[1].Index, 0.4, "%v", c.args)
		assert.InEpsilon(t, 1, r.TraceDispersion[1].Index, 0.4, "%v", c.args)
		assert.Contains(t, text, c.title)
		assert.Regexp(t, `(?m)^index of dispersion of the arrivals: [0-9.]+ in 1s, [0-9.]+ in 10s, [0-9.]+ in 1m; of the trace as it is: [0-9.]+ in 1s, `, text)
	}
	out, _, err := run(t.Context(), with("--policy", "static:1", "-o", "json")...)
	require.NoError(t, err)
	assert.Contains(t, out, `"dispersion"`)
	assert.NotContains(t, out, `"traceDispersion"`, "nothing is multiplied")
}

func TestTheTableAndThePage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	out, errOut, err := run(t.Context(), with("--policy", "static:1,static:2", "--prices", "lowest", "--html", page)...)
	require.NoError(t, err)
	assert.Empty(t, errOut, "progress is for terminals")
	assert.NotContains(t, out, "\x1b")
	assert.Contains(t, out, "synthetic:step, 2m, Llama-3.1-70B fp8 on H100 and H200, prices lowest\n")
	assert.Contains(t, out, "static:2")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "</html>")
	left, err := os.ReadDir(filepath.Dir(page))
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

func TestAPageReplacesNothingThatIsRead(t *testing.T) {
	trace, file := write(t, "own.csv", tinyTrace), write(t, "own.yaml", "name: x\n")
	rate := write(t, "day_rate.csv", workload.ServeGenRateHeader+"\n0,2,1,1\n")
	beside := func(suffix, rows string) string {
		path := strings.Replace(rate, "_rate", suffix, 1)
		require.NoError(t, os.WriteFile(path, []byte(rows), 0o600))
		return path
	}
	beside("_clients", workload.ServeGenClientsHeader+"\n0,0,2,1,Gamma,1,1\n")
	lengths := beside("_lengths", workload.ServeGenLengthsHeader+"\n0,0,input_tokens,9,9,9,9,9,9,9,9,9,9,9\n0,0,output_tokens,9,9,9,9,9,9,9,9,9,9,9\n")
	for _, c := range []struct {
		flag string
		args []string
	}{
		{"--trace", []string{"--trace", trace, "--html", trace}},
		{"--trace", []string{"--trace", rate, "--html", lengths}},
		{"--scenario", []string{"--trace", trace, "--scenario", file, "--html", file}},
	} {
		_, _, err := run(t.Context(), c.args...)
		require.ErrorContains(t, err, "is read for "+c.flag+", and would be replaced: expected another name")
	}
	read, err := os.ReadFile(trace)
	require.NoError(t, err)
	assert.Equal(t, tinyTrace, string(read))
}

func TestAMistakeFarDownATraceNamesItsFlag(t *testing.T) {
	_, _, err := run(t.Context(), "--trace", write(t, "late.csv", tinyTrace+"nonsense\n"), "--policy", "static:1")
	require.ErrorContains(t, err, "--trace: ")
	require.ErrorContains(t, err, "late.csv:4: ")
}

func TestPrintedScenarioIsTheOneThatIsBuiltIn(t *testing.T) {
	printed, _, err := run(t.Context(), "--print-scenario")
	require.NoError(t, err)
	assert.Equal(t, string(scenario.BuiltIn()), printed)
	args := with("--policy", "hybrid", "-o", "json")
	built, _, err := run(t.Context(), args...)
	require.NoError(t, err)
	own, _, err := run(t.Context(), append(args, "--scenario", write(t, "scenario.yaml", printed))...)
	require.NoError(t, err)
	assert.Equal(t, built, own)
}

// A scenario that is built in has requests of its own; a trace goes over them.
func TestScenariosWithRequestsOfTheirOwn(t *testing.T) {
	one := func(args ...string) (replay.Result, string) {
		args = append([]string{"--scenario", "four-cheap", "--policy", "static:4"}, args...)
		out, _, err := run(t.Context(), append(args, "-o", "json")...)
		require.NoError(t, err)
		var results []replay.Result
		require.NoError(t, json.Unmarshal([]byte(out), &results))
		require.Len(t, results, 1)
		text, _, err := run(t.Context(), args...)
		require.NoError(t, err)
		return results[0], text
	}
	part := []string{"--duration", "3h20m"}
	r, text := one(part...)
	assert.InDelta(t, 3*3600, r.LearningSeconds, 0)
	assert.InEpsilon(t, 20*60*9, r.Requests, 0.3, "the quietest minutes of 25 requests a second")
	assert.Contains(t, text, "its own requests, 3h20m, the first 3h not counted, four cheap replicas, prices aws\n")
	again, _ := one(part...)
	assert.Equal(t, r, again)
	twice, _ := one(append(part, "--rate", "2")...)
	assert.InEpsilon(t, 2*r.Requests, twice.Requests, 0.05)
	assert.Equal(t, r.Dispersion, twice.TraceDispersion)
	other, _ := one(append(part, "--seed", "2")...)
	assert.NotEqual(t, r.Requests, other.Requests)
	_, _, err := run(t.Context(), "--scenario", "four-cheap", "--policy", "static:4", "--trace", "synthetic:step")
	require.ErrorContains(t, err, "no request comes after the first 3h0m0s", "a trace of an hour, all of which is for learning")

	printed, _, err := run(t.Context(), "--print-scenario", "--scenario", "spot")
	require.NoError(t, err)
	named, ok := scenario.Named("spot")
	require.True(t, ok)
	assert.Equal(t, string(named.Data), printed)
	_, _, err = run(t.Context(), "--print-scenario", "--scenario", "mine.yaml")
	require.EqualError(t, err, `--scenario is "mine.yaml", which is not built in: expected one of two-models, five-models, failing-nodes, four-cheap, spot, or none`)
}

// What the help and the README show is what the command takes.
func TestTheExamplesAreGoodCommandLines(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	for place, c := range map[string]struct {
		text  string
		lines int
	}{"the help": {examples, 9}, "the README": {string(readme), 1}} {
		found := 0
		for line := range strings.Lines(c.text) {
			words, ok := strings.CutPrefix(strings.TrimSpace(line), "kubectl wva replay ")
			if !ok {
				continue
			}
			found++
			words, _, _ = strings.Cut(words, " | ")
			words, _, _ = strings.Cut(words, " > ")
			o, command := newOptions(cluster.NewFlags()), &cobra.Command{}
			o.add(command)
			require.NoError(t, command.ParseFlags(strings.Fields(words)), line)
			if !o.print {
				assert.NoError(t, o.check(command), line)
			}
		}
		assert.Equal(t, c.lines, found, place)
	}
}

func TestSleepThatNothingWouldEndIsNoted(t *testing.T) {
	text := string(scenario.BuiltIn())
	for gateway, noted := range map[string]bool{"true": false, "false": true} {
		changed := strings.Replace(text, "\nscaleToZero: {}", "\nscaleToZero: {default: {enable_scale_to_zero: true}}", 1)
		changed = strings.Replace(changed, "gateway: true}", "gateway: "+gateway+"}", 1)
		_, progress, err := run(t.Context(), with("--policy", " keda, static:1", "--scenario", write(t, "mine.yaml", changed))...)
		require.NoError(t, err, "blanks around the names of policies do no harm")
		assert.Equal(t, noted, strings.Contains(progress, "mine.yaml: model "), progress)
	}
}

// A scenario says what is tried, unless the command line does.
func TestPoliciesOfTheScenario(t *testing.T) {
	changed := strings.Replace(string(scenario.BuiltIn()), "\npolicies: []", "\npolicies: [\"static:1\", \"hpa:rps=4,down=60s\"]", 1)
	for flag, want := range map[string][]string{"": {"static:1", "hpa:rps=4,down=60s"}, "hybrid:down=2m,hpa:kv,up=15s": {"hybrid:down=120s", "hpa:kv,up=15s"}} {
		args := with("-o", "json", "--scenario", write(t, "mine.yaml", changed))
		if flag != "" {
			args = append(args, "--policy", flag)
		}
		out, _, err := run(t.Context(), args...)
		require.NoError(t, err)
		var results []replay.Result
		require.NoError(t, json.Unmarshal([]byte(out), &results))
		var got []string
		for _, r := range results {
			got = append(got, r.Policy)
		}
		assert.Equal(t, want, got)
	}
}

func TestStandardPoliciesAreAllThatNeedNoNumber(t *testing.T) {
	assert.Equal(t, []string{
		"capacity-only", "hybrid", "peak", "hpa:queue", "hpa:kv", "keda",
	}, standardPolicies())
	for _, name := range replay.PolicyNames() {
		assert.Contains(t, long, "\n  "+name+" ", "the help says what it is")
	}
}

func TestWhoeverHasEnoughGetsNothingHalf(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	page := filepath.Join(t.TempDir(), "page.html")
	out, _, err := run(ctx, with("--html", page)...)
	require.ErrorIs(t, err, ErrInterrupted)
	assert.Empty(t, out)
	left, err := os.ReadDir(filepath.Dir(page))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A replay ends in the middle, too.
func TestInterruptedReplaysEndAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := &options{trace: "synthetic:code", rate: 1, policies: []string{"hybrid"}, startups: []time.Duration{time.Minute}, output: "json", seed: 1}
	var out bytes.Buffer
	j := &job{options: o, out: &out, err: &out}
	var err error
	j.scenario, err = scenario.Parse(scenario.BuiltIn(), scenario.Options{})
	require.NoError(t, err)
	source, err := o.source(ctx, new(workload.Dispersion))
	require.NoError(t, err)
	j.source = func() (workload.Stream, error) {
		s, err := source()
		cancel()
		return s, err
	}
	require.ErrorIs(t, j.run(ctx), ErrInterrupted)
	assert.Empty(t, out.String())
}
