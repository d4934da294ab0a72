package page

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Page is one Markdown file.
type Page struct {
	// Path is relative to the root of the repository, with slashes.
	Path   string
	Blocks []Block
	Links  []Link
	// Elements are the elements of HTML outside of blocks and of quoted code.
	Elements []Link
	// Remarks are the comments that no block follows, and Indented the lines outside of
	// blocks that begin with four spaces, without them.
	Remarks, Indented []Link
	// Anchors are the names by which links reach its headings.
	Anchors map[string]bool
	Lines   int
}

// Block is one fenced block.
type Block struct {
	// Place is the path and the line where it starts, for messages.
	Place string
	// Language is the first word after the fence.
	Language string
	Text     string
	// Mark is the comment on the line before it, without its brackets: who runs the block,
	// or why nobody does. It is empty without one.
	Mark string
}

// The marks by which a test runs a block. Any other mark says why none does.
const (
	// Alone needs nothing but kubectl-wva: cmd/kubectl-wva runs it.
	Alone = "run"
	// OnCluster needs variants on a cluster: test/integration/kubectl runs it.
	OnCluster = "run on a cluster"
	// WithTools needs kubectl, helm and a cluster: test/chart/install runs it.
	WithTools = "run with kubectl and helm"
	// OnEarlierKind needs kubectl, objects of the earlier form and their CRD:
	// test/chart/install runs it too.
	OnEarlierKind = "run with kubectl on the earlier kind"
	// OnEmptyCluster is a step of the walk through the empty cluster: test/chart/install runs
	// it too. With " until " and a text after it, the block goes on until the walk ends, and
	// the next one begins when it has printed the text.
	OnEmptyCluster = "run on the empty cluster"
	// Printed is a block of text that the marked block before it printed.
	Printed = "printed"
)

// Link is one link or picture, or an element of HTML, and where it is.
type Link struct {
	Place, Target string
}

// Pages are all pages below the root of the repository.
func Pages(root string) ([]Page, error) {
	var pages []Page
	read := func(path string) error {
		data, err := os.ReadFile(path) //nolint:gosec // a page of this repository
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		page, err := parse(filepath.ToSlash(name), string(data))
		pages = append(pages, page)
		return err
	}
	for _, top := range []string{"README.md", "CONTRIBUTING.md", "docs", "charts"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			return read(path)
		})
		if err != nil {
			return nil, err
		}
	}
	return pages, nil
}

var (
	fence   = regexp.MustCompile("^( *)```+ *([a-z]*)")
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	element = regexp.MustCompile(`</?[a-zA-Z][^>]*>`)
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	quoted  = regexp.MustCompile("`[^`]*`")
)

func parse(path, text string) (Page, error) {
	page := Page{Path: path, Anchors: map[string]bool{}}
	var block *Block
	indent, before := "", ""
	for line := range strings.Lines(text) {
		page.Lines++
		line = strings.TrimSuffix(line, "\n")
		place := fmt.Sprintf("%s:%d", path, page.Lines)
		opening := fence.FindStringSubmatch(line)
		switch {
		case block != nil && strings.HasPrefix(strings.TrimSpace(line), "```"):
			page.Blocks = append(page.Blocks, *block)
			block = nil
		case block != nil:
			block.Text += strings.TrimPrefix(line, indent) + "\n"
		case opening != nil:
			indent = opening[1]
			block = &Block{Place: place, Language: opening[2], Mark: comment(before)}
			if block.Mark != "" {
				page.Remarks = page.Remarks[:len(page.Remarks)-1]
			}
		case strings.Contains(line, "```") || strings.Contains(line, "~~~"):
			return page, fmt.Errorf("%s: a block begins with ``` on a line of its own", place)
		default:
			if remark := comment(strings.TrimSpace(line)); remark != "" {
				page.Remarks = append(page.Remarks, Link{Place: place, Target: remark})
			}
			if text, ok := strings.CutPrefix(line, "    "); ok {
				page.Indented = append(page.Indented, Link{Place: place, Target: strings.TrimSpace(text)})
			}
			if title := heading.FindStringSubmatch(line); title != nil {
				page.Anchors[unused(page.Anchors, anchor(title[1]))] = true
			}
			for _, found := range element.FindAllString(quoted.ReplaceAllString(line, ""), -1) {
				page.Elements = append(page.Elements, Link{Place: place, Target: found})
			}
			for _, found := range link.FindAllStringSubmatch(quoted.ReplaceAllString(line, ""), -1) {
				page.Links = append(page.Links, Link{Place: place, Target: found[1]})
			}
		}
		before = strings.TrimSpace(line)
	}
	if block != nil {
		return page, fmt.Errorf("%s: the block has no end", block.Place)
	}
	return page, nil
}

// comment is the text of a line that is one comment; empty for any other line.
func comment(line string) string {
	text, opened := strings.CutPrefix(line, "<!--")
	text, closed := strings.CutSuffix(text, "-->")
	if !opened || !closed {
		return ""
	}
	return strings.TrimSpace(text)
}

var dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchor is the name that a reader's browser knows a heading by.
func anchor(title string) string {
	title = link.ReplaceAllString(title, "")
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

func unused(taken map[string]bool, name string) string {
	for i, free := 0, name; ; free = fmt.Sprintf("%s-%d", name, i) {
		if !taken[free] {
			return free
		}
		i++
	}
}

// document opens the lines of a shell that are another command's input: << END.
var document = regexp.MustCompile(`<<-? *'?"?([A-Za-z]+)`)

// Until is the text after which the next step of the walk begins; ok is false for a block
// that ends by itself.
func (b Block) Until() (text string, ok bool) {
	_, text, ok = strings.Cut(b.Mark, " until ")
	return text, ok
}

// Commands are the command lines of a block in a shell's language, without prompts,
// comments and what a command printed.
func (b Block) Commands() []string {
	if b.Language != "sh" && b.Language != "bash" && b.Language != "shell" && b.Language != "console" {
		return nil
	}
	var commands []string
	continued, here := false, ""
	for line := range strings.Lines(b.Text) {
		line = strings.TrimSpace(line)
		prompt := strings.HasPrefix(line, "$ ")
		if b.Language == "console" && !prompt && !continued {
			continue
		}
		line = strings.TrimPrefix(line, "$ ")
		if here != "" || line == "" || strings.HasPrefix(line, "#") {
			if line == here {
				here = ""
			}
			continue
		}
		if opening := document.FindStringSubmatch(line); opening != nil {
			here = opening[1]
		}
		part, more := strings.CutSuffix(line, `\`)
		if continued {
			commands[len(commands)-1] += " " + strings.TrimSpace(part)
		} else {
			commands = append(commands, strings.TrimSpace(part))
		}
		continued = more
	}
	return commands
}

// Words are the words of a command line, up to a comment, a pipe or a redirection; quotes
// are taken off.
func Words(command string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	open := false
	end := func() {
		if open {
			words = append(words, word.String())
		}
		word.Reset()
		open = false
	}
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ' || r == '\t':
			end()
		case (r == '|' || r == '>' || r == '#' || r == ';' || r == '&') && !open:
			return words
		default:
			open = true
			word.WriteRune(r)
		}
	}
	end()
	return words
}
