package decision

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table of a doc.go names every number that is a constant of its package, and no other.
func TestEveryConstantIsInTheTable(t *testing.T) {
	checkTable(t, ".")
	checkTable(t, "../forecast", "motions")
}

// checkTable holds the table of a package against its constants and what else decides there.
func checkTable(t *testing.T, dir string, constants ...string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var table []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		if filepath.Base(name) == "doc.go" {
			for _, row := range regexp.MustCompile(`(?m)^\t(\w+) {2,}\S+ +[PMC] `).FindAllStringSubmatch(file.Doc.Text(), -1) {
				table = append(table, row[1])
			}
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				constants = append(constants, numbers(g)...)
			}
		}
	}
	assert.ElementsMatch(t, constants, table, dir)
}

// numbers are the constants of a declaration that are neither text nor counted by iota.
func numbers(g *ast.GenDecl) []string {
	var names []string
	for _, spec := range g.Specs {
		value := spec.(*ast.ValueSpec)
		for i, name := range value.Names {
			if i >= len(value.Values) {
				continue
			}
			decides := true
			ast.Inspect(value.Values[i], func(n ast.Node) bool {
				literal, isLiteral := n.(*ast.BasicLit)
				word, isWord := n.(*ast.Ident)
				if isLiteral && literal.Kind == token.STRING || isWord && word.Name == "iota" {
					decides = false
				}
				return true
			})
			if decides {
				names = append(names, name.Name)
			}
		}
	}
	return names
}
