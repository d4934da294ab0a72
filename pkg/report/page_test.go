package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// preview writes the pages of the tests, to be looked at in a browser.
var preview = flag.String("preview", "", "directory to write the tests' pages to")

// policies are those of the made-up replays.
var policies = []string{"capacity-only", "hybrid", "static:6", "peak", "hpa:queue", "hpa:kv", "keda", "keda:rps=4", "hpa:rps=4", "static:9"}

// madeUp is a replay that nobody ran: a day's load, replicas that follow it with each
// policy's own lag, nodes of which other work holds a part.
func madeUp(seed uint64, samples int, startups ...float64) ([]replay.Result, []replay.Recording) {
	var results []replay.Result
	var recordings []replay.Recording
	for _, startup := range startups {
		for i, policy := range policies {
			m := &maker{random: rand.New(rand.NewPCG(seed, uint64(i))), samples: samples, lag: 2 + 4*i, spare: 1 + 0.1*float64(i%4)}
			recordings = append(recordings, m.recording(policy, time.Duration(startup)*time.Second))
			attainment := 1 - 0.002*math.Pow(1.9, float64(i)) + 0.001*startup/60
			over := 1.08 + 0.17*float64((i*3)%7)
			if policy == "static:9" {
				attainment, over = 1, 1
			}
			attainment = min(attainment, 1)
			results = append(results, replay.Result{
				Policy: policy, StartupSeconds: startup, Requests: 1_728_000, Failed: 7 * i, Attainment: attainment,
				Parameters:   []replay.Parameter{{Name: "period", Value: "15s"}, {Name: "target", Value: "5 waiting per replica"}},
				TTFT:         replay.Percentiles{P50: 121.4, P95: 480 + 300*float64(i), P99: 900 + 4000*float64(i)},
				ITL:          replay.Percentiles{P50: 22.8, P95: 31.4, P99: 44 + float64(i)},
				ReplicaHours: 96.4 * over, GPUHours: 420.1 * over, Cost: 1034.55 * over, CostOverBound: over,
				ScaleEvents: 40 + 31*i, Flips: 12 * i, UnderProvisionedSeconds: 77 * float64(i*i), UnplaceableReplicas: i / 4,
			})
		}
	}
	return results, recordings
}

type maker struct {
	random  *rand.Rand
	samples int
	lag     int
	spare   float64
	r       replay.Recording
	free    []int
	live    [][]held
	names   int
}

type held struct {
	name string
	node int
}

const minuteStep = time.Minute

func (m *maker) recording(policy string, startup time.Duration) replay.Recording {
	r := &m.r
	*r = replay.Recording{Policy: policy, Startup: startup, Length: time.Duration(m.samples) * minuteStep, Step: minuteStep}
	for i := range 14 {
		node := replay.RecordedNode{Name: fmt.Sprintf("h100-%d", i), Accelerator: "H100", Devices: 8, Others: (i * 5) % 7}
		if i >= 9 {
			node.Name, node.Accelerator = fmt.Sprintf("h200-%d", i-9), "H200"
		}
		r.Nodes = append(r.Nodes, node)
		m.free = append(m.free, node.Devices-node.Others)
	}
	model := replay.RecordedModel{ID: "meta-llama/Llama-3.1-70B-Instruct", SLO: capacity.SLO{TTFT: 2000, ITL: 50}}
	model.Variants = []replay.RecordedVariant{
		{Name: "llama-70b-4xh100", Accelerator: "H100", Devices: 4, Cost: 27.5},
		{Name: "llama-70b-8xh100", Accelerator: "H100", Devices: 8, Cost: 55},
		{Name: "llama-70b-2xh200", Accelerator: "H200", Devices: 2, Cost: 15.9},
	}
	m.live = make([][]held, len(model.Variants))
	want := make([]int, len(model.Variants))
	want[0] = 1
	m.scale(&model, 0, 0, 1, -startup)
	for i := range m.samples {
		m.step(&model, i, want, startup)
	}
	r.Models = []replay.RecordedModel{model}
	return *r
}

func (m *maker) load(i int) float64 {
	if i < 0 {
		i = 0
	}
	day := 2 * math.Pi * float64(i) / float64(m.samples)
	return 20 - 14*math.Cos(day) + 4*math.Sin(9*day)
}

func (m *maker) step(model *replay.RecordedModel, i int, want []int, startup time.Duration) {
	now := time.Duration(i) * minuteStep
	load := max(0, m.load(i)+2*m.random.NormFloat64())
	need := m.load(i-m.lag) * m.spare / 6
	goal := []int{int(math.Ceil(need * 0.6)), int(need / 5), int(need * 0.5)}
	short := 0.0
	for v := range want {
		if goal[v] != want[v] && m.random.Float64() < 0.4 {
			m.decide(model, v, want[v], goal[v], now)
			m.scale(model, v, want[v], goal[v], now+m.jitter(startup)-startup)
			want[v] = goal[v]
		}
		ready := len(m.live[v])
		if m.random.Float64() < 0.1 && ready > 0 {
			ready--
			short += 0.2
		}
		model.Variants[v].Wanted = append(model.Variants[v].Wanted, want[v])
		model.Variants[v].Ready = append(model.Variants[v].Ready, ready)
	}
	requests := int(load * 60)
	sample := replay.Sample{Requests: requests, Met: int(float64(requests) * (1 - short*m.random.Float64())), Cost: 27.5*float64(want[0]) + 55*float64(want[1]) + 15.9*float64(want[2]), Bound: load * 3.4}
	if requests > 0 {
		sample.TTFT, sample.ITL = 180*math.Exp(float64(m.lag)*short*m.random.Float64())+60*m.random.Float64(), 20+load/2+30*short
	}
	model.Samples = append(model.Samples, sample)
}

func (m *maker) jitter(startup time.Duration) time.Duration {
	return startup + time.Duration(m.random.IntN(20))*time.Second
}

func (m *maker) decide(model *replay.RecordedModel, v, from, to int, now time.Duration) {
	d := replay.RecordedDecision{At: now, Variant: model.Variants[v].Name, From: from, To: to}
	if to > from {
		d.Reason, d.Message = decision.ReasonSLO, decision.Words(fmt.Sprintf("%.1f req/s need %d replicas within 2000 ms and 50 ms", m.load(int(now/minuteStep)), to))
	} else {
		d.Reason, d.Message = decision.ReasonSpareCapacity, decision.Words(fmt.Sprintf("%d replicas carry the demand", to))
	}
	d.Steps = []decision.Step{
		{Stage: decision.StageDemand, Before: from, After: from, Reason: decision.ReasonSteady, Detail: decision.Words("demand is 18.2 req/s of 1155 in and 211 out")},
		{Stage: decision.StageAllocation, Before: from, After: to, Reason: d.Reason, Detail: d.Message},
	}
	m.r.Decisions = append(m.r.Decisions, d)
}

// room is the first node with enough free devices, or -1.
func (m *maker) room(v replay.RecordedVariant) int {
	for n := range m.free {
		if m.r.Nodes[n].Accelerator == v.Accelerator && m.free[n] >= v.Devices {
			return n
		}
	}
	return -1
}

func (m *maker) scale(model *replay.RecordedModel, v, from, to int, now time.Duration) {
	r := &m.r
	index := simulation.VariantIndex{Variant: v}
	note := func(at time.Duration, name string, stage simulation.Stage, node int) {
		r.Moves = append(r.Moves, simulation.Move{At: max(0, at), Variant: index, Replica: name, Stage: stage, Node: node})
	}
	for range to - from {
		name := fmt.Sprintf("%s-%d", model.Variants[v].Name, m.names)
		m.names++
		note(now, name, simulation.Created, -1)
		n := m.room(model.Variants[v])
		if n < 0 {
			continue
		}
		m.free[n] -= model.Variants[v].Devices
		m.live[v] = append(m.live[v], held{name, n})
		note(now+time.Second, name, simulation.Placed, n)
		note(now+r.Startup, name, simulation.Serving, n)
	}
	for range from - to {
		if len(m.live[v]) == 0 {
			return
		}
		gone := m.live[v][len(m.live[v])-1]
		m.live[v] = m.live[v][:len(m.live[v])-1]
		m.free[gone.node] += model.Variants[v].Devices
		note(now, gone.name, simulation.Leaving, gone.node)
		note(now+25*time.Second, gone.name, simulation.Gone, gone.node)
	}
}

// written renders a page, and keeps it where a person asked for it.
func written(t *testing.T, name string, write func(io.Writer) error) string {
	t.Helper()
	var first, second bytes.Buffer
	require.NoError(t, write(&first))
	require.NoError(t, write(&second))
	require.Equal(t, first.String(), second.String(), "the same bytes twice")
	if *preview != "" {
		require.NoError(t, os.WriteFile(filepath.Join(*preview, name), first.Bytes(), 0o644))
	}
	return first.String()
}

var scripts = regexp.MustCompile(`(?s)<(script|style)[^>]*>(.*?)</(script|style)>`)

// wellFormed checks that every element is closed, and returns the text between them.
func wellFormed(t *testing.T, html string) string {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(scripts.ReplaceAllString(html, "")))
	decoder.Entity = xml.HTMLEntity
	var text strings.Builder
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		require.NoError(t, err)
		if data, ok := token.(xml.CharData); ok {
			text.Write(data)
			text.WriteByte('\n')
		}
	}
}

func dataOf(t *testing.T, html string) map[string]any {
	t.Helper()
	found := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindAllStringSubmatch(html, -1)
	require.Len(t, found, 1)
	var data map[string]any
	require.NoError(t, json.Unmarshal([]byte(found[0][1]), &data))
	return data
}

func TestAReplaysPageHoldsEverythingAndNeedsNothing(t *testing.T) {
	results, recordings := madeUp(7, 240, 30, 120)
	html := written(t, "replay.html", func(w io.Writer) error { return HTML(w, "A day of conversation", results, recordings) })
	text := wellFormed(t, html)
	for _, policy := range policies {
		assert.Contains(t, text, policy)
	}
	assert.Contains(t, text, "A day of conversation")
	data := dataOf(t, html)
	runs := data["runs"].([]any)
	require.Len(t, runs, len(results))
	for i, run := range runs {
		course := run.(map[string]any)["course"].(map[string]any)
		assert.Len(t, course["decisions"], len(recordings[i].Decisions))
		assert.Len(t, course["variants"], 3)
	}
	assert.Len(t, data["clusters"], 1, "nodes that are the same are written once")
	assert.NotContains(t, strings.ToLower(html), "http:")
	assert.NotContains(t, strings.ToLower(html), "https:")
	empty := written(t, "empty.html", func(w io.Writer) error { return HTML(w, "t", nil, nil) })
	assert.NotRegexp(t, `(?i)\b(src|href|action)\s*=|url\s*\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|importScripts|\bimport\b`, empty, "the page without data")
	assert.Contains(t, html, `default-src 'none'`)
}

func TestAResultWithoutARecordingIsStillInThePage(t *testing.T) {
	results, recordings := madeUp(7, 20, 60)
	html := written(t, "unrecorded.html", func(w io.Writer) error { return HTML(w, "t", results, recordings[1:2]) })
	runs := dataOf(t, html)["runs"].([]any)
	require.Len(t, runs, len(policies))
	for i, run := range runs {
		_, recorded := run.(map[string]any)["course"]
		assert.Equal(t, i == 1, recorded, policies[i])
	}
}

func TestTheScriptFindsWhatItLooksFor(t *testing.T) {
	markup, err := pageFiles.ReadFile("page/page.html")
	require.NoError(t, err)
	found := 0
	for _, name := range pageScripts {
		script, err := pageFiles.ReadFile("page/" + name)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`byId\("([^"]*)"\)`).FindAllStringSubmatch(string(script), -1) {
			assert.Contains(t, string(markup), `id="`+match[1]+`"`, name)
			found++
		}
	}
	assert.Greater(t, found, 20)
	entries, err := pageFiles.ReadDir("page")
	require.NoError(t, err)
	assert.Len(t, entries, len(pageScripts)+2, "every script is in the page")
}

func TestARunOfNothingHasACourse(t *testing.T) {
	results := []replay.Result{{Policy: "hybrid"}, {Policy: "keda"}}
	recordings := []replay.Recording{{Policy: "hybrid"}, {Policy: "keda", Models: []replay.RecordedModel{{ID: "m", Variants: []replay.RecordedVariant{{Name: "v"}}}}}}
	html := written(t, "nothing.html", func(w io.Writer) error { return HTML(w, "t", results, recordings) })
	for _, run := range dataOf(t, html)["runs"].([]any) {
		course := run.(map[string]any)["course"].(map[string]any)
		for _, list := range []string{"models", "variants", "lives", "decisions"} {
			assert.NotNil(t, course[list], list)
		}
		for _, model := range course["models"].([]any) {
			assert.NotNil(t, model.(map[string]any)["load"])
		}
	}
}

func TestAPageOfNothingIsAPage(t *testing.T) {
	html := written(t, "empty.html", func(w io.Writer) error { return HTML(w, "t", nil, nil) })
	wellFormed(t, html)
	assert.Empty(t, dataOf(t, html)["runs"])
}

func TestScenesStandSideBySide(t *testing.T) {
	var runs []ReplayRun
	for s, scene := range []string{"conversation, AWS prices", "code, AWS prices", "conversation, full cluster"} {
		results, recordings := madeUp(uint64(s), 120, 60, 300)
		for i := range results {
			runs = append(runs, ReplayRun{Scene: scene, Result: results[i], Recording: &recordings[i]})
		}
	}
	html := written(t, "scenes.html", func(w io.Writer) error {
		return HTMLOfRuns(w, About{Title: "The benchmark"}, runs, Beside{Table: PageTable{Caption: "Beside"}})
	})
	assert.Equal(t, 21, strings.Count(wellFormed(t, html), "full cluster\n")+1)
	assert.Equal(t, "code, AWS prices", dataOf(t, html)["runs"].([]any)[25].(map[string]any)["scene"])
}

func TestHostileNamesStayText(t *testing.T) {
	const hostile = `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'&` + "\u2028"
	results, recordings := madeUp(7, 10, 60)
	results, recordings = results[:1], recordings[:1]
	r := &recordings[0]
	r.Policy, results[0].Policy = hostile, hostile
	r.Models[0].ID, r.Models[0].Variants[0].Name, r.Nodes[0].Name = hostile, hostile, hostile
	r.Decisions = []replay.RecordedDecision{{Variant: hostile, To: 1, Reason: hostile, Message: decision.Words(hostile), Steps: []decision.Step{{Detail: decision.Words(hostile)}}}}
	html := written(t, "hostile.html", func(w io.Writer) error { return HTML(w, hostile, results, recordings) })
	assert.Equal(t, 2, strings.Count(html, "<script"), "the data and the script")
	assert.Equal(t, 2, strings.Count(html, "</script"))
	assert.NotContains(t, html, "<img")
	assert.Contains(t, wellFormed(t, html), hostile)
	course := dataOf(t, html)["runs"].([]any)[0].(map[string]any)["course"].(map[string]any)
	assert.Equal(t, hostile, course["decisions"].([]any)[0].(map[string]any)["message"])
}

func TestADayOfTenPoliciesStaysSmall(t *testing.T) {
	results, recordings := madeUp(3, 1440, 60)
	html := written(t, "day.html", func(w io.Writer) error { return HTML(w, "A day", results, recordings) })
	assert.Less(t, len(html), 4<<20)
	assert.Greater(t, len(html), 100<<10)
}

func TestThinningKeepsPeaks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 10, 99, 100, 101, 250, 1441} {
		points := make([]point, n)
		for i := range points {
			points[i] = point{load: random.Float64(), met: random.Float64(), ttft: random.Float64(), itl: random.Float64(), cost: 2, bound: 1}
			if random.IntN(3) == 0 {
				points[i].met, points[i].ttft, points[i].itl = math.NaN(), math.NaN(), math.NaN()
			}
		}
		merged, factor := thinned(points, 100)
		assert.LessOrEqual(t, len(merged), 100)
		assert.Len(t, merged, (n+factor-1)/factor)
		for i, p := range points {
			m := merged[i/factor]
			assert.GreaterOrEqual(t, m.load, p.load)
			assert.False(t, m.ttft < p.ttft || m.itl < p.itl || m.met > p.met)
			assert.Equal(t, 2.0, m.cost)
			assert.False(t, math.IsNaN(m.met) && !math.IsNaN(p.met), "what is known stays known")
		}
		assert.Equal(t, extreme(points), extreme(merged))
	}
}

// extreme are the highest load and latencies and the lowest attainment.
func extreme(points []point) [4]float64 {
	e := [4]float64{0, 0, 0, 1}
	for _, p := range points {
		for i, value := range []float64{p.load, p.ttft, p.itl} {
			if value > e[i] {
				e[i] = value
			}
		}
		if p.met < e[3] {
			e[3] = p.met
		}
	}
	return e
}

func TestLivesFollowTheMoves(t *testing.T) {
	variants := []pageVariant{{Name: "v"}, {Name: "other"}}
	s := time.Second
	got := lives([]move{
		{at: 0, variant: 0, replica: "v-1", node: 2, stage: simulation.Serving},
		{at: 5 * s, variant: 1, replica: "x", node: -1, stage: simulation.Created},
		{at: 6 * s, variant: 0, replica: "v-2", node: -1, stage: simulation.Created},
		{at: 7 * s, variant: 0, replica: "v-2", node: 1, stage: simulation.Placed},
		{at: 40 * s, variant: 0, replica: "v-2", node: 1, stage: simulation.Serving},
		{at: 50 * s, variant: 1, replica: "x", node: -1, stage: simulation.Gone},
		{at: 60 * s, variant: 0, replica: "v-1", node: 2, stage: simulation.Leaving},
		{at: 61500 * time.Millisecond, variant: 0, replica: "v-1", node: 2, stage: simulation.Gone},
	}, variants)
	assert.Equal(t, []pageLife{
		{Variant: 0, Node: 2, Created: 0, Placed: 0, Serving: 0, Leaving: 60, Gone: 61.5, Name: "1"},
		{Variant: 1, Node: -1, Created: 5, Placed: -1, Serving: -1, Leaving: -1, Gone: 50, Name: "x"},
		{Variant: 0, Node: 1, Created: 6, Placed: 7, Serving: 40, Leaving: -1, Gone: -1, Name: "2"},
	}, got)
}
