package decision

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table of a doc.go names every number that is a constant of its package, and no other.
func TestEveryConstantIsInTheTable(t *testing.T) {
	checkTable(t, ".")
	checkTable(t, "../forecast")
}

// No number decides that has no name: what stands in a function is a whole, a nothing, a
// half of something, or a unit of a text. The defaults of what operators set have theirs in
// the settings.
func TestNoNumberWithoutANameDecides(t *testing.T) {
	plain := []string{"0", "0.0", "1", "1.0", "100", "1000"}
	halves := []string{"SizedFor", "alternativeOf"}
	sources(t, ".", func(_ string, file *ast.File) {
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || strings.HasPrefix(f.Name.Name, "Default") || slices.Contains(halves, f.Name.Name) {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if g, is := n.(*ast.GenDecl); is && g.Tok == token.CONST {
					return false
				}
				if l, is := n.(*ast.BasicLit); is && (l.Kind == token.INT || l.Kind == token.FLOAT) {
					assert.Contains(t, plain, l.Value, "in %s", f.Name.Name)
				}
				return true
			})
		}
	})
}

// sources parses the files of a package that are no tests.
func sources(t *testing.T, dir string, see func(name string, file *ast.File)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	below, err := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	require.NoError(t, err)
	for _, name := range append(names, below...) {
		if strings.HasSuffix(name, "_test.go") || filepath.Base(name) == "names.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		see(filepath.Base(name), file)
	}
}

// checkTable holds the table of a package against the numbers that it names.
func checkTable(t *testing.T, dir string) {
	t.Helper()
	var table, constants []string
	root, err := filepath.Abs(dir)
	require.NoError(t, err)
	sources(t, dir, func(name string, file *ast.File) {
		if name == "doc.go" && file.Name.Name == filepath.Base(root) {
			for _, row := range regexp.MustCompile(`(?m)^\t(\w+) {2,}\S+ +[PMC] `).FindAllStringSubmatch(file.Doc.Text(), -1) {
				table = append(table, row[1])
			}
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && (g.Tok == token.CONST || g.Tok == token.VAR) {
				constants = append(constants, numbers(g)...)
			}
		}
	})
	assert.ElementsMatch(t, constants, table, dir)
}

// numbers are the names of a declaration that are numbers, or tables of these, and neither counted
// by iota nor made by a function.
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
				_, isFunc := n.(*ast.FuncLit)
				if isLiteral && literal.Kind == token.STRING || isWord && word.Name == "iota" || isFunc {
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
