// Package demo proves the demo as a user runs it: the built program, every component,
// traffic, and the report. It holds nothing but a test.
package demo
