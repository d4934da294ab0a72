// Package monitoring proves that every alert and every query of the dashboard in
// manifests/monitoring is one that Prometheus understands, that names metrics which the
// programs have, and that shows something: each alert fires on what it is for, and stays
// silent otherwise. It runs Prometheus' own engine on series that are written here.
package monitoring
