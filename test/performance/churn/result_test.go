package churn

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// short are the scenarios with few steps and one load.
func short() []scenario {
	all := scenarios()
	for i := range all {
		all[i].steps, all[i].warmUp, all[i].loads = 50, 10, all[i].loads[1:2]
	}
	return all
}

func TestTheSameSeedsGiveTheSameBytes(t *testing.T) {
	played := 0
	once := func(workers int) []byte {
		encoded, err := json.Marshal(play(schedule(short(), 2), workers, func(*game) { played++ }))
		require.NoError(t, err)
		return encoded
	}
	first := once(2)
	assert.Equal(t, string(first), string(once(1)), "whoever plays which game")
	assert.Equal(t, 2*2*9*2, played)

	var rows []map[string]any
	require.NoError(t, json.Unmarshal(first, &rows))
	require.Len(t, rows, 36)
	for _, key := range []string{"generator", "loadPct", "policy", "victims", "seed", "pendingPct", "pendingThoughFreePct", "besidePct"} {
		assert.Contains(t, rows[0], key)
	}
	assert.Len(t, rows[0], 8)
}

func TestScheduleIsTheStudys(t *testing.T) {
	count := map[cell]int{}
	for _, g := range schedule(scenarios(), 0) {
		count[cell{g.scenario.name, g.loadPct, g.player.name, g.player.victims}]++
	}
	assert.Len(t, count, (4+3)*9)
	assert.Equal(t, 8, count[cell{"one-type", 94, "spreading", false}])
	assert.Equal(t, 12, count[cell{"mixed", 85, "ours", true}])
	for _, c := range checks() {
		assert.Positive(t, count[c.cell], "what is checked is played: %+v", c)
	}
}

// The generators are the study's: its plain packer fares as it did there.
func TestPlainPackerFaresAsInTheStudy(t *testing.T) {
	var games []game
	all := scenarios()
	for _, g := range schedule(all, 0) {
		if g.player.name == nameMostAllocated && !g.player.victims && (g.loadPct == 94 || g.loadPct == 85 && g.scenario.name == "mixed") {
			games = append(games, g)
		}
	}
	require.Len(t, games, 8+12)
	summaries, _ := summarise(play(games, 2, func(*game) {}))
	for _, c := range checks() {
		if c.same {
			assert.True(t, c.holds(summaries[c.cell]), "%+v: %+v", c, summaries[c.cell])
		}
	}
}

func TestChosenVictimsLeaveLessPending(t *testing.T) {
	all := scenarios()
	for i := range all {
		all[i].steps, all[i].warmUp, all[i].loads = 160, 60, []int{97}
	}
	summaries, _ := summarise(play(schedule(all, 1), 2, func(*game) {}))
	for _, s := range all {
		for _, p := range []string{nameSpreading, nameMostAllocated, nameGradient, nameOurs} {
			with, without := summaries[cell{s.name, 97, p, true}], summaries[cell{s.name, 97, p, false}]
			assert.Less(t, with.pending, without.pending, "%s, %s", s.name, p)
		}
	}
}

func TestSummary(t *testing.T) {
	rows := []row{
		{Generator: "g", LoadPct: 1, Policy: "p", Seed: 1, PendingPct: 1, PendingThoughFreePct: 5},
		{Generator: "g", LoadPct: 1, Policy: "p", Victims: true, Seed: 1, PendingPct: 7},
		{Generator: "g", LoadPct: 1, Policy: "p", Seed: 2, PendingPct: 3, PendingThoughFreePct: 5},
	}
	all, order := summarise(rows)
	assert.Equal(t, []cell{{"g", 1, "p", false}, {"g", 1, "p", true}}, order)
	s := all[order[0]]
	assert.Equal(t, 2, s.seeds)
	assert.InDelta(t, 2, s.pending, 1e-12)
	assert.InDelta(t, 1.4142135, s.pendingSpread, 1e-6)
	assert.InDelta(t, 0, s.thoughSpread, 1e-12)
	assert.Zero(t, all[order[1]].pendingSpread, "one run has no spread")
	text := tabulate(all, order)
	assert.Contains(t, text, "g at 1 % load, 2 seeds")
	assert.Contains(t, text, "2.000 +- 1.414")
}

func TestChecks(t *testing.T) {
	same, most := check{figure: 1.45, same: true}, check{figure: .17, thoughFree: true}
	assert.True(t, same.holds(summary{pending: 1.7}))
	assert.False(t, same.holds(summary{pending: 1.75}))
	assert.False(t, same.holds(summary{pending: 1.15}), "too good is another game")
	assert.True(t, most.holds(summary{pending: 9, though: .17}))
	assert.False(t, most.holds(summary{though: .18}))

	all := map[cell]summary{}
	for _, c := range checks() {
		s := all[c.cell]
		if c.thoughFree {
			s.though = c.figure
		} else {
			s.pending = c.figure
		}
		all[c.cell] = s
	}
	verdict := verify(all)
	require.NoError(t, verdict.Err())
	assert.Equal(t, len(checks()), strings.Count(verdict.String(), "ok"))
	c := checks()[len(checks())-1].cell
	all[c] = summary{pending: 1}
	verdict = verify(all)
	require.ErrorIs(t, verdict.Err(), harness.ErrMissed)
	assert.Equal(t, 1, strings.Count(verdict.String(), "MISSED"))
}

func TestFewerSeedsAreNotCompared(t *testing.T) {
	assert.Empty(t, tooFew(scenarios(), 0))
	assert.Empty(t, tooFew(scenarios(), 12))
	assert.Contains(t, tooFew(scenarios(), 8), "12 of mixed")
}

func TestResultsThatCannotBeWrittenAreSaidBeforeTheWork(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing", "out.json")
	err := Run(t.Context(), &harness.Call{Args: []string{"--out", file}, Out: io.Discard, Log: io.Discard})
	assert.ErrorIs(t, err, os.ErrNotExist)
}
