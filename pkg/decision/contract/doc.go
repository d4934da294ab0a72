// Package contract holds what goes into a decision and what comes out of it: Snapshot, Policy and
// Memory go in, Plan and the next Memory come out. It decides nothing. Every package of the chain
// that makes a decision imports it, and it imports none of them.
//
// What a plan says is a Finding: one of the sentences of sentence.go and what stands in it. A new one
// also needs its form in package report/sentence.
//
// Read Snapshot and Plan first. Memory says of each of its fields what a new leader does without it.
package contract
