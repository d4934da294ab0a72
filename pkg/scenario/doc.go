// Package scenario reads what a replay needs beside its requests: nodes and the other
// work on them, models with their variants, profiles and prices, what was promised, and
// the configuration that the manager would have. It makes a replay.Scenario of it.
//
// It comes from a YAML file, or from a live cluster with a file that adds what a cluster
// does not show. The file uses the fields of the VariantAutoscaling object and the names of
// the manager's settings, and the same code reads them. The built-in scenario,
// builtin.yaml, explains every key. Examples are further scenarios with their own requests,
// in which the choice of the variant matters.
//
// It must never guess: an unknown key, a price or a profile that is missing is an error
// that names its place and what is expected.
//
// Read Parse and Live first, then document, which is the file.
package scenario
