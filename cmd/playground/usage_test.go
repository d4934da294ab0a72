package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWithoutACommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arguments        []string
		code             int
		stdout, stderr   string
		notOut, notError string
	}{
		"help":           {[]string{"--help"}, 0, "playground empty [flags]", "", "", "playground"},
		"help in a word": {[]string{"help"}, 0, "playground demo [flags]", "", "", "playground"},
		"nothing":        {nil, 2, "", "playground demo [flags]", "playground", ""},
		"a mistake":      {[]string{"dmeo"}, 2, "", `playground: "dmeo" is no command: expected demo or empty`, "playground", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			assert.Equal(t, c.code, explain(c.arguments, &stdout, &stderr))
			assert.Contains(t, stdout.String(), c.stdout)
			assert.Contains(t, stderr.String(), c.stderr)
			if c.notOut != "" {
				assert.NotContains(t, stdout.String(), c.notOut)
			}
			if c.notError != "" {
				assert.NotContains(t, stderr.String(), c.notError)
			}
		})
	}
}
