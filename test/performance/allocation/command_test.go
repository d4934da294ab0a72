package allocation

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// two is an instance with one variant of one device for each of two models.
func two() Instance {
	option := allocation.Option{Cost: 2, Serves: 1, Most: -1, Uses: []allocation.Use{{Row: 0, Amount: 1}}}
	return Instance{Name: "two", Rows: []float64{12}, Models: []allocation.Model{
		{Priority: 1, Need: 10, Options: []allocation.Option{option}},
		{Priority: 2, Need: 10, Options: []allocation.Option{option}},
	}}
}

func TestTheScorePricesTheLastBandOnce(t *testing.T) {
	s := two().score([][]int{{10}, {9}})
	assert.InDelta(t, 0, s.Levels[0], 1e-12)
	assert.InDelta(t, 0.1, s.Levels[1], 1e-12, "a tenth of the demand, in the last band")
	assert.InDelta(t, 2, s.Unserved, 1e-12)
	assert.InDelta(t, 38, s.Cost, 1e-12)
	assert.False(t, s.Fits)
	assert.InDelta(t, 102.3, two().score([][]int{{10}, {0}}).Levels[1], 1e-9, "all bands")
}

func TestTheProgramIsWrittenLevelByLevel(t *testing.T) {
	p := newProgram(two())
	text := p.text(0)
	assert.Contains(t, text, "row_0:")
	assert.Contains(t, text, "n_1_0")
	assert.NotContains(t, text, "level0:")
	p.hold = []float64{0}
	assert.Contains(t, p.text(1), "level0:")
}

func TestASolutionOfTheSolverIsRead(t *testing.T) {
	values, optimal, err := parse("Optimal - objective value 3\n  0 n_0_0  3  0\n** 1 k_0_0  1.5  0\n")
	require.NoError(t, err)
	assert.True(t, optimal)
	assert.Equal(t, map[string]float64{"n_0_0": 3}, map[string]float64{"n_0_0": values["n_0_0"]})
	_, optimal, err = parse("Stopped on time - objective value 3\n")
	require.NoError(t, err)
	assert.False(t, optimal)
	_, _, err = parse("Unbounded - objective value 3\n")
	assert.ErrorContains(t, err, "Unbounded")
	_, _, err = parse("")
	assert.ErrorContains(t, err, "empty")
}

func TestTheExactSolverAgreesOnWhatIsPlain(t *testing.T) {
	if _, err := exec.LookPath("cbc"); err != nil {
		t.Skip("cbc is not installed; it is no prerequisite of the tests")
	}
	s, done, err := newSolver(time.Minute)
	require.NoError(t, err)
	defer done()
	replicas, complete, err := s.exactly(t.Context(), two())
	require.NoError(t, err)
	assert.True(t, complete)
	assert.Equal(t, [][]int{{10}, {2}}, replicas)
	r, err := s.compare(t.Context(), two())
	require.NoError(t, err)
	assert.False(t, r.Worse)
	assert.InDelta(t, 0, r.GapPct, 1e-9)
}

func TestLevelsCompareByTheFirstThatDiffers(t *testing.T) {
	_, differs := firstDifference([]float64{0, 5}, []float64{0, 5.001})
	assert.False(t, differs)
	at, differs := firstDifference([]float64{0, 6, 0}, []float64{0, 5, 9})
	assert.True(t, differs)
	assert.Equal(t, 1, at)
	at, differs = firstDifference([]float64{0, 5, 9}, []float64{0.1, 4, 0})
	assert.True(t, differs)
	assert.Equal(t, 0, at)
}

func TestThePublishedLayoutIsRead(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "inferno_sample", "small")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	for name, text := range map[string]string{
		"accelerator":  `{"accelerators": [{"name": "2xA", "type": "A", "multiplicity": 2, "cost": 80}]}`,
		"capacity":     `{"count": [{"type": "A", "count": 6}]}`,
		"model":        `{"models": [{"name": "m", "acc": "2xA", "accCount": 2, "maxBatchSize": 64, "atTokens": 512, "perfParms": {"alpha": 20, "beta": 0.04, "gamma": 0.001}}]}`,
		"server":       `{"servers": [{"name": "s", "class": "Best", "model": "m", "currentAlloc": {"load": {"arrivalRate": 120, "AvgInTokens": 128, "AvgOutTokens": 1024}}}]}`,
		"serviceclass": `{"serviceClasses": [{"name": "Best", "priority": 1, "modelTargets": [{"model": "m", "slo-itl": 40, "slo-ttft": 1000}]}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+"-data.json"), []byte(text), 0o600))
	}
	s, err := readSample(folder)
	require.NoError(t, err)
	in, err := s.instance("x", 2)
	require.NoError(t, err)
	require.Len(t, in.Models, 1)
	assert.InDelta(t, 4, float64(in.Models[0].Need), 1e-12, "240 a minute")
	option := in.Models[0].Options[0]
	assert.InDelta(t, 160, float64(option.Cost), 1e-12)
	assert.Equal(t, []allocation.Use{{Row: 0, Amount: 4}}, option.Uses)
	assert.Positive(t, option.Serves)
}

func TestItSaysWhatIsMissing(t *testing.T) {
	call := func(args ...string) error {
		return Run(t.Context(), &harness.Call{Args: append([]string{"--out="}, args...), Out: io.Discard, Log: io.Discard})
	}
	assert.ErrorContains(t, call(), "--data FOLDER")
	assert.ErrorContains(t, call("--data", t.TempDir()), "accelerator-data.json")
	t.Setenv("PATH", "")
	_, _, err := newSolver(time.Second)
	assert.ErrorContains(t, err, "apt-get install coinor-cbc")
}

func TestTheVerdict(t *testing.T) {
	good := []result{{Variants: 200, OursMs: 49, GapPct: 0.9}, {Variants: 490, OursMs: 90, GapPct: 50, Better: true}}
	require.NoError(t, verify(summarise(good)).Err())
	for name, r := range map[string]result{
		"slow": {Variants: 200, OursMs: 51}, "dear": {GapPct: 4}, "worse": {Worse: true}, "far": {ObjectiveGapPct: 4},
	} {
		require.ErrorIs(t, verify(summarise(append(good, r))).Err(), harness.ErrMissed, name)
	}
	verdict := verify(summarise(append(good, result{Worse: true, Stopped: true}, result{Better: true, Stopped: true})))
	require.NoError(t, verdict.Err())
	assert.Contains(t, verdict.String(), "2 where the exact solver was stopped: it had less unserved all the same in 1, and more in 1")
}
