package churn

import "math"

// row is the result of one run.
type row struct {
	Generator            string  `json:"generator"`
	LoadPct              int     `json:"loadPct"`
	Policy               string  `json:"policy"`
	Victims              bool    `json:"victims"`
	Seed                 uint64  `json:"seed"`
	PendingPct           float64 `json:"pendingPct"`
	PendingThoughFreePct float64 `json:"pendingThoughFreePct"`
	// BesidePct is of the second and third replicas of variants that want no more, where
	// another node has room, those that go beside one of their own; of ours alone.
	BesidePct float64 `json:"besidePct"`
}

// round keeps four digits after the point: more would be noise.
func round(pct float64) float64 { return math.Round(pct*1e4) / 1e4 }

// cell is what the runs of one player at one load have in common.
type cell struct {
	generator string
	loadPct   int
	policy    string
	victims   bool
}

func (r *row) cell() cell { return cell{r.Generator, r.LoadPct, r.Policy, r.Victims} }

// summary is the mean and the spread (the standard deviation) over the seeds.
type summary struct {
	seeds                       int
	pending, though             float64
	pendingSpread, thoughSpread float64
	beside                      float64
}

// summarise is the summary of each cell, and the cells in the order of their first
// rows.
func summarise(rows []row) (map[cell]summary, []cell) {
	pending, though, beside := map[cell][]float64{}, map[cell][]float64{}, map[cell][]float64{}
	var order []cell
	for i := range rows {
		c := rows[i].cell()
		if pending[c] == nil {
			order = append(order, c)
		}
		pending[c] = append(pending[c], rows[i].PendingPct)
		though[c] = append(though[c], rows[i].PendingThoughFreePct)
		beside[c] = append(beside[c], rows[i].BesidePct)
	}
	all := map[cell]summary{}
	for _, c := range order {
		s := summary{seeds: len(pending[c])}
		s.pending, s.pendingSpread = spread(pending[c])
		s.though, s.thoughSpread = spread(though[c])
		s.beside, _ = spread(beside[c])
		all[c] = s
	}
	return all, order
}

// spread is the mean and the standard deviation of a sample; the latter is 0 for a
// sample of one.
func spread(sample []float64) (mean, deviation float64) {
	for _, x := range sample {
		mean += x / float64(len(sample))
	}
	for _, x := range sample {
		deviation += (x - mean) * (x - mean) / float64(max(1, len(sample)-1))
	}
	return mean, math.Sqrt(deviation)
}
