// Program readme writes the table of values at the end of the chart's README, in the layout
// of helm-docs, from the comments in values.yaml.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const heading = "## Values\n"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: readme <folder of the chart>")
		os.Exit(2)
	}
	if err := update(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "readme:", err)
		os.Exit(1)
	}
}

// update replaces all of README.md from the heading of the values on.
func update(chart string) error {
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	page, err := table(text)
	if err != nil {
		return err
	}
	path := filepath.Join(chart, "README.md")
	readme, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, _, found := bytes.Cut(readme, []byte(heading))
	if !found {
		return fmt.Errorf("%s has no line %q", path, strings.TrimSpace(heading))
	}
	return os.WriteFile(path, append(before, heading+"\n"+page...), 0o644)
}

// table has one line for every value: whatever is not a map with entries.
func table(text []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", err
	}
	out := strings.Builder{}
	out.WriteString("| Key | Type | Default | Description |\n|-----|------|---------|-------------|\n")
	err := walk(&out, "", "", document.Content[0])
	return out.String(), err
}

func walk(out *strings.Builder, prefix, above string, node *yaml.Node) error {
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		comment := describe(key.HeadComment)
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
			// What stands above a container's resources is true for each of them.
			inherited := ""
			if key.Value == "resources" || above != "" {
				inherited = above + comment
			}
			if err := walk(out, prefix+key.Value+".", inherited, value); err != nil {
				return err
			}
			continue
		}
		var plain any
		if err := value.Decode(&plain); err != nil {
			return fmt.Errorf("%s%s: %w", prefix, key.Value, err)
		}
		standard, err := json.Marshal(plain)
		if err != nil {
			return fmt.Errorf("%s%s: %w", prefix, key.Value, err)
		}
		if comment == "" {
			comment = above
		}
		fmt.Fprintf(out, "| %s%s | %s | `%s` | %s |\n", prefix, key.Value, kind(plain), standard, comment)
	}
	return nil
}

// describe makes a line of a comment, with its examples as code.
func describe(comment string) string {
	// A comment of the whole section is apart from that of its first value.
	parts := strings.Split(comment, "\n\n")
	var line []string
	for _, text := range strings.Split(parts[len(parts)-1], "\n") {
		text = strings.TrimPrefix(text, "#")
		if strings.HasPrefix(text, "   ") {
			text = " `" + strings.TrimSpace(text) + "`"
		}
		line = append(line, strings.TrimSpace(text))
	}
	// A page of the site reads <name> as an element of HTML.
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(line, " "))
}

// kind is a word of helm-docs.
func kind(value any) string {
	switch value.(type) {
	case bool:
		return "bool"
	case int:
		return "int"
	case float64:
		return "float"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	default:
		return "string"
	}
}
