// Package scheduler proves on a real API server what the scheduler reads and writes
// beyond pods and nodes: the CRD comes late and goes again, names of accelerators are
// changed under it, and whoever breaks the ownership of nodes is told. The programs
// in bin/ are used as they are shipped. It holds nothing but tests.
package scheduler
