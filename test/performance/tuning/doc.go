// Package tuning chooses which settings of a policy to try, so that the best of them are
// found with few runs: settings that are hopeless are left out, and where it matters the
// grid is walked step by step.
//
// It runs nothing: it says what to try next and is told what came of it. The same answers
// give the same questions.
//
// Read Family first, then Search, and Placings, which says on which variants a policy may be
// put.
package tuning
