// Package manifest takes files of objects apart, as kubectl reads them: documents of YAML with lines of
// "---" between them, and JSON values one after the other.
//
// It does not look into a document. Read Split.
package manifest
