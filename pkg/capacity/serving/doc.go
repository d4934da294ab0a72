// Package serving answers what one replica of a variant can serve: its latency at a
// batch, its throughput, the largest rate within an SLO, and how many tokens its KV
// cache holds.
//
// It is pure: no clock, no input or output, no logger. It never takes what is unknown
// for zero: an unknown profile answers nothing, and a profile that was learned or
// borrowed says how far it can be trusted.
//
// Read Profile first, the parameters of one replica, and Form, the four ways to read
// them. Steady and Under are the means without waiting; Queue adds the waiting room,
// quantiles, and the size of an SLO (MaxRate) with its inverse (Promise). Fit finds
// the parameters from measured points; Learned collects such points from running
// replicas and says what to make of them; Borrow scales the profile of another
// variant; Exchange is what devices that share a model send each other over a Link. Curve is a line through what a running replica was seen to
// do, for variants about whose latency nothing is known.
//
// KVCapacity is the size of the KV cache from the surest source that there is. Of the
// last one, memory and model size, FiguresOf knows the model by its name, DeviceGiB
// the device by its type, and MemoryOf lays one out on the other.
package serving
