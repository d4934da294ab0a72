package scenario

import (
	_ "embed"
	"slices"
)

//go:embed builtin.yaml
var builtin []byte

// BuiltIn is the scenario for whoever has none: a file that Parse reads, with every key
// and what it means.
func BuiltIn() []byte { return slices.Clone(builtin) }
