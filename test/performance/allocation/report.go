package allocation

import (
	"fmt"
	"math"
	"strings"
)

// result is one line of the benchmark's output.
type result struct {
	Instance string `json:"instance"`
	Models   int    `json:"models"`
	Variants int    `json:"variants"`
	// The unserved demand, as the cost per hour that serving it would have, and the
	// levels of each priority, in which every band counts twice the next one and the
	// last one the priority's whole demand as 1.
	UnservedOurs  float64   `json:"unservedOurs"`
	UnservedExact float64   `json:"unservedExact"`
	LevelsOurs    []float64 `json:"levelsOurs"`
	LevelsExact   []float64 `json:"levelsExact"`
	CostOurs      float64   `json:"costOurs"`
	CostExact     float64   `json:"costExact"`
	// GapPct is that of the costs, and ObjectiveGapPct that of the first part of the
	// objective in which both differ: a priority's level, or else the cost.
	GapPct          float64 `json:"gapPct"`
	ObjectiveGapPct float64 `json:"objectiveGapPct"`
	OursMs          float64 `json:"oursMs"`
	ExactMs         float64 `json:"exactMs"`
	// Worse and Better say how the levels compare; Stopped that the exact solver did
	// not come to its end.
	Worse   bool `json:"worse"`
	Better  bool `json:"better"`
	Stopped bool `json:"stopped"`
}

// summary is what is judged.
type summary struct {
	MeanGapPct float64 `json:"meanGapPct"`
	MaxGapPct  float64 `json:"maxGapPct"`
	// These are over all instances that the exact solver finished.
	MeanObjectiveGapPct float64 `json:"meanObjectiveGapPct"`
	MaxObjectiveGapPct  float64 `json:"maxObjectiveGapPct"`
	// Compared is the number of instances that the exact solver finished.
	Compared int `json:"compared"`
	// Equal is the number of those in which both serve the same, whose costs are
	// compared; WorseThanStopped counts worse answers than those of a stopped solver, and
	// BetterThanStopped better ones. What is no exact answer is told, not judged.
	Equal             int     `json:"equal"`
	Stopped           int     `json:"stopped"`
	Worse             int     `json:"worse"`
	WorseThanStopped  int     `json:"worseThanStopped"`
	BetterThanStopped int     `json:"betterThanStopped"`
	MaxMsAt200        float64 `json:"maxMsAt200"`
	MaxMsOverall      float64 `json:"maxMsOverall"`
}

func summarise(results []result) summary {
	var s summary
	for _, r := range results {
		s.MaxMsOverall = math.Max(s.MaxMsOverall, r.OursMs)
		if r.Variants <= 200 {
			s.MaxMsAt200 = math.Max(s.MaxMsAt200, r.OursMs)
		}
		if r.Stopped {
			s.Stopped++
			if r.Worse {
				s.WorseThanStopped++
			}
			if r.Better {
				s.BetterThanStopped++
			}
			continue
		}
		s.Compared++
		s.MeanObjectiveGapPct += r.ObjectiveGapPct
		s.MaxObjectiveGapPct = math.Max(s.MaxObjectiveGapPct, r.ObjectiveGapPct)
		if r.Worse {
			s.Worse++
		}
		if r.Worse || r.Better {
			// Serving less costs less: only equal service has costs to compare.
			continue
		}
		s.Equal++
		s.MeanGapPct += r.GapPct
		s.MaxGapPct = math.Max(s.MaxGapPct, r.GapPct)
	}
	if s.Equal > 0 {
		s.MeanGapPct /= float64(s.Equal)
	}
	if s.Compared > 0 {
		s.MeanObjectiveGapPct /= float64(s.Compared)
	}
	return s
}

func table(results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %6s %8s %12s %12s %12s %12s %8s %9s %10s\n", "instance", "models", "variants", "unserved", "exact", "cost", "exact", "gap", "ours", "exact")
	for _, r := range results {
		note := ""
		if r.Worse {
			note = "  WORSE"
		}
		if r.Better {
			note += "  better"
		}
		if r.Stopped {
			note += "  exact solver stopped by the time limit"
		}
		fmt.Fprintf(&b, "%-24s %6d %8d %12.2f %12.2f %12.2f %12.2f %6.2f %% %6.1f ms %7.0f ms%s\n",
			r.Instance, r.Models, r.Variants, r.UnservedOurs, r.UnservedExact, r.CostOurs, r.CostExact, r.GapPct, r.OursMs, r.ExactMs, note)
	}
	return b.String()
}
