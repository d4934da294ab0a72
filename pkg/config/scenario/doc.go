// Package scenario reads what a replay needs beside its requests: nodes and the other
// work on them, models with their variants, profiles and prices, what was promised, and
// the configuration that the manager would have. It makes a replay.Scenario of it.
//
// It comes from a YAML file, or from a live cluster with a file that adds what no
// cluster tells. The file uses the words of the VariantAutoscaling object and of the
// manager's settings, and goes through the same code as those. The built-in scenario,
// builtin.yaml, is also the reference of every key; Examples are others, with traffic of
// their own, in which it matters which variant is chosen.
//
// It must never guess: an unknown key, a price or a profile that is missing is an error
// that names its place and what is expected.
//
// Read Parse and Live first, then document, which is the file.
package scenario
