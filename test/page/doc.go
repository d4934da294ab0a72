// Package page reads the pages that people read, so that tests can hold them
// against the program: README.md, CONTRIBUTING.md, docs and the README of the chart.
//
// Its tests follow every link, check every block of YAML against the schemas and types
// that a cluster would check it against, and look up every target of make, value of the
// chart and path that a command names. The commands of kubectl wva are tried beside that
// program. A block after the comment <!-- run --> is executed there, one after
// <!-- run on a cluster --> in test/integration/kubectl, one after
// <!-- run with kubectl and helm --> in test/chart/install, and test/integration/api has a
// real API server check the objects.
//
// It must never repair a page or know one by its name. Read Pages and Block first.
package page
