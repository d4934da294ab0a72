// Package allocate turns what the models want into replicas of their variants: the cheapest that
// fit together, more important models first. What only saves comes last.
//
// What it takes of the nodes it takes on trial (limit.Round.Placed), so that nothing is given twice.
//
// Read To first, which does so for a list of models, then GrowAll.
package allocate
