// Package decision is the whole brain of the autoscaler: Decide takes a Snapshot
// of all facts at one instant, the Policy that the users allow and the Memory of
// earlier rounds, and returns a Plan and the next Memory.
//
// It is a pure function. It has no clock (the snapshot carries the time), no input
// or output, no logger, no globals and depends on no map order: the same inputs
// give the same plan, byte for byte. It must never lower a replica count on
// missing, stale or half-covered data, and never read unknown as zero.
//
// Read Snapshot and Plan first, then Decide, whose stages stand in order, each in
// a file of its own.
//
// # What survives a round
//
// Memory is a value. A new leader starts with the zero Memory; the table says what
// it loses.
//
//	field            kept per   a new leader
//	Curves           variant    learns them anew from the next samples; until then
//	                            the profile, or one observation, is used
//	Arrivals         model      sees no trend until it has three samples
//	Dispersion       model      takes arrivals for independent until it has seen some
//	Tokens           model      does without until requests complete, then follows
//	                            the newest mean alone
//	Recommendations  variant    holds scale-down for one stabilisation window,
//	                            because the window is not covered
//	Replicas, Asked, variant    rate policies see no earlier changes, and changes made
//	Changes                     by others meanwhile are not told from its own
//	Missing          variant    waits once more for pods that do not show themselves
//	Refused          variant    keeps room for pods that the scheduler refuses, for a
//	                            while
//	Backoffs         variant    may try a variant again whose replicas found no node
//	Learned, Sizes   variant    uses the given profile, or one that it borrows, until
//	                            enough was seen
//	Cheaper          model      waits once more before it switches variants
//	Blind            model      waits once more for the first metrics
//	Active           model      counts the retention period anew
//	Gateways         model      lets no model sleep before its gateway shows its queue, or
//	                            one of its namespace shows that of another
//	Wanted           variant    shows the current replicas while there are no data
//	Overwriting      variant    has to see a fight begin again
package decision
