package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/term"
)

func main() {
	seeds := flag.Int("seeds", 0, "runs of every policy at every load; 0 is as many as the study, 8 and 12")
	out := flag.String("out", "bench-churn.json", "the file that the result of every run is written to")
	flag.Parse()
	if flag.NArg() > 0 || *seeds < 0 {
		fmt.Fprintln(os.Stderr, "churn takes no arguments but its flags, and no fewer than 0 seeds")
		flag.Usage()
		os.Exit(2)
	}
	good, err := bench(*seeds, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "churn:", err)
		os.Exit(1)
	}
	if !good {
		os.Exit(1)
	}
}

// bench plays everything, writes the results and reports whether they are as the
// study's. With fewer seeds than the study has, nothing is compared.
func bench(seeds int, out string) (good bool, err error) {
	// What cannot be written is better known before the work.
	file, err := os.Create(out)
	if err != nil {
		return false, fmt.Errorf("open the file for the results: %w", err)
	}
	defer func() {
		if closed := file.Close(); closed != nil && err == nil {
			err = fmt.Errorf("write the results: %w", closed)
		}
	}()
	games := schedule(scenarios(), seeds)
	rows := play(games, runtime.NumCPU(), progress(os.Stderr, len(games)))
	encoded, err := encode(rows)
	if err != nil {
		return false, err
	}
	if _, err := file.Write(encoded); err != nil {
		return false, fmt.Errorf("write the results: %w", err)
	}
	all, order := summarise(rows)
	fmt.Print(tabulate(all, order))
	if short := tooFew(scenarios(), seeds); short != "" {
		fmt.Print("\n", short, "\n")
		return true, nil
	}
	text, good := verify(all)
	fmt.Print(text)
	return good, nil
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

// progress shows on a terminal how many games were played; elsewhere it says nothing.
func progress(w *os.File, games int) func(*game) {
	if !term.IsTerminal(int(w.Fd())) {
		return func(*game) {}
	}
	played := 0
	return func(g *game) {
		played++
		// The line overwrites itself, and the last one leaves nothing.
		line := fmt.Sprintf("%d of %d runs: %s at %d %%, %s", played, games, g.scenario.name, g.loadPct, g.player.name)
		if played == games {
			line = ""
		}
		_, _ = fmt.Fprintf(w, "\r%s\033[K", line)
	}
}
