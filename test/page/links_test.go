package page_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/page"
)

const root = "../.."

// pages are all pages, by path.
func pages(t *testing.T) map[string]page.Page {
	t.Helper()
	all, err := page.Pages(root)
	require.NoError(t, err)
	byPath := map[string]page.Page{}
	for _, p := range all {
		byPath[p.Path] = p
	}
	return byPath
}

// outside reports whether a link leaves the repository. Nothing follows those here.
func outside(target string) bool {
	return strings.HasPrefix(target, "https://") || strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "mailto:")
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, p := range all {
		for _, link := range p.Links {
			if outside(link.Target) {
				continue
			}
			file, anchor, named := strings.Cut(link.Target, "#")
			target := p.Path
			if file != "" {
				target = path.Join(path.Dir(p.Path), file)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); !assert.NoError(t, err, "%s: %s", link.Place, link.Target) {
				continue
			}
			if named {
				assert.True(t, all[target].Anchors[anchor], "%s: %s has no heading #%s", link.Place, target, anchor)
			}
		}
	}
}

func TestEveryPageIsReachedFromTheIndex(t *testing.T) {
	t.Parallel()
	all := pages(t)
	reached, next := map[string]bool{}, []string{"docs/README.md"}
	for len(next) > 0 {
		here := next[0]
		next = next[1:]
		if reached[here] {
			continue
		}
		reached[here] = true
		for _, link := range all[here].Links {
			file, _, _ := strings.Cut(link.Target, "#")
			if target := path.Join(path.Dir(here), file); !outside(link.Target) && strings.HasSuffix(target, ".md") {
				next = append(next, target)
			}
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "docs/") {
			assert.True(t, reached[name], "%s is in no list: link it from docs/README.md", name)
		}
	}
}

func TestTheFirstPageIsShort(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, pages(t)["README.md"].Lines, 150)
}

// Every reason has an entry in the runbook; conditions, events and alerts link there.
func TestTheRunbookHasEveryReason(t *testing.T) {
	t.Parallel()
	anchors := pages(t)["docs/operate/runbook.md"].Anchors
	for _, reason := range v1alpha1.Reasons() {
		assert.True(t, anchors[strings.ToLower(reason.Name)], "docs/operate/runbook.md has no heading %s: say what it means and what to do", reason.Name)
	}
}

// Every reason of an event that no condition has is in the runbook too.
func TestTheRunbookHasEveryEvent(t *testing.T) {
	t.Parallel()
	anchors := pages(t)["docs/operate/runbook.md"].Anchors
	sources, err := filepath.Glob(root + "/pkg/controller/*.go")
	require.NoError(t, err)
	below, err := filepath.Glob(root + "/pkg/controller/*/*.go")
	require.NoError(t, err)
	found := 0
	for _, source := range append(slices.Concat(sources, below), root+"/plugins/acceleratorplacement/ownership.go") {
		text, err := os.ReadFile(source) //nolint:gosec // a file of this repository
		require.NoError(t, err)
		for _, constant := range regexp.MustCompile(`(?m)^\t(?:event|reason)[A-Z]\w* *= "([A-Z]\w+)"`).FindAllStringSubmatch(string(text), -1) {
			found++
			assert.True(t, anchors[strings.ToLower(constant[1])], "docs/operate/runbook.md has no heading %s: say what the event means and what to do", constant[1])
		}
	}
	require.Positive(t, found)
}

// The site takes an element of HTML for what it is, so a page says <name> in quotes or not
// at all: an element without an end fails the build of the site.
func TestPagesHaveNoElementsButLineBreaks(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, found := range p.Elements {
			assert.Equal(t, "<br>", found.Target, "%s: put it into backquotes", found.Place)
		}
	}
	found, err := page.Pages(write(t, "a <name> here, `<quoted>`, <br> and <!-- a remark -->\n"))
	require.NoError(t, err)
	assert.Equal(t, []page.Link{{Place: "README.md:1", Target: "<name>"}, {Place: "README.md:1", Target: "<br>"}}, found[0].Elements)
}
