package demo

import (
	"cmp"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// moves are the steps in the pod's life, counted from a start. A time that is zero has not come.
func (p *podState) moves(start time.Time) []report.ObservedMove {
	var moves []report.ObservedMove
	for _, step := range []struct {
		at    time.Time
		stage simulation.Stage
	}{
		{p.seen, simulation.Created},
		{p.bound, simulation.Placed},
		{p.served, simulation.Serving},
		{p.left, simulation.Leaving},
		{p.gone, simulation.Gone},
	} {
		if step.at.IsZero() {
			continue
		}
		move := report.ObservedMove{At: step.at.Sub(start), Pod: p.name, Variant: p.variant, Stage: step.stage}
		if step.stage > simulation.Created {
			move.Node = p.node
		}
		moves = append(moves, move)
	}
	return moves
}

// sortMoves brings moves into the order of time.
func sortMoves(moves []report.ObservedMove) {
	slices.SortFunc(moves, func(a, b report.ObservedMove) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Stage, b.Stage))
	})
}
