// Package prometheus asks the Prometheus server of a cluster from outside. The address is
// that of the user, or else that of the manager. The manager's address is most often that of
// a Service, which only exists within the cluster: then the API server's proxy is used, with
// the user's own permissions.
//
// It has queries for the manager's own metrics alone. Read Flags and Server.
package prometheus
