// Package replay is the command "kubectl wva replay": what each scaling policy would
// have cost and kept on a trace of requests, in virtual time.
//
// It reads the command line, the trace and the scenario, lets package replay run, and
// shows the results as a table, as JSON or as a page. Everything is checked before
// anything runs; it writes nothing but the page, and that whole or not at all. It must
// never talk to a cluster unless it was asked to, and then only read.
//
// Read NewCommand first, then options.check and job.run.
package replay
