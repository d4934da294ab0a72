// Package kubectl proves the commands of bin/kubectl-wva against a real API server: the
// migration of objects under a CRD of the earlier form and back, and what the examples of
// each command's help say, and the marked blocks of the pages. It holds nothing but tests. They share one cluster of an API
// server alone, and go in the order in which an upgrade does.
package kubectl
