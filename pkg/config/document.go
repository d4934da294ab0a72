package config

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
)

// documents is the number of YAML documents in a text that say anything. A reader of YAML takes
// the first one and is silent of the others.
func documents(text string) int {
	n, said := 0, false
	for lines := bufio.NewReader(strings.NewReader(text)); ; {
		line, err := lines.ReadString('\n')
		line = strings.TrimRight(line, " \t\r\n")
		mark, rest := cutMark(line)
		if mark {
			said = false
		}
		if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' && !said {
			n, said = n+1, true
		}
		if err != nil {
			break
		}
	}
	if n == 1 {
		// Maps of JSON need nothing between them.
		return max(n, values(text))
	}
	return n
}

// cutMark is what a line says beside the mark that begins or ends a document, and whether it has
// one.
func cutMark(line string) (mark bool, rest string) {
	for _, m := range []string{"---", "..."} {
		if rest, ok := strings.CutPrefix(line, m); ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t') {
			return true, rest
		}
	}
	return false, line
}

// values is the number of values of JSON that a text begins with.
func values(text string) (n int) {
	for read := json.NewDecoder(strings.NewReader(text)); ; n++ {
		var value json.RawMessage
		if read.Decode(&value) != nil {
			return n
		}
	}
}

// surplus says that there are too many documents.
func surplus(n int) string {
	return fmt.Sprintf("it has %d YAML documents, of which only the first would count: write all of it as one, without --- between", n)
}
