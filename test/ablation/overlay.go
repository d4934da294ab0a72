package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
)

// source is the path of the file from the root of the module.
func (c *cut) source() string { return filepath.Join("pkg", filepath.FromSlash(c.file)) }

// apply is the file with the change.
func (c *cut) apply(code []byte) ([]byte, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, c.source(), code, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read Go: %w", err)
	}
	from, to, found := 0, 0, 0
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == c.function {
				from = files.Position(n.Body.Lbrace).Offset + 1
				to = from
				found++
			}
		case *ast.ValueSpec:
			if len(n.Values) == 1 && n.Names[0].Name == c.constant {
				from, to = files.Position(n.Values[0].Pos()).Offset, files.Position(n.Values[0].End()).Offset
				found++
			}
		}
		return true
	})
	if found != 1 {
		return nil, fmt.Errorf("%s has %d of %q: expected one function or constant of that name", c.source(), found, c.function+c.constant)
	}
	first := c.first
	if c.function != "" {
		first = "\n" + first + "\n"
	}
	changed, err := format.Source([]byte(string(code[:from]) + first + string(code[to:])))
	if err != nil {
		return nil, fmt.Errorf("%s with %q: %w", c.source(), c.first, err)
	}
	return changed, nil
}

// overlay writes the changed file and the description that the Go tool reads, into a folder, and returns
// the flags for it. Without a rule there are none.
func overlay(r *rule, root, folder string) ([]string, error) {
	if r == nil {
		return nil, nil
	}
	source := filepath.Join(root, r.cut.source())
	code, err := os.ReadFile(source) // #nosec G304: a path of this repository
	if err != nil {
		return nil, err
	}
	changed, err := r.cut.apply(code)
	if err != nil {
		return nil, err
	}
	instead, described := filepath.Join(folder, "changed.go"), filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(instead, changed, 0o600); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {source: instead}})
	if err != nil {
		return nil, fmt.Errorf("describe the change of %s: %w", strconv.Quote(r.name), err)
	}
	if err := os.WriteFile(described, text, 0o600); err != nil {
		return nil, err
	}
	return []string{"-overlay", described}, nil
}
