// Package report turns what was observed into what people and programs read: the
// demo's report as JSON and as a summary, and the table that is shown while it
// runs.
//
// It computes and renders, and nothing else: it reads no clock, no file and no
// cluster, and the same observation always gives the same bytes. Read
// Observation (what a run saw) first, then New (the report's arithmetic) and Demo
// (the report); Live is the picture of one moment.
package report
