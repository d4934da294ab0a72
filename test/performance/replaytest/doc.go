// Package replaytest is a small world and its traffic, for tests that replay.
package replaytest
