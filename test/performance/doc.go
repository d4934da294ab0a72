// Command performance measures this project: the autoscaler against its rivals, and its
// parts one by one.
//
//	make bench WHAT=allocation DATA=path/to/data
//
// It is a module of its own, so that nothing of the product can link what only benchmarks
// need. Each benchmark is a package with one function Run; package harness is what they
// share. A benchmark prints a table, writes its numbers to a JSON file, and fails where a
// figure that docs/benchmarks.md promises is not met.
//
// Read the list in main.go first.
package main
