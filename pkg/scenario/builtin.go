package scenario

import (
	"embed"
	"slices"
	"strings"
)

//go:embed builtin.yaml
var builtin []byte

// BuiltIn is the scenario for whoever has none: a file that Parse reads, with every key
// and what it means.
func BuiltIn() []byte { return slices.Clone(builtin) }

//go:embed examples
var examples embed.FS

// exampleNames are in the order in which people read of them.
var exampleNames = []string{"two-models", "five-models", "failing-nodes", "four-cheap", "spot"}

// Example is a scenario with a name and traffic of its own, in which it matters which
// variant is chosen.
type Example struct {
	Name string
	// Description says in one line what happens in it.
	Description string
	// Data is a file that Parse reads.
	Data []byte
}

// Examples are all of them.
func Examples() []Example {
	all := make([]Example, 0, len(exampleNames))
	for _, name := range exampleNames {
		data, err := examples.ReadFile("examples/" + name + ".yaml")
		if err != nil {
			// It is built into the program.
			panic(err)
		}
		first, _, _ := strings.Cut(string(data), "\n")
		all = append(all, Example{Name: name, Description: strings.TrimPrefix(first, "# "), Data: data})
	}
	return all
}

// Named is the example with that name.
func Named(name string) (Example, bool) {
	for _, e := range Examples() {
		if e.Name == name {
			return e, true
		}
	}
	return Example{}, false
}
