// Package rate makes what one replica of each variant serves, once per variant and round: at the load
// that the triggers allow, at its fullest, and within the promised latency. It learns that from what
// replicas show, and borrows it from other variants where nothing is known of one.
//
// Read Rate first, then Model.Rates.
package rate
