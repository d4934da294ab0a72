// Package cluster is which cluster the commands talk to, and as whom: the flags of
// kubectl, and a client.
//
// It decides nothing else. Read Flags.
package cluster
