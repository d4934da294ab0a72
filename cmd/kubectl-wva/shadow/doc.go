// Package shadow is "kubectl wva shadow": what an object would have done, beside what was
// there, from the metrics wva_desired_replicas and wva_current_replicas that the manager
// keeps for it, whatever its actuation is.
//
// It compares samples and nothing else. It has no model of the queues that there would have
// been with other replicas: the decisions saw the queues of what was there. A time without
// samples is unknown and counts for neither side. Read Compare.
package shadow
