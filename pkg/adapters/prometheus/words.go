package prometheus

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"

	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

const (
	// longestPage bounds what is read of an answer that is none, in bytes: pages to log in have
	// scripts before their words.
	longestPage = 256 << 10
	// longestWords bounds what is told of it, in characters: conditions hold it.
	longestWords = 200
	// leastSecret is the shortest text that is taken for a secret, in characters. A shorter one could
	// be a part of any word.
	leastSecret = 3
)

var (
	unseen = regexp.MustCompile(`(?is)<!--.*?-->|<(script|style|svg|noscript)\b.*?</(script|style|svg|noscript)\s*>`)
	tag    = regexp.MustCompile(`(?s)<[a-zA-Z/!?][^>]*>`)
	link   = regexp.MustCompile(`\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>()]+`)
	// passing is what is another one in each answer: times, numbers of requests and traces, tokens.
	passing = regexp.MustCompile(`\b(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?` +
		`|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d? [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d(?: GMT)?|\d\d:\d\d:\d\d(?:[.,]\d+)?` +
		`|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{8,}|\d{6,})\b|\beyJ[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|[A-Za-z0-9+/_=-]{40,}`)
)

// words are what an answer says to a person, on one line, the same each time, without what is secret:
// the message of an object, the text of a page.
func words(body string, secret []string) string {
	text := message(body)
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		text = html.UnescapeString(tag.ReplaceAllString(unseen.ReplaceAllString(text, " "), " "))
	}
	text = strings.Join(strings.Fields(text), " ")
	for _, s := range secret {
		if len(s) >= leastSecret {
			text = strings.ReplaceAll(text, s, "(hidden)")
		}
	}
	text = link.ReplaceAllStringFunc(text, settings.Location)
	return shortened(report.Printable(passing.ReplaceAllString(text, "…")))
}

// message is the text of the field in which an object says what is wrong; the whole body where there
// is none.
func message(body string) string {
	var object map[string]any
	if json.Unmarshal([]byte(body), &object) != nil {
		return body
	}
	for _, name := range []string{"error_description", "message", "error", "detail", "details", "reason"} {
		switch said := object[name].(type) {
		case string:
			if said != "" {
				return said
			}
		case map[string]any: // as Google's and OpenAI's do
			if inner, _ := said["message"].(string); inner != "" {
				return inner
			}
		}
	}
	return body
}

func shortened(text string) string {
	if runes := []rune(text); len(runes) > longestWords {
		return strings.TrimSpace(string(runes[:longestWords])) + "…"
	}
	return text
}
