package status

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNotesAreBounded(t *testing.T) {
	assert.Equal(t, "short", Note("short"))
	long := Note(strings.Repeat("ä", 600))
	assert.LessOrEqual(t, len(long), mostNote)
	assert.True(t, strings.HasSuffix(long, "ä…"), "no character is cut in two")
}

func TestLongAccountsEndWithAClause(t *testing.T) {
	fits := strings.Repeat("x", mostBrief)
	assert.Equal(t, fits, Brief(fits))
	assert.Equal(t, fits+"x", Brief(fits+"x"), "one clause stays whole")
	two := "a, " + fits[len("a, "):]
	assert.Equal(t, two, Brief(two), "so does what is just short enough")
	assert.Equal(t, "a, ...", Brief(two+"x"))
	for _, end := range []string{", ", "; ", ": "} {
		assert.Equal(t, "wants 8xH100, ...", Brief("wants 8xH100"+end+fits))
		longest := strings.Repeat("x", mostBrief-len(", ..."))
		assert.Equal(t, longest+", ...", Brief(longest+end+"yyyyy"))
		assert.Equal(t, "a, ...", Brief("a, "+longest[2:]+end+"yyyyy"))
	}
}
