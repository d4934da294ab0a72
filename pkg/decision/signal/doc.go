// Package signal says what a sample is worth: how old it is, whether the window that it speaks of
// shows one state, and whether a count can be true at all. It also holds the working state of a
// round in which all stages record their steps.
//
// It never reads a missing sample as zero, and a sample from the future counts as old.
//
// Read Round first, whose methods say how old samples are, then Variant.
package signal
