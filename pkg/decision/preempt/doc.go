// Package preempt has models give way, in a cluster that does not grow, to models that lack room: to
// more important ones, and to equally important ones that have less of what they need. Nobody gives
// below a minimum, nor its last replica.
//
// Read All first.
package preempt
