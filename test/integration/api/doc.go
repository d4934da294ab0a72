// Package api proves the schema of VariantAutoscaling, the permissions and the
// samples against a real API server, as a user would meet them. It holds nothing but
// tests. They share one cluster; every test works in names of its own.
package api
