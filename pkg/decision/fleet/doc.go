// Package fleet finds the state of each replica: whether it serves, will serve in time, or comes to
// nothing; how loaded it is; and whether it does something else than the others. It also says for how
// long a variant is left alone whose replicas do not come up, and what the data allow to conclude.
//
// A replica that is unlike the others tells nothing of them.
//
// Read State and Fleet first, then Load.
package fleet
