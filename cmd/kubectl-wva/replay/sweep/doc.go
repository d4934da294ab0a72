// Package sweep tries many settings of many policies on the same trials, several at a
// time, and judges ours against the best of them.
//
// What to try next says package tuning, what the numbers mean package front, and a run is
// one of package replay; here they are put together on the processors that there are. How
// many these are changes no result.
//
// Read Case and Options first, then Sweep, Report and Single.
package sweep
