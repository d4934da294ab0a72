// Package shadow is "kubectl wva shadow": what an object would have done, beside what was
// there, from the metrics wva_desired_replicas and wva_current_replicas that the manager
// keeps for it, whatever its actuation is.
//
// What it compares is arithmetic over samples, without a model of what the load would have
// been otherwise: the decisions saw the queues of what was there. A time without samples is
// unknown and counts for neither side. Read Compare.
package shadow
