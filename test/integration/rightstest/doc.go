// Package rightstest proves that a program has no right too many: it takes each right of
// the roles away in turn, and looks for a request of the program in the audit log of the
// API server that would have been refused then.
package rightstest
