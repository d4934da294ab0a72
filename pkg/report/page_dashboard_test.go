package report

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// live is a cluster of one model with two variants at 60 seconds, in steps of 15.
func live() *Dashboard {
	at := func(seconds int) time.Time {
		return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds) * time.Second)
	}
	d := &Dashboard{
		Where: "here", Start: at(0), Now: time.Minute, Every: 2 * time.Second, PodsKnown: true,
		Models: []DashboardModel{{Key: "m", SLO: capacity.SLO{TTFT: 500, ITL: 50}, Step: 15 * time.Second, Points: []LoadPoint{{}, {Rate: new(3.0)}, {}, {Rate: new(5.0), TTFT: new(501.0), ITL: new(50.0), WithinTTFT: new(0.9375), WithinITL: new(0.95)}}}},
		Variants: []DashboardVariant{
			{Key: "a", Model: "m", Accelerator: "H100", Shape: "2xH100", Devices: 2, Pods: 1, Cost: new(6.0), Wanted: new(int32(2)), State: "Ready"},
			{Key: "b", Model: "m", Accelerator: "H100", Shape: "2 pods of 8xH100", Devices: 8, Pods: 2, State: "Conflict", Message: "two writers"},
		},
		Nodes: []ObservedNode{{Name: "n", Accelerator: "H100", Devices: 8, Others: 1, Out: "cordoned"}},
	}
	for _, life := range []PodLife{
		{Name: "old", Variant: "a", Node: "n", Made: at(-90), Placed: at(-80), Serving: at(-60), Gone: at(20)},
		{Name: "new", Variant: "a", Node: "n", Made: at(31), Placed: at(32)},
		{Name: "waits", Variant: "a", Made: at(40)},
		{Name: "past", Variant: "a", Node: "n", Made: at(-90), Placed: at(-80), Gone: at(-10)},
	} {
		d.Moves = append(d.Moves, life.Moves(d.Start)...)
	}
	SortMoves(d.Moves)
	return d
}

func TestADashboardsCostIsThatOfWhatHoldsANode(t *testing.T) {
	d := live()
	p := DashboardFeed(d).page
	course := p.Data.Runs[0].Course
	assert.Equal(t, []float64{6, 0, 6, 6}, course.Models[0].CostRate, "at the end of each step")
	assert.Zero(t, course.Models[0].CostFrom)
	since := live()
	since.Since = 50 * time.Second
	assert.Equal(t, 3, DashboardFeed(since).page.Data.Runs[0].Course.Models[0].CostFrom, "what was gone before the first look is not known")
	assert.Len(t, course.Lives, 3, "without the one that was gone before")
	cost := func(row int) string { return p.Tables[1].Rows[row].Cells[8].Text }
	assert.Equal(t, "$6.00", cost(0))
	assert.Equal(t, unknown, cost(1), "no price is known")
	assert.Equal(t, "$6.00", p.Tables[0].Rows[0].Cells[11].Text, "what has no price holds no node")

	d.PodsKnown, d.Moves = false, nil
	d.Variants[0].Replicas = []ReplicaState{{Desired: 3, Ready: 2}}
	d.Variants[1].Replicas = []ReplicaState{{Desired: 1, Ready: 1}}
	p = DashboardFeed(d).page
	assert.Nil(t, p.Data.Runs[0].Course.Models[0].CostRate, "unknown is not zero")
	assert.Equal(t, "$12.00", p.Tables[1].Rows[0].Cells[8].Text, "of the replicas that are ready")
	assert.Equal(t, unknown, p.Tables[0].Rows[0].Cells[11].Text, "one of them has no price")
}

func TestADashboardMarksWhatIsNotAsItShouldBe(t *testing.T) {
	p := DashboardFeed(live()).page
	model, variants := p.Tables[0].Rows[0].Cells, p.Tables[1].Rows
	assert.True(t, model[3].Bad, "a TTFT of 501 ms breaks the promise of 500")
	assert.False(t, model[6].Bad, "an ITL of 50 ms keeps it")
	assert.False(t, variants[0].Cells[11].Bad)
	assert.Equal(t, pageCell{Text: "Conflict", Hint: "two writers", Bad: true}, variants[1].Cells[11])
	assert.Equal(t, "2 pods of 8xH100", variants[1].Cells[1].Text)
	assert.Equal(t, unknown, variants[1].Cells[2].Text, "nothing was decided")
}

func TestADashboardShowsWhatWasWithinTheTargets(t *testing.T) {
	p := DashboardFeed(live()).page
	assert.Equal(t, "93.75%", p.Tables[0].Rows[0].Cells[4].Text)
	assert.Equal(t, "95.00%", p.Tables[0].Rows[0].Cells[7].Text)
	model := p.Data.Runs[0].Course.Models[0]
	assert.Equal(t, []*float64{nil, nil, nil, new(0.8875)}, model.Met, "all but those that may have missed one of both")
	assert.True(t, model.MetAtLeast)

	for name, c := range map[string]struct {
		slo   capacity.SLO
		point LoadPoint
		want  *float64
	}{
		"of ITL nothing is known":     {capacity.SLO{TTFT: 1, ITL: 1}, LoadPoint{WithinTTFT: new(1.0)}, nil},
		"of ITL nothing is promised":  {capacity.SLO{TTFT: 1}, LoadPoint{WithinTTFT: new(1.0)}, new(1.0)},
		"of TTFT nothing is promised": {capacity.SLO{ITL: 1}, LoadPoint{WithinITL: new(0.5)}, new(0.5)},
	} {
		assert.Equal(t, c.want, c.point.attained(c.slo), name)
	}
	d := live()
	d.Models[0].SLO = capacity.SLO{}
	assert.Nil(t, DashboardFeed(d).page.Data.Runs[0].Course.Models[0].Met, "without a promise there is nothing to attain")
}

func TestADecisionOfAVariantThatIsGoneNamesIt(t *testing.T) {
	d := live()
	d.Decisions = []DashboardDecision{{Variant: "gone", From: 1, To: 0, Reason: "NoDemand", Message: "no requests"}}
	got := DashboardFeed(d).page.Data.Runs[0].Course.Decisions[0]
	assert.Equal(t, []any{-1, "gone: no requests"}, []any{got.Variant, got.Message})
}

func TestADashboardOfNothingIsAPage(t *testing.T) {
	html := written(t, "dashboard-empty.html", DashboardFeed(&Dashboard{}).WriteHTML)
	wellFormed(t, html)
	_, err := json.Marshal(DashboardFeed(&Dashboard{}))
	require.NoError(t, err)
}

func TestHostileNamesOfAClusterStayText(t *testing.T) {
	const hostile = `</script><img src=x onerror=alert(1)>"'&`
	d := live()
	d.Where, d.Notes = hostile, []string{hostile}
	d.Variants[1].State, d.Variants[1].Message, d.Variants[1].Key, d.Nodes[0].Out = hostile, hostile, hostile, hostile
	html := written(t, "dashboard-hostile.html", DashboardFeed(d).WriteHTML)
	wellFormed(t, html)
	assert.NotContains(t, html, "<img")
	assert.Equal(t, hostile, dataOf(t, html)["live"].(map[string]any)["notes"].([]any)[0])
}
