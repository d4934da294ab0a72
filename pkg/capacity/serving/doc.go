// Package serving answers what one replica of a variant can serve: its latency at a
// batch, its throughput, the largest rate within an SLO, and how many tokens its KV
// cache holds.
//
// It is pure: no clock, no input or output, no logger. Unknown is never zero: an
// unknown profile answers nothing, and a profile that was learned or borrowed says how
// far it can be trusted.
//
// Read Profile first, the parameters of one replica, and Form, the three ways to read
// them. Steady and Under are the means without waiting. Queue adds waiting and
// quantiles: MaxRate is the largest rate within an SLO, and Promise is its inverse.
// Fit finds the parameters from measured points. Learned collects such points from
// running replicas and says how far they can be trusted. Borrow scales the profile of
// another variant. Exchange is what devices that share a model send each other over a
// Link. Curve is a line through what a running replica was seen to do, for variants
// whose latency is unknown.
//
// KVCapacity is the size of the KV cache from the surest source there is. The last of
// its sources is the memory that the weights leave: FiguresOf knows the model by its
// name, DeviceGiB the device by its type, and MemoryOf computes what is left.
package serving
