// Package report turns what was observed into what people and programs read: the
// demo's report as JSON, as a summary and as a page with pictures, the table that is
// shown while it runs; and replays as a table and a chart for a terminal and as a page.
//
// A page is one file of HTML that opens without a network: its style, its script and its
// data stand in it. Names and reasons come from users and are never more than text.
//
// It computes and renders, and nothing else: it reads no clock, no file and no
// cluster, and the same observation always gives the same bytes. Read
// Observation (what a run saw) first, then New (the report's arithmetic) and Demo
// (the report); Live is the picture of one moment. HTML, ReplayTable and ReplayChart
// show what package replay measured.
package report
