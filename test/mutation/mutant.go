package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// A mutant is one change of the code and what came of it.
type mutant struct {
	identity
	line, column int
	status       status
}

// An identity names a change in a way that outlives changes elsewhere in the file.
type identity struct {
	file, function, kind string
	// code is the line without its indent, with @ before the operator that is changed.
	code string
}

func (i identity) String() string {
	return fmt.Sprintf("%s %s %s: %s", i.file, i.function, i.kind, i.code)
}

type status string

const (
	killed    status = "KILLED"
	lived     status = "LIVED"
	timedOut  status = "TIMED OUT"
	notViable status = "NOT VIABLE"
)

func (m mutant) compare(o mutant) int {
	return cmp.Or(strings.Compare(m.file, o.file), cmp.Compare(m.line, o.line), cmp.Compare(m.column, o.column),
		strings.Compare(m.kind, o.kind))
}

// locate turns positions into identities, and leaves out what does not compile.
func locate(name string, source []byte, findings []finding) ([]mutant, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read the changed file: %w", err)
	}
	lines := strings.Split(string(source), "\n")
	var mutants []mutant
	for _, f := range findings {
		if status(f.Status) == notViable {
			continue
		}
		if f.Line < 1 || f.Line > len(lines) || f.Column < 1 || f.Column > len(lines[f.Line-1]) {
			return nil, fmt.Errorf("%s: gremlins changed line %d, column %d, which is not there", name, f.Line, f.Column)
		}
		switch status(f.Status) {
		case killed, lived, timedOut:
		default:
			return nil, fmt.Errorf("%s:%d: gremlins says %q of a change", name, f.Line, f.Status)
		}
		text := lines[f.Line-1]
		code := strings.TrimSpace(text[:f.Column-1] + "@" + text[f.Column-1:])
		mutants = append(mutants, mutant{
			identity: identity{file: name, function: enclosing(set, file, f.Line), kind: f.Kind, code: code},
			line:     f.Line, column: f.Column, status: status(f.Status),
		})
	}
	return mutants, nil
}

// enclosing is the name of the function that the line lies in, with its receiver, or "-"
// outside of any.
func enclosing(set *token.FileSet, file *ast.File, line int) string {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || line < set.Position(f.Pos()).Line || line > set.Position(f.End()).Line {
			continue
		}
		if f.Recv == nil {
			return f.Name.Name
		}
		return receiver(f.Recv.List[0].Type) + "." + f.Name.Name
	}
	return "-"
}

func receiver(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}
