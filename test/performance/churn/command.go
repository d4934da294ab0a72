package churn

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// Run is the benchmark. With fewer seeds than the study has, nothing is compared.
func Run(_ context.Context, call *harness.Call) error {
	flags := call.Flags("churn")
	seeds := flags.Int("seeds", 0, "runs of every policy at every load; 0 is as many as the study, 8 and 12")
	if err := flags.Parse(); err != nil {
		return err
	}
	if *seeds < 0 {
		return fmt.Errorf("--seeds is %d: expected at least 0", *seeds)
	}
	games := schedule(scenarios(), *seeds)
	count := call.Counter(len(games))
	rows := play(games, runtime.NumCPU(), func(g *game) {
		count(fmt.Sprintf("%s at %d %%, %s", g.scenario.name, g.loadPct, g.player.name))
	})
	if err := flags.Save(rows); err != nil {
		return err
	}
	all, order := summarise(rows)
	call.Tell("%s", tabulate(all, order))
	if short := tooFew(scenarios(), *seeds); short != "" {
		call.Tell("\n%s\n", short)
		return nil
	}
	verdict := verify(all)
	call.Tell("%s", verdict)
	return verdict.Err()
}

// tooFew says why so many seeds cannot be compared with the study; empty means that
// they can.
func tooFew(scenarios []scenario, seeds int) string {
	for i := range scenarios {
		if s := &scenarios[i]; seeds > 0 && seeds < s.seeds {
			return fmt.Sprintf("Too few seeds to compare with the study: it has %d of %s.", s.seeds, s.name)
		}
	}
	return ""
}

// game is one run to play.
type game struct {
	scenario *scenario
	loadPct  int
	player   player
	seed     uint64
}

// schedule is every run of the scenarios, in the order of the report. Seeds count
// from 1.
func schedule(scenarios []scenario, seeds int) []game {
	var games []game
	for i := range scenarios {
		s := &scenarios[i]
		n := seeds
		if n == 0 {
			n = s.seeds
		}
		for _, load := range s.loads {
			for _, p := range players() {
				for seed := range uint64(n) {
					games = append(games, game{s, load, p, seed + 1})
				}
			}
		}
	}
	return games
}

// play plays the games, some at the same time, and returns their results in the order
// of the games. It calls done after each, never at the same time.
func play(games []game, workers int, done func(*game)) []row {
	rows := make([]row, len(games))
	next := make(chan int)
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range workers {
		wait.Go(func() {
			for i := range next {
				g := &games[i]
				total := run(g.scenario, g.loadPct, g.player, g.seed)
				rows[i] = row{
					Generator: g.scenario.name, LoadPct: g.loadPct,
					Policy: g.player.name, Victims: g.player.victims, Seed: g.seed,
					PendingPct:           round(total.pct(total.pending)),
					PendingThoughFreePct: round(total.pct(total.pendingThoughFree)),
					BesidePct:            round(total.beside.pct()),
				}
				mu.Lock()
				done(g)
				mu.Unlock()
			}
		})
	}
	for i := range games {
		next <- i
	}
	close(next)
	wait.Wait()
	return rows
}
