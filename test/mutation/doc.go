// Command mutation changes the code of a package in one place at a time and asks the
// package's own tests whether they notice, or where it has none those of the nearest folder
// above it. The changes are those of Gremlins: another
// operator, a boundary moved by one, a condition turned round.
//
//	make mutate PKG=pkg/capacity/placement
//	make mutate PKG=pkg/capacity/placement/moves.go
//	make mutate PKG=pkg/capacity/placement SAMPLE=10
//
// A change that no test notices is a survivor. The only survivors that are fine are
// those that change nothing that anybody could see. They are written down, each with
// its reason, in the file testdata/survivors.txt of the package:
//
//	# A line that starts with # is a remark.
//	search.go fill CONDITIONALS_BOUNDARY: if free @< best {
//	    Of two equal nodes either will do: the sum is the same.
//
// That is the file, the function, the kind of the change and the line, in which @ stands
// before the operator that is changed. Several such lines may share the reason below
// them. The command fails when a survivor is not in the file, when the file names one
// that no longer lives, and when more than one change in twenty survives. A sample of one
// change in so many, chosen by a sum of the changed code and so always the same, says
// nothing of what the file names beside it.
//
// The tests run in a copy of the committed and uncommitted files of the checkout, which
// is removed afterwards. A change that does not compile is not counted. One that makes
// the tests run for ten times their usual time is noticed.
package main
