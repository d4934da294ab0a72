package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// result is what came of a soak.
type result struct {
	Seed    uint64  `json:"seed"`
	Seconds float64 `json:"seconds"`
	// Done counts what was done.
	Done map[string]int `json:"done"`
	// Deaths counts the programs that ended by themselves, and Leaders the changes of who
	// leads.
	Deaths  int `json:"deaths"`
	Leaders int `json:"leaderChanges"`
	// The writes of scale subresources: those that raised and lowered replicas, and those
	// that the API server refused.
	Raised  int       `json:"raised"`
	Lowered int       `json:"lowered"`
	Refused int       `json:"refused"`
	Models  []outcome `json:"models"`
	// Lives are those of programs that were long enough to be judged.
	Lives []life `json:"lives"`
	// Wrong is what must not be, one sentence each.
	Wrong []string `json:"wrong"`
}

// outcome is how a model ended.
type outcome struct {
	Model string `json:"model"`
	// Rate in requests per second is that of the end, which needs at least Need replicas
	// and justifies Most.
	Rate     float64 `json:"rate"`
	Need     int32   `json:"need"`
	Most     int32   `json:"most"`
	Asked    int32   `json:"asked"`
	Sent     int     `json:"requests"`
	Failed   int     `json:"failed"`
	Variants []end   `json:"variants"`
}

// life is one of a program: the highest number of the first third of its time, and the
// lowest of the last.
type life struct {
	Program    string     `json:"program"`
	Seconds    float64    `json:"seconds"`
	Goroutines [2]float64 `json:"goroutines"`
	Memory     [2]float64 `json:"memoryBytes"`
}

func (r *result) wrong(format string, values ...any) {
	r.Wrong = append(r.Wrong, fmt.Sprintf(format, values...))
}

func (r *result) write(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *result) print(to io.Writer) {
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(to, format+"\n", values...) }
	line("\nSoak of %.0f s with seed %d", r.Seconds, r.Seed)
	for _, kind := range slices.Sorted(maps.Keys(r.Done)) {
		line("  %-28s %d times", kind, r.Done[kind])
	}
	line("  %d programs ended by themselves; %d changes of the leader", r.Deaths, r.Leaders)
	line("  scale writes: %d raised, %d lowered, %d were refused", r.Raised, r.Lowered, r.Refused)
	for _, m := range r.Models {
		line("  %-8s %4.1f requests/s need %d to %d replicas: %d; %d of %d requests failed on the way", m.Model, m.Rate, m.Need, m.Most, m.Asked, m.Failed, m.Sent)
	}
	for _, l := range r.Lives {
		line("  %-18s in %4.0f s: goroutines %.0f -> %.0f, memory %.0f -> %.0f MiB", l.Program, l.Seconds,
			l.Goroutines[0], l.Goroutines[1], l.Memory[0]/(1<<20), l.Memory[1]/(1<<20))
	}
	if len(r.Wrong) == 0 {
		line("Nothing was wrong.")
		return
	}
	line("%d things were wrong:", len(r.Wrong))
	for _, sentence := range r.Wrong {
		line("  %s", sentence)
	}
}
