package replay

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// smallProfile serves some ten short requests per second.
var smallProfile = serving.Profile{Base: 10, PerRequest: 1, PerPrefillToken: 0.02, KVTokens: 50_000, BatchLimit: 32}

// smallVariant has replicas of one device.
func smallVariant(name string, accelerator capacity.Accelerator, cost capacity.Cost) Variant {
	return Variant{
		Name: name, Cost: cost, Request: replicaOf(accelerator, 1), Profile: smallProfile, Given: smallProfile,
		Policy: decision.DefaultVariantPolicy(), Initial: -1,
	}
}

// small is a model on two kinds of nodes, one of each.
func small() *Scenario {
	return &Scenario{
		Name: "small", Cluster: &placement.Cluster{Nodes: append(nodes("h100", "H100", 1, 8), nodes("h200", "H200", 1, 8)...)},
		Policy: decision.DefaultPolicy(), Variation: 0.1, Drain: 30 * time.Second,
		Collection: Collection{Scrape: 15 * time.Second, Window: time.Minute, Gateway: true},
		Models: []Model{{
			Namespace: "default", ID: "small", SLO: capacity.SLO{TTFT: 1000, ITL: 40},
			Variants: []Variant{smallVariant("cheap", "H100", 2), smallVariant("dear", "H200", 3)},
		}},
	}
}

// hill is traffic that rises and falls within a few minutes.
func hill(t *testing.T) Source {
	return short(t, workload.Point{Rate: 2}, workload.Point{At: 150 * time.Second, Rate: 40}, workload.Point{At: 5 * time.Minute, Rate: 2})
}

// short is traffic of short requests.
func short(t *testing.T, points ...workload.Point) Source {
	t.Helper()
	source := func() (workload.Stream, error) {
		return workload.NewSynthetic(workload.Synthetic{
			Rate: points, Seed: 7,
			Input:  workload.Lengths{Mean: 200, Variation: 0.5, Max: 1000},
			Output: workload.Lengths{Mean: 60, Variation: 0.5, Max: 300},
		})
	}
	_, err := source()
	require.NoError(t, err)
	return source
}

// everyPolicy is each policy once.
var everyPolicy = []string{
	"capacity-only", "hybrid", "static:2", "peak", "hpa:rps=9", "hpa:intok=2000", "hpa:inflight=12", "hpa:queue", "hpa:kv",
	"keda", "keda:rps=9", "keda:intok=2000", "keda:inflight=12", "keda:kv=0.8",
}

func TestEveryPolicyIsTried(t *testing.T) {
	names := map[string]bool{}
	for _, name := range everyPolicy {
		spec, err := ParseSpec(name)
		require.NoError(t, err)
		names[spec.Family] = true
	}
	for _, f := range families {
		for _, family := range f.names() {
			assert.True(t, names[family], family)
		}
	}
}

func TestSameResultsAtAnyNumberOfWorkersAndTwice(t *testing.T) {
	mound := short(t, workload.Point{Rate: 1}, workload.Point{At: time.Minute, Rate: 15}, workload.Point{At: 2 * time.Minute, Rate: 1})
	o := Options{
		Scenario: small(), Source: mound, Policies: everyPolicy, Startups: []time.Duration{0, 45 * time.Second},
		Seed: 3, Workers: 1, Record: true,
	}
	results, recordings, err := Run(o)
	require.NoError(t, err)
	bytes, err := json.Marshal(results)
	require.NoError(t, err)
	for _, workers := range []int{1, 2} {
		o.Scenario, o.Workers = small(), workers
		again, recordedAgain, err := Run(o)
		require.NoError(t, err)
		require.Equal(t, results, again)
		require.Equal(t, recordings, recordedAgain)
		bytesAgain, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(bytes), string(bytesAgain))
	}
	require.Len(t, results, 2*len(everyPolicy))
	for i := range results {
		assert.Equal(t, everyPolicy[i%len(everyPolicy)], results[i].Policy, "start-up times come first")
		assert.Equal(t, []float64{0, 45}[i/len(everyPolicy)], results[i].StartupSeconds)
		assert.Equal(t, results[i].Policy, recordings[i].Policy)
		assert.Equal(t, results[i].StartupSeconds, recordings[i].Startup.Seconds())
		assert.NotEmpty(t, results[i].Parameters, results[i].Policy)
	}
}

func TestTheSeedDecidesAboutStartups(t *testing.T) {
	o := Options{Scenario: small(), Source: hill(t), Policies: []string{"hybrid"}, Startups: []time.Duration{50 * time.Second}, Seed: 3, Record: true}
	_, one, err := Run(o)
	require.NoError(t, err)
	o.Seed = 4
	_, other, err := Run(o)
	require.NoError(t, err)
	require.NotEqual(t, one[0].Moves, other[0].Moves)
}

func TestReplayDoesNotChangeTheScenario(t *testing.T) {
	s := small()
	_, _, err := Run(Options{Scenario: s, Source: hill(t), Policies: everyPolicy, Startups: []time.Duration{time.Minute}})
	require.NoError(t, err)
	require.Equal(t, small(), s)
}

func TestRecordingsOnlyWhenAskedFor(t *testing.T) {
	results, recordings, err := Run(Options{Scenario: small(), Source: hill(t), Policies: []string{"static:1"}, Startups: []time.Duration{0}})
	require.NoError(t, err)
	assert.Len(t, results, 1)
	assert.Empty(t, recordings)
}

func TestWhatCannotBeReplayed(t *testing.T) {
	broken := errors.New("line 3: no number")
	tests := map[string]struct {
		change func(*Options)
		says   string
	}{
		"an unknown policy":         {func(o *Options) { o.Policies = []string{"hybrid", "magic"} }, `unknown policy "magic"; expected one of capacity-only, hybrid, static:N, peak, hpa:rps=N, hpa:intok=N, hpa:inflight=N, hpa:queue, hpa:kv, keda`},
		"a pattern as a name":       {func(o *Options) { o.Policies = []string{"static:N"} }, `unknown policy "static:N"`},
		"fewer replicas than none":  {func(o *Options) { o.Policies = []string{"static:-1"} }, `policy "static:-1": "-1" is no number`},
		"a number with a sign":      {func(o *Options) { o.Policies = []string{"static:+3"} }, "expected 0 to 100000"},
		"rounds between seconds":    {func(o *Options) { o.Scenario.Policy.Interval = 7500 * time.Millisecond }, "rounds every 7.5s"},
		"no policy":                 {func(o *Options) { o.Policies = nil }, "at least one policy"},
		"no start-up time":          {func(o *Options) { o.Startups = nil }, "one start-up time"},
		"a start-up before its end": {func(o *Options) { o.Startups = []time.Duration{0, -time.Second} }, "the start-up time is -1s"},
		"no scenario":               {func(o *Options) { o.Scenario = nil }, "no cluster or no models"},
		"no cluster":                {func(o *Options) { o.Scenario.Cluster = nil }, "no cluster"},
		"no models":                 {func(o *Options) { o.Scenario.Models = nil }, "no models"},
		"no variants":               {func(o *Options) { o.Scenario.Models[0].Variants = nil }, "model small: it has no variants"},
		"a variant without a name":  {func(o *Options) { o.Scenario.Models[0].Variants[1].Name = "" }, `model small: variant ""`},
		"two variants of a name":    {func(o *Options) { o.Scenario.Models[0].Variants[1].Name = "cheap" }, `variant "cheap": expected a name`},
		"a model twice": {func(o *Options) {
			again := small().Models[0]
			again.Variants[0].Name, again.Variants[1].Name = "a", "b"
			o.Scenario.Models = append(o.Scenario.Models, again)
		}, `model small: namespace "default" has it twice`},
		"no shape":                    {func(o *Options) { o.Scenario.Models[0].Variants[1].Request = nil }, "variant dear: the shape"},
		"no profile":                  {func(o *Options) { o.Scenario.Models[0].Variants[1].Profile = serving.Profile{} }, "variant dear: it has no profile"},
		"scrapes between seconds":     {func(o *Options) { o.Scenario.Collection.Scrape = 1500 * time.Millisecond }, "scraped every 1.5s"},
		"scrapes before their time":   {func(o *Options) { o.Scenario.Collection.Later = -time.Second }, "scrapes come -1s later"},
		"scrapes later than a second": {func(o *Options) { o.Scenario.Collection.Later = 1500 * time.Millisecond }, "scrapes come 1.5s later"},
		"no scrapes":                  {func(o *Options) { o.Scenario.Collection.Scrape = 0 }, "scraped every 0s"},
		"a window of one scrape":      {func(o *Options) { o.Scenario.Collection.Window = 29 * time.Second }, "over a window of 29s"},
		"rounds without time between": {func(o *Options) { o.Scenario.Policy.Interval = 0 }, "rounds every 0s"},
		"an empty trace":              {func(o *Options) { o.Source = sourceOf(io.EOF) }, "no requests"},
		"a trace that does not open":  {func(o *Options) { o.Source = func() (workload.Stream, error) { return nil, broken } }, "line 3"},
		"a trace that breaks off":     {func(o *Options) { o.Source = sourceOf(broken, arrival(1, 10, 10), arrival(2, 10, 10)) }, "line 3: no number"},
		"requests out of order":       {func(o *Options) { o.Source = sourceOf(io.EOF, arrival(2, 10, 10), arrival(1, 10, 10)) }, "request 2 arrives at 1s"},
		"a request beyond all size":   {func(o *Options) { o.Source = sourceOf(io.EOF, arrival(2, math.MaxInt32+1, 10)) }, "request 1 has 2147483648 prompt"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			told := false
			o := Options{
				Scenario: small(), Source: sourceOf(io.EOF, arrival(1, 10, 10)), Policies: []string{"static:1"},
				Startups: []time.Duration{time.Minute}, Progress: func(Progress) { told = true },
			}
			test.change(&o)
			results, recordings, err := Run(o)
			require.ErrorContains(t, err, test.says)
			assert.Empty(t, results)
			assert.Empty(t, recordings)
			assert.False(t, told, "nothing is played before all is checked")
		})
	}
}

func TestAnErrorWithinARunNamesTheRun(t *testing.T) {
	_, _, err := Run(Options{
		Scenario: small(), Source: sourceOf(io.EOF, arrival(1, 10, 10), arrival(2, 0, 10)), Policies: []string{"static:1", "hybrid"},
		Startups: []time.Duration{time.Minute}, Workers: 2,
	})
	require.ErrorContains(t, err, "with a start-up of 1m0s: request at 2s")
	require.NotErrorIs(t, err, ErrStopped, "that the others were stopped is no news")
}

func TestNamesOfPolicies(t *testing.T) {
	for _, name := range everyPolicy {
		assert.NoError(t, CheckPolicy(name), name)
	}
	for _, name := range []string{"", "static", "static:", "static:1.5", "static:x", "Hybrid", "hpa"} {
		assert.Error(t, CheckPolicy(name), name)
	}
}

func TestProgressGoesOnUntilAllIsDone(t *testing.T) {
	for _, workers := range []int{1, 2} {
		var seen []Progress
		_, _, err := Run(Options{
			Scenario: small(), Source: hill(t), Policies: []string{"peak", "static:2"}, Startups: []time.Duration{0, time.Minute},
			Workers: workers, Progress: func(p Progress) { seen = append(seen, p) },
		})
		require.NoError(t, err)
		before := Progress{}
		for _, p := range seen {
			assert.Equal(t, 4, p.Total)
			assert.GreaterOrEqual(t, p.Part, before.Part, "%+v", p)
			assert.GreaterOrEqual(t, p.Done, before.Done)
			assert.GreaterOrEqual(t, p.Part, float64(p.Done)/4-1e-9, "what has ended is done")
			assert.Contains(t, []string{"peak", "static:2"}, p.Policy)
			assert.Contains(t, []time.Duration{0, time.Minute}, p.Startup)
			before = p
		}
		assert.Equal(t, 4, before.Done)
		assert.InDelta(t, 1, before.Part, 1e-9)
		assert.Greater(t, len(seen), 16, "it is told within the runs")
	}
}

func TestStop(t *testing.T) {
	for _, workers := range []int{1, 2} {
		for _, after := range []int{1, 3, 12} {
			asked, told := 0, Progress{}
			results, recordings, err := Run(Options{
				Scenario: small(), Source: hill(t), Policies: []string{"peak", "static:2", "hybrid"}, Startups: []time.Duration{0, time.Minute},
				Workers: workers, Record: true, Progress: func(p Progress) { told = p },
				Stop: func() bool { asked++; return asked >= after },
			})
			require.ErrorIs(t, err, ErrStopped)
			assert.Empty(t, results)
			assert.Empty(t, recordings)
			assert.Equal(t, after, asked, "nobody asks again")
			assert.Less(t, told.Done, told.Total)
		}
	}
	_, _, err := Run(Options{
		Scenario: small(), Source: hill(t), Policies: []string{"static:2"}, Startups: []time.Duration{0}, Stop: func() bool { return false },
	})
	require.NoError(t, err)
}

func TestTheFirstErrorThatIsNews(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	assert.NoError(t, firstError([]performed{{}, {}}))
	assert.Equal(t, one, firstError([]performed{{}, {err: ErrStopped}, {err: one}, {err: two}}))
	assert.Equal(t, ErrStopped, firstError([]performed{{}, {err: ErrStopped}, {}}))
}

func TestHeldRequestsAreThoseOfTheSource(t *testing.T) {
	all := []workload.Request{arrival(0, 1, 2), arrival(0, 3, 4), arrival(2.5, 5, 6)}
	holds(t, all)
	// Of some, somebody knows what they begin with.
	all[1].Prompt = &workload.Prompt{Block: 16, Numbers: []uint64{7}}
	holds(t, all)
}

func holds(t *testing.T, all []workload.Request) {
	t.Helper()
	_, source, err := hold(sourceOf(io.EOF, all...))
	require.NoError(t, err)
	for range 2 {
		stream, err := source()
		require.NoError(t, err)
		for i := range all {
			r, err := stream.Next()
			require.NoError(t, err)
			require.Equal(t, all[i], r)
		}
		for range 2 {
			_, err = stream.Next()
			require.ErrorIs(t, err, io.EOF)
		}
	}
}
