// Package allocation compares what pkg/capacity/allocation buys for many models under
// shared limits with an exact solver's answer to the same question:
//
//	make bench WHAT=allocation DATA=DIR
//
// DIR holds inferno_sample, published instances of an optimiser: its accelerators,
// models, service classes and loads, as they are and with more load. The rate of each
// replica within the class's SLO comes from pkg/capacity/serving. More instances are
// random, from a seed: loose and tight ones, 20 to 200 variants, eight limits.
//
// The exact solver is CBC (apt-get install coinor-cbc). It solves one integer program
// after the other: unserved demand of the first priority, then of the second with the
// first one held, and so on, and at last the cost. The objective is that of the
// package's documentation, written down a second time here; both answers are judged by
// this writing: by the costs where all priorities are served alike, and everywhere by
// the first part of the objective in which they differ, a priority's unserved level or
// the cost. An instance of which CBC does not finish a level within the time limit
// counts for speed only; who left less unserved there is told, not judged.
//
// Read Instance first, then program, then judge.
package allocation
