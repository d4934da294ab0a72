// Package prometheus asks the Prometheus server of a cluster from outside: under an address
// that the user gives, or under the one that the manager has, which most often only exists
// within the cluster and is then reached through the API server's proxy of Services, with
// the user's own permissions.
//
// It has queries for the manager's own metrics alone. Read Flags and Server.
package prometheus
