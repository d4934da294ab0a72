// Package operator runs Llama Stack servers: it makes the children of each
// LlamaStackDistribution what the object asks for, keeps them so, and says in the
// object's status how the server is.
//
// It decides when something is written, and nothing else: package configuration generates,
// and package child makes objects. An object that cannot be run leaves its children as they
// are, so that an invalid edit never restarts a server. It writes a child by server-side
// apply and only if something of it differs; it never touches a child that another object
// controls; it reads and writes v1alpha2 alone, because a status that is written through
// v1alpha1 would lose what only v1alpha2 has. It knows nothing of the autoscaler.
//
// Read Add first, then Reconcile, gather and apply.
package operator
