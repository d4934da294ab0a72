// Package cluster has the flags of kubectl that name a cluster and a user, and makes a
// client from them.
//
// It decides nothing else. Read Flags.
package cluster
