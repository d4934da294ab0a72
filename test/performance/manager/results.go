package manager

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// results is what bench-manager.json holds.
type results struct {
	Started        time.Time `json:"started"`
	Minutes        float64   `json:"minutes"`
	Processors     int       `json:"processors"`
	Variants       int       `json:"variants"`
	Nodes          int       `json:"nodes"`
	Pods           int       `json:"pods"`
	Interval       string    `json:"interval"`
	ScrapeInterval string    `json:"scrapeInterval"`
	// FillSeconds is how long it took to write the objects.
	FillSeconds float64 `json:"fillSeconds"`
	// FirstRound and Restart are the seconds from the start of the process to the end of
	// its first round.
	FirstRound float64 `json:"firstRoundSeconds"`
	Restart    float64 `json:"restartSeconds"`
	// Constant are rounds in which nothing changes, and ConstantRequests the requests to
	// the API server per such round.
	Constant         []round `json:"constant"`
	ConstantRequests float64 `json:"constantRequestsPerRound"`
	// Changed is the round that answered most of a change of all loads, and
	// ChangedRequests what was sent to the API server until all were answered.
	Changed round `json:"changed"`
	// Shown are the seconds from the first query of that round until the statuses of all that
	// it scaled showed it, and ShownStatuses how many that were.
	Shown           float64 `json:"shownSeconds"`
	ShownStatuses   int     `json:"shownStatuses"`
	ChangedRequests float64 `json:"changedRequests"`
	// Begin is after the first round, and End after all that were measured.
	Begin weight `json:"begin"`
	End   weight `json:"end"`
	// Deleted are the seconds from the deletion of a Deployment to its status.
	Deleted []float64 `json:"deletedSeconds"`
}

// weight is what the programs take: resident bytes, and goroutines of the manager.
type weight struct {
	Manager    float64 `json:"managerBytes"`
	Scheduler  float64 `json:"schedulerBytes"`
	Goroutines float64 `json:"managerGoroutines"`
}

// The goals: seconds of a round, and bytes of the manager.
const (
	roundGoal  = 5.0
	memoryGoal = 1 << 30
)

// print says what was measured; a run that failed has not come to all of it.
func (r *results) print(to io.Writer) {
	line := func(measured bool, format string, values ...any) {
		if measured {
			_, _ = fmt.Fprintf(to, format+"\n", values...)
		}
	}
	const mib = 1 << 20
	line(true, "\n%d variants, %d nodes, %d pods; %d processors beside everything else; %.1f minutes", r.Variants, r.Nodes, r.Pods, r.Processors, r.Minutes)
	var read, whole, queries []float64
	for _, one := range r.Constant {
		read, whole, queries = append(read, one.Read), append(whole, one.Seconds), append(queries, float64(one.Queries))
	}
	line(len(r.Constant) > 0, "  round, constant load      %6.2f s, of which %.2f s read; %.0f queries, %.1f requests to the API server",
		middle(whole), middle(read), middle(queries), r.ConstantRequests)
	line(r.Changed.Scales > 0, "  round, all loads rise     %6.2f s to its last scale, of which %.2f s read; %d scales%s",
		r.Changed.Scaled, r.Changed.Read, r.Changed.Scales, met(r.Changed.Scaled < roundGoal, "5 s"))
	line(r.Changed.Scales > 0, "    until that is shown     %6.2f s; %d statuses; %.0f requests until all were answered%s",
		r.Shown, r.ShownStatuses, r.ChangedRequests, met(r.Shown < roundGoal, "5 s"))
	line(r.FirstRound > 0, "  first round after a start %6.2f s", r.FirstRound)
	line(r.Restart > 0, "    after a restart         %6.2f s", r.Restart)
	line(len(r.Deleted) > 0, "  status of a deleted Deployment after %.2f s (at most %.2f s)", middle(r.Deleted), slices.Max(append([]float64{0}, r.Deleted...)))
	line(r.Begin.Manager > 0, "  memory of the manager     %6.0f MiB after its first round", r.Begin.Manager/mib)
	line(r.End.Manager > 0, "    at the end              %6.0f MiB%s", r.End.Manager/mib, met(r.End.Manager < memoryGoal, "1 GiB"))
	line(r.End.Manager > 0, "  memory of the scheduler   %6.0f MiB; goroutines of the manager %.0f, then %.0f", r.End.Scheduler/mib, r.Begin.Goroutines, r.End.Goroutines)
}

func met(ok bool, goal string) string {
	if ok {
		return " (goal " + goal + ": met)"
	}
	return " (goal " + goal + ": not met)"
}

// middle is the median, of an even number the higher one; 0 of nothing.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
