package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// made is a good run of a policy on the conversation trace in the usual setting.
func made(policy string, changes ...func(*row)) row {
	r := row{Trace: conversation, Prices: aws, Cluster: roomy, Result: replay.Result{
		Policy: policy, StartupSeconds: 60, Requests: 1000, Attainment: 0.992, Cost: 100, CostOverBound: 1.2,
	}}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func attains(share float64) func(*row)    { return func(r *row) { r.Attainment = share } }
func costs(price float64) func(*row)      { return func(r *row) { r.Cost = price } }
func overBound(times float64) func(*row)  { return func(r *row) { r.CostOverBound = times } }
func starts(seconds float64) func(*row)   { return func(r *row) { r.StartupSeconds = seconds } }
func of(trace string) func(*row)          { return func(r *row) { r.Trace = trace } }
func priced(prices string) func(*row)     { return func(r *row) { r.Prices = prices } }
func in(cluster string) func(*row)        { return func(r *row) { r.Cluster = cluster } }
func cannotPlace(replicas int) func(*row) { return func(r *row) { r.UnplaceableReplicas = replicas } }
func aside(r *row)                        { r.aside = true }
func empty(r *row)                        { r.Requests = 0 }

func TestWhatBeatsUs(t *testing.T) {
	for name, tc := range map[string]struct {
		attainment, cost float64
		beats            bool
	}{
		"the same":                               {0.992, 100, false},
		"better and cheaper":                     {0.999, 90, true},
		"worse and dearer":                       {0.9, 110, false},
		"as good, exactly 1 % cheaper":           {0.992, 99, false},
		"as good, a cent more than 1 % cheaper":  {0.992, 98.99, true},
		"exactly 0.2 points worse, much cheaper": {0.99, 50, true},
		"a bit more than 0.2 points worse":       {0.9899, 50, false},
		"exactly 0.2 points better, as cheap":    {0.994, 100, false},
		"a bit more than 0.2 points better":      {0.9941, 100, true},
		"much better, exactly 1 % dearer":        {0.999, 101, true},
		"much better, more than 1 % dearer":      {0.999, 101.01, false},
		"exactly at both limits, the good one":   {0.994, 99, false},
		"exactly at both limits, the cheap one":  {0.99, 99, false},
	} {
		t.Run(name, func(t *testing.T) {
			other := made("keda", attains(tc.attainment), costs(tc.cost))
			assert.Equal(t, tc.beats, beats(other, made("hybrid")))
		})
	}
}

func TestTheLimitsHoldAtEveryPriceAndAttainment(t *testing.T) {
	for step := range 997 {
		share, price := 0.003+0.994*float64(step)/997, 0.01+3.7*float64(step)
		mine := made("hybrid", attains(share), costs(price))
		assert.True(t, beats(made("keda", attains(share-0.002), costs(price/2)), mine), step)
		assert.False(t, beats(made("keda", attains(share-0.00201), costs(price/2)), mine), step)
		assert.False(t, beats(made("keda", attains(share+0.002), costs(price*0.99)), mine), step)
		assert.True(t, beats(made("keda", attains(share+0.00201), costs(price*1.01)), mine), step)
		assert.False(t, beats(made("keda", attains(share+0.00201), costs(price*1.0101)), mine), step)
		assert.True(t, beats(made("keda", attains(share), costs(price*0.9899)), mine), step)
	}
}

func TestWhoIsComparedWithWhom(t *testing.T) {
	winner := func(policy string) row { return made(policy, attains(1), costs(1)) }
	for name, tc := range map[string]struct {
		rows           []row
		lost, compared int
	}{
		"no rows":                       {nil, 0, 0},
		"ours alone":                    {[]row{made("hybrid"), made("capacity-only")}, 0, 0},
		"baselines alone":               {[]row{winner("keda"), made("hpa:kv")}, 0, 0},
		"a fixed fleet":                 {[]row{made("hybrid"), winner("static:6")}, 0, 0},
		"the peak fleet":                {[]row{made("hybrid"), winner("peak")}, 0, 0},
		"the bound":                     {[]row{made("hybrid"), winner("bound")}, 0, 0},
		"our other mode":                {[]row{made("hybrid"), winner("capacity-only")}, 0, 0},
		"hybrid against all five":       {[]row{made("hybrid"), winner("hpa:queue"), winner("hpa:kv"), winner("keda"), winner("saturation-v1"), winner("saturation-v2")}, 5, 5},
		"capacity-only against all":     {[]row{winner("hpa:queue"), winner("hpa:kv"), winner("keda"), winner("saturation-v1"), winner("saturation-v2"), made("capacity-only")}, 5, 5},
		"both against one":              {[]row{made("hybrid"), made("capacity-only", costs(0.99), attains(1)), winner("keda")}, 1, 2},
		"one that loses":                {[]row{made("hybrid"), made("keda", costs(200)), winner("hpa:kv")}, 1, 2},
		"another start-up":              {[]row{made("hybrid"), made("keda", attains(1), costs(1), starts(300))}, 0, 0},
		"another trace":                 {[]row{made("hybrid"), made("keda", attains(1), costs(1), of("azure-code"))}, 0, 0},
		"another price list":            {[]row{made("hybrid"), made("keda", attains(1), costs(1), priced(lowest))}, 0, 0},
		"another cluster":               {[]row{made("hybrid"), made("keda", attains(1), costs(1), in(full))}, 0, 0},
		"ours aside":                    {[]row{made("hybrid", aside), winner("keda")}, 0, 0},
		"a run without requests":        {[]row{made("hybrid"), made("keda", empty)}, 0, 0},
		"a run that cost nothing known": {[]row{made("hybrid"), made("keda", costs(0))}, 0, 0},
		"a bound that is not known":     {[]row{made("hybrid", overBound(0)), winner("keda")}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			lost, compared := defeats(tc.rows)
			assert.Len(t, lost, tc.lost)
			assert.Equal(t, tc.compared, compared)
		})
	}
	lost, _ := defeats([]row{made("hybrid"), winner("keda")})
	require.Len(t, lost, 1)
	assert.Equal(t, "azure-conversation, aws prices, roomy cluster, start-up 60 s: keda attains 100.00% for 1.00, hybrid 99.20% for 100.00", lost[0].String())
}

func TestTheSameTrial(t *testing.T) {
	assert.True(t, sameTrial(made("hybrid"), made("keda", attains(0), costs(7), cannotPlace(3))))
	for name, change := range map[string]func(*row){
		"trace": of("azure-code"), "prices": priced(lowest), "cluster": in(full), "start-up": starts(30),
	} {
		assert.False(t, sameTrial(made("hybrid"), made("hybrid", change)), name)
		assert.False(t, sameTrial(made("hybrid", change), made("hybrid")), name)
	}
}

func TestWhatMissesThePromise(t *testing.T) {
	for name, tc := range map[string]struct {
		row            row
		missed, looked int
	}{
		"exactly at both limits":       {made("hybrid", attains(0.99), overBound(1.3)), 0, 1},
		"below 99 %":                   {made("hybrid", attains(0.98999)), 1, 1},
		"over 1.3":                     {made("hybrid", overBound(1.3001)), 1, 1},
		"both":                         {made("hybrid", attains(0.5), overBound(2)), 1, 1},
		"the large service":            {made("hybrid", of(large), attains(0.98)), 1, 1},
		"an unnamed trace":             {made("hybrid", of("azure-code"), attains(0.5)), 0, 0},
		"one that learns":              {made("hybrid", of(conversation+"-learning"), attains(0.5), aside), 0, 0},
		"another start-up":             {made("hybrid", attains(0.5), starts(30)), 0, 0},
		"other prices":                 {made("hybrid", attains(0.5), priced(lowest)), 0, 0},
		"the full cluster":             {made("hybrid", attains(0.5), in(full)), 0, 0},
		"the mode that promises none":  {made("capacity-only", attains(0.5)), 0, 0},
		"a baseline":                   {made("keda", attains(0.5)), 0, 0},
		"no requests":                  {made("hybrid", empty), 0, 0},
		"a bound that is not known":    {made("hybrid", overBound(0)), 0, 0},
		"an impossible attainment":     {made("hybrid", attains(1.5)), 0, 0},
		"cheaper than the bound is OK": {made("hybrid", overBound(0.9)), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			missed, looked := misses([]row{tc.row})
			assert.Len(t, missed, tc.missed)
			assert.Equal(t, tc.looked, looked)
		})
	}
}

func TestWhatFitsNowhere(t *testing.T) {
	for name, tc := range map[string]struct {
		row            row
		beyond, looked int
	}{
		"hybrid that fits":         {made("hybrid", in(full)), 0, 1},
		"hybrid with one too many": {made("hybrid", in(full), cannotPlace(1)), 1, 1},
		"capacity-only":            {made("capacity-only", in(full), cannotPlace(1)), 1, 1},
		"a baseline":               {made("keda", in(full), cannotPlace(9)), 0, 0},
		"the peak fleet":           {made("peak", in(full), cannotPlace(9)), 0, 0},
		"the roomy cluster":        {made("hybrid", cannotPlace(9)), 0, 0},
		"no requests":              {made("hybrid", in(full), empty), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			beyond, looked := unplaceable([]row{tc.row})
			assert.Len(t, beyond, tc.beyond)
			assert.Equal(t, tc.looked, looked)
		})
	}
}

// wholeRun are the rows of all trials, every one of them good.
func wholeRun(change func(*row)) []row {
	var rows []row
	for _, t := range trials() {
		for _, startup := range t.startups {
			for _, name := range t.chosen(policies) {
				r := made(name, of(t.trace.name), priced(t.prices), in(t.cluster), starts(startup.Seconds()))
				r.aside = t.learns
				change(&r)
				rows = append(rows, r)
			}
		}
	}
	return rows
}

func unchanged(*row) {}

// without are the rows of a whole run that the test does not drop.
func without(drop func(*row) bool) []row {
	var rows []row
	for _, r := range wholeRun(unchanged) {
		if !drop(&r) {
			rows = append(rows, r)
		}
	}
	return rows
}

func at(policy, trace, cluster string, startup float64, change func(*row)) func(*row) {
	return func(r *row) {
		if r.Policy == policy && r.Trace == trace && r.Cluster == cluster && r.Prices == aws && r.StartupSeconds == startup {
			change(r)
		}
	}
}

func TestTheVerdict(t *testing.T) {
	const all = "All three hold."
	for name, tc := range map[string]struct {
		rows         []row
		holds, whole bool
		says         []string
	}{
		"all is there and good": {wholeRun(unchanged), true, true, []string{
			"1. no baseline is better than ours: holds, judged on 160 of 160 comparisons",
			"2. hybrid attains at least 99% at no more than 1.3 times the bound: holds, judged on 2 of 2 traces",
			"3. in the full cluster ours ask for nothing that fits nowhere: holds, judged on 4 of 4 runs", all,
		}},
		"nothing is there": {nil, true, false, []string{
			"ours: not judged, 0 of 160 comparisons", "bound: not judged, 0 of 2 traces", "nowhere: not judged, 0 of 4 runs",
		}},
		"a fixed fleet on one trace": {without(func(r *row) bool { return r.Policy != "static:6" || r.Trace != "azure-code" }), true, false, []string{
			"ours: not judged", "bound: not judged", "nowhere: not judged",
		}},
		"one trace of the promise is missing": {without(func(r *row) bool { return r.Trace == large && r.Policy == "hybrid" }), true, false, []string{
			"bound: holds so far, judged on 1 of 2 traces alone", "ours: holds so far, judged on 150 of 160 comparisons alone", "nowhere: holds, judged on 4 of 4",
		}},
		"one baseline is missing": {without(func(r *row) bool { return r.Policy == "keda" }), true, false, []string{
			"ours: holds so far, judged on 128 of 160 comparisons alone", "bound: holds, judged on 2 of 2",
		}},
		"a mode is missing in the full cluster": {without(func(r *row) bool { return r.Cluster == full && r.Policy == "capacity-only" }), true, false, []string{
			"nowhere: holds so far, judged on 2 of 4 runs alone",
		}},
		"a run that measured nothing": {wholeRun(at("hybrid", large, roomy, 60, empty)), true, false, []string{
			"bound: holds so far, judged on 1 of 2 traces alone", "ours: holds so far, judged on 155 of 160 comparisons alone",
		}},
		"a baseline is cheaper": {wholeRun(at("hpa:kv", "synthetic-diurnal", roomy, 300, costs(98))), false, true, []string{
			"ours: does not hold, judged on 160 of 160 comparisons",
			"   synthetic-diurnal, aws prices, roomy cluster, start-up 300 s: hpa:kv attains 99.20% for 98.00, hybrid 99.20% for 100.00",
			"   synthetic-diurnal, aws prices, roomy cluster, start-up 300 s: hpa:kv attains 99.20% for 98.00, capacity-only 99.20% for 100.00",
		}},
		"the promise is missed": {wholeRun(at("hybrid", large, roomy, 60, overBound(1.41))), false, true, []string{
			"bound: does not hold, judged on 2 of 2 traces", "   servegen-m-large, aws prices, roomy cluster, start-up 60 s: 99.20% at 1.41 times the bound",
		}},
		"a replica that fits nowhere": {wholeRun(at("capacity-only", conversation, full, 300, cannotPlace(2))), false, true, []string{
			"nowhere: does not hold, judged on 4 of 4 runs", "start-up 300 s: capacity-only asked for 2 replicas that fit nowhere",
		}},
		"missed and most is missing": {[]row{made("hybrid", attains(0.9))}, false, false, []string{
			"ours: not judged, 0 of 160", "bound: does not hold, judged on 1 of 2 traces", "nowhere: not judged, 0 of 4",
		}},
		"one that learns is judged by nothing": {wholeRun(func(r *row) {
			if r.aside {
				r.Attainment, r.CostOverBound, r.UnplaceableReplicas = 0.1, 9, 9
			}
		}), true, true, []string{all}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			holds, whole := verdict(&out, tc.rows)
			assert.Equal(t, tc.holds, holds)
			assert.Equal(t, tc.whole, whole)
			for _, part := range tc.says {
				assert.Contains(t, out.String(), part)
			}
			assert.Equal(t, holds && whole, strings.Contains(out.String(), all))
		})
	}
}
