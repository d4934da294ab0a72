// Package page reads the pages that people read, so that tests can hold them
// against the program: README.md, CONTRIBUTING.md, docs and the README of the chart.
//
// Its tests follow every link, check every block of YAML against the schemas and types
// that a cluster would check it against, and look up every target of make, value of the
// chart and path that a command names. The commands of kubectl wva are tried beside that
// program, and test/integration/api has a real API server check the objects.
//
// Every block of commands has a mark, the comment before it: it says which test runs the
// block, or gives one of few reasons why none does. The constants Alone, OnCluster and
// their neighbours say who runs what.
//
// It must never repair a page or know one by its name. Read Pages and Block first.
package page
