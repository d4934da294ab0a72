// Package modelserver says what model servers and gateways call the things that
// they measure, and how numbers follow from those.
//
// The names are one table of data. A new name is one more entry in a row. Every reader of
// metrics uses this table and has no name of its own. The package decides nothing, has no
// threshold and reads nothing; what is not known stays absent and is never zero.
//
// It also reads the words by which a container starts its server: LimitsOf says how much a
// replica takes into service at once, and OtherNames what it calls its model.
//
// Read Metric and the table in table.go first, then Gateway and Recent in
// arithmetic.go, then Target and EngineOf, then LimitsOf.
package modelserver
