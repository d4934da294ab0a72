// Package lesson plays an earlier time to this project's own policies, so that a benchmark
// can begin with what they learned of the variants. What they saw of the load is left out.
//
// Read Learn first, then Lesson.
package lesson
