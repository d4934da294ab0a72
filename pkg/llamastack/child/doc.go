// Package child makes the objects that a LlamaStackDistribution consists of in a cluster:
// the Deployment, its Service and volume, and what scales, protects and exposes it.
//
// It decides their names, labels and contents, from the object and from facts that the
// operator found out; the same input gives the same objects. It must never read or write
// a cluster: whether an object is created, changed or deleted is the operator's business.
//
// Read Objects first, then pod.go. Names says which children an object may have, so that
// those it no longer wants can be found; Bundle joins certificate authorities.
package child
