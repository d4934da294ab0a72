package sweep

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
)

// madeUpFronts are those of a load that nobody ran, with each start-up time of madeUp.
func madeUpFronts(startups ...float64) []Fronts {
	var all []Fronts
	for _, startup := range startups {
		f := Fronts{Scene: "made up", Startup: startup, BoundCost: 1000, Tried: 1234, GivenUp: 56}
		for i, family := range []string{"hpa:rps", "planner", "static"} {
			for k := range 6 {
				share := 0.9 + 0.0195*float64(k)
				f.Points = append(f.Points, FrontPoint{
					Family: family, Policy: family + "=" + strings.Repeat("1", k+1), Seeds: 3, Rival: family != "static", OnFront: i == 0,
					Point: front.Point{Attainment: share, Cost: 1000 + 80*float64(i) + 60*float64(k*k)/5}, Noise: front.Point{Attainment: 0.001, Cost: 3},
				})
			}
		}
		within := front.Verdict{
			Own: front.Point{Attainment: 0.985, Cost: 1200}, FrontCost: 1150.25, Ratio: 1.0433, Noise: 0.0123, Place: front.Within,
			FrontAttainment: 0.9899, CostPlace: front.Within, Seeds: 3,
		}
		above := within
		above.Own, above.Place, above.Noise = front.Point{Attainment: 0.9999, Cost: 1500}, front.Above, math.NaN()
		f.Ours = []Judged{
			{Policy: "hybrid", Noise: front.Point{Attainment: 0.0004, Cost: 2.5}, Verdict: within},
			{Policy: "capacity-only", Noise: front.Point{Attainment: math.NaN(), Cost: math.NaN()}, Verdict: above},
		}
		all = append(all, f)
	}
	return all
}

func TestTheTableOfAFront(t *testing.T) {
	f := madeUpFronts(60)[0]
	lines := FrontTable(&f)
	require.Len(t, lines, 1+2+6+2, "a heading, ours, the front of all rivals, and what it means")
	assert.Equal(t, "hybrid          98.50%   0.04  $1200.00  2.50  1.200    1.043  0.012  98.99%", lines[1])
	assert.Equal(t, "capacity-only   99.99%   -     $1500.00  -     1.500    1.043  -      98.99%       at most: no rival attains as much", lines[2])
	assert.Equal(t, "hpa:rps=1       90.00%   0.10  $1000.00  3.00  1.000", lines[3])
	text := strings.Join(lines, "\n")
	assert.NotContains(t, text, "planner", "it is nowhere on the front of all")
	assert.Contains(t, text, "1234 settings ran to their end, 56")
	f.Ours[0].CostPlace = front.Below
	assert.Regexp(t, `0\.012 +-$`, FrontTable(&f)[1], "the front has nothing so cheap")
}

func TestThePageOfFronts(t *testing.T) {
	var runs []report.ReplayRun
	for _, startup := range []float64{60, 300} {
		for _, policy := range []string{"hybrid", "capacity-only"} {
			runs = append(runs, report.ReplayRun{Scene: "made up", Result: replay.Result{Policy: policy, StartupSeconds: startup, Requests: 10, Attainment: 0.99, Cost: 1200, CostOverBound: 1.2}})
		}
	}
	var out bytes.Buffer
	require.NoError(t, HTML(&out, "Fronts <of> a load", madeUpFronts(60, 300), runs))
	text := out.String()
	assert.Contains(t, text, "<h2>Ours against all others at their best</h2>")
	assert.Contains(t, text, "at most: no rival attains as much")
	assert.Contains(t, text, "Fronts &lt;of&gt; a load")
	assert.NotContains(t, text, "NaN")
	assert.Contains(t, text, "behind = { shown: frontsShown", "the script draws them")
	assert.Contains(t, text, "#scatter .front.all")
	_, after, found := strings.Cut(text, `<script type="application/json" id="data">`)
	require.True(t, found)
	raw, _, _ := strings.Cut(after, "</script>")
	var data struct {
		Beside []struct {
			Scene   string
			Startup float64
			Family  string
			Kind    string
			Points  []struct {
				Policy                 string
				Attainment, Cost, Over float64
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &data))
	var kinds []string
	for _, f := range data.Beside {
		kinds = append(kinds, f.Family+": "+f.Kind)
		assert.Equal(t, "made up", f.Scene)
		for i := 1; i < len(f.Points); i++ {
			assert.Greater(t, f.Points[i].Attainment, f.Points[i-1].Attainment)
		}
		assert.InDelta(t, f.Points[0].Cost/1000, f.Points[0].Over, 1e-6)
	}
	one := []string{"all others: all", "hpa:rps: rival", "planner: rival", "static: aside"}
	assert.Equal(t, append(append([]string{}, one...), one...), kinds)
}

// The front of all goes from one family to another and back.
func TestTheFrontOfAllIsInOrder(t *testing.T) {
	f := Fronts{BoundCost: 100, Points: []FrontPoint{
		{Family: "hpa:rps", Policy: "a", Rival: true, OnFront: true, Point: front.Point{Attainment: 0.9, Cost: 100}},
		{Family: "hpa:rps", Policy: "c", Rival: true, OnFront: true, Point: front.Point{Attainment: 0.99, Cost: 120}},
		{Family: "planner", Policy: "b", Rival: true, OnFront: true, Point: front.Point{Attainment: 0.95, Cost: 110}},
	}}
	var order []string
	for _, p := range pageFronts(&f)[0].Points {
		order = append(order, p.Policy)
	}
	assert.Equal(t, []string{"a", "b", "c"}, order)
	text := strings.Join(FrontTable(&f), "\n")
	assert.Less(t, strings.Index(text, "\nb "), strings.Index(text, "\nc "))
}
