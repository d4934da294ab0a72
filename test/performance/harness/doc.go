// Package harness is what every benchmark would otherwise write again: its flags, the file
// for its numbers, how it says how far it is, and whether its figures are met.
//
// It knows no benchmark and measures nothing. A benchmark is a package beside this one with
// a function Run(context.Context, *harness.Call) error; test/performance lists them.
//
// Read Call first, then Flags.
package harness
