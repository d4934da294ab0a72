package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// generated is said at the top of each page.
const generated = "Generated from the program by `make update`: change the source, not this page."

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: go run ./hack/referencepages DIRECTORY"))
	}
	pages := map[string]func() (string, error){
		"settings.md": settings,
		"reasons.md":  reasons,
		"variantautoscaling.md": func() (string, error) {
			return fields("manifests/crd/llmd.ai_variantautoscalings.yaml", "v1alpha1")
		},
		"llamastackdistribution.md": func() (string, error) {
			return fields("manifests/llamastack/crd.yaml", "v1alpha2")
		},
	}
	for name, page := range pages {
		text, err := page()
		if err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
		}
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644); err != nil { //nolint:gosec // a page that everybody may read
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

// cell is a text as one cell of a table: on one line, and without what Markdown or a
// browser would take for something else.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;").Replace(strings.Join(strings.Fields(text), " "))
}

// code is a word as it is typed.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}
