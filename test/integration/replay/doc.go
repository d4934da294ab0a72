// Package replay proves virtual time: the demo as a user runs it, with real components
// in real time, and the same minute replayed, want the same replicas. It holds nothing
// but a test.
package replay
