// Package sweep tries many settings of many policies on the same trials, several at a
// time, and judges ours against the best of them.
//
// Package tuning says what to try next, package replay runs it, and package front judges
// the numbers. This package puts them together and uses all processors. The number of
// processors changes no result.
//
// Read Case and Options first, then Sweep, Report and Single.
package sweep
